/* Starts planned experiments if no first run waits and as long as the budget lasts. */

#include "db/counters.h"
#include "db/db.h"
#include "db/key.h"
#include "experiments/experiment_rows.h"
#include "experiments/experiments.h"
#include "history/days.h"
#include "store/changes.h"
#include "store/deliveries.h"
#include "store/jobs.h"
#include "store/leases.h"
#include "store/requests.h"
#include "verdict/cells_moved.h"

enum {
	LOOK_MAX = 200, /* planned ones, in their order */
	/* Of one runner and cause at a time. A later first run waits behind them in a vendor's CI until they make way. So a
	 * CI gets both sides of one change, or one whole run. */
	AT_ONCE_MACHINES = 8,
	AT_ONCE_TESTS = 2,
	AT_ONCE_WHOLE = 1,
	LOOK_AGAIN_MS = 60000, /* a budget grows again with time */
};

/* ---- budget ----
 *
 * Experiments may take a share (`experiments.share`) of the time that the accelerator's jobs took in the last 24 hours, and
 * at least FREE_MS, so that one can run on an accelerator with few runs. `stress` has a separate budget with the same share
 * and a longer FREE_MS. */
static const int64_t FREE_MS[] = {INT64_C(30) * 60 * 1000, INT64_C(4) * 3600 * 1000};

/* When a job j began, and ended. A vendor may report only the end of a job, or never its end: then the time is that of its
 * dispatch. Only such a job reads rows of dispatches (one for each runner that shares the id), because each is on another page. */
#define OF_ITS_DISPATCH     " FROM dispatch x WHERE x.id = j.dispatch_id AND x.accelerator = j.accelerator)"
#define JOB_BEGAN_MS        "COALESCE(j.started_ms, (SELECT MIN(COALESCE(x.sent_ms, x.created_ms))" OF_ITS_DISPATCH ")"
#define JOB_ENDED_MS(else_) "COALESCE(j.completed_ms, (SELECT MAX(x.finished_ms)" OF_ITS_DISPATCH ", " else_ ")"

/* The time of a run of named tests is not known before it ends. A whole run takes as long as the run that it explains, and
 * counts with that time from its start. */
static int64_t spent_ms(const struct view *d, const char *accelerator, bool is_stress, int64_t now_ms)
{
	return db_int(d, 0,
	    "SELECT SUM(MAX(" EXPERIMENT_SPENT_MS ", CASE WHEN e.state = " EXPERIMENT_SQL_STARTED " AND EXISTS"
	    " (SELECT 1 FROM runner r WHERE r.accelerator = ?1 AND r.name = e.runner AND r.reruns = 'whole')"
	    " THEN COALESCE((SELECT SUM(MAX(" JOB_ENDED_MS(
		"?3") " - " JOB_BEGAN_MS ", 0)) FROM job j"
		      " WHERE j.change_id = e.change_id AND j.dispatch_id = e.dispatch_id AND j.accelerator = ?1), 0) "
		      "ELSE 0 END))"
		      " FROM experiment e WHERE e.accelerator = ?1 AND e.started_ms > ?2 AND e.cause = ?4",
	    V_TEXT(accelerator), V_INT(now_ms - DAY_MS), V_INT(now_ms), V_TEXT(is_stress ? "stress" : "auto"));
}

/* The accelerator's share of the time of all jobs that ended in the last 24 hours. The index job_completed has their times, so
 * a day of a large project is one short walk. */
static int64_t share_ms(const struct view *d, const char *accelerator, int64_t now_ms)
{
	int64_t runs_ms = db_int(d, 0,
	    "SELECT SUM(MAX(j.completed_ms - " JOB_BEGAN_MS ", 0)) FROM job j"
	    " WHERE j.accelerator = ?1 AND j.completed_ms > 0 AND j.completed_ms > ?2",
	    V_TEXT(accelerator), V_INT(now_ms - DAY_MS));

	return runs_ms * db_int(d, 0, "SELECT experiment_share FROM accelerator WHERE name = ?1", V_TEXT(accelerator)) /
	       1000;
}

static bool has_budget(const struct view *d, const char *accelerator, bool is_stress, int64_t now_ms)
{
	int64_t spent = spent_ms(d, accelerator, is_stress, now_ms);

	return spent < FREE_MS[is_stress] || spent < share_ms(d, accelerator, now_ms);
}

void experiments_budget(
    const struct view *d, const char *accelerator, int64_t now_ms, int64_t *ret_spent_ms, int64_t *ret_allowed_ms)
{
	int64_t share = share_ms(d, accelerator, now_ms);

	*ret_spent_ms = spent_ms(d, accelerator, false, now_ms);
	*ret_allowed_ms = share > FREE_MS[false] ? share : FREE_MS[false];
}

