/* GitHub's webhooks: decides which of them are used, and reads their bodies as model events.
 *
 * Thread: any. Pure functions. Owns: the caller owns an event, with event_release(). */
#pragma once

#include "config/config.h"
#include "model/event.h"

/* ---- skimming: skim.c ----
 *
 * Checks in one pass that a webhook's body is JSON, and copies the few fields that decide whether the webhook is used.
 * It does not build a tree, because it runs on the loop for every delivery of a busy repository.
 *
 * Thread: any. A pure function. Owns: the caller owns the result, which needs no release. */

/* A text is "" if its field is absent, not a string, too long, or contains a NUL. */
struct skim {
	char action[64];
	char repository[208]; /* repository.full_name */
	char ref[512];        /* push */
	bool is_deleted;      /* push: deleted is true */
	bool has_base_change; /* pull_request: changes.base is an object */
	bool is_pull_comment; /* issue_comment: issue.pull_request is an object */
	bool has_nul;         /* a string has an escaped NUL: json_replace_nuls() */
};

/* Checks the complete grammar of RFC 8259: UTF-8 without overlong forms and surrogates, paired \u escapes, at most 64
 * levels, a top-level object, and nothing after it. It refuses duplicate keys of the fields above (and of repository,
 * changes and issue); event_parse() refuses those of the other fields that it reads.
 * body[n] must be '\0'. ERR_INVALID with "byte N: why" in e; *ret is then not valid. */
int skim(const char *body, size_t n, struct skim *ret, struct error *e) MUST_CHECK;

enum webhook_class {
	WEBHOOK_USED,
	WEBHOOK_PONG,
	WEBHOOK_IGNORED,
};

/* event: the X-GitHub-Event header. *ret_reason (static) is the reason if the webhook is ignored. Of the configuration
 * only upstream's repository (compared without case) and branches count. */
enum webhook_class webhook_classify(
    const char *event, const struct skim *s, const struct config *c, const char **ret_reason);

/* A push to the branch that accelerators.git follows: its url is https://HOST/owner/name(.git) with the
 * repository's name (compared without case). */
bool webhook_is_registry_push(const char *event, const struct skim *s, const struct config *c);

/* Requires only the fields that are used, each with its type: some of GitHub's own bodies do not satisfy GitHub's
 * schema. See event_parse_fn. A user that no longer exists (null) has the author "". ERR_INVALID also if the body
 * is not JSON, or the event or its action is not used. */
event_parse_fn event_parse;
