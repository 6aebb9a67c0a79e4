/* One word of a failure's message as it is compared: see failure_text.h, whose part it is. Pure. */
#ifndef MODEL_FAILURE_WORD_H
#define MODEL_FAILURE_WORD_H

#include <stdbool.h>
#include <stddef.h>

enum { FAILURE_WORD_MAX_BYTES = 200 }; /* longer ones are no words: blobs, keys */

#define FAILURE_PLACEHOLDER 'N' /* for what was taken out */

bool failure_is_digit(char c);
/* Letters, digits (ASCII) and '_'. */
bool failure_is_word(char c);
size_t failure_span(const char *p, bool (*is_part)(char c));
bool failure_has_digit(const char *p, size_t n);

struct failure_word {
	char text[FAILURE_WORD_MAX_BYTES];
	size_t len;
};
/* The word of n > 0 bytes at p, what follows it included where that belongs to it: fraction and unit
 * of a number, the rest of a UUID. Returns how many bytes it is in all. */
size_t failure_word_take(const char *p, size_t n, struct failure_word *ret);

#endif