/* ---- the start ---- */

/* No webhook caused it, so this writes a body in the form of a webhook, with a new GUID. */
static void put_experiment_body(
    struct txn *d, const struct experiment *e, const char *ref, const char *guid, int64_t now_ms)
{
	char *repository = db_text(d, "SELECT repository FROM change WHERE id = ?1", V_INT(e->change_id));
	const char *name = repository ? strchr(repository, '/') : NULL;
	json_t *body = json_object(), *o = json_object(), *owner = json_object();
	char *login = xstrndup(name ? repository : "", name ? (size_t)(name - repository) : 0);
	char *text;

	json_set_str(owner, "login", login);
	json_set_str(o, "full_name", repository);
	json_set_str(o, "name", name ? name + 1 : "");
	json_object_set_new(o, "owner", owner);
	json_object_set_new(body, "repository", o);
	json_set_str(body, "ref", ref);
	json_set_str(body, "head_sha", e->sha);
	text = json_text(body);
	delivery_put_synthetic(
	    d, guid, EXPERIMENT_EVENT, EXPERIMENT_EVENT, repository ? repository : "", text, strlen(text), now_ms);
	json_decref(body);
	free(text);
	free(login);
	free(repository);
}

/* A machine may take a queued one at any time before its deadline, because idle machines come late. */
static void put_experiment_dispatch(
    struct txn *d, const struct experiment *e, const struct stored_dispatch *of, char *guid, int64_t now_ms)
{
	struct stored_dispatch row = {
	    .accelerator = of->accelerator,
	    .runner = of->runner,
	    .change_id = e->run_change_id,
	    .kind = of->kind,
	    .target = of->target,
	    .target_key = of->target_key,
	    .round = 1 + db_int(d, 0, "SELECT MAX(round) FROM dispatch WHERE change_id = ?1", V_INT(e->run_change_id)),
	    .state = DISPATCH_QUEUED,
	    .delivery_guid = guid,
	    .event_type = (char *)EXPERIMENT_EVENT,
	    .sent_action = (char *)EXPERIMENT_EVENT,
	    .original_action = (char *)EXPERIMENT_EVENT,
	    .acknowledge_ms = of->acknowledge_ms,
	    .finish_ms = e->expires_ms - now_ms,
	    .start_ms = of->kind == RUNNER_PULL ? 0 : of->start_ms,
	};

	id_new(row.id);
	dispatch_insert(d, &row, now_ms);
	request_put(d, &row, NULL, now_ms);
	log_event(LOG_INFO, "experiment_started", LOG_I("experiment", e->id), LOG_S("accelerator", e->accelerator),
	    LOG_S("runner", e->runner), LOG_S("side", experiment_side_name(e->side)), LOG_S("sha", e->sha),
	    LOG_S("dispatch", row.id), LOG_S("of", e->dispatch_id));
}

/* An experiment that made way has its change and its deadline already, and gets another dispatch. The head has GitHub's ref
 * of the pull request; the merge base is on the branch that the pull request targets. */
static void begin_experiment(struct txn *d, struct experiment *e, const struct stored_dispatch *of, int64_t now_ms)
{
	char guid[UUID_BYTES];
	char *ref = e->side == EXPERIMENT_HEAD
			? xasprintf("refs/pull/%lld/head", (long long)change_pull(d->view, e->change_id))
			: db_text(d, "SELECT 'refs/heads/' || base_ref FROM change WHERE id = ?1", V_INT(e->change_id));
	int64_t until_ms = now_ms + (of->finish_ms > 0 ? of->finish_ms : DEFAULT_FINISH_MS);

	if (!e->run_change_id && (!e->is_stress || until_ms < e->expires_ms))
		e->expires_ms = until_ms;
	if (!e->run_change_id)
		e->run_change_id = db_exec_int(d, 0,
		    "INSERT INTO change (kind, repository, repository_key, head_sha, ref, state, created_ms, active_ms,"
		    " experiment_id) SELECT 'experiment', repository, repository_key, ?2, ?3, 'open', ?4, ?4, ?5"
		    " FROM change WHERE id = ?1 RETURNING id",
		    V_INT(e->change_id), V_TEXT(e->sha), V_TEXT(ref), V_INT(now_ms), V_INT(e->id));
	uuid_new(guid);
	put_experiment_body(d, e, ref, guid, now_ms);
	put_experiment_dispatch(d, e, of, guid, now_ms);
	experiment_enter(d, e, EXPERIMENT_IS_STARTED, NULL, now_ms);
	db_notify_change(d, e->change_id);
	free(ref);
}

/* ---- idle capacity ---- */

/* Outpost does not know how many machines a vendor's CI has: one is idle if no first run waits for one. Machines that ask
 * for work get an experiment only when nothing else waits for them (store/claims.c). */
