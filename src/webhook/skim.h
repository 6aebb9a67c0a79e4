/* Checks in one pass that a webhook's body is JSON, and copies the few fields that decide whether the webhook is used.
 * It does not build a tree, because it runs on the loop for every delivery of a busy repository.
 *
 * Thread: any. A pure function. Owns: the caller owns the result, which needs no release. */
#ifndef WEBHOOK_SKIM_H
#define WEBHOOK_SKIM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* A text is "" if its field is absent, not a string, too long, or contains a NUL. */
struct skim {
	char action[64];
	char repository[208]; /* repository.full_name */
	char ref[512];        /* push */
	bool is_deleted;      /* push: deleted is true */
	bool has_base_change; /* pull_request: changes.base is an object */
	bool is_pull_comment; /* issue_comment: issue.pull_request is an object */
};

/* Checks the complete grammar of RFC 8259: UTF-8 without overlong forms and surrogates, paired \u escapes, at most 64
 * levels, a top-level object, and nothing after it. It refuses duplicate keys of the fields above (and of repository,
 * changes and issue); json_parse() refuses all other duplicates later.
 * body[n] must be '\0'. ERR_INVALID with "byte N: why" in e; *ret is then not valid. */
int skim(const char *body, size_t n, struct skim *ret, struct error *e) MUST_CHECK;

#endif
