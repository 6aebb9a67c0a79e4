/* Small questions about strings that several layers ask. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

bool str_eq(const char *a, const char *b); /* NULL equals only NULL */
bool str_has_prefix(const char *s, const char *prefix);
bool str_has_suffix(const char *s, const char *suffix);
/* Whole string, decimal, optional '-'. ERR_INVALID, also on overflow. */
int parse_int64(const char *s, int64_t *ret) MUST_CHECK;
/* RFC 3629; no overlong forms, no surrogates. NUL bytes are valid. */
bool utf8_is_valid(const char *s, size_t n);
/* The largest length <= max that does not cut a UTF-8 sequence of s. */
size_t utf8_cut(const char *s, size_t n, size_t max);
/* The entry of the NULL-terminated list that is nearest to s by edit distance,
 * or NULL when none is near enough to be what was meant. Borrowed. */
const char *str_nearest(const char *s, const char *const *list);
/* The same however far it is; NULL for an empty list or a word too long to compare. */
const char *str_least_far(const char *s, const char *const *list);
/* "owner/name" as GitHub spells repositories: [A-Za-z0-9_.-]{1,100} each side. */
bool is_repository_name(const char *s);
/* Exactly 40 lower-case hexadecimal digits. */
bool is_sha1(const char *s);

#endif