static bool is_runner_idle(const struct view *d, const struct experiment *e, enum runner_kind kind, int64_t now_ms)
{
	int64_t n_max = AT_ONCE_TESTS;

	if (kind == RUNNER_PULL && !e->is_stress)
		n_max = AT_ONCE_MACHINES;
	else if (db_has(d, "SELECT 1 FROM runner WHERE accelerator = ?1 AND name = ?2 AND reruns = 'whole'",
		     V_TEXT(e->accelerator), V_TEXT(e->runner)))
		n_max = AT_ONCE_WHOLE;
	if (db_int(d, 0,
		"SELECT COUNT(*) FROM experiment WHERE accelerator = ?1 AND runner = ?2 AND " EXPERIMENT_IS_OPEN
		" AND state = " EXPERIMENT_SQL_STARTED " AND CASE cause WHEN 'stress' THEN 1 ELSE 0 END = ?3",
		V_TEXT(e->accelerator), V_TEXT(e->runner), V_INT(e->is_stress)) >= n_max)
		return false;
	return kind == RUNNER_PULL || !experiments_first_run_waits_ms(d, e->accelerator, e->runner, now_ms);
}

/* Automatic experiments come before a stress. An author whose experiments took less time in the last 24 hours comes first,
 * and each author's changes come one after the other, so that no author uses up the budget. */
#define PLANNED_IN_ORDER                                                                                               \
	"WITH spent (author, ms) AS (SELECT COALESCE(c.author, ''), SUM(" EXPERIMENT_SPENT_MS ")"                      \
	" FROM experiment e CROSS JOIN change c ON c.id = e.change_id WHERE e.accelerator = ?1"                        \
	" AND e.started_ms > ?3 - ?4 AND e.cause = 'auto' GROUP BY 1)"                                                 \
	" SELECT " EXPERIMENT_COLUMNS " FROM (SELECT e.*, COALESCE(c.author, '') AS author,"                           \
	" DENSE_RANK() OVER (PARTITION BY e.cause, c.author ORDER BY e.change_id) AS turn"                             \
	" FROM experiment e CROSS JOIN change c ON c.id = e.change_id WHERE e.accelerator = ?1"                        \
	" AND e." EXPERIMENT_IS_OPEN " AND e.state = " EXPERIMENT_SQL_PLANNED                                          \
	" AND e.not_before_ms <= ?3) planned LEFT JOIN spent USING (author)"                                           \
	" ORDER BY cause = 'stress', COALESCE(ms, 0), turn, created_ms, id LIMIT ?2"

void experiments_start(struct txn *d, const char *accelerator, int64_t now_ms)
{
	struct experiment_list l = experiments_read(
	    db_rows(d, PLANNED_IN_ORDER, V_TEXT(accelerator), V_INT(LOOK_MAX), V_INT(now_ms), V_INT(DAY_MS)));
	/* by is_stress: whether the budget is spent, and the runners that are not idle, which no start makes idle */
	bool is_spent[2] = {false, false};
	char **busy[2] = {strv_copy(NULL), strv_copy(NULL)};

	for (size_t i = 0; i < l.n; i++) {
		struct experiment *e = &l.at[i];
		struct dispatch_list of;
		bool is_its_turn;

		if (e->expires_ms <= now_ms || is_spent[e->is_stress] ||
		    strv_contains((const char *const *)busy[e->is_stress], e->runner))
			continue;
		/* the dispatch that it explains, if that has ended and the runner still accepts experiments */
		of = dispatch_list_read(db_rows(d,
		    "SELECT " DISPATCH_COLUMNS " FROM dispatch WHERE id = ?3 AND accelerator = ?2 AND runner = ?4"
		    " AND NOT " DISPATCH_IS_AT_WORK("") " AND EXISTS (SELECT 1" EXPLAINABLE
							" AND x.id = ?3 AND x.runner = ?4)",
		    V_INT(e->change_id), V_TEXT(e->accelerator), V_TEXT(e->dispatch_id), V_TEXT(e->runner)));
		/* the rounds of a `stress` come one after the other */
		is_its_turn = !e->is_stress ||
			      !db_has(d,
				  "SELECT 1 FROM experiment WHERE command_id = ?1 AND accelerator = ?2"
				  " AND runner = ?3 AND round < ?4 AND " EXPERIMENT_IS_OPEN " LIMIT 1",
				  V_INT(e->command_id), V_TEXT(e->accelerator), V_TEXT(e->runner), V_INT(e->round));
		if (of.n && is_its_turn) {
			if (!is_runner_idle(d->view, e, of.at[0].kind, now_ms))
				strv_add(&busy[e->is_stress], e->runner);
			else if (!has_budget(d->view, accelerator, e->is_stress, now_ms))
				is_spent[e->is_stress] = true;
			else
				begin_experiment(d, e, &of.at[0], now_ms);
		}
		dispatch_list_release(&of);
	}
	strv_free(busy[0]);
	strv_free(busy[1]);
	experiment_list_release(&l);
}

