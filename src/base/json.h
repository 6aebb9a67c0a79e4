/* jansson with this program's limits: no duplicate keys, bounded depth and size,
 * and getters that forgive a missing or ill-typed optional field. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* A new reference in *ret. ERR_INVALID with "line N: why" in e: not JSON, a duplicate
 * key, deeper than 64, NUL in a string, or something behind its end. */
int json_parse(const char *p, size_t n, json_t **ret, struct error *e) MUST_CHECK;
/* Compact text, keys in their order. free(). */
char *json_text(const json_t *v);
/* Borrowed text of obj[key], or NULL when absent or no string. obj may be NULL. */
const char *json_get_str(const json_t *obj, const char *key);
/* obj[key] when it is an integer, else fallback. */
int64_t json_get_int(const json_t *obj, const char *key, int64_t fallback);
bool json_get_bool(const json_t *obj, const char *key, bool fallback);
/* obj[a][b]…: borrowed, NULL when any step is missing. The path ends with NULL. */
json_t *json_at(const json_t *obj, ...) __attribute__((sentinel));
/* Set obj[key] to a string, or to null when text is NULL. */
void json_set_str(json_t *obj, const char *key, const char *text);
void json_set_int(json_t *obj, const char *key, int64_t value);
/* RFC 3339, or null when wall_ms is 0. */
void json_set_time(json_t *obj, const char *key, int64_t wall_ms);

#endif
