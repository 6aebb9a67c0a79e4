#include "store/registry.h"

#include "db/counters.h"
#include "db/record_rows.h"
#include "db/store_internal.h"
#include "history/run_note.h"
#include "store/leases.h"
#include "verdict/attribution.h"
#include "verdict/verdicts.h"

#define OLD_RUNNER_RECORD(F, S)                                                                                        \
	F(S, BORROWED, accelerator, NULL, "accelerator", "")                                                           \
	F(S, BORROWED, name, NULL, "name", "")
RECORD_LOCAL(old_runner, OLD_RUNNER_RECORD)

/* A repository keeps the figures of the name that it had before it was moved between levels. */
static void take_over_figures(struct txn *d, const char *accelerator, const struct runner *r)
{
	struct rows *rows = db_rows(d,
	    RECORD_QUERY(OLD_RUNNER_RECORD, "FROM runner WHERE kind = 'github' AND lower(target) = lower(?2)"
					    " AND accelerator <> ?1 AND is_gone = 1 ORDER BY accelerator, name"),
	    V_TEXT(accelerator), V_TEXT(r->repository));
	struct old_runner old;

	while (rows_next(rows)) {
		record_read(rows, &old_runner_record, &old);
		run_jobs_move(d, old.accelerator, old.name, accelerator, r->name);
		db_exec(d,
		    "UPDATE runner SET level_2_since_ms = MIN(level_2_since_ms, (SELECT"
		    " COALESCE(o.level_2_since_ms, runner.level_2_since_ms) FROM runner o"
		    " WHERE o.accelerator = ?3 AND o.name = ?4)) WHERE accelerator = ?1 AND name = ?2",
		    V_TEXT(accelerator), V_TEXT(r->name), V_TEXT(old.accelerator), V_TEXT(old.name));
	}
}

/* Both lists as a JSON array without duplicates. free(). */
static char *merged_list_text(const char *const *first, const char *const *second)
{
	char **all = strv_copy(first), *text;

	for (const char *const *s = second; s && *s; s++)
		if (!strv_contains((const char *const *)all, *s))
			strv_add(&all, *s);
	text = json_text_of_strings((const char *const *)all);
	strv_free(all);
	return text;
}

static void put_accelerator(struct txn *d, const struct mirror_registry *o, const struct accelerator *a)
{
	char *oncall = merged_list_text((const char *const *)a->oncall, NULL);
	char *suites = merged_list_text(o->required_suites, NULL);
	char *must_pass = merged_list_text(o->required_must_pass, (const char *const *)a->must_pass);
	char *skip = merged_list_text((const char *const *)a->skip, NULL);
	char *before = db_text(d, "SELECT skip FROM accelerator WHERE name = ?1", V_TEXT(a->name));
	char *required = db_text(d, "SELECT must_pass FROM accelerator WHERE name = ?1", V_TEXT(a->name));

	db_exec(d,
	    "INSERT INTO accelerator (name, title, vendor, level, docs_url, help_url, oncall, is_gone, first_ms)"
	    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, ?8) ON CONFLICT (name) DO UPDATE"
	    " SET title = excluded.title, vendor = excluded.vendor, level = excluded.level,"
	    " docs_url = excluded.docs_url, help_url = excluded.help_url, oncall = excluded.oncall, is_gone = 0",
	    V_TEXT(a->name), V_TEXT(a->title ? a->title : a->name), V_TEXT(a->vendor), V_INT(a->level),
	    V_TEXT(a->docs_url), V_TEXT(a->help_url), V_TEXT(oncall), V_INT(o->now_ms));
	db_exec(d,
	    "UPDATE accelerator SET required_suites = ?2, must_pass = ?3, skip = ?4,"
	    " experiment_tests = ?5, experiment_per_head = ?6, experiment_share = ?7 WHERE name = ?1",
	    V_TEXT(a->name), V_TEXT(suites), V_TEXT(must_pass), V_TEXT(skip), V_INT(a->experiments.tests),
	    V_INT(a->experiments.per_head), V_INT(a->experiments.share_permille));
	if (before && strcmp(before, skip) != 0)
		skips_changed(d, a->name, before, o->now_ms);
	if (required && strcmp(required, must_pass) != 0)
		platform_tests_changed(d, a->name);
	for (const struct runner *r = a->runners; r < a->runners + a->n_runners; r++) {
		const char *target = r->kind == RUNNER_WEBHOOK ? "" /* may hold a key */ : r->repository;

		db_exec(d,
		    "INSERT INTO runner (accelerator, name, kind, target, reruns, is_gone)"
		    " VALUES (?1, ?2, ?3, ?4, ?5, 0) ON CONFLICT (accelerator, name) DO UPDATE"
		    " SET kind = excluded.kind, target = excluded.target, reruns = excluded.reruns, is_gone = 0",
		    V_TEXT(a->name), V_TEXT(r->name), V_TEXT(runner_kind_name(r->kind)), V_TEXT(target ? target : ""),
		    V_TEXT(reruns_name(r->reruns)));
	}
	free(oncall);
	free(suites);
	free(must_pass);
	free(skip);
	free(before);
	free(required);
}

