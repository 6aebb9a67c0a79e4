#include "verdict/cells_moved.h"

#include "db/record_rows.h"
#include "experiments/experiments.h"
#include "history/run_note.h"
#include "store/requests.h"
#include "verdict/attribution.h"
#include "verdict/verdicts.h"

/* The steps, in their order. */
enum {
	CELLS = 1 << 0,      /* makes the cells again from the jobs and dispatches */
	ATTRIBUTE = 1 << 1,  /* attributes the red cells from the facts in the database */
	DUE = 1 << 2,        /* this change is attributed again soon */
	FACTS_DUE = 1 << 10, /* the same if GitHub knows more of it */
	ALIKE_DUE = 1 << 3,  /* so are the changes that failed alike */
	OTHERS_DUE = 1 << 4, /* so are these, and those whose base this change is */
	EXPERIMENTS =
	    1 << 5,        /* plans the experiments that are needed now, ends the others, and starts what may start */
	RUN = 1 << 6,      /* writes or corrects the run, or the periodic run */
	COMMENT = 1 << 7,  /* writes or updates the comment and the check runs */
	CORRECT = 1 << 8,  /* the same if they were written before, or are about to be */
	IF_MOVED = 1 << 9, /* takes RUN and CORRECT only if an attribution changed */
	ALL = CELLS | ATTRIBUTE | FACTS_DUE | OTHERS_DUE | EXPERIMENTS | RUN,
	READ_ROWS = ATTRIBUTE | FACTS_DUE | ALIKE_DUE | OTHERS_DUE | EXPERIMENTS, /* those that need read_step_rows() */
};

/* Cause → steps.
 *
 * A cancelled dispatch (CANCELLED, WITHDRAWN) leaves the cells as they are: earlier reports count, and later ones do not
 * (verdicts.c). If its accelerator has other dispatches of the change, the run consists of these and ends with the last of
 * them. If all dispatches were cancelled there is no run, because nothing is known of the accelerator then.
 *
 * RETIRED leaves the run and the evidence of other changes as they are until the results of the new round come.
 * SELF_REPORTED cells are not attributed: such a run is evidence for nothing. */
static const unsigned STEPS[N_CELLS_CAUSES] = {
    [CELLS_JOB_STARTED] = RUN | COMMENT,
    [CELLS_JOB_COMPLETED] = ALL | COMMENT,
    [CELLS_JOB_REPLACED] = ALL | COMMENT,
    [CELLS_REPORT_ADDED] = ALL | COMMENT,
    [CELLS_SELF_REPORTED] = CELLS | EXPERIMENTS | RUN,
    [CELLS_REPORTED_AT_L1] = ALL | CORRECT,

    [CELLS_STARTED] = CORRECT,
    [CELLS_HELD] = EXPERIMENTS | COMMENT,
    [CELLS_SENT] = CORRECT,
    [CELLS_LEASE_GRANTED] = COMMENT,
    [CELLS_LEASE_RESUMED] = CORRECT,
    [CELLS_LEASE_ENDED] = CORRECT,
    [CELLS_LEASES_EXHAUSTED] = ALL | COMMENT,
    [CELLS_DEADLINE_PASSED] = ALL | COMMENT,
    [CELLS_NOT_SENT] = ALL | COMMENT,
    [CELLS_CANCELLED] = EXPERIMENTS | RUN | COMMENT,
    [CELLS_WITHDRAWN] = EXPERIMENTS | RUN | CORRECT,
    [CELLS_RETIRED] = CELLS | ATTRIBUTE | EXPERIMENTS,

    [CELLS_SKIPS_CHANGED] = ALL | COMMENT,
    [CELLS_KNOWN_CHANGED] = DUE,
    [CELLS_BASE_CHANGED] = DUE,
    [CELLS_BASE_FOUND] = EXPERIMENTS | CORRECT,
    [CELLS_LOOKED_AGAIN] = ATTRIBUTE | EXPERIMENTS | RUN | CORRECT | IF_MOVED,
    [CELLS_EVIDENCE_CAME] = ATTRIBUTE | ALIKE_DUE | EXPERIMENTS | RUN | CORRECT | IF_MOVED,
    [CELLS_CHANGE_SETTLED] = EXPERIMENTS | CORRECT | IF_MOVED,
    [CELLS_EXPERIMENT_MOVED] = ATTRIBUTE | ALIKE_DUE | EXPERIMENTS | RUN | CORRECT,
    [CELLS_BASE_TESTED] = DUE | CORRECT,
    [CELLS_RERUNS_CHANGED] = DUE,
    [CELLS_HEALTH_CHANGED] = CORRECT,
};

struct moved {
	bool attribution; /* of a cell */
	bool experiments; /* the part that pages and comments show */
};

