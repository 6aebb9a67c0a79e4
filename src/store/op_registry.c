/* The registry's mirror: names, titles and links stay when a vendor leaves, so that old
 * results keep theirs. */
#include <jansson.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/strv.h"
#include "store/attribution.h"
#include "store/db.h"
#include "store/experiments.h"
#include "store/platform_tests.h"
#include "store/registry.h"
#include "store/run_jobs.h"
#include "store/skips.h"

/* What a repository was called before it was moved between levels keeps its figures. */
static void take_over_figures(struct db *d, const char *accelerator, const struct runner *r)
{
	struct rows *old = db_rows(d,
	    "SELECT accelerator, name FROM runner WHERE kind = 'github'"
	    " AND lower(target) = lower(?2) AND accelerator <> ?1 AND is_gone = 1",
	    V_TEXT(accelerator), V_TEXT(r->repository));

	while (rows_next(old)) {
		run_jobs_move(d, rows_text(old, 0), rows_text(old, 1), accelerator, r->name);
		db_exec(d,
		    "UPDATE runner SET level_2_since_ms = MIN(level_2_since_ms, (SELECT"
		    " COALESCE(o.level_2_since_ms, runner.level_2_since_ms) FROM runner o"
		    " WHERE o.accelerator = ?3 AND o.name = ?4))"
		    " WHERE accelerator = ?1 AND name = ?2",
		    V_TEXT(accelerator), V_TEXT(r->name), V_TEXT(rows_text(old, 0)),
		    V_TEXT(rows_text(old, 1)));
	}
	rows_end(old);
}

/* Since when it has been at L2 or above. Of what an older version registered: its first day on record. */
static void note_tenure(
    struct db *d, const struct accelerator *a, const struct runner *r, int64_t now_ms)
{
	db_exec(d,
	    "UPDATE runner SET level_2_since_ms = CASE WHEN ?3 THEN COALESCE(level_2_since_ms,"
	    " (SELECT MIN(day) * 86400000 FROM day WHERE accelerator = ?1), ?4) END"
	    " WHERE accelerator = ?1 AND name = ?2",
	    V_TEXT(a->name), V_TEXT(r->name), V_INT(a->level >= LEVEL_2), V_INT(now_ms));
}

static void put_runner(struct db *d, const char *accelerator, const struct runner *r)
{
	const char *target = r->kind == RUNNER_WEBHOOK ? "" /* may hold a key */ : r->repository;

	db_exec(d,
	    "INSERT INTO runner (accelerator, name, kind, target, reruns, is_gone)"
	    " VALUES (?1, ?2, ?3, ?4, ?5, 0) ON CONFLICT (accelerator, name) DO UPDATE"
	    " SET kind = excluded.kind, target = excluded.target, reruns = excluded.reruns,"
	    " is_gone = 0",
	    V_TEXT(accelerator), V_TEXT(r->name), V_TEXT(runner_kind_name(r->kind)),
	    V_TEXT(target ? target : ""), V_TEXT(reruns_name(r->reruns)));
}

/* Both lists as a JSON array, without what is in it twice. free(). */
static char *list_text(const char *const *first, const char *const *second)
{
	char **all = strv_copy(first);
	json_t *array = json_array();
	char *text;

	for (const char *const *s = second; s && *s; s++)
		if (!strv_contains((const char *const *)all, *s))
			strv_add(&all, *s);
	for (char **s = all; *s; s++)
		json_array_append_new(array, json_string(*s));
	text = json_text(array);
	json_decref(array);
	strv_free(all);
	return text;
}

static void put_demands(struct db *d, const struct mirror_registry *o, const struct accelerator *a)
{
	char *suites = list_text(o->required_suites, NULL);
	char *must_pass = list_text(o->required_must_pass, (const char *const *)a->must_pass);
	char *skip = list_text((const char *const *)a->skip, NULL);
	char *before = db_text(d, "SELECT skip FROM accelerator WHERE name = ?1", V_TEXT(a->name));
	char *demanded =
	    db_text(d, "SELECT must_pass FROM accelerator WHERE name = ?1", V_TEXT(a->name));

	db_exec(d,
	    "UPDATE accelerator SET required_suites = ?2, must_pass = ?3, skip = ?4"
	    " WHERE name = ?1",
	    V_TEXT(a->name), V_TEXT(suites), V_TEXT(must_pass), V_TEXT(skip));
	if (before && strcmp(before, skip) != 0)
		skips_changed(d, a->name, before, o->now_ms);
	if (demanded && strcmp(demanded, must_pass) != 0)
		platform_tests_changed(d, a->name);
	free(suites);
	free(must_pass);
	free(skip);
	free(before);
	free(demanded);
}

