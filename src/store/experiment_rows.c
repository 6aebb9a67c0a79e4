#include "store/experiment_rows.h"

#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "store/counters.h"
#include "store/store.h"

struct experiment_list experiments_take(struct rows *r)
{
	struct experiment_list l = {0};

	while (rows_next(r)) {
		l.at = xrealloc(l.at, (l.n + 1) * sizeof(*l.at));
		l.at[l.n++] = (struct experiment){
		    .id = rows_int(r, 0),
		    .change_id = rows_int(r, 1),
		    .accelerator = rows_dup(r, 2),
		    .runner = rows_dup(r, 3),
		    .dispatch_id = rows_dup(r, 4),
		    .is_stress = rows_int(r, 5),
		    .round = rows_int(r, 6),
		    .side = experiment_side_parse(rows_text(r, 7)),
		    .sha = rows_dup(r, 8),
		    .state = rows_dup(r, 9),
		    .run_change_id = rows_int(r, 10),
		    .command_id = rows_int(r, 11),
		    .expires_ms = rows_int(r, 12),
		};
	}
	return l;
}

void experiment_list_release(struct experiment_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		struct experiment *e = &l->at[i];

		free(e->accelerator);
		free(e->runner);
		free(e->dispatch_id);
		free(e->sha);
		free(e->state);
	}
	FREE_AND_NULL(l->at);
	l->n = 0;
}

int64_t experiment_insert(
    struct db *d, const struct experiment *e, const int64_t *tests, size_t n, int64_t now_ms)
{
	int64_t id = db_int(d, 0,
	    "INSERT INTO experiment (change_id, accelerator, runner, dispatch_id, cause, round,"
	    " side, sha, state, command_id, created_ms, expires_ms)"
	    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'planned', ?9, ?10, ?11) RETURNING id",
	    V_INT(e->change_id), V_TEXT(e->accelerator), V_TEXT(e->runner), V_TEXT(e->dispatch_id),
	    V_TEXT(e->is_stress ? "stress" : "auto"), V_INT(e->round),
	    V_TEXT(experiment_side_name(e->side)), V_TEXT(e->sha), V_INT_OR_NULL(e->command_id),
	    V_INT(now_ms), V_INT(e->expires_ms));

	for (size_t i = 0; i < n; i++)
		db_exec(d, "INSERT INTO experiment_test (experiment_id, test_id) VALUES (?1, ?2)",
		    V_INT(id), V_INT(tests[i]));
	counter_add_experiment(d, "planned");
	db_tell(d, STORE_DISPATCHES); /* its deadline */
	return id;
}

bool experiment_tests_put(struct db *d, int64_t id, const int64_t *tests, size_t n)
{
	int64_t n_before = db_int(
	    d, 0, "SELECT COUNT(*) FROM experiment_test WHERE experiment_id = ?1", V_INT(id));
	size_t n_same = 0;

	for (size_t i = 0; i < n; i++)
		n_same += db_has(d,
		    "SELECT 1 FROM experiment_test WHERE experiment_id = ?1 AND test_id = ?2",
		    V_INT(id), V_INT(tests[i]));
	if (n_same == n && (int64_t)n == n_before)
		return false;
	db_exec(d, "DELETE FROM experiment_test WHERE experiment_id = ?1", V_INT(id));
	for (size_t i = 0; i < n; i++)
		db_exec(d, "INSERT INTO experiment_test (experiment_id, test_id) VALUES (?1, ?2)",
		    V_INT(id), V_INT(tests[i]));
	return true;
}

void experiment_delete(struct db *d, int64_t id)
{
	db_exec(d, "DELETE FROM experiment_test WHERE experiment_id = ?1", V_INT(id));
	db_exec(d, "DELETE FROM experiment WHERE id = ?1", V_INT(id));
}

/* One that never began: since it was planned. */
static int64_t seconds_since_start(struct db *d, int64_t id, int64_t now_ms)
{
	int64_t ms = db_int(d, now_ms,
	    "SELECT COALESCE(started_ms, created_ms) FROM experiment WHERE id = ?1", V_INT(id));

	return now_ms > ms ? (now_ms - ms) / 1000 : 0;
}

void experiment_end(
    struct db *d, const struct experiment *e, const char *state, const char *reason, int64_t now_ms)
{
	db_exec(d,
	    "UPDATE experiment SET state = ?2, reason = ?3, ended_ms = COALESCE(ended_ms, ?4)"
	    " WHERE id = ?1",
	    V_INT(e->id), V_TEXT(state), V_TEXT(reason), V_INT(now_ms));
	if (strcmp(e->state, state) != 0) {
		counter_add_experiment(d, state);
		log_event(LOG_INFO, "experiment_ended", LOG_I("experiment", e->id),
		    LOG_S("accelerator", e->accelerator), LOG_S("runner", e->runner),
		    LOG_S("side", experiment_side_name(e->side)), LOG_S("sha", e->sha),
		    LOG_S("state", state), LOG_S("reason", reason),
		    LOG_I("seconds", seconds_since_start(d, e->id, now_ms)));
	}
	if (e->command_id)
		stress_answer(d, e->command_id, now_ms);
}
