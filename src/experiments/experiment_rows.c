#include "experiments/experiment_rows.h"

#include "db/counters.h"
#include "store/changes.h"
#include "verdict/cells_moved.h"

enum { SHA_SHORT_CHARS = 7 };

RECORD_DEFINE(experiment, EXPERIMENT_RECORD)
RECORD_DEFINE(rerunner, RERUNNER_RECORD)

struct experiment_list experiments_read(struct rows *r)
{
	struct experiment_list l = {0};

	RECORDS_READ(r, experiment, l.at, l.n);
	return l;
}

void experiment_list_release(struct experiment_list *l) { RECORDS_RELEASE(experiment, l->at, l->n); }

static void put_tests(struct txn *d, int64_t id, const struct experiment_tests *tests)
{
	for (size_t i = 0; i < tests->n; i++)
		db_exec(d, "INSERT INTO experiment_test (experiment_id, test_id, waits) VALUES (?1, ?2, ?3)", V_INT(id),
		    V_INT(tests->at[i]), V_INT(i + tests->n_waiting >= tests->n));
}

int64_t experiment_insert(
    struct txn *d, const struct experiment *e, const struct experiment_tests *tests, int64_t now_ms)
{
	int64_t id = db_exec_int(d, 0,
	    "INSERT INTO experiment (change_id, accelerator, runner, dispatch_id, cause, round,"
	    " side, sha, state, command_id, created_ms, expires_ms, not_before_ms)"
	    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, " EXPERIMENT_SQL_PLANNED ", ?9, ?10, ?11, ?12) RETURNING id",
	    V_INT(e->change_id), V_TEXT(e->accelerator), V_TEXT(e->runner), V_TEXT(e->dispatch_id),
	    V_TEXT(e->is_stress ? "stress" : "auto"), V_INT(e->round), V_TEXT(experiment_side_name(e->side)),
	    V_TEXT(e->sha), V_INT_OR_NULL(e->command_id), V_INT(now_ms), V_INT(e->expires_ms), V_INT(e->not_before_ms));

	put_tests(d, id, tests);
	counter_add_experiment(d, "planned");
	db_notify(d, STORE_DISPATCHES); /* its deadline */
	return id;
}

bool experiment_tests_put(struct txn *d, int64_t id, const struct experiment_tests *tests, int64_t not_before_ms)
{
	int64_t n_before = db_int(d, 0, "SELECT COUNT(*) FROM experiment_test WHERE experiment_id = ?1", V_INT(id));
	size_t n_same = 0;

	db_exec(d, "UPDATE experiment SET not_before_ms = ?2 WHERE id = ?1 AND not_before_ms <> ?2", V_INT(id),
	    V_INT(not_before_ms));
	for (size_t i = 0; i < tests->n; i++)
		n_same +=
		    db_has(d, "SELECT 1 FROM experiment_test WHERE experiment_id = ?1 AND test_id = ?2 AND waits = ?3",
			V_INT(id), V_INT(tests->at[i]), V_INT(i + tests->n_waiting >= tests->n));
	if (n_same == tests->n && (int64_t)tests->n == n_before)
		return false;
	db_exec(d, "DELETE FROM experiment_test WHERE experiment_id = ?1", V_INT(id));
	put_tests(d, id, tests);
	return true;
}

void experiment_delete(struct txn *d, int64_t id)
{
	db_exec(d, "DELETE FROM experiment_test WHERE experiment_id = ?1", V_INT(id));
	db_exec(d, "DELETE FROM experiment WHERE id = ?1", V_INT(id));
}

/* ---- the state ---- */

