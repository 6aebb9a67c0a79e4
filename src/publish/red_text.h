/* The texts about a red episode: the issue, the comments under it, and the notice to a vendor without
 * a repository. Private to publish/.
 *
 * Only these texts mention people, and only the registered oncalls: texts of vendors and commits are
 * escaped. Any thread. The caller owns the texts. */
#ifndef PUBLISH_RED_TEXT_H
#define PUBLISH_RED_TEXT_H

#include "config/config.h"
#include "history/red_episodes.h"
#include "store/branch_commits.h"

/* ---- the next step: an issue once, a reminder once after 48 h, a mark after 72 h, the end when it is green ---- */

enum red_step {
	RED_WAIT, /* until *ret_next_ms */
	RED_TELL,
	RED_LOOK, /* for an issue that may have been made, of one that has ended since */
	RED_REMIND,
	RED_OVERDUE,
	RED_CLOSE,
	RED_OVER, /* nothing is left to do */
};

/* Skips missed steps: an issue that is opened after 48 h needs no reminder as well.
 * may_be_told: an issue was requested, and its outcome is not on record. */
enum red_step red_step_next(
    const struct red_episode *e, bool may_be_told, int64_t now_ms, int64_t *ret_next_ms);
/* "red", "reminder", "overdue", "green": as notices and markers call it; NULL: none. */
const char *red_step_name(enum red_step step);

/* ---- the texts ---- */

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
