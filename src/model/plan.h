/* The planner's decision about one delivery, before the store applies it. The decision needs the configuration and the
 * changed files. Only the store knows, inside its transaction, whether something was dispatched already.
 *
 * Thread: any. Plain data and pure functions; the owner of a struct releases it. */
#pragma once

#include "model/accelerator.h"
#include "model/event.h"
#include "model/states.h"

/* ---- the accelerators that an event starts: triggers, labels, drafts, branches and trust ---- */

/* "ciflow/crcr/": the prefix of labels, which CRCR's users know. */
extern const char LABEL_PREFIX[];
/* The name for "and more, which GitHub did not list" among changed files; no file has this name. If the list has it,
 * any path may be among the files. */
extern const char FILES_INCOMPLETE[];

/* `**` crosses folders, `*` and `?` do not, [a-z] works; the whole path must match. */
bool glob_matches(const char *pattern, const char *path);
/* False: the pattern is empty, begins with '/', or has an unbalanced '['. */
bool glob_is_valid(const char *pattern);

enum trigger_result {
	TRIGGER_NO,
	TRIGGER_YES,
	TRIGGER_NEEDS_FILES, /* depends on the changed files, which are not known yet */
};

/* Whether this accelerator tests the pull request as it is now (drafts, label, paths). files: the changed paths,
 * NULL-terminated; NULL: not known yet. */
enum trigger_result trigger_pull(const struct accelerator *a, const struct pull_info *pull, const char *const *files);
/* Whether it tests a push to `branch`, one of upstream's branches. */
bool trigger_push(const struct accelerator *a, const char *branch);
bool pull_has_label(const struct pull_info *pull, const char *accelerator); /* ciflow/crcr/NAME */

/* The rank that GitHub gives an author, or that a policy requires: a policy admits an author with this rank or a higher one. */
enum author_rank {
	RANK_NONE,
	RANK_CONTRIBUTOR,
	RANK_MEMBER,
	RANK_UNREACHED, /* no author has it: a person has to release the change, or it has to be merged */
};
enum author_rank author_rank_of(const char *author_association);
enum author_rank trust_needs(enum trust trust);

/* NULL: the policy admits the author; else the reason why the dispatch is held, a static text. */
const char *trust_holds_pull(enum trust trust, const char *author_association);
/* "OWNER", "MEMBER" or "COLLABORATOR". */
bool association_is_member(const char *association);

/* One runner that tests this change. */
struct plan_want {
	char *accelerator; /* "" for the infra repository itself */
	char *runner;
	enum runner_kind kind;
	char *target;           /* github, infra: owner/name; webhook: the URL; pull: "" */
	char *held_reason;      /* NULL: may run now */
	bool is_held_for_good;  /* ok-to-test does not release it (trust: merged) */
	enum author_rank needs; /* of an author, to run now; one author of several PRs with this head suffices */
	/* Only if this head is new to the PR, or the PR is new: the event that announced it was lost, and this event
	 * would not start a run. */
	bool is_for_new_head;
	int64_t acknowledge_ms, start_ms, finish_ms; /* durations from now, or from its turn */
	int64_t every_ms;                            /* push: only the newest in each interval; 0: each */
};

enum plan_kind {
	PLAN_IGNORE, /* only note it on the delivery */
	PLAN_UPDATE, /* store the PR's new state and end the `drops`; all wants are is_for_new_head */
	PLAN_START,  /* `wants` test the change */
	PLAN_CLOSE,  /* the PR was closed: cancel all its dispatches */
};

/* The wants that a retest starts again. */
struct retest {
	char *accelerator; /* NULL: each with a red or missing result; else this one, whatever its result */
	char *runner;      /* NULL: any of its runners */
	char *suite;       /* NULL: any; else only runners whose jobs reported that suite */
};

struct plan {
	enum plan_kind kind;
	char *reason; /* PLAN_IGNORE: shown in deliveries */

	enum change_kind change_kind;
	char *repository;
	struct pull_info pull; /* number 0 for a push */
	char *head_sha;
	char *before; /* synchronize: the replaced head; push: the commit before its commits; NULL: not known */
	char *ref;    /* push */
	struct push_commit
	    *commits; /* push: its commits, oldest first, at least the head; the first follows `before` */
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
/* Copies the texts; "" counts as NULL. */
void plan_add_retest(struct plan *p, const char *accelerator, const char *runner, const char *suite);
void plan_release(struct plan *p);
