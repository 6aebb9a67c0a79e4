/* One event on its way from its body to what the store has applied: parsed, planned, with
 * the changed files when the plan depends on them. Private to the planner.
 *
 * Whatever cannot be planned ends as `ignored` or `failed` with the reason, which operators
 * see; what the store cannot take for the moment is tried until it can. Thread: loop. */
#ifndef DISPATCH_PLANNING_H
#define DISPATCH_PLANNING_H

#include "config/config.h"
#include "dispatch/dispatch_internal.h"
#include "github/github.h"
#include "model/event.h"
#include "model/plan.h"
#include "store/changes.h"
#include "store/commands.h"
#include "store/deliveries.h"

struct planning {
	struct planning *next; /* the planner's list, by arrival */
	struct dispatch *d;
	struct config *config;
	int64_t delivery_id; /* 0: synthetic, or outpostctl's */
	int64_t received_ms; /* of the delivery */
	char *guid, *event_name;
	char *body; /* until parsed; synthetic: until applied */
	size_t body_bytes;

	/* Whose events must stay in order ("owner/name#7", "owner/name@refs/heads/main");
	 * NULL: nobody's. */
	char *line;
	bool is_begun, is_on_github;
	struct event event;
	struct error parse_error;
	struct plan plan;
	char **files;                     /* NULL: not asked for yet */
	struct asked *asked;              /* words, or a button; NULL: a plain event */
	void (*then)(struct planning *p); /* once the files are there */

	void (*step)(struct planning *p);      /* what the timer does next; NULL: it is not on */
	struct timer *timer;                   /* made when first needed */
	int n_tries;                           /* to get an answer from GitHub */
	void (*on_done)(void *owner, int err); /* synthetic */
	void *owner;
	int err;

	union { /* one at a time is in hand */
		struct get_files get_files;
		struct put_files put_files;
		struct apply_plan apply;
		struct run_commands commands;
		struct get_delivery body;
		struct mark_delivery mark;
		struct github_pull_files pull_files;
		struct github_call call;
	} op;
};

/* Takes guid, event_name and body (free()); parses at once. */
struct planning *planning_new(struct dispatch *d, int64_t delivery_id, char *guid, char *event_name,
    char *body, size_t body_bytes);
/* What outpostctl asked: takes `asked`. */
struct planning *planning_new_asked(struct dispatch *d, struct asked *asked);
/* Ends with planner_finished(), never inside this call. */
void planning_begin(struct planning *p);
/* Ends soon; what is not on disk by then stays accepted. */
void planning_cancel(struct planning *p);
void planning_free(struct planning *p);

/* ---- among planning*.c ---- */
/* Runs step after a while; while the dispatcher closes it ends instead. */
void planning_again(struct planning *p, void (*step)(struct planning *p), int64_t after_ms);
/* What became of submitting op, whose done comes when this returns true. */
bool planning_submitted(struct planning *p, int rc, void (*step)(struct planning *p));
/* True when the operation went through; else it is tried again by step, or given up. */
bool planning_went_well(
    struct planning *p, const struct error *why, int err, void (*step)(struct planning *p));
void planning_end(struct planning *p, int err);
void planning_ignore(struct planning *p, const char *reason);
void planning_fail(struct planning *p, const char *reason);
/* planning_files.c: fills p->files, then runs `then`. */
void planning_get_files(struct planning *p, void (*then)(struct planning *p));
/* planning_comment.c, planning_rerun.c */
void planning_comment(struct planning *p);
void planning_rerun(struct planning *p);

#endif
