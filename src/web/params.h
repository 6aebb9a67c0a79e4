/* The parameters of a query, checked: what is wrong is answered 400 with the parameter's name. For
 * web/ only. Thread: loop.
 *
 *   struct params p = PARAMS_INIT(r);
 *   days = params_int(&p, "days", 1, 90, 14);
 *   limit = params_limit(&p, 100);
 *   if (params_refuse(&p))
 *           return;                     it is answered
 */
#ifndef WEB_PARAMS_H
#define WEB_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/server.h"

enum { PARAMS_LIMIT_MAX = 500, CURSOR_BYTES = 1024 };

struct params {
	struct http_request *r;
	char wrong[300]; /* the first that is wrong, as people read it; "": none */
};
#define PARAMS_INIT(request)                                                                       \
	{                                                                                          \
		.r = (request)                                                                     \
	}

/* A whole number; fallback when it is absent or wrong. */
int64_t params_int(struct params *p, const char *name, int64_t min, int64_t max, int64_t fallback);
/* `limit`: 1 … 500. Without it: what web_set_page_limit() set when the page is asked for, else
 * fallback. */
int64_t params_limit(struct params *p, int64_t fallback);
/* Which of the NULL-terminated words; fallback when absent or wrong. */
int params_word(struct params *p, const char *name, const char *const *words, int fallback);
/* Which of the words, of which several may be named with commas between: a bit each; 0 when absent. */
unsigned params_words(struct params *p, const char *name, const char *const *words);
/* The decoded text into out, "" when it is absent; too long or no UTF-8 is wrong. */
void params_text(struct params *p, const char *name, char *out, size_t out_bytes);
/* A day, YYYY-MM-DD, as milliseconds of its beginning in UTC. */
int64_t params_day(struct params *p, const char *name, int64_t fallback_ms);
/* The bytes in `cursor` that params_make_cursor() was given, into out with a NUL behind them; how
 * many, 0 when it is absent. They come from outside all the same. */
size_t params_cursor(struct params *p, char *out, size_t out_bytes);
/* What `cursor` may begin anew with: for an entry that the caller found wrong. */
void params_wrong(struct params *p, const char *name, const char *why);
/* Answers 400 when anything was wrong: true. */
bool params_refuse(struct params *p);

/* The text for `next`: any bytes of at most CURSOR_BYTES / 2. free(). */
char *params_make_cursor(const void *p, size_t n);

#endif
