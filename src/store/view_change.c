/* One change as people see it, in one snapshot: what was dispatched, its current jobs, its cells. */
#include <jansson.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/strv.h"
#include "store/changes.h"
#include "store/db.h"
#include "store/key.h"
#include "store/standings.h"
#include "store/stored_change.h"
#include "store/view_delta.h"
#include "store/view_experiment.h"
#include "store/view_verdicts.h"

enum {
	ROWS_MAX = 20000, /* dispatches or jobs of one change, far above any real one */
	ATTRIBUTION_WAIT_MS = 15000,
};

/* A JSON array of texts; free each and the array. */
static char **texts_of(const char *text)
{
	char **list = strv_copy(NULL);
	json_t *array = NULL, *item;
	size_t i;

	if (text[0] && json_parse(text, strlen(text), &array, NULL) == 0)
		json_array_foreach(array, i, item) strv_add(&list, json_string_value(item));
	json_decref(array);
	return list;
}

/* ---- which change ---- */

static int64_t find_change(struct db *d, const struct get_change *g)
{
	struct repository_key key;

	if (!g->repository)
		return g->change_id;
	key = repository_key(g->repository);
	if (g->number > 0)
		return db_int(d, 0,
		    "SELECT change_id FROM pull WHERE repository_key = ?1 AND number = ?2",
		    V_TEXT(key.text), V_INT(g->number));
	if (g->head_sha) /* a self-report must not hide what was tested on request */
		return db_int(d, 0,
		    "SELECT id FROM change c WHERE repository_key = ?1 AND head_sha = ?2"
		    " AND kind <> 'experiment'"
		    " AND (?3 = 0 OR ?3 & CASE kind WHEN 'pull_request' THEN ?4 WHEN 'push'"
		    "  THEN ?5 ELSE ?6 END)"
		    " ORDER BY NOT EXISTS (SELECT 1 FROM dispatch WHERE change_id = c.id),"
		    " kind = 'nightly', id DESC LIMIT 1",
		    V_TEXT(key.text), V_TEXT(g->head_sha), V_INT(g->kinds),
		    V_INT(1 << CHANGE_PULL_REQUEST), V_INT(1 << CHANGE_PUSH),
		    V_INT(1 << CHANGE_NIGHTLY));
	return g->change_id;
}

static bool read_change(struct db *d, int64_t id, struct change_view *v)
{
	struct rows *r = db_rows(d,
	    "SELECT kind, state, repository, head_sha, base_ref, base_sha, merge_base_sha,"
	    " merge_base_ms, title, author, created_ms FROM change WHERE id = ?1",
	    V_INT(id));
	bool is_found = rows_next(r);

	if (is_found) {
		v->change_id = id;
		v->kind = change_kind_parse(rows_text(r, 0));
		v->state = change_state_parse(rows_text(r, 1));
		v->repository = rows_dup(r, 2);
		v->head_sha = rows_dup(r, 3);
		v->base_ref = rows_dup(r, 4);
		v->base_sha = rows_dup(r, 5);
		v->merge_base_sha = rows_dup(r, 6);
		v->merge_base_ms = rows_int(r, 7);
		v->title = rows_dup(r, 8);
		v->author = rows_dup(r, 9);
		v->created_ms = rows_int(r, 10);
		v->labels = strv_copy(NULL);
	}
	rows_end(r);
	return is_found;
}

static void replace(char **old, char *new)
{
	if (!new)
		return;
	free(*old);
	*old = new;
}

/* The PR through which the change is looked at: its title, base and state are shown. */
static void read_pull(struct db *d, int64_t number, struct change_view *v)
{
	struct rows *r = db_rows(d,
	    "SELECT title, author, base_ref, base_sha, state, change_id, labels FROM pull"
	    " WHERE repository_key = ?1 AND number = ?2",
	    V_TEXT(repository_key(v->repository).text), V_INT(number));

	if (rows_next(r)) {
		v->number = number;
		replace(&v->title, rows_dup(r, 0));
		replace(&v->author, rows_dup(r, 1));
		strv_free(v->labels);
		v->labels = texts_of(rows_text(r, 6));
		if (rows_int(r, 5) == v->change_id) {
			replace(&v->base_ref, rows_dup(r, 2));
			replace(&v->base_sha, rows_dup(r, 3));
		}
	}
	rows_end(r);
}