static void put_budget(struct db *d, const char *accelerator, const struct experiment_budget *b)
{
	db_exec(d,
	    "UPDATE accelerator SET experiment_tests = ?2, experiment_per_head = ?3,"
	    " experiment_share = ?4 WHERE name = ?1",
	    V_TEXT(accelerator), V_INT(b->tests), V_INT(b->per_head), V_INT(b->share_permille));
}

static void put_accelerator(
    struct db *d, const struct mirror_registry *o, const struct accelerator *a)
{
	char *oncall = list_text((const char *const *)a->oncall, NULL);

	db_exec(d,
	    "INSERT INTO accelerator (name, title, vendor, level, docs_url, help_url, oncall,"
	    " is_gone, first_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, ?8)"
	    " ON CONFLICT (name) DO UPDATE SET title = excluded.title, vendor = excluded.vendor,"
	    " level = excluded.level, docs_url = excluded.docs_url,"
	    " help_url = excluded.help_url, oncall = excluded.oncall, is_gone = 0",
	    V_TEXT(a->name), V_TEXT(a->title ? a->title : a->name), V_TEXT(a->vendor),
	    V_INT(a->level), V_TEXT(a->docs_url), V_TEXT(a->help_url), V_TEXT(oncall),
	    V_INT(o->now_ms));
	free(oncall);
	put_demands(d, o, a);
	put_budget(d, a->name, &a->experiments);
	for (size_t i = 0; i < a->n_runners; i++)
		put_runner(d, a->name, &a->runners[i]);
}

static void put_tenures(struct db *d, const struct accelerator *a, int64_t now_ms)
{
	for (size_t i = 0; i < a->n_runners; i++) {
		note_tenure(d, a, &a->runners[i], now_ms);
		if (a->runners[i].kind == RUNNER_GITHUB)
			take_over_figures(d, a->name, &a->runners[i]);
	}
}

/* Each with its runners as one text; the name is a part of it. */
#define SHOWN                                                                                      \
	"SELECT name, json_array(name, title, vendor, level, docs_url, help_url, oncall,"          \
	" required_suites, must_pass, skip, is_gone,"                                              \
	" (SELECT json_group_array(json_array(r.name, r.kind, r.target, r.reruns, r.is_gone))"     \
	" FROM (SELECT * FROM runner WHERE accelerator = a.name ORDER BY name) r))"                \
	" FROM accelerator a"

static char **read_shown(struct db *d)
{
	struct rows *r = db_rows(d, SHOWN);
	char **list = strv_copy(NULL);

	while (rows_next(r))
		strv_add(&list, rows_text(r, 1));
	return list;
}

/* Who looks at an accelerator is told when something of it is other than it was. */
static void tell_changed(struct db *d, char **before)
{
	struct rows *r = db_rows(d, SHOWN);

	while (rows_next(r))
		if (!strv_contains((const char *const *)before, rows_text(r, 1)))
			db_tell_accelerator(d, rows_text(r, 0));
}

static int mirror_run(struct store_op *op, struct db *d)
{
	struct mirror_registry *o = CONTAINER_OF(op, struct mirror_registry, op);
	char **before = read_shown(d), **takers = experiments_takers(d);

	db_exec(d, "UPDATE accelerator SET is_gone = 1");
	db_exec(d, "UPDATE runner SET is_gone = 1");
	for (size_t i = 0; i < o->n; i++)
		put_accelerator(d, o, &o->list[i]);
	for (size_t i = 0; i < o->n; i++) /* when it is known who is gone */
		put_tenures(d, &o->list[i], o->now_ms);
	platform_tests_fill(d);
	upstream_branch_put(d, o->upstream_repository, o->upstream_branch);
	attribution_configure(d, o->attribution_window_ms, o->attribution_distance);
	experiments_recheck(d, takers, o->now_ms);
	db_tell(d, STORE_CHANGES);
	tell_changed(d, before);
	strv_free(before);
	strv_free(takers);
	return 0;
}

int store_mirror_registry(struct store *s, struct mirror_registry *op)
{
	op->op.run = mirror_run;
	op->op.bytes = sizeof(*op);
	return store_submit(s, &op->op);
}
