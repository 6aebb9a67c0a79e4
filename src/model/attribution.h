/* Whose fault a red cell is, as far as evidence goes (contract 6.2): KNOWN, BASE, FLAKY, NEW, in
 * this order, else UNCLASSIFIED. Pure: the store gathers the facts (store/attribution.h).
 *
 * Rule guarded here: to call a change's own breakage somebody else's is the costly error. What
 * is not shown is UNCLASSIFIED, and a message that would fit anything shows nothing. */
#ifndef MODEL_ATTRIBUTION_H
#define MODEL_ATTRIBUTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "model/states.h"

#define ATTRIBUTIONS(X)                                                                            \
	X(KNOWN) /* an issue is registered for it */                                               \
	X(BASE)  /* red before this change as well */                                              \
	X(FLAKY) /* fails without a reason in the change */                                        \
	X(NEW)   /* green on the merge base */                                                     \
	X(UNCLASSIFIED)

enum attribution {
#define X(e) ATTRIBUTION_##e,
	ATTRIBUTIONS(X)
#undef X
	    N_ATTRIBUTIONS /* not red, nothing to attribute */
};
const char *attribution_name(enum attribution a);           /* "KNOWN" …; NULL: nothing */
enum attribution attribution_parse(const char *name);       /* N_ATTRIBUTIONS: none; NULL is fine */
bool attribution_counts_against_change(enum attribution a); /* NEW, UNCLASSIFIED */
/* Whether a cell of this status is attributed at all: FAIL and ERROR. A MISS gave no result, so nothing
 * can show whose it is: it stays UNCLASSIFIED and is the vendor's to look at. */
bool attribution_applies(enum test_status s);

/* A failure as it is compared: its status, and the key of its normalised message
 * (model/failure_text.h); 0: it has none or a generic one, which is never evidence. */
struct failure_mark {
	enum test_status status;
	int64_t key;
	int64_t text; /* of the normalised message, a generic one as well; 0: none */
};

/* In the same words, as far as there are any. */
bool failure_marks_are_alike(const struct failure_mark *a, const struct failure_mark *b);

/* How one test ended on one commit of the base branch. */
struct base_run {
	bool is_green;            /* PASS on that SHA, in the attempt that counts */
	struct failure_mark mark; /* when it is red */
	int distance; /* commits before the merge base; 0: the merge base itself; negative: newer */
	int64_t job;
	char sha[41];
};

/* So many failures in a row are no chance: what fails elsewhere does not excuse them. */
enum { ATTRIBUTION_ROW_MAX = 2 };

/* The test elsewhere, within the window: a change of somebody else that failed so. */
struct similar_failure {
	int64_t job, change_id;
	int64_t at_ms;
	bool is_other_author;
	bool has_other_files;   /* known, and none in common */
	bool is_on_broken_base; /* its own base was red so: it tells of that, not of flakiness */
	bool is_base_green; /* its merge base itself is green: nothing that landed explains it */
};

struct attribution_facts {
	struct failure_mark mark; /* of the red cell */
	/* In the jobs that count it failed in other ways as well: what excuses one of them says
	 * nothing of the rest. */
	bool has_other_failure;
	bool has_several;     /* ways, be they other ones or in other jobs */
	bool are_all_on_base; /* and all are on the base's run, too; general ones in the same job */
	bool is_push;         /* its change is a pushed commit, whose base is its parent */

	const char *known_url; /* of the first known issue that matches; NULL: none */

	bool is_base_known; /* the merge base is known */
	/* Tested commits of the branch near the merge base, newest first (the distance grows);
	 * neither green nor red (SKIP, DONE, not run) are left out. */
	const struct base_run *base;
	size_t n_base;

	/* The same test passed on this very SHA in another attempt or round within the window, of each
	 * job in which it is red. */
	int64_t passed_here_job;
	/* On another SHA it failed with this key and passed, within the window. */
	int64_t mixed_elsewhere_job;
	const struct similar_failure *similar; /* with this key, oldest first */
	size_t n_similar;
	/* The first that failed so at all, as far back as is on record, was the same author, and
	 * another change of theirs that failed so is closed or was pushed: it may have landed, and
	 * what failed so after that, where nothing is known of its base, may come from it. */
	bool is_first_seen_on_own;
	/* How many runs of this PR failed so one after the other, over its heads and attempts, this
	 * one included and no pass between. */
	int n_in_row;
};

struct attribution_result {
	enum attribution attribution;
	int64_t evidence_job;  /* 0: none */
	const char *known_url; /* KNOWN: borrowed from the facts */
	unsigned
	    needs; /* NEEDS_HEAD | NEEDS_BASE (model/experiment.h): these would help to decide */
	char reason[160]; /* one line of our own words, no Markdown; never empty */
};

/* The base is red in a single run before the merge base, between two green ones: broken for a moment
 * or a flake, which only others can tell. max_distance: as below. */
bool attribution_is_base_alone(const struct attribution_facts *f, int max_distance);
/* max_distance: how many commits before the merge base a tested one may be to count. */
struct attribution_result attribute(const struct attribution_facts *f, int max_distance);

#endif