/* ---- time passes ---- */

int64_t experiments_look(struct txn *d, int64_t *start_ms, int64_t now_ms)
{
	int64_t next_ms, expiry_ms;
	struct experiment_list l = experiments_read(db_rows(d,
	    "SELECT " EXPERIMENT_COLUMNS " FROM experiment WHERE " EXPERIMENT_IS_OPEN
	    " AND state = " EXPERIMENT_SQL_PLANNED " AND expires_ms <= ?1 ORDER BY expires_ms, id LIMIT ?2",
	    V_INT(now_ms), V_INT(LOOK_MAX)));

	for (size_t i = 0; i < l.n; i++)
		experiment_expire(d, &l.at[i], "nothing was idle, or the budget was spent", now_ms);
	experiment_list_release(&l);
	next_ms = experiments_without_tests_end(d, now_ms);
	next_ms = earlier_ms(next_ms, experiments_make_way(d, now_ms));
	/* Experiments that wait for the budget are tried once a minute. The ends of other experiments and first runs start
	 * them earlier. */
	if (*start_ms <= now_ms || *start_ms > now_ms + LOOK_AGAIN_MS) {
		char **names =
		    rows_keys(db_rows(d, "SELECT DISTINCT accelerator FROM experiment WHERE " EXPERIMENT_IS_OPEN
					 " AND state = " EXPERIMENT_SQL_PLANNED " ORDER BY accelerator"));

		*start_ms = now_ms + LOOK_AGAIN_MS;
		for (char **name = names; *name; name++)
			experiments_start(d, *name, now_ms);
		strv_free(names);
	}
	expiry_ms = db_int(d, 0,
	    "SELECT MIN(expires_ms) FROM experiment WHERE " EXPERIMENT_IS_OPEN " AND state = " EXPERIMENT_SQL_PLANNED);
	if (expiry_ms > now_ms + LOOK_AGAIN_MS)
		expiry_ms = now_ms + LOOK_AGAIN_MS;
	return earlier_ms(next_ms, expiry_ms);
}

/* ---- use ---- */

enum { ACCELERATORS_MAX = 500 };

RECORD_DEFINE(experiment_ends, EXPERIMENT_ENDS_RECORD)

#define ENDED_IN_A_DAY " FROM experiment WHERE accelerator = ?1 AND ended_ms > ?2 AND started_ms IS NOT NULL"

struct experiment_ends experiment_ends_read(const struct view *d, const char *accelerator, int64_t now_ms)
{
	struct experiment_ends ends = {.n_done = 0};

	record_read_first(db_rows(d, RECORD_SELECT(EXPERIMENT_ENDS_RECORD) ENDED_IN_A_DAY, V_TEXT(accelerator),
			      V_INT(now_ms - DAY_MS)),
	    &experiment_ends_record, &ends);
	ends.newest_loss = db_text(d,
	    "SELECT reason" ENDED_IN_A_DAY " AND state IN (" EXPERIMENT_SQL_EXPIRED ", " EXPERIMENT_SQL_VOID
	    ") ORDER BY ended_ms DESC, id DESC LIMIT 1",
	    V_TEXT(accelerator), V_INT(now_ms - DAY_MS));
	return ends;
}

RECORD_DEFINE(experiment_use, EXPERIMENT_USE_RECORD)

void experiment_use_read(const struct view *d, int64_t now_ms, struct experiment_use_list *ret)
{
	*ret = (struct experiment_use_list){.n = 0};
	RECORDS_READ(db_rows(d,
			 RECORD_QUERY(EXPERIMENT_USE_RECORD,
			     "FROM accelerator a WHERE EXISTS (SELECT 1 FROM runner r"
			     "  WHERE r.accelerator = a.name AND " RUNNER_ACCEPTS_EXPERIMENTS ")"
			     " OR EXISTS (SELECT 1 FROM experiment e WHERE e.accelerator = a.name"
			     "  AND e." EXPERIMENT_IS_OPEN ") ORDER BY a.name LIMIT ?1"),
			 V_INT(ACCELERATORS_MAX)),
	    experiment_use, ret->at, ret->n);
	for (size_t i = 0; i < ret->n; i++)
		experiments_budget(d, ret->at[i].name, now_ms, &ret->at[i].spent_ms, &ret->at[i].allowed_ms);
}

void experiment_use_list_release(struct experiment_use_list *l) { RECORDS_RELEASE(experiment_use, l->at, l->n); }
