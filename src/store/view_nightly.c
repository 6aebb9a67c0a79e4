/* Who takes part in periodic runs, and how each of the days went. */
#include "base/alloc.h"
#include "model/accelerator.h"
#include "store/days.h"
#include "store/key.h"
#include "store/view_nightly_internal.h"

static void add_accelerator(struct nightly_view *v, const struct rows *r)
{
	v->accelerators =
	    xrealloc(v->accelerators, (v->n_accelerators + 1) * sizeof(*v->accelerators));
	v->accelerators[v->n_accelerators++] = (struct nightly_accelerator){
	    .name = rows_dup(r, 0),
	    .title = rows_dup(r, 1),
	    .level = (int)rows_int(r, 2),
	    .crons = rows_dup(r, 3),
	    .next_ms = rows_int(r, 4),
	    .is_next_skipped = rows_int(r, 5),
	    .runs = xcalloc(v->n_days, sizeof(struct schedule_run_view)),
	};
}

static void read_accelerators(struct nightly_reading *n)
{
	int64_t from_ms = n->v->first_day * DAY_MS;
	int64_t to_ms = from_ms + (int64_t)n->v->n_days * DAY_MS;
	struct rows *r = db_rows(n->d,
	    "SELECT a.name, a.title, a.level, s.cron, s.next_ms, COALESCE(s.is_next_skipped, 0)"
	    " FROM accelerator a LEFT JOIN schedule s ON s.accelerator = a.name"
	    "  AND s.next_ms IS NOT NULL AND a.is_gone = 0"
	    " WHERE a.level > ?1 AND (?2 IS NULL OR a.name = ?2) AND (s.cron IS NOT NULL"
	    "  OR EXISTS (SELECT 1 FROM schedule_run x WHERE x.accelerator = a.name"
	    "   AND x.due_ms >= ?3 AND x.due_ms < ?4)) ORDER BY a.name",
	    V_INT(LEVEL_1), V_TEXT(n->q->accelerator), V_INT(from_ms), V_INT(to_ms));

	while (rows_next(r))
		add_accelerator(n->v, r);
}

static struct schedule_run_view run_of(const struct rows *r)
{
	return (struct schedule_run_view){
	    .id = rows_int(r, 0),
	    .due_ms = rows_int(r, 1),
	    .started_ms = rows_int(r, 2),
	    .ended_ms = rows_int(r, 3),
	    .cause = rows_dup(r, 4),
	    .state = rows_dup(r, 5),
	    .outcome = rows_dup(r, 6),
	    .reason = rows_dup(r, 7),
	    .upstream_sha = commit_dup(r, 8),
	    .source_sha = rows_dup(r, 9),
	};
}

/* Newest first: of several runs on one day it is the last one that is shown. One that ended without
 * an outcome was at L1. */
static void read_runs(struct nightly_reading *n, struct nightly_accelerator *a)
{
	int64_t first = n->v->first_day;
	struct rows *r = db_rows(n->d,
	    "SELECT id, due_ms, started_ms, ended_ms, cause, state, outcome, reason, upstream_sha,"
	    " source_sha FROM schedule_run WHERE accelerator = ?1 AND due_ms >= ?2"
	    " AND due_ms < ?3 AND (outcome IS NOT NULL OR ended_ms IS NULL)"
	    " ORDER BY due_ms DESC",
	    V_TEXT(a->name), V_INT(first * DAY_MS),
	    V_INT((first + (int64_t)n->v->n_days) * DAY_MS));

	while (rows_next(r)) {
		struct schedule_run_view *run = &a->runs[day_of(rows_int(r, 1)) - first];

		if (!run->id)
			*run = run_of(r);
	}
}

static void read_counts(struct nightly_reading *n, const char *accelerator)
{
	struct rows *r = db_rows(n->d,
	    "SELECT state, n FROM history_count WHERE accelerator = ?1 AND suite = ?2",
	    V_TEXT(accelerator), V_TEXT(n->q->suite ? n->q->suite : ""));

	while (rows_next(r)) {
		enum history_state s = history_state_parse(rows_text(r, 0));

		if (s < N_HISTORY_STATES)
			n->v->counts[s] += rows_int(r, 1);
	}
}

/* Also one that left the registry: what it ran is kept, and shown. */
static bool is_unknown(struct db *d, const char *accelerator)
{
	return accelerator &&
	       !db_has(d, "SELECT 1 FROM accelerator WHERE name = ?1", V_TEXT(accelerator)) &&
	       !db_status(d);
}

static int get_run(struct store_query *sq, struct db *d)
{
	struct get_nightly *q = CONTAINER_OF(sq, struct get_nightly, q);
	struct nightly_view *v;
	struct nightly_reading n = {.d = d, .q = q};

	if (is_unknown(d, q->accelerator))
		return ERR_NOT_FOUND;
	n.v = v = xcalloc(1, sizeof(*v));
	v->n_days = (size_t)q->n_days;
	v->first_day = q->last_day - q->n_days + 1;
	q->view = v;
	read_accelerators(&n);
	for (size_t i = 0; i < v->n_accelerators; i++) {
		struct nightly_accelerator *a = &v->accelerators[i];

		read_runs(&n, a);
		read_counts(&n, a->name);
	}
	nightly_list_tests(&n);
	nightly_read_days(&n);
	nightly_read_marks(&n);
	if (db_status(d)) {
		nightly_view_free(v);
		q->view = NULL;
	}
	return 0;
}

int store_get_nightly(struct store *s, struct get_nightly *q)
{
	q->view = NULL;
	q->q.run = get_run;
	return store_query(s, &q->q);
}