static int64_t pull_of_change(struct db *d, int64_t change_id)
{
	int64_t number = change_pull(d, change_id);

	return number ? number
		      : db_int(d, 0, "SELECT MIN(number) FROM pull_head WHERE change_id = ?1",
			    V_INT(change_id));
}

static void read_accelerators(struct db *d, struct change_view *v)
{
	struct rows *r = db_rows(d,
	    "SELECT u.accelerator, m.title, m.level, m.docs_url, m.help_url, m.oncall,"
	    " m.required_suites, m.must_pass, m.skip, m.is_gone FROM"
	    " (SELECT accelerator FROM dispatch WHERE change_id = ?1 AND accelerator <> ''"
	    "  UNION SELECT accelerator FROM job WHERE change_id = ?1 AND is_current = 1) u"
	    " LEFT JOIN accelerator m ON m.name = u.accelerator ORDER BY u.accelerator",
	    V_INT(v->change_id));
	struct upstream_branch u = upstream_branch_read(d);
	int64_t now_ms = clock_wall_ms();

	while (rows_next(r)) {
		struct accelerator_view *a;

		v->accelerators =
		    xrealloc(v->accelerators, (v->n_accelerators + 1) * sizeof(*v->accelerators));
		a = &v->accelerators[v->n_accelerators++];
		*a = (struct accelerator_view){
		    .name = rows_dup(r, 0),
		    .title = rows_dup(r, rows_is_null(r, 1) ? 0 : 1),
		    .level = rows_is_null(r, 2) ? LEVEL_1 : (enum level)rows_int(r, 2),
		    .docs_url = rows_dup(r, 3),
		    .help_url = rows_dup(r, 4),
		    .oncall = texts_of(rows_text(r, 5)),
		    .required_suites = texts_of(rows_text(r, 6)),
		    .must_pass = texts_of(rows_text(r, 7)),
		    .skip = texts_of(rows_text(r, 8)),
		    .is_gone = rows_int(r, 9),
		    .delta = {.fixed = strv_copy(NULL),
			.disappeared = strv_copy(NULL),
			.newly_skipped = strv_copy(NULL)},
		};
		standing_read(d, a->name, &u, now_ms, &a->at);
		a->is_unhealthy = a->at.facts.is_unhealthy;
	}
}

static void read_dispatches(struct db *d, struct change_view *v)
{
	struct rows *r = db_rows(d,
	    "SELECT accelerator, id, runner, kind, state, CASE state WHEN 'held' THEN held_reason "
	    "END, last_error, created_ms,"
	    " sent_ms, next_due_ms, is_current, is_held_for_good,"
	    " CASE WHEN kind IN ('github', 'infra') THEN target END FROM dispatch"
	    " WHERE change_id = ?1"
	    " AND accelerator <> ''"
	    " ORDER BY accelerator, created_ms DESC, round DESC, is_current DESC, runner LIMIT ?2",
	    V_INT(v->change_id), V_INT(ROWS_MAX));

	while (rows_next(r)) {
		struct accelerator_view *a = change_view_accelerator(v, rows_text(r, 0));

		if (!a)
			continue;
		a->dispatches =
		    xrealloc(a->dispatches, (a->n_dispatches + 1) * sizeof(*a->dispatches));
		a->dispatches[a->n_dispatches++] = (struct dispatch_view){
		    .id = rows_dup(r, 1),
		    .runner = rows_dup(r, 2),
		    .runner_kind = rows_dup(r, 3),
		    .state = dispatch_state_parse(rows_text(r, 4)),
		    .held_reason = rows_dup(r, 5),
		    .last_error = rows_dup(r, 6),
		    .created_ms = rows_int(r, 7),
		    .sent_ms = rows_int(r, 8),
		    .due_ms = rows_int(r, 9),
		    .is_current = rows_int(r, 10),
		    .is_held_for_good = rows_int(r, 11),
		    .repository = rows_dup(r, 12),
		};
	}
}

