/* What is said of an episode: the issue, the comments under it, and the notice to a vendor without
 * a repository. Private to publish/.
 *
 * The one place where people are mentioned, and none but the registered oncalls: what vendors and
 * commits say is escaped. */
#ifndef PUBLISH_RED_TEXT_H
#define PUBLISH_RED_TEXT_H

#include "config/config.h"
#include "publish/red_step.h"
#include "store/branch_commits.h"

enum { RED_COMMITS_MAX = 50 };

struct red_facts { /* all borrowed */
	const struct red_episode *episode;
	const struct accelerator *accelerator;
	const struct list_commits *commits; /* after last good; NULL: not known */
	const char *public_url, *github_url;
};

/* Marks what belongs to an episode and step: "<!-- outpost:red:12:reminder -->", and without the step
 * for the issue itself. free(). */
char *red_marker(int64_t episode, enum red_step step);
/* free(), each. */
char *red_issue_title(const struct red_facts *f);
char *red_issue_text(const struct red_facts *f);
char *red_comment_text(const struct red_facts *f, enum red_step step);
char *red_notice_text(const struct red_facts *f, enum red_step step); /* JSON */

#endif
