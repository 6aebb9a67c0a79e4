/* What GitHub told us, as this program uses it: one struct per kind of webhook, filled
 * by webhook/payload.c and read by the planner. Fields that are not used are not here. */
#ifndef MODEL_EVENT_H
#define MODEL_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum event_kind {
	EVENT_PULL_REQUEST,
	EVENT_PUSH,
	EVENT_ISSUE_COMMENT,
	EVENT_CHECK_RUN,
	EVENT_CHECK_SUITE,
	EVENT_INSTALLATION, /* installation and installation_repositories */
};

enum pull_action {
	PULL_OPENED,
	PULL_REOPENED,
	PULL_SYNCHRONIZE,
	PULL_READY_FOR_REVIEW,
	PULL_CONVERTED_TO_DRAFT,
	PULL_LABELED,
	PULL_UNLABELED,
	PULL_BASE_CHANGED, /* `edited` with changes.base */
	PULL_CLOSED,
	N_PULL_ACTIONS
};
const char *pull_action_name(enum pull_action a); /* GitHub's word; "edited" for BASE_CHANGED */

struct pull_info {
	int64_t number;
	char *head_sha, *base_sha, *base_ref, *title, *author, *author_association;
	char **labels; /* NULL-terminated, never NULL */
	bool is_draft, is_open;
	int64_t updated_ms; /* GitHub's updated_at: orders events that arrive out of order */
};

/* One of a push, as far as it is kept. */
struct push_commit {
	char *sha;
	char *author, *title; /* login or name; first line of the message; either may be "" */
	int64_t at_ms;        /* the commit's own time; 0: unknown */
};
void push_commits_free(struct push_commit *list, size_t n);

struct event {
	enum event_kind kind;
	char *action; /* GitHub's word; "" for push */
	char *repository;
	char *sender;

	/* EVENT_PULL_REQUEST; EVENT_ISSUE_COMMENT sets only pull.number */
	enum pull_action pull_action;
	struct pull_info pull;
	char *label; /* the one of labeled and unlabeled, else NULL */

	/* EVENT_PUSH */
	char *ref; /* refs/heads/main */
	char *before, *after;
	bool is_deleted;
	bool is_forced;
	/* From `before` (not in it) to `after` (the last), oldest first. None: GitHub did not
	 * list all of them, so what lies between is not known. */
	struct push_commit *commits;
	size_t n_commits;
	int64_t pushed_ms;  /* 0: unknown */
	char *head_message; /* first line of the head commit, may be NULL */
	char *head_author;  /* login or name, may be NULL */

	/* EVENT_ISSUE_COMMENT */
	char *comment_body, *comment_author, *comment_author_type, *comment_association;
	int64_t comment_id, comment_created_ms;
	char *pull_author;
	bool is_pull_comment;

	/* EVENT_CHECK_RUN, EVENT_CHECK_SUITE */
	int64_t check_app_id; /* whose check it is; 0: GitHub does not say */
	char *check_head_sha;
	char *check_name, *check_external_id; /* CHECK_RUN; external_id "" when it has none */
};

void pull_info_release(struct pull_info *p);
void event_release(struct event *e);

/* Fills *ret (event_release() it, also after a failure). ERR_INVALID names the field that
 * is missing or of a wrong type. Pure; lives in webhook/, reaches others by daemon/wire.c. */
typedef int event_parse_fn(
    const char *event_name, const char *body, size_t n, struct event *ret, struct error *e);

#endif