/* The rows that the steps after CELLS look at. One statement finds them, because most reports are green and have none. */
#define STEP_ROWS_RECORD(F, S)                                                                                         \
	F(S, INT, n_red, NULL,                                                                                         \
	    "(SELECT COUNT(*) FROM (SELECT 1 FROM change c CROSS JOIN verdict v ON v.change_id = c.id"                 \
	    "  AND v.accelerator = ?2 AND v.attribution IS NOT NULL AND v.status IN ('FAIL', 'ERROR')"                 \
	    "  WHERE c.id = ?1 AND c.kind IN ('pull_request', 'push') LIMIT ?3) red)",                                 \
	    "Cells that are attributed; it counts no more than RED_CELLS_AT_ONCE + 1.")                                \
	F(S, BOOL, has_cause, NULL,                                                                                    \
	    "EXISTS (SELECT 1 FROM verdict WHERE change_id = ?1 AND accelerator = ?2 AND attribution IS NOT NULL)",    \
	    "A cell has one.")                                                                                         \
	F(S, BOOL, has_failures, NULL, "EXISTS (SELECT 1 FROM failure WHERE change_id = ?1 AND accelerator = ?2)", "") \
	F(S, BOOL, has_experiments, NULL,                                                                              \
	    "EXISTS (SELECT 1 FROM experiment WHERE change_id = ?1 AND accelerator = ?2 AND " EXPERIMENT_IS_OPEN ")",  \
	    "Open ones of this change.")                                                                               \
	F(S, BOOL, has_planned, NULL,                                                                                  \
	    "EXISTS (SELECT 1 FROM experiment WHERE accelerator = ?2 AND " EXPERIMENT_IS_OPEN                          \
	    " AND state = " EXPERIMENT_SQL_PLANNED ")",                                                                \
	    "Experiments of any change.")
RECORD_LOCAL(step_rows, STEP_ROWS_RECORD)

static struct step_rows read_step_rows(const struct view *d, int64_t change_id, const char *accelerator)
{
	struct step_rows rows = {.n_red = 0};

	RECORD_READ_FIRST(d, step_rows, STEP_ROWS_RECORD, &rows, "", V_INT(change_id), V_TEXT(accelerator),
	    V_INT(RED_CELLS_AT_ONCE + 1));
	return rows;
}

/* The cells of a large outage are attributed by the operation that evidence/ starts for a change that is due (cells_look()). Until
 * then they are UNCLASSIFIED, and it takes the other steps. */
static unsigned attribute_cells(struct txn *d, int64_t change_id, const char *accelerator, unsigned steps,
    const struct step_rows *rows, int64_t now_ms, struct moved *m)
{
	if (rows->n_red > RED_CELLS_AT_ONCE) {
		attribution_note_due(d, change_id, now_ms);
		return steps & ~(unsigned)(FACTS_DUE | ALIKE_DUE | OTHERS_DUE | EXPERIMENTS | RUN);
	}
	attribution_restart(d, change_id);
	if (rows->n_red)
		m->attribution |= attribution_apply(d, change_id, accelerator, now_ms);
	return steps;
}

/* The steps after the attribution of an accelerator. */
static void follow_attribution(struct txn *d, int64_t change_id, const char *accelerator, unsigned steps,
    const struct step_rows *rows, int64_t now_ms, struct moved *m)
{
	bool has_planned = rows->has_planned;

	if (steps & (ALIKE_DUE | OTHERS_DUE) && rows->has_failures)
		attribution_alike_due(d, change_id, accelerator, now_ms);
	if (steps & FACTS_DUE && rows->has_cause)
		attribution_facts_due(d, change_id, accelerator, now_ms);
	if (steps & OTHERS_DUE)
		attribution_base_due(d, change_id, accelerator, now_ms);
	if (steps & EXPERIMENTS && (rows->has_cause || rows->has_experiments))
		has_planned |= m->experiments |= experiments_review(d, change_id, accelerator, now_ms);
	if (steps & EXPERIMENTS && has_planned)
		experiments_start(d, accelerator, now_ms);
	if (steps & RUN && (m->attribution || !(steps & IF_MOVED)))
		run_note(d, change_id, accelerator, now_ms);
}

/* job_id: only its cells are new; 0: any may be. */
static void move_accelerator(struct txn *d, int64_t change_id, const char *accelerator, unsigned steps, int64_t job_id,
    int64_t now_ms, struct moved *m)
{
	struct step_rows rows = {.n_red = 0};

	if (steps & CELLS && job_id)
		verdicts_add_job(d, change_id, accelerator, job_id);
	else if (steps & CELLS)
		verdicts_rebuild(d, change_id, accelerator);
	if (steps & READ_ROWS)
		rows = read_step_rows(d->view, change_id, accelerator);
	if (steps & ATTRIBUTE)
		steps = attribute_cells(d, change_id, accelerator, steps, &rows, now_ms, m);
	follow_attribution(d, change_id, accelerator, steps, &rows, now_ms, m);
}

