/* NULL-terminated arrays of owned strings. */
#ifndef BASE_STRV_H
#define BASE_STRV_H

#include <stdbool.h>
#include <stddef.h>

void strv_free(char **v); /* NULL is fine */
size_t strv_len(const char *const *v);
bool strv_contains(const char *const *v, const char *s);
bool strv_contains_nocase(const char *const *v, const char *s); /* ASCII */
/* Appends a copy; *v may be NULL. Costs O(length): for short lists. */
void strv_add(char ***v, const char *s);
char **strv_copy(const char *const *v); /* NULL gives an empty array */

#endif
