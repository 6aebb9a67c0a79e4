/* Changes, pull requests and dispatches: what a plan does to them, and how people see them. */
#ifndef STORE_CHANGES_H
#define STORE_CHANGES_H

#include "model/change_view.h"
#include "model/plan.h"
#include "store/store.h"

/* Applies a plan and marks its delivery planned (or ignored), in one transaction. Applying
 * twice, or the same event under another GUID, changes nothing the second time:
 *  - a PR event older (by GitHub's updated_at) than what is known moves nothing back;
 *  - a head that is new to the PR supersedes the older one, unless another open PR has it:
 *    unfinished dispatches → superseded, their unsent requests are dropped, webhook
 *    runners that got one get a `cancel`;
 *  - each want gets at most one dispatch per round; a round starts when the plan says so
 *    (once per GitHub time of the event), or when the last dispatch was superseded or
 *    cancelled; wants that share a repository share one dispatch id and one request, which
 *    lists every accelerator there that is released and unfinished, never held ones;
 *  - a held want becomes a dispatch in state held, without a request;
 *  - PLAN_CLOSE: unfinished dispatches → cancelled, webhook runners get `cancel`, and every
 *    repository that got a request for any head of the PR gets one `closed`. */
struct retested;
struct apply_plan {
	struct store_op op;
	int64_t delivery_id; /* 0: none (reconciler, retest): `body` is stored as a new one */
	const char *guid;    /* delivery_id of what is sent to vendors */
	const char *body;    /* delivery_id 0 only: the body of webhook shape to forward */
	size_t body_bytes;
	const struct plan *plan;
	int64_t now_ms;
	int64_t change_id;    /* out; 0: none */
	int n_new_dispatches; /* out */
	bool is_stale;        /* out: older than what is known */
	bool was_planned;     /* out: the delivery had been planned before */
	/* out: what became of a retest, want by want; retested_release() (store/retest.h) */
	struct retested *retested;
	size_t n_retested;
};
int store_apply_plan(struct store *s, struct apply_plan *op) MUST_CHECK;

/* The files of a PR head, read from GitHub once. */
struct put_files {
	struct store_op op;
	const char *repository, *head_sha;
	/* The PR whose files these are: against its base. Where another leads that has this head,
	 * they are not kept. 0: they are kept. */
	int64_t number;
	const char *const *files; /* NULL-terminated */
	int64_t now_ms;
};
int store_put_files(struct store *s, struct put_files *op) MUST_CHECK;
struct get_files {
	struct store_query q;
	const char *repository, *head_sha;
	char **files; /* out, NULL-terminated, free each and the array; NULL: not cached */
};
int store_get_files(struct store *s, struct get_files *q) MUST_CHECK;

/* What the deadlines say at now_ms: unfinished dispatches past one become expired, their
 * silence a MISS verdict. out: when the next deadline comes (0: none). */
struct expire_dispatches {
	struct store_op op;
	int64_t now_ms;
	int n_expired;
	int64_t next_due_ms;
};
int store_expire_dispatches(struct store *s, struct expire_dispatches *op) MUST_CHECK;

/* The wall clock jumped by delta_ms: every stored due time moves with it, so that nothing
 * expires, and nothing waits, because of it. Only leases have their full time once more from
 * now_ms: those that were renewed since the jump are right already, and moving them would end
 * them, or keep them for ever. */
struct shift_clock {
	struct store_op op;
	int64_t delta_ms, now_ms;
};
int store_shift_clock(struct store *s, struct shift_clock *op) MUST_CHECK;

/* What is known of upstream's open PRs and branches, for the reconciler. */
struct known_pull {
	int64_t number;
	char *head_sha;
	bool is_open;
	int64_t updated_ms;
};
struct list_pulls {
	struct store_query q;
	const char *repository;
	bool only_open;
	struct known_pull *list; /* out, by number; list_pulls_release() */
	size_t n;
};
int store_list_pulls(struct store *s, struct list_pulls *q) MUST_CHECK;
void list_pulls_release(struct list_pulls *q);
struct has_push {
	struct store_query q;
	const char *repository, *head_sha;
	bool is_known; /* out */
};
int store_has_push(struct store *s, struct has_push *q) MUST_CHECK;
/* Notes a PR or a tip without testing it: the reconciler's first look at an empty database. */
struct note_head {
	struct store_op op;
	const char *repository, *ref, *head_sha; /* ref: pushes; NULL: the PR below */
	const struct pull_info *pull;
	int64_t now_ms;
};
int store_note_head(struct store *s, struct note_head *op) MUST_CHECK;

/* ---- views ---- */
struct get_change {
	struct store_query q;
	const char *repository;
	int64_t number;       /* >0: this PR's current head */
	const char *head_sha; /* else this commit: what was dispatched, the newest change of it */
	unsigned kinds;       /* head_sha: bits 1 << CHANGE_…; 0: any */
	int64_t change_id;    /* else this change */
	size_t max_verdicts;  /* 0: all. Red ones are read first */
	struct change_view *view; /* out; change_view_free(); NULL with ERR_NOT_FOUND */
};
int store_get_change(struct store *s, struct get_change *q) MUST_CHECK;

/* The merge base of a change, learnt from GitHub. A comment that is there shows it. */
struct put_merge_base {
	struct store_op op;
	int64_t change_id;
	const char *sha;
	/* What GitHub compared with; NULL: whatever it is. ERR_CONFLICT: it is another one by now. */
	const char *base;
	int64_t commit_ms; /* 0: unknown */
	int64_t now_ms;
};
int store_put_merge_base(struct store *s, struct put_merge_base *op) MUST_CHECK;

struct dispatch_row {
	char *id, *accelerator, *runner, *kind, *target, *state, *head_sha, *held_reason,
	    *last_error;
	char *event; /* "pull_request", "push", "nightly", "experiment" */
	char *
	    side; /* of an experiment: "head", "base"; `number` is the pull request that it explains */
	int64_t number, created_ms, sent_ms, finished_ms;
	int round, n_attempts;
};
struct list_dispatches {
	struct store_query q;
	const char *repository;
	int64_t number;          /* 0: of any change */
	const char *accelerator; /* NULL: any */
	int limit;
	struct dispatch_row *list; /* out, newest first; list_dispatches_release() */
	size_t n;
};
int store_list_dispatches(struct store *s, struct list_dispatches *q) MUST_CHECK;
void list_dispatches_release(struct list_dispatches *q);

#endif