bool experiment_enter(struct txn *d, struct experiment *e, enum experiment_state to, const char *reason, int64_t now_ms)
{
	enum experiment_state from = (enum experiment_state)rows_first_word(
	    db_rows(d, "SELECT state FROM experiment WHERE id = ?1", V_INT(e->id)), &experiment_state_words);
	bool has_ended = to != EXPERIMENT_IS_PLANNED && to != EXPERIMENT_IS_STARTED;

	if (from == N_EXPERIMENT_STATES || !experiment_may_enter(from, to))
		return false;
	e->state = to;
	if (to == EXPERIMENT_IS_PLANNED)
		db_exec(d, "UPDATE experiment SET state = ?2, started_ms = NULL WHERE id = ?1", V_INT(e->id),
		    V_TEXT(experiment_state_name(to)));
	else if (to == EXPERIMENT_IS_STARTED)
		db_exec(d,
		    "UPDATE experiment SET state = ?2, run_change_id = ?3, started_ms = ?4,"
		    " expires_ms = ?5 WHERE id = ?1",
		    V_INT(e->id), V_TEXT(experiment_state_name(to)), V_INT(e->run_change_id), V_INT(now_ms),
		    V_INT(e->expires_ms));
	else
		db_exec(d,
		    "UPDATE experiment SET state = ?2, reason = ?3, ended_ms = COALESCE(ended_ms, ?4) WHERE id = ?1",
		    V_INT(e->id), V_TEXT(experiment_state_name(to)), V_TEXT(reason), V_INT(now_ms));
	if (from != to && to != EXPERIMENT_IS_PLANNED)
		counter_add_experiment(d, experiment_state_name(to));
	if (from != to && has_ended) {
		/* if it never began: since it was planned */
		int64_t since_ms = db_int(
		    d, now_ms, "SELECT COALESCE(started_ms, created_ms) FROM experiment WHERE id = ?1", V_INT(e->id));

		log_event(LOG_INFO, "experiment_ended", LOG_I("experiment", e->id),
		    LOG_S("accelerator", e->accelerator), LOG_S("runner", e->runner),
		    LOG_S("side", experiment_side_name(e->side)), LOG_S("sha", e->sha),
		    LOG_S("state", experiment_state_name(to)), LOG_S("reason", reason),
		    LOG_I("seconds", now_ms > since_ms ? (now_ms - since_ms) / 1000 : 0));
	}
	if (has_ended && e->command_id)
		stress_answer(d, e->command_id, now_ms);
	return from != to;
}

bool experiment_cancel_by(struct txn *d, struct experiment *e, const char *login, int64_t now_ms)
{
	char *text = ended_how_text(ENDED_CANCELLED, login);
	bool has_entered = experiment_enter(d, e, EXPERIMENT_IS_CANCELLED, text, now_ms);

	if (has_entered) /* the login is the reason */
		db_exec(d, "UPDATE experiment SET cancelled_by = ?2, reason = NULL WHERE id = ?1", V_INT(e->id),
		    V_TEXT(login));
	free(text);
	return has_entered;
}

bool names_a_commit(const char *text)
{
	size_t n = text ? strspn(text, "0123456789abcdefABCDEF") : 0;

	return n >= SHA_SHORT_CHARS && text[n] == '\0';
}

bool names_commit(const char *text, const char *sha)
{
	return names_a_commit(text) && strlen(text) <= strlen(sha) && strncasecmp(text, sha, strlen(text)) == 0;
}

bool experiment_is_open(const struct view *d, const struct experiment *e)
{
	return db_has(d, "SELECT 1 FROM experiment WHERE id = ?1 AND " EXPERIMENT_IS_OPEN, V_INT(e->id));
}

struct dispatch_list experiment_dispatches(const struct view *d, const struct experiment *e)
{
	return dispatch_list_read(
	    db_rows(d, "SELECT " DISPATCH_COLUMNS " FROM dispatch WHERE change_id = ?1 AND is_current = 1",
		V_INT(e->run_change_id)));
}

/* ---- runners that accept experiments ---- */

struct rerunner *rerunners_of(const struct view *d, int64_t change_id, const char *accelerator, size_t *n)
{
	struct rerunner *list = NULL;

	*n = 0;
	RECORDS_READ(db_rows(d, RECORD_SELECT(RERUNNER_RECORD) EXPLAINABLE " ORDER BY x.runner", V_INT(change_id),
			 V_TEXT(accelerator)),
	    rerunner, list, *n);
	for (size_t i = 0; i < *n; i++) {
		if (list[i].finish_ms <= 0)
			list[i].finish_ms = DEFAULT_FINISH_MS;
		list[i].sha[EXPERIMENT_HEAD] = list[i].head_sha;
		list[i].sha[EXPERIMENT_BASE] = list[i].merge_base_sha;
	}
	return list;
}

void rerunners_release(struct rerunner *list, size_t n) { RECORDS_RELEASE(rerunner, list, n); }

char **experiment_runners(const struct view *d)
{
	return rows_fingerprints(
	    db_rows(d, "SELECT a.name, r.name, r.kind, lower(r.target) FROM accelerator a"
		       " LEFT JOIN runner r ON r.accelerator = a.name AND " RUNNER_ACCEPTS_EXPERIMENTS
		       " ORDER BY a.name, r.name"));
}

