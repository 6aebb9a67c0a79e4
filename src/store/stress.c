/* `stress`: one test many times, on the head and on its merge base, and the reply with what came of it. */
#include <jansson.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/strv.h"
#include "store/answers.h"
#include "store/cells_moved.h"
#include "store/experiment_rows.h"
#include "store/stored_change.h"

/* All rounds together. Each run ends with the deadline of its dispatch, or with this one. */
static const int64_t EXPIRES_MS = INT64_C(24) * 3600 * 1000;

/* ---- plan ---- */

/* The runner that reported the test, or else the first that takes experiments. */
static const struct rerunner *choose(struct db *d, const struct stress *s, const char *accelerator,
    const struct rerunner *list, size_t n)
{
	char *runner = db_text(d,
	    "SELECT j.runner FROM verdict v JOIN job j ON j.id = v.job_id WHERE v.change_id = ?1"
	    " AND v.accelerator = ?2 AND v.test_id = ?3",
	    V_INT(s->change_id), V_TEXT(accelerator), V_INT(s->tests[0]));
	const struct rerunner *chosen = n ? &list[0] : NULL;

	for (size_t i = 0; runner && i < n; i++)
		if (strcmp(list[i].runner, runner) == 0)
			chosen = &list[i];
	free(runner);
	return chosen && chosen->has_ended ? chosen : NULL;
}

static void plan_rounds(
    struct db *d, const struct stress *s, const char *accelerator, const struct rerunner *u)
{
	for (int round = 1; round <= s->n_rounds; round++)
		for (int side = 0; side < N_EXPERIMENT_SIDES; side++) {
			struct experiment e = {
			    .change_id = s->change_id,
			    .accelerator = (char *)accelerator,
			    .runner = u->runner,
			    .dispatch_id = u->dispatch_id,
			    .is_stress = true,
			    .round = round,
			    .side = (enum experiment_side)side,
			    .sha = u->sha[side],
			    .command_id = s->command_id,
			    .expires_ms = s->now_ms + EXPIRES_MS,
			};

			if (e.sha)
				experiment_insert(d, &e, s->tests, s->n_tests, s->now_ms);
		}
}

static bool plan_on(struct db *d, const struct stress *s, const char *accelerator)
{
	size_t n;
	struct rerunner *list = rerunners_of(d, s->change_id, accelerator, &n);
	const struct rerunner *u = choose(d, s, accelerator, list, n);

	if (u)
		plan_rounds(d, s, accelerator, u);
	rerunners_release(list, n);
	return u != NULL;
}

int stress_plan(struct db *d, const struct stress *s)
{
	struct rows *r = db_rows(d,
	    "SELECT DISTINCT accelerator FROM dispatch WHERE change_id = ?1 AND accelerator <> ''"
	    " AND (?2 IS NULL OR accelerator = ?2) ORDER BY accelerator",
	    V_INT(s->change_id), V_TEXT(s->accelerator));
	char **names = strv_copy(NULL);
	int n = 0;

	while (rows_next(r))
		strv_add(&names, rows_text(r, 0));
	for (char **name = names; *name; name++)
		if (plan_on(d, s, *name)) {
			n++;
			cells_moved(d, s->change_id, *name, CELLS_EXPERIMENT_MOVED, s->now_ms);
		}
	strv_free(names);
	return n;
}

/* ---- answer ---- */

/* A run passed when none of its tests failed and one passed. */
static json_t *side_json(
    struct db *d, int64_t command_id, const char *accelerator, const char *side)
{
	struct rows *r = db_rows(d,
	    "SELECT e.sha, e.state = 'done',"
	    " SUM(v.status IN ('FAIL', 'ERROR')), SUM(v.status IN ('PASS', 'DONE'))"
	    " FROM experiment e CROSS JOIN experiment_test t ON t.experiment_id = e.id"
	    " LEFT JOIN verdict v ON v.change_id = e.run_change_id"
	    "  AND v.accelerator = e.accelerator AND v.test_id = t.test_id"
	    " WHERE e.command_id = ?1 AND e.accelerator = ?2 AND e.side = ?3 GROUP BY e.id"
	    " ORDER BY e.id",
	    V_INT(command_id), V_TEXT(accelerator), V_TEXT(side));
	json_t *o = NULL;
	int64_t n_passed = 0, n_failed = 0, n_lost = 0;

	while (rows_next(r)) {
		if (!o) {
			o = json_object();
			json_set_str(o, "sha", rows_text(r, 0));
		}
		if (!rows_int(r, 1) || !(rows_int(r, 2) || rows_int(r, 3)))
			n_lost++;
		else if (rows_int(r, 2))
			n_failed++;
		else
			n_passed++;
	}
	if (!o)
		return NULL;
	json_set_int(o, "passed", n_passed);
	json_set_int(o, "failed", n_failed);
	json_set_int(o, "lost", n_lost);
	return o;
}

static json_t *accelerators_json(struct db *d, int64_t command_id)
{
	static const char *const sides[] = {"head", "base"};
	json_t *list = json_array();
	struct rows *r = db_rows(d,
	    "SELECT DISTINCT accelerator FROM experiment WHERE command_id = ?1 ORDER BY 1",
	    V_INT(command_id));

	while (rows_next(r)) {
		json_t *one = json_object();

		json_set_str(one, "accelerator", rows_text(r, 0));
		for (size_t i = 0; i < ARRAY_LEN(sides); i++) {
			json_t *side = side_json(d, command_id, rows_text(r, 0), sides[i]);

			if (side)
				json_object_set_new(one, sides[i], side);
		}
		json_array_append_new(list, one);
	}
	return list;
}

static json_t *stress_json(struct db *d, int64_t command_id)
{
	char *test = db_text(d,
	    "SELECT s.suite || '/' || s.name FROM experiment e CROSS JOIN experiment_test t"
	    " ON t.experiment_id = e.id CROSS JOIN test s ON s.id = t.test_id"
	    " WHERE e.command_id = ?1 LIMIT 1",
	    V_INT(command_id));
	json_t *o = json_object();

	json_set_str(o, "test", test);
	json_set_int(o, "rounds",
	    db_int(d, 0, "SELECT MAX(round) FROM experiment WHERE command_id = ?1",
		V_INT(command_id)));
	json_object_set_new(o, "accelerators", accelerators_json(d, command_id));
	free(test);
	return o;
}

void stress_answer(struct db *d, int64_t command_id, int64_t now_ms)
{
	struct answer_place at = {.comment_id = command_id};
	struct rows *r;
	char *repository = NULL;

	if (db_has(d,
		"SELECT 1 FROM experiment WHERE command_id = ?1 AND " EXPERIMENT_IS_OPEN " LIMIT 1",
		V_INT(command_id)))
		return;
	r = db_rows(d,
	    "SELECT c.repository, c.id, k.number FROM experiment e"
	    " JOIN change c ON c.id = e.change_id"
	    " LEFT JOIN command k ON k.comment_id = e.command_id WHERE e.command_id = ?1 LIMIT 1",
	    V_INT(command_id));
	if (rows_next(r)) {
		repository = rows_dup(r, 0);
		at.change_id = rows_int(r, 1);
		at.number = rows_int(r, 2);
	}
	rows_end(r);
	at.repository = repository;
	if (!at.number)
		at.number = change_pull(d, at.change_id);
	if (repository && at.number)
		stress_reply_put(d, &at, stress_json(d, command_id), now_ms);
	free(repository);
}
