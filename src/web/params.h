/* The parameters of a query, checked: a wrong one is answered with 400 and its name. Private to web/. Thread: loop.
 *
 *   struct params p = {.r = r};
 *   days = params_int(&p, "days", 1, 90, 14);
 *   limit = params_limit(&p, 100);
 *   if (params_refuse(&p))
 *           return;                     the request is answered
 */
#pragma once

#include "http/server.h"
#include "model/record.h"

enum { PARAMS_LIMIT_MAX = 500, CURSOR_BYTES = 1024 };

struct params {
	struct http_request *r;
	char wrong[300]; /* the first mistake, for people; "": there is none */
};

/* A whole number; fallback if it is absent or wrong. */
int64_t params_int(struct params *p, const char *name, int64_t min, int64_t max, int64_t fallback);
/* `limit`: 1 … 500. Without it: the page limit of the route for a page, else fallback. */
int64_t params_limit(struct params *p, int64_t fallback);
/* The index of the word in the list, whose names are all set; fallback if it is absent or wrong. */
int params_word(struct params *p, const char *name, const struct words *words, int fallback);
/* Several words with commas between them: a bit for each index; 0 if absent. */
unsigned params_words(struct params *p, const char *name, const struct words *words);
/* The decoded text in out, "" if it is absent. A text that is too long or not UTF-8 is wrong. Returns out, or NULL for "". */
const char *params_text(struct params *p, const char *name, char *out, size_t out_bytes);
/* A day, YYYY-MM-DD, as milliseconds of its beginning in UTC. */
int64_t params_day(struct params *p, const char *name, int64_t fallback_ms);
/* The bytes that cursor_json() put into `cursor`, in out with a NUL after them. Returns how many, 0 if it is absent. Check
 * them: they come from outside. */
size_t params_cursor(struct params *p, char *out, size_t out_bytes);
#define WRONG_CURSOR "not a value of \"next\" in an answer"
/* Records a mistake that the caller found. */
void params_wrong(struct params *p, const char *name, const char *why);
/* If there was a mistake, answers 400 and returns true. */
bool params_refuse(struct params *p);
/* The same for a request that reads the store; frees it (web_read_free()). */
bool params_refuse_read(struct params *p, void *read);