void experiments_recheck(struct txn *d, char *const *before, int64_t now_ms)
{
	char **now = experiment_runners(d->view);

	for (char **one = now; *one; one++) {
		char *name = xstrndup(*one, strcspn(*one, "\n"));

		if (!strv_contains((const char *const *)before, *one))
			cells_moved_each(d,
			    db_rows(d,
				"SELECT p.change_id FROM pull p WHERE p.state = 'open' AND EXISTS"
				" (SELECT 1 FROM verdict v WHERE v.change_id = p.change_id AND v.accelerator = ?1"
				"  AND v.attribution IS NOT NULL) UNION SELECT change_id FROM experiment"
				" WHERE accelerator = ?1 AND " EXPERIMENT_IS_OPEN,
				V_TEXT(name)),
			    name, CELLS_RERUNS_CHANGED, now_ms);
		free(name);
	}
	strv_free(now);
}

/* ---- requests ---- */

enum { REQUEST_JOBS_MAX = 20 };

#define DISPATCHED_EXPERIMENT_RECORD(F, S)                                                                             \
	F(S, ID, id, NULL, "e.id", "")                                                                                 \
	F(S, ID, explained, NULL, "e.change_id", "The change that it explains.")                                       \
	F(S, TEXT, of, NULL, "e.dispatch_id", "")                                                                      \
	F(S, EXPERIMENT_SIDE, side, NULL, "e.side", "")                                                                \
	F(S, TEXT, sha, NULL, "e.sha", "")
RECORD_LOCAL(dispatched_experiment, DISPATCHED_EXPERIMENT_RECORD)

#define REQUEST_JOB_RECORD(F, S)                                                                                       \
	F(S, BORROWED, name, NULL, "j.name", "")                                                                       \
	F(S, BORROWED, environment, NULL, "j.environment", "JSON; empty: not reported.")
RECORD_LOCAL(request_job, REQUEST_JOB_RECORD)

#define REQUEST_JOBS                                                                                                   \
	RECORD_SELECT(REQUEST_JOB_RECORD)                                                                              \
	" FROM experiment e CROSS JOIN job j ON j.change_id = ?2"                                                      \
	" AND j.accelerator = e.accelerator AND j.is_current = 1 WHERE e.id = ?1"                                      \
	" AND EXISTS (SELECT 1 FROM experiment_test t WHERE t.experiment_id = e.id"                                    \
	" AND " TEST_IS_RED_IN_JOB("t.test_id",                                                                        \
	    "(SELECT v.job_id FROM verdict v WHERE v.change_id = ?2"                                                   \
	    " AND v.accelerator = e.accelerator AND v.test_id = t.test_id)") ") ORDER BY j.id "                        \
									     "LIMIT ?3"

bool experiment_request_read(const struct view *d, const char *dispatch_id, struct experiment_request *ret)
{
	struct dispatched_experiment e;
	struct rows *r;

	*ret = (struct experiment_request){.id = 0};
	if (!record_read_first(db_rows(d,
				   RECORD_QUERY(DISPATCHED_EXPERIMENT_RECORD,
				       "FROM dispatch x CROSS JOIN change c ON c.id = x.change_id"
				       " AND c.kind = 'experiment' CROSS JOIN experiment e"
				       " ON e.id = c.experiment_id WHERE x.id = ?1 LIMIT 1"),
				   V_TEXT(dispatch_id)),
		&dispatched_experiment_record, &e))
		return false;
	*ret =
	    (struct experiment_request){.id = e.id, .of = e.of, .side = e.side, .sha = e.sha, .jobs = strv_copy(NULL)};
	ret->tests = rows_keys(db_rows(d,
	    "SELECT DISTINCT s.suite || '/' || s.name FROM experiment_test t JOIN test s"
	    " ON s.id = t.test_id WHERE t.experiment_id = ?1 ORDER BY 1",
	    V_INT(e.id)));
	/* Each job in which one of these tests is red, because evidence counts per job and test, and the environment of the
	 * first job that reports one. A job without tests is a test itself: its cell names it. */
	r = db_rows(d, REQUEST_JOBS, V_INT(e.id), V_INT(e.explained), V_INT(REQUEST_JOBS_MAX));
	while (rows_next(r)) {
		struct request_job j;

		record_read(r, &request_job_record, &j);
		if (!strv_contains((const char *const *)ret->jobs, j.name))
			strv_add(&ret->jobs, j.name);
		if (!ret->environment && j.environment[0])
			ret->environment = xstrdup(j.environment);
	}
	return true;
}

int64_t experiment_pull(const struct view *d, int64_t run_change_id)
{
	int64_t explained =
	    db_int(d, 0, "SELECT change_id FROM experiment WHERE run_change_id = ?1", V_INT(run_change_id));

	return explained ? change_pull(d, explained) : 0;
}
