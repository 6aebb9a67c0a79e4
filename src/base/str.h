/* Strings: comparing and checking them, and NULL-terminated arrays of owned strings.
 *
 * Thread: any. Owns: the caller owns an array, with strv_free(). */
#pragma once

bool str_eq(const char *a, const char *b); /* NULL equals only NULL */
bool str_has_prefix(const char *s, const char *prefix);
bool str_has_suffix(const char *s, const char *suffix);
/* Whole string, decimal, optional '-'. ERR_INVALID, also on overflow. */
int parse_int64(const char *s, int64_t *ret) MUST_CHECK;
/* RFC 3629: no overlong forms, no surrogates. NUL bytes are valid. */
bool utf8_is_valid(const char *s, size_t n);
/* The length of the sequence at s, or 0 if the first of the n > 0 bytes do not begin one by the same rules. */
size_t utf8_sequence_bytes(const char *s, size_t n);
/* The length and the code point of the sequence at s; 1 and U+FFFD if its bytes are not UTF-8. */
size_t utf8_decode(const char *s, uint32_t *ret);
/* A copy with U+FFFD in place of each byte that is not UTF-8. free() */
char *utf8_repair(const char *s);
/* The largest length <= max that does not cut a UTF-8 sequence of s. */
size_t utf8_cut(const char *s, size_t n, size_t max);
/* The entry of the NULL-terminated list with the smallest edit distance to s, or NULL if none is near enough to be a
 * misspelling of s. A folder ("model/") at the beginning of both names does not make them nearer. Borrowed. */
const char *str_nearest(const char *s, const char *const *list);
/* The same at any distance; NULL: the list is empty, or s is too long to compare. */
const char *str_least_far(const char *s, const char *const *list);
/* "owner/name" as GitHub spells repositories: [A-Za-z0-9_.-]{1,100} each side. */
bool is_repository_name(const char *s);
/* Exactly 40 lower-case hexadecimal digits. */
bool is_sha1(const char *s);

/* ---- NULL-terminated arrays ---- */
void strv_free(char **v); /* NULL is fine */
size_t strv_len(const char *const *v);
bool strv_contains(const char *const *v, const char *s);
bool strv_contains_nocase(const char *const *v, const char *s); /* ASCII */
/* Appends a copy; *v may be NULL. It costs O(length), so it is for short lists. */
void strv_add(char ***v, const char *s);
char **strv_copy(const char *const *v); /* NULL gives an empty array */
