/* jansson with this program's limits: no duplicate keys, bounded depth; and getters that treat a field of
 * the wrong type like a missing one. Thread: a value belongs to one thread at a time. Owns: as jansson; each function
 * says so where it returns memory. */
#pragma once

/* The end of the number, true, false or null that begins at p; NULL: there is none before `end`. */
const char *json_scalar_end(const char *p, const char *end);
/* A new reference in *ret. ERR_INVALID with "line N: why" in e: not JSON, a duplicate
 * key, deeper than 64, a NUL in a string, or something after its end. */
int json_parse(const char *p, size_t n, json_t **ret, struct error *e) MUST_CHECK;
/* In a text of JSON from outside, puts U+FFFD in place of each escaped NUL: no text in this program, and none of PostgreSQL, can
 * contain one. The length stays the same. */
void json_replace_nuls(char *text, size_t n);
/* Compact text, keys in their order. free(). */
char *json_text(const json_t *v);
/* A NULL-terminated list as an array of text; NULL gives NULL. free(). */
char *json_text_of_strings(const char *const *v);
/* Borrowed text of obj[key], or NULL if it is absent or not a string. obj may be NULL. */
const char *json_get_str(const json_t *obj, const char *key);
/* obj[key] if it has that type, else fallback. obj may be NULL. */
int64_t json_get_int(const json_t *obj, const char *key, int64_t fallback);
bool json_get_bool(const json_t *obj, const char *key, bool fallback);
/* obj[a][b]…: borrowed, NULL if any step is missing. The path ends with NULL. */
json_t *json_at(const json_t *obj, ...) __attribute__((sentinel));
/* Sets obj[key] to a string, or to null if text is NULL or not UTF-8. */
void json_set_str(json_t *obj, const char *key, const char *text);
/* The same for text that a vendor or an author wrote: bytes that are not UTF-8 become U+FFFD, because jansson
 * refuses them. */
void json_set_foreign_text(json_t *obj, const char *key, const char *text);
/* Such a text as a value: a new reference. */
json_t *json_foreign_text(const char *text);
void json_set_int(json_t *obj, const char *key, int64_t value);
/* Sets obj[key] to the time in RFC 3339, or to null if wall_ms is 0. */
void json_set_time(json_t *obj, const char *key, int64_t wall_ms);
/* Such a time as a value: a new reference. */
json_t *json_time(int64_t wall_ms);
/* A NULL-terminated list of such foreign texts as an array, empty for NULL: a new reference. */
json_t *json_foreign_texts(char *const *list);
/* Writes the finite number as json_dumps() of jansson 2.14 does: "%.17g", and ".0" if that looks like a whole number. Returns its
 * bytes, without a NUL; 0: it is too large or small for this. Several times faster than printf(). */
enum { JSON_REAL_BYTES = 32 };
size_t json_real_text(double v, char text[JSON_REAL_BYTES]);