/* Call it when it is known which runners are gone. Notes since when the runner has been at L2 or above. If an older version
 * registered it: since its first day on record. */
static void put_tenure(struct txn *d, const struct accelerator *a, const struct runner *r, int64_t now_ms)
{
	db_exec(d,
	    "UPDATE runner SET level_2_since_ms = CASE WHEN ?3 <> 0 THEN COALESCE(level_2_since_ms,"
	    " (SELECT MIN(day) * 86400000 FROM day WHERE accelerator = ?1), ?4) END"
	    " WHERE accelerator = ?1 AND name = ?2",
	    V_TEXT(a->name), V_TEXT(r->name), V_INT(a->level >= LEVEL_2), V_INT(now_ms));
	if (r->kind == RUNNER_GITHUB)
		take_over_figures(d, a->name, r);
}

/* Each accelerator as pages show it, with its runners. */
static char **read_shown(const struct view *d)
{
	return rows_fingerprints(
	    db_rows(d, "SELECT a.name, title, vendor, level, docs_url, help_url, oncall, required_suites,"
		       " must_pass, skip, a.is_gone, r.name, r.kind, r.target, r.reruns, r.is_gone"
		       " FROM accelerator a LEFT JOIN runner r ON r.accelerator = a.name ORDER BY a.name, r.name"));
}

static int mirror_registry_run(struct store_op *op, struct txn *d)
{
	struct mirror_registry *o = CONTAINER_OF(op, struct mirror_registry, op);
	char **before = read_shown(d->view), **takers = experiment_runners(d->view), **shown;

	db_exec(d, "UPDATE accelerator SET is_gone = 1");
	db_exec(d, "UPDATE runner SET is_gone = 1");
	for (size_t i = 0; i < o->n; i++)
		put_accelerator(d, o, &o->list[i]);
	for (size_t i = 0; i < o->n; i++)
		for (size_t k = 0; k < o->list[i].n_runners; k++)
			put_tenure(d, &o->list[i], &o->list[i].runners[k], o->now_ms);
	platform_tests_fill(d);
	upstream_branch_put(d, o->upstream_repository, o->upstream_branch);
	attribution_configure(d, o->attribution_window_ms, o->attribution_distance);
	experiments_recheck(d, takers, o->now_ms);
	db_notify(d, STORE_CHANGES);
	shown = read_shown(d->view);
	for (char **one = shown; *one; one++)
		if (!strv_contains((const char *const *)before, *one)) {
			char *name = xstrndup(*one, strcspn(*one, "\n"));

			db_notify_accelerator(d, name);
			free(name);
		}
	strv_free(shown);
	strv_free(before);
	strv_free(takers);
	return 0;
}
STORE_OPERATION(mirror_registry)

/* ---- figures and totals ---- */

enum { ACCELERATORS_MAX = 1000 };

void accelerator_figures_read(
    const struct view *d, struct accelerator_figures *f, const struct upstream_branch *u, int64_t now_ms)
{
	int64_t after_ms = now_ms - QUALITY_DAYS_MS;

	f->n_dispatches =
	    db_int(d, 0, "SELECT COUNT(*) FROM dispatch WHERE accelerator = ?1 AND created_ms >= ?2 AND " IS_FIRST_RUN,
		V_TEXT(f->name), V_INT(after_ms));
	f->n_expired = db_int(d, 0,
	    "SELECT COUNT(*) FROM dispatch WHERE accelerator = ?1 AND created_ms >= ?2"
	    " AND state = 'expired' AND " IS_FIRST_RUN,
	    V_TEXT(f->name), V_INT(after_ms));
	quality_read(d, f->name, now_ms, &f->quality);
	standing_read(d, f->name, u, now_ms, &f->at);
}

void accelerator_figures_release(struct accelerator_figures *f)
{
	FREE_AND_NULL(f->name);
	standing_release(&f->at);
}

