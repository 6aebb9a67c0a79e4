/* One pass over a webhook's body: is it JSON, and what few fields does the decision whether
 * it is used depend on? No tree is built and nothing is copied but those fields, because
 * this runs on the loop for every delivery of a busy repository. */
#ifndef WEBHOOK_SKIM_H
#define WEBHOOK_SKIM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* A text is "" when its field is absent, no string, too long or contains a NUL. */
struct skim {
	char action[64];
	char repository[208]; /* repository.full_name */
	char ref[512];        /* push */
	bool is_deleted;      /* push: deleted is true */
	bool has_base_change; /* pull_request: changes.base is an object */
	bool is_pull_comment; /* issue_comment: issue.pull_request is an object */
};

/* Checks the whole grammar of RFC 8259: UTF-8 without overlong forms and surrogates, paired
 * \u escapes, at most 64 levels, a top-level object, nothing behind it. Of duplicate keys
 * those of the fields above (and of repository, changes and issue themselves) are refused,
 * others pass here and are refused by who builds the tree.
 * body[n] must be '\0'. ERR_INVALID with "byte N: why" in e; *ret is then not to be used. */
int skim(const char *body, size_t n, struct skim *ret, struct error *e) MUST_CHECK;

#endif
