/* One claimed RED_ISSUE row on its way: red_issue.c reads, decides and writes down, red_write.c speaks
 * with GitHub. Private to publish/. */
#ifndef PUBLISH_RED_TELLING_H
#define PUBLISH_RED_TELLING_H

#include "publish/publish_internal.h"
#include "publish/red_text.h"

struct telling {
	struct claimed claimed;
	const struct accelerator *accelerator; /* borrowed from the config */
	struct get_red_episode get;
	struct list_commits commits;
	struct github_issue_search search;
	struct github_comment_search comment_search;
	struct github_call call;
	struct note_red_episode note;
	struct notice_request notice;
	char *notice_text;
	enum red_step step;
	bool is_refused; /* the repository takes no issue */
};

/* The vendor's repository, or infra's for what is hosted there. NULL: it has none. */
const char *telling_repository(const struct telling *t);
/* free() *ret_github_url when the texts are made. */
struct red_facts telling_facts(const struct telling *t, char **ret_github_url);

/* The step is done: written down, and on to the next one. issue 0: no other than is known. */
void telling_note(struct telling *t, int64_t issue);
/* Nothing is left to do, as far as anybody knows. */
void telling_over(struct telling *t);
/* Without an issue: by the webhook runner, or not at all. */
void telling_by_notice(struct telling *t);

/* red_write.c: the step at GitHub. Each ends in telling_note(), telling_by_notice(), or with the row
 * given back. */
void telling_find_issue(struct telling *t);   /* RED_TELL, RED_LOOK */
void telling_find_comment(struct telling *t); /* the others */

#endif