static int get_figures_run(struct store_query *q, const struct view *d)
{
	struct get_figures *g = CONTAINER_OF(q, struct get_figures, q);
	struct upstream_branch u = upstream_branch_read(d);
	struct rows *r = db_rows(d, "SELECT name FROM accelerator WHERE ?2 IS NULL OR name = ?2 ORDER BY name LIMIT ?1",
	    V_INT(ACCELERATORS_MAX), V_TEXT(g->only));

	while (rows_next(r))
		*ARRAY_PUSH(g->list, g->n) = (struct accelerator_figures){.name = xstrdup(rows_key(r))};
	DB_PIPELINE (d)
		for (size_t i = 0; i < g->n; i++)
			accelerator_figures_read(d, &g->list[i], &u, g->now_ms);
	if (db_status(d))
		get_figures_release(g);
	return 0;
}
STORE_QUERY_CLEARED(get_figures, list)

void get_figures_release(struct get_figures *q)
{
	for (size_t i = 0; i < q->n; i++)
		accelerator_figures_release(&q->list[i]);
	FREE_AND_NULL(q->list);
	q->n = 0;
}

void totals_read(const struct view *d, struct get_totals *g)
{
	int64_t counts[N_COUNTERS];

	counters_read(d, counts);
	g->n_deliveries_accepted = db_int(d, 0, "SELECT count(*) FROM delivery WHERE state = 'accepted'");
	g->n_deliveries_planned = counts[COUNT_DELIVERIES_PLANNED];
	g->n_deliveries_ignored = counts[COUNT_DELIVERIES_IGNORED];
	g->n_deliveries_failed = counts[COUNT_DELIVERIES_FAILED];
	for (int i = 0; i < N_DISPATCH_STATES; i++)
		g->n_dispatches[i] = counts[COUNT_DISPATCHES + i];
	g->n_leases_active = counts[COUNT_LEASES + LEASE_IS_ACTIVE];
	g->n_leases_done = counts[COUNT_LEASES + LEASE_IS_DONE];
	g->n_leases_returned = counts[COUNT_LEASES + LEASE_IS_RETURNED];
	g->n_leases_expired = counts[COUNT_LEASES + LEASE_IS_EXPIRED];
	g->n_leases_cancelled = counts[COUNT_LEASES + LEASE_IS_CANCELLED];
	g->n_jobs = counts[COUNT_JOBS];
	g->n_results = counts[COUNT_RESULTS];
	g->n_open_changes = counts[COUNT_OPEN_CHANGES];
	for (int i = 0; i < N_EXPERIMENT_STATES; i++)
		g->n_experiments[i] = counts[COUNT_EXPERIMENTS + i];
	g->oldest_accepted_ms =
	    db_int(d, 0, "SELECT received_ms FROM delivery WHERE state = 'accepted' ORDER BY id LIMIT 1");
	g->db_bytes = db_file_bytes(d);
	g->n_queued = leases_count_queued(d, NULL);
	g->outbox = outbox_stats_read(d, g->now_ms);
	if (g->has_experiments) {
		experiment_use_read(d, g->now_ms, &g->experiments);
		seat_nodes_read(d, g->now_ms, &g->nodes);
		g->n_attribution_due =
		    db_int(d, 0, "SELECT count(*) FROM attribution_due WHERE next_ms <= ?1", V_INT(g->now_ms));
		g->next_attribution_ms = attribution_next_ms(d, g->now_ms);
	}
	if (db_status(d))
		get_totals_release(g);
}

static int get_totals_run(struct store_query *q, const struct view *d)
{
	totals_read(d, CONTAINER_OF(q, struct get_totals, q));
	return 0;
}
STORE_QUERY_CLEARED(get_totals, n_deliveries_accepted)

void get_totals_release(struct get_totals *q)
{
	experiment_use_list_release(&q->experiments);
	seat_nodes_release(&q->nodes);
}

/* ---- backup ---- */

static int backup_store_run(struct store_query *q, const struct view *d)
{
	struct backup_store *b = CONTAINER_OF(q, struct backup_store, q);

	return db_backup(d, b->path, readers_go_on, b->q.store->readers, &b->n_bytes, &b->q.why);
}

int store_backup(struct store *s, struct backup_store *q)
{
	if (q->path[0] != '/')
		return ERR_INVALID;
	q->n_bytes = 0;
	q->q.run = backup_store_run;
	q->q.kind = QUERY_LONG;
	return store_query(s, &q->q);
}
