/* What somebody asked for in words or by a button: commands of a comment, Re-run on a check,
 * outpostctl retest. All three take one way: what is meant, what GitHub has to say about it, one
 * transaction. Private to the planner. Thread: loop. */
#ifndef DISPATCH_ASKED_H
#define DISPATCH_ASKED_H

#include "base/id.h"
#include "dispatch/planning.h"
#include "store/commands.h"

struct asked {
	/* which change: the PR of that number, else a commit by its SHA or a beginning of it */
	int64_t number;
	char *sha;
	int64_t event_ms; /* GitHub's time of it; 0: unknown */

	bool is_comment;
	struct spoken_comment spoken; /* is_comment; its texts are these: */
	char *login, *words;
	struct asked_command list[COMMANDS_MAX]; /* of a comment; else none */
	size_t n;

	/* Re-run and outpostctl: whom a round is for. One whose names are NULL means all. */
	struct retest *retests;
	size_t n_retests;
	struct rerun_request *reruns; /* Re-run at vendors' repositories */
	size_t n_reruns;
	struct retest_request *request; /* outpostctl's; NULL: nobody waits */

	/* on the way */
	struct find_tested tested;
	struct find_rerun found;
	int n_tries;
	int github_err; /* of the last time that it did not say what the PR is like, and why */
	struct error github_why;
	char guid[UUID_BYTES]; /* of what a retest sends */
	char *body;
	bool has_plan;
};

struct asked *asked_new(void);
void asked_free(struct asked *a); /* NULL is fine */
void asked_add_retest(struct asked *a, const char *accelerator, const char *runner);

/* From a planning whose `asked` is filled to its end. Where a retest is among it, the body that
 * vendors get is made first: of the PR as GitHub has it, or where GitHub does not answer of what
 * was sent last. */
void planning_ask(struct planning *p);

/* ---- among planning_*.c ---- */
/* planning_retest.c: body, event and plan; then asked_submit(). */
void asked_gather(struct planning *p);
/* planning_asked.c: one transaction, then the end. */
void asked_submit(struct planning *p);
/* Nobody knows what to test. */
void asked_give_up(struct planning *p, int err, const char *why);

#endif
