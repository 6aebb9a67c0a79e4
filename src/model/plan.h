/* What the planner decided about one delivery, before the store applies it: pure data.
 * The decision needs the configuration and the changed files; whether something was
 * dispatched already only the store can say, inside its transaction. */
#ifndef MODEL_PLAN_H
#define MODEL_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/accelerator.h"
#include "model/event.h"
#include "model/states.h"
#include "model/trigger.h"

/* One runner that wants this change. */
struct plan_want {
	char *accelerator; /* "" for the infra repository itself */
	char *runner;
	enum runner_kind kind;
	char *target;          /* github, infra: owner/name; webhook: the URL; pull: "" */
	char *held_reason;     /* NULL: may run now */
	bool is_held_for_good; /* ok-to-test does not release it (trust: merged) */
	/* The rank that admits an author here. Another PR whose author has it makes the head
	 * trusted as well. */
	enum author_rank needs;
	/* Counts only when this head is new to the PR, or the PR is new: the event that should
	 * have brought it was lost, and one of little meaning came after it. */
	bool is_for_new_head;
	int64_t acknowledge_ms, start_ms, finish_ms; /* durations from now, or from its turn */
	int64_t every_ms; /* push: only the newest in each interval; 0: each */
};

enum plan_kind {
	PLAN_IGNORE, /* nothing but a note on the delivery */
	PLAN_UPDATE, /* remember what the PR looks like now, drop what `drops` names; its wants are
	              * all is_for_new_head */
	PLAN_START,  /* the change is to be tested by `wants` */
	PLAN_CLOSE,  /* the PR was closed: cancel everything of it */
};

/* Whom of those that want the change a retest starts again. */
struct retest {
	char *
	    accelerator; /* NULL: each that has not come out clean; else this, whatever came of it */
	char *runner;    /* NULL: any of its runners */
	char *suite;     /* NULL: any; else only runners whose jobs reported that suite */
};

struct plan {
	enum plan_kind kind;
	char *reason; /* PLAN_IGNORE: shown in deliveries */

	enum change_kind change_kind;
	char *repository;
	struct pull_info pull; /* number 0 for a push */
	char *head_sha;
	/* synchronize: the head that it replaced; push: what its commits follow; NULL unknown */
	char *before;
	char *ref; /* push */
	/* push: what it brought, oldest first, at least the head; they follow `before` at once,
	 * or nobody knows what */
	struct push_commit *commits;
	size_t n_commits;
	char *title, *author;    /* push: first line of the message, author */
	int64_t event_ms;        /* GitHub's time of the event; 0 unknown */
	bool starts_round;       /* reopened, changed base, retest: dispatch again */
	const char *event_type;  /* sent to vendors: "pull_request" or "push"; static */
	const char *sent_action; /* opened | reopened | synchronize | closed, or ""; static */
	char *original_action;   /* outpost.action */
	struct plan_want *wants;
	size_t n_wants;
	struct retest *retests; /* PLAN_START: the round is for these only */
	size_t n_retests;
	char **drops; /* accelerators whose unfinished dispatches end; NULL-terminated or NULL */
};

void plan_want_release(struct plan_want *w);
/* Copies what is given; "" counts as NULL. */
void plan_add_retest(
    struct plan *p, const char *accelerator, const char *runner, const char *suite);
void plan_release(struct plan *p);

#endif