/* The steps for the change, after those for its accelerators. */
static bool move_change(struct txn *d, int64_t change_id, unsigned steps, int64_t now_ms, const struct moved *m)
{
	if (steps & DUE)
		attribution_note_due(d, change_id, now_ms);
	if (m->experiments && !(steps & COMMENT))
		steps |= CORRECT;
	if (steps & IF_MOVED && !m->attribution && !m->experiments)
		return false;
	if (steps & (CELLS | RUN) || m->experiments)
		db_notify_change(d, change_id);
	if (steps & (COMMENT | CORRECT))
		comment_request(d, change_id, steps & COMMENT ? COMMENT_CREATE : COMMENT_UPDATE, now_ms);
	return m->attribution;
}

/* NULL-terminated; free each and the array. */
static char **accelerators_of(const struct view *d, int64_t change_id)
{
	return rows_keys(db_rows(d,
	    "SELECT accelerator FROM dispatch WHERE change_id = ?1 AND accelerator <> ''"
	    " UNION SELECT accelerator FROM job WHERE change_id = ?1 ORDER BY accelerator",
	    V_INT(change_id)));
}

/* Its cells are evidence for another change, and nothing else. */
static void move_experiment(
    struct txn *d, int64_t change_id, const char *accelerator, unsigned steps, int64_t job_id, int64_t now_ms)
{
	int64_t explained = 0;
	char **list = accelerator ? NULL : accelerators_of(d->view, change_id);
	const char *name = accelerator ? accelerator : list[0]; /* it has one */

	if (name) {
		move_accelerator(
		    d, change_id, name, steps & CELLS, job_id, now_ms, &(struct moved){.attribution = false});
		if (experiments_follow(d, change_id, now_ms, &explained))
			cells_moved(d, explained, name, CELLS_EXPERIMENT_MOVED, now_ms);
	}
	strv_free(list);
}

/* job_id 0: cells_moved(). */
bool cells_job_added(
    struct txn *d, int64_t change_id, const char *accelerator, enum cells_cause cause, int64_t job_id, int64_t now_ms)
{
	unsigned steps = STEPS[cause];
	struct moved m = {.attribution = false};

	if (accelerator && !accelerator[0])
		return false;
	if (experiment_is_run(d->view, change_id)) {
		move_experiment(d, change_id, accelerator, steps, job_id, now_ms);
		return false;
	}
	if (accelerator) {
		move_accelerator(d, change_id, accelerator, steps, job_id, now_ms, &m);
	} else if (steps & (CELLS | ATTRIBUTE | EXPERIMENTS | RUN)) {
		char **list = accelerators_of(d->view, change_id);

		for (char **a = list; *a; a++)
			move_accelerator(d, change_id, *a, steps, 0, now_ms, &m);
		strv_free(list);
	}
	return move_change(d, change_id, steps, now_ms, &m);
}

bool cells_moved(struct txn *d, int64_t change_id, const char *accelerator, enum cells_cause cause, int64_t now_ms)
{
	return cells_job_added(d, change_id, accelerator, cause, 0, now_ms);
}

struct cells_look {
	int64_t change_id, now_ms;
	unsigned steps;
	char **accelerators;
	size_t n_done;                /* of them */
	struct attribution_look *now; /* of the next one; NULL: it has not begun */
	bool has_moved;
};

struct cells_look *cells_look_new(const struct view *d, int64_t change_id, enum cells_cause cause, int64_t now_ms)
{
	struct cells_look *l = xcalloc(1, sizeof(*l));

	*l = (struct cells_look){.change_id = change_id,
	    .now_ms = now_ms,
	    .steps = STEPS[cause],
	    .accelerators = accelerators_of(d, change_id)};
	return l;
}

void cells_look_free(struct cells_look *l)
{
	if (!l)
		return;
	attribution_look_free(l->now);
	strv_free(l->accelerators);
	free(l);
}

bool cells_look(struct cells_look *l, struct txn *d, bool *ret_has_moved)
{
	/* An accelerator has all its steps in the transaction of its last cells, because the look may end between two parts. */
	for (const char *a; (a = l->accelerators[l->n_done]) != NULL; l->n_done++) {
		struct moved m = {.attribution = false};
		unsigned steps = l->steps;
		struct step_rows rows;

		if (!l->now)
			l->now = attribution_look_new(d->view, l->change_id, a, l->now_ms);
		if (!attribution_look(l->now, d, &m.attribution))
			return false;
		steps |= attribution_look_is_first(l->now) ? OTHERS_DUE : 0;
		/* attribute_cells() has left out this step */
		steps |= attribution_look_has_changed_many(l->now) ? ALIKE_DUE : 0;
		attribution_look_free(l->now);
		l->now = NULL;
		rows = read_step_rows(d->view, l->change_id, a);
		follow_attribution(d, l->change_id, a, steps, &rows, l->now_ms, &m);
		l->has_moved |= move_change(d, l->change_id, steps, l->now_ms, &m);
	}
	*ret_has_moved |= l->has_moved;
	return true;
}

void cells_moved_each(
    struct txn *d, struct rows *changes, const char *accelerator, enum cells_cause cause, int64_t now_ms)
{
	size_t n;
	int64_t *ids = rows_key_numbers(changes, &n);

	for (size_t i = 0; i < n; i++)
		cells_moved(d, ids[i], accelerator, cause, now_ms);
	free(ids);
}
