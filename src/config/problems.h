/* Every mistake found while the files are read, told at the end in the order of file
 * and line: whoever writes a configuration wants all of them at once.
 *
 * Thread: the one that reads. Texts never hold a secret's content. */
#ifndef CONFIG_PROBLEMS_H
#define CONFIG_PROBLEMS_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

struct problems {
	struct problem {
		char *file;
		int line;
		char *text;
	} * all;
	size_t n; /* also those past the limit, which are only counted */
};

void problems_release(struct problems *p);
/* The file and line where it is, and what is wrong: one line, in which what nobody can see (base/escape.h)
 * is U+FFFD. */
void problem_add(struct problems *p, const char *file, int line, const char *fmt, ...) PRINTF(4, 5);
/* How many of them stand in `all`. */
size_t problems_n_kept(const struct problems *p);
/* Appends "file:line: text\n" for each, sorted; equal places keep their order. */
void problems_print(struct problems *p, struct buf *out);

#define SHOWN_BYTES 72
/* A value as a message may show it: in quotes, cut to size, control bytes and bad UTF-8
 * as '?'. Returns out. */
const char *shown(const char *value, char out[SHOWN_BYTES]);

#endif