static void read_jobs(struct db *d, struct change_view *v)
{
	struct rows *r = db_rows(d,
	    "SELECT accelerator, id, workflow, name, run_id, run_attempt, status, conclusion, url,"
	    " artifact_url, is_late, n_passed, n_failed, n_skipped, n_total, started_ms,"
	    " completed_ms, n_cut, dispatch_id, runner FROM job"
	    " WHERE change_id = ?1 AND is_current = 1"
	    " ORDER BY accelerator, workflow, name, id LIMIT ?2",
	    V_INT(v->change_id), V_INT(ROWS_MAX));

	while (rows_next(r)) {
		struct accelerator_view *a = change_view_accelerator(v, rows_text(r, 0));

		if (!a)
			continue;
		a->jobs = xrealloc(a->jobs, (a->n_jobs + 1) * sizeof(*a->jobs));
		a->jobs[a->n_jobs++] = (struct job_view){
		    .id = rows_int(r, 1),
		    .workflow = rows_dup(r, 2),
		    .name = rows_dup(r, 3),
		    .run_id = rows_dup(r, 4),
		    .run_attempt = rows_int(r, 5),
		    .status = job_status_parse(rows_text(r, 6)),
		    .conclusion = rows_dup(r, 7),
		    .url = rows_dup(r, 8),
		    .artifact_url = rows_dup(r, 9),
		    .is_late = rows_int(r, 10),
		    .has_counts = !rows_is_null(r, 14) || !rows_is_null(r, 11),
		    .n_passed = rows_int(r, 11),
		    .n_failed = rows_int(r, 12),
		    .n_skipped = rows_int(r, 13),
		    .n_total = rows_int(r, 14),
		    .started_ms = rows_int(r, 15),
		    .completed_ms = rows_int(r, 16),
		    .n_cut = rows_int(r, 17),
		    .dispatch_id = rows_dup(r, 18),
		    .runner = rows_dup(r, 19),
		};
	}
}

static bool is_pull_closed(struct db *d, const struct change_view *v, int64_t number)
{
	return db_has(d,
	    "SELECT 1 FROM pull WHERE repository_key = ?1 AND number = ?2 AND state <> 'open'",
	    V_TEXT(repository_key(v->repository).text), V_INT(number));
}

/* For a moment only: where GitHub does not answer, what is known is shown. */
static bool is_being_attributed(struct db *d, int64_t id)
{
	return db_has(d,
	    "SELECT 1 FROM attribution_due WHERE change_id = ?1 AND n_tries = 0 AND since_ms > ?2",
	    V_INT(id), V_INT(clock_wall_ms() - ATTRIBUTION_WAIT_MS));
}

static int get_run(struct store_query *q, struct db *d)
{
	struct get_change *g = CONTAINER_OF(q, struct get_change, q);
	int64_t id = find_change(d, g);
	struct change_view *v;

	if (!id)
		return ERR_NOT_FOUND;
	v = g->view = xcalloc(1, sizeof(*v));
	if (!read_change(d, id, v)) {
		FREE_AND_NULL(g->view);
		return ERR_NOT_FOUND;
	}
	if (v->kind == CHANGE_PULL_REQUEST)
		read_pull(d, g->number > 0 ? g->number : pull_of_change(d, id), v);
	/* One PR of two with this head may be closed while the other one goes on. */
	if (g->number > 0 && is_pull_closed(d, v, g->number))
		v->state = CHANGE_CLOSED;
	read_accelerators(d, v);
	read_dispatches(d, v);
	read_jobs(d, v);
	view_read_verdicts(d, v, g->max_verdicts);
	v->is_being_attributed = is_being_attributed(d, id);
	view_read_deltas(d, v);
	view_read_experiments(d, v);
	if (db_status(d)) { /* half a view is none */
		change_view_free(v);
		g->view = NULL;
	}
	return 0;
}

int store_get_change(struct store *s, struct get_change *q)
{
	q->view = NULL;
	q->q.run = get_run;
	return store_query(s, &q->q);
}
