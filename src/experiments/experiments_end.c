/* Ends experiments after their runs, and checks whether the results prove anything. */

#include "experiments/experiment_rows.h"
#include "store/requests.h"
#include "verdict/cells_moved.h"

enum { SHARERS_MAX = 200 };

void experiment_sharers_due(struct txn *d, const struct experiment *e, int64_t now_ms)
{
	if (e->side == EXPERIMENT_BASE)
		cells_moved_each(d,
		    db_rows(d,
			"SELECT c.id FROM change o CROSS JOIN change c ON c.repository_key = o.repository_key"
			" AND c.merge_base_sha = ?2 WHERE o.id = ?1 AND c.id <> o.id AND c.kind = 'pull_request'"
			" AND c.state = 'open' AND EXISTS (SELECT 1 FROM verdict v WHERE v.change_id = c.id"
			"  AND v.accelerator = ?3 AND v.attribution IS NOT NULL) ORDER BY c.active_ms DESC, c.id DESC "
			"LIMIT ?4",
			V_INT(e->change_id), V_TEXT(e->sha), V_TEXT(e->accelerator), V_INT(SHARERS_MAX)),
		    e->accelerator, CELLS_BASE_TESTED, now_ms);
}

/* ---- retention: experiments are deleted with the change that they explain ---- */

int64_t experiments_next_run(const struct view *d, int64_t change_id)
{
	return db_int(d, 0,
	    "SELECT c.id FROM experiment e CROSS JOIN change c ON c.id = e.run_change_id"
	    " WHERE e.change_id = ?1 LIMIT 1",
	    V_INT(change_id));
}

void experiments_drop(struct txn *d, int64_t change_id)
{
	db_exec(d,
	    "DELETE FROM experiment_test WHERE experiment_id IN (SELECT id FROM experiment WHERE change_id = ?1)",
	    V_INT(change_id));
	db_exec(d, "DELETE FROM experiment WHERE change_id = ?1", V_INT(change_id));
}

/* ---- proof ---- */

enum {
	SHOWN_MAX_BYTES = 60, /* of a vendor's text about its machine */
	/* The longest pause between two jobs of a run that report one by one. */
	TESTS_COME_MS = 15000,
};

/* ---- the machine that a job reports; NULL: not reported ---- */

#define MACHINE_RECORD(F, S)                                                                                           \
	F(S, TEXT, workflow, NULL, "j.workflow", "")                                                                   \
	F(S, TEXT, name, NULL, "j.name", "")                                                                           \
	F(S, TEXT, torch_commit, NULL, "json_extract(j.environment, '$.torch_commit')", "")                            \
	F(S, TEXT, device, NULL, "json_extract(j.environment, '$.device')", "")                                        \
	F(S, TEXT, extension, NULL, "json_extract(j.environment, '$.extension.version')", "")
RECORD_LOCAL(machine, MACHINE_RECORD)
struct machine_list {
	struct machine *at;
	size_t n;
};

static bool is_same_job(const struct machine *a, const struct machine *b)
{
	return strcmp(a->workflow, b->workflow) == 0 && strcmp(a->name, b->name) == 0;
}

/* Whether the first run's job of this name names the same device (or version of the extension), or, if the run has no job
 * of this name, any of its jobs. True if one of the two names none. */
static bool is_as_before(const struct machine *m, const struct machine_list *before, bool is_device)
{
	const char *is = is_device ? m->device : m->extension;
	bool has_same_job = false, has_any = false;

	for (size_t i = 0; i < before->n; i++)
		has_same_job |= is_same_job(m, &before->at[i]);
	for (size_t i = 0; is && i < before->n; i++) {
		const struct machine *b = &before->at[i];
		const char *was = is_device ? b->device : b->extension;

		if (!was || (has_same_job && !is_same_job(m, b)))
			continue;
		if (strcmp(is, was) == 0)
			return true;
		has_any = true;
	}
	return !has_any;
}

/* "WHAT: VENDOR'S TEXT", with the text cut. free(). */
static char *why_other(const char *what, const char *text)
{
	size_t n = strlen(text), n_shown = utf8_cut(text, n, SHOWN_MAX_BYTES);

	return xasprintf("%s: %.*s%s", what, (int)n_shown, text, n_shown < n ? "…" : "");
}

/* The reason if its machine or commit makes it void; NULL: it does not. free(). */
static char *why_machine(const struct view *d, const struct experiment *e)
{
	struct machine_list now = {0}, before = {0};
	char *why = NULL;

	RECORDS_READ(db_rows(d,
			 RECORD_QUERY(MACHINE_RECORD, "FROM job j WHERE j.change_id = ?1 AND j.is_current = 1"
						      " AND j.environment IS NOT NULL ORDER BY j.id"),
			 V_INT(e->run_change_id)),
	    machine, now.at, now.n);
	RECORDS_READ(
	    db_rows(d,
		RECORD_QUERY(MACHINE_RECORD, "FROM job j WHERE j.change_id = ?1 AND j.dispatch_id = ?2"
					     " AND j.accelerator = ?3 AND j.environment IS NOT NULL ORDER BY j.id"),
		V_INT(e->change_id), V_TEXT(e->dispatch_id), V_TEXT(e->accelerator)),
	    machine, before.at, before.n);
	for (size_t i = 0; !why && i < now.n; i++) {
		const struct machine *m = &now.at[i];

		if (names_a_commit(m->torch_commit) && !names_commit(m->torch_commit, e->sha))
			why = xasprintf("it tested commit %.40s instead", m->torch_commit);
		else if (!is_as_before(m, &before, true))
			why = why_other("it ran on another device", m->device);
		else if (!is_as_before(m, &before, false))
			why = why_other("it ran with another version of the extension", m->extension);
	}
	RECORDS_RELEASE(machine, now.at, now.n);
	RECORDS_RELEASE(machine, before.at, before.n);
	return why;
}

/* ---- one run that was reported twice ---- */

/* A URL that several first runs of the accelerator share does not belong to one run: it shows a dashboard, or the newest
 * build. */
#define SAME_ARTIFACT(accelerator)                                                                                     \
	"(a.artifact_url = b.artifact_url AND a.artifact_url <> '' AND a.artifact_url NOT IN"                          \
	" (SELECT artifact_url FROM (SELECT j.artifact_url, j.dispatch_id FROM job j"                                  \
	"   WHERE j.accelerator = " accelerator " AND j.id > 0 AND NOT EXISTS (SELECT 1 FROM change c"                 \
	"    WHERE c.id = j.change_id AND c.kind = 'experiment') ORDER BY j.id DESC LIMIT 200) newest"                 \
	"  WHERE artifact_url IS NOT NULL GROUP BY artifact_url"                                                       \
	"  HAVING COUNT(DISTINCT dispatch_id) > 1))"
#define SAME_JOB "a.run_id = b.run_id AND a.workflow = b.workflow AND a.name = b.name"

/* Experiments that were reported with the same run: those of another commit, because it is not known which of the two the
 * run tested, and earlier ones of the same commit, because one run counts once. Changes share the outcome on a merge base,
 * so a twin may be of another change. */
static struct experiment_list twins_of(const struct view *d, const struct experiment *e)
{
	return experiments_read(db_rows(d,
	    "SELECT " EXPERIMENT_COLUMNS " FROM experiment o WHERE o.id IN"
	    "  (SELECT id FROM experiment WHERE change_id = ?2 AND accelerator = ?3"
	    "   UNION SELECT id FROM experiment WHERE accelerator = ?3 AND side = 'base'"
	    "   AND sha = (SELECT merge_base_sha FROM change WHERE id = ?2)"
	    "   UNION SELECT h.id FROM change own CROSS JOIN change c"
	    "   ON c.repository_key = own.repository_key AND c.merge_base_sha = ?6"
	    "   CROSS JOIN experiment h ON h.change_id = c.id AND h.accelerator = ?3"
	    "   AND h.side = 'head' WHERE own.id = ?2 AND ?5 = 'base')"
	    " AND o.runner = ?4 AND (o.side <> ?5 OR o.sha <> ?6 OR (o.change_id = ?2 AND o.id < ?7))"
	    " AND o.run_change_id IS NOT NULL AND EXISTS"
	    "  (SELECT 1 FROM job a CROSS JOIN job b ON b.change_id = o.run_change_id"
	    "   AND b.digest IS NOT NULL WHERE a.change_id = ?1 AND a.digest IS NOT NULL"
	    "   AND (" SAME_ARTIFACT("?3") " OR (" SAME_JOB "))) ORDER BY o.id",
	    V_INT(e->run_change_id), V_INT(e->change_id), V_TEXT(e->accelerator), V_TEXT(e->runner),
	    V_TEXT(experiment_side_name(e->side)), V_TEXT(e->sha), V_INT(e->id)));
}

static const char REPORTED_FOR_BOTH[] = "the same run was reported for the head and for the merge base";

static bool is_of_commit(const struct experiment *twin, const struct experiment *e)
{
	return twin->side == e->side && strcmp(twin->sha, e->sha) == 0;
}

/* Of `experiment e`. */
#define HAS_ANY_TEST                                                                                                   \
	"EXISTS (SELECT 1 FROM experiment_test t CROSS JOIN cell v ON v.change_id = e.run_change_id"                   \
	" AND v.accelerator = e.accelerator AND v.test_id = t.test_id WHERE t.experiment_id = e.id"                    \
	" AND v.status IN ('PASS', 'FAIL', 'ERROR', 'DONE'))"

static bool experiment_has_any_test(const struct view *d, const struct experiment *e)
{
	return db_has(d, "SELECT 1 FROM experiment e WHERE e.id = ?1 AND " HAS_ANY_TEST, V_INT(e->id));
}

#define WITHOUT_TESTS                                                                                                  \
	" FROM experiment e CROSS JOIN dispatch x ON x.change_id = e.run_change_id"                                    \
	" AND x.is_current = 1 AND x.state = 'done' WHERE e." EXPERIMENT_IS_OPEN                                       \
	" AND +e.run_change_id IS NOT NULL AND NOT " HAS_ANY_TEST

int64_t experiments_without_tests_end(struct txn *d, int64_t now_ms)
{
	struct experiment_list l = experiments_read(db_rows(d,
	    "SELECT " EXPERIMENT_COLUMNS " FROM experiment WHERE id IN (SELECT e.id" WITHOUT_TESTS
	    " AND x.finished_ms <= ?1) ORDER BY id",
	    V_INT(now_ms - TESTS_COME_MS)));
	int64_t finished_ms;

	for (size_t i = 0; i < l.n; i++)
		cells_moved(d, l.at[i].run_change_id, l.at[i].accelerator, CELLS_EXPERIMENT_MOVED, now_ms);
	experiment_list_release(&l);
	finished_ms = db_int(d, 0, "SELECT MIN(x.finished_ms)" WITHOUT_TESTS);
	return finished_ms ? finished_ms + TESTS_COME_MS : 0;
}

/* The reason why it is void; NULL: it proves something. free(). */
static char *why_void(const struct view *d, const struct experiment *e, const struct experiment_list *twins)
{
	char *why;

	for (size_t i = 0; i < twins->n; i++)
		if (!is_of_commit(&twins->at[i], e))
			return xstrdup(REPORTED_FOR_BOTH);
	if (twins->n)
		return xstrdup("the same run was reported for an earlier experiment");
	/* the vendor reported the first run once more, under the experiment's name */
	if (db_has(d,
		"SELECT 1 FROM job a CROSS JOIN job b ON b.change_id = ?2 AND b.dispatch_id = ?3"
		" AND b.accelerator = ?4 WHERE a.change_id = ?1 AND a.digest IS NOT NULL"
		" AND (" SAME_ARTIFACT("?4") " OR (" SAME_JOB " AND a.run_attempt = b.run_attempt)) LIMIT 1",
		V_INT(e->run_change_id), V_INT(e->change_id), V_TEXT(e->dispatch_id), V_TEXT(e->accelerator)))
		return xstrdup("the first run was reported once more");
	why = why_machine(d, e);
	if (!why && !experiment_has_any_test(d, e))
		why = xstrdup("none of its tests was reported with a result");
	return why;
}

/* Its run has ended: it is done, or void because it proves nothing. Twins of the other commit that counted as proof until
 * now become void. The changes that they explain are attributed again after all of these experiments have their states. */
static void conclude_experiment(struct txn *d, struct experiment *e, int64_t now_ms)
{
	struct experiment_list twins = twins_of(d->view, e);
	bool *is_revoked = xcalloc(twins.n + 1, sizeof(*is_revoked));
	char *why = why_void(d->view, e, &twins);

	for (size_t i = 0; i < twins.n; i++) {
		is_revoked[i] = !is_of_commit(&twins.at[i], e) && twins.at[i].state == EXPERIMENT_IS_DONE;
		if (is_revoked[i])
			experiment_enter(d, &twins.at[i], EXPERIMENT_IS_VOID, REPORTED_FOR_BOTH, now_ms);
	}
	experiment_enter(d, e, why ? EXPERIMENT_IS_VOID : EXPERIMENT_IS_DONE, why, now_ms);
	for (size_t i = 0; i < twins.n; i++) {
		const struct experiment *twin = &twins.at[i];

		if (!is_revoked[i])
			continue;
		experiment_sharers_due(d, twin, now_ms);
		if (twin->change_id != e->change_id)
			cells_moved(d, twin->change_id, twin->accelerator, CELLS_EXPERIMENT_MOVED, now_ms);
	}
	free(is_revoked);
	experiment_list_release(&twins);
	free(why);
}

/* ---- its state ----
 *
 * If a vendor's CI runs both sides at the same time, neither counts before both have ended. So Outpost notices a run that
 * is reported for both sides before it counts as evidence. A side that made way for a first run has not ended. A machine
 * reports each lease separately, so its sides do not wait for each other. */

#define COUNTERPART                                                                                                    \
	" FROM experiment o WHERE o.change_id = ?1 AND o.accelerator = ?2 AND o.runner = ?3"                           \
	" AND o.side <> ?4 AND o.cause = ?5 AND (o.cause = 'auto' OR (o.command_id = ?6"                               \
	"  AND o.round = ?7)) AND o." EXPERIMENT_IS_OPEN
#define RUN_OF_O "SELECT 1 FROM dispatch x WHERE x.change_id = o.run_change_id AND x.is_current = 1"
#define COUNTERPART_OF(e)                                                                                              \
	V_INT((e)->change_id), V_TEXT((e)->accelerator), V_TEXT((e)->runner), V_TEXT(experiment_side_name((e)->side)), \
	    V_TEXT((e)->is_stress ? "stress" : "auto"), V_INT((e)->command_id), V_INT((e)->round)

#define MADE_WAY "o.state = " EXPERIMENT_SQL_PLANNED " AND o.run_change_id IS NOT NULL"

void experiment_counterpart_moves(struct txn *d, const struct experiment *e, int64_t now_ms)
{
	int64_t run = db_int(d, 0,
	    "SELECT o.run_change_id" COUNTERPART " AND EXISTS (" RUN_OF_O
	    " AND NOT " DISPATCH_IS_AT_WORK("x.") ") LIMIT 1",
	    COUNTERPART_OF(e));

	if (run)
		cells_moved(d, run, e->accelerator, CELLS_EXPERIMENT_MOVED, now_ms);
}

void experiment_expire(struct txn *d, struct experiment *e, const char *why, int64_t now_ms)
{
	/* the end of another one may already have ended this one */
	if (!experiment_is_open(d->view, e))
		return;
	experiment_enter(d, e, EXPERIMENT_IS_EXPIRED, why, now_ms);
	experiment_sharers_due(d, e, now_ms);
	experiment_counterpart_moves(d, e, now_ms);
	cells_moved(d, e->change_id, e->accelerator, CELLS_EXPERIMENT_MOVED, now_ms);
}

/* Cells that come after the end change the outcome of an experiment, so it is judged again. */
static bool follow_dispatch(struct txn *d, struct experiment *e, const struct stored_dispatch *run, int64_t now_ms)
{
	switch (run->state) {
	case DISPATCH_DONE:
		/* It waits for the job with its tests, and then for the counterpart. A job that is opened again moves its
		 * deadline, so this wait also ends when the experiment expires. */
		if (db_has(d, "SELECT 1" WITHOUT_TESTS " AND e.id = ?1 AND x.finished_ms > ?2", V_INT(e->id),
			V_INT(now_ms - TESTS_COME_MS)) ||
		    (e->state == EXPERIMENT_IS_STARTED && e->expires_ms > now_ms &&
			db_has(d,
			    "SELECT 1" COUNTERPART " AND ((" MADE_WAY ") OR EXISTS (" RUN_OF_O
			    " AND x.kind <> 'pull' AND " DISPATCH_IS_AT_WORK("x.") ")) LIMIT 1",
			    COUNTERPART_OF(e)) &&
			experiment_has_any_test(d->view, e)))
			return false;
		conclude_experiment(d, e, now_ms);
		return true;
	case DISPATCH_EXPIRED:
	case DISPATCH_FAILED:
		if (e->state == EXPERIMENT_IS_EXPIRED)
			return false;
		experiment_enter(d, e, EXPERIMENT_IS_EXPIRED, run->last_error, now_ms);
		request_drop(d, run, now_ms); /* the vendor's machine may still work on it */
		return true;
	case DISPATCH_CANCELLED:
	case DISPATCH_SUPERSEDED:
		experiment_enter(d, e, EXPERIMENT_IS_CANCELLED, run->last_error, now_ms);
		return true;
	case DISPATCH_HELD:
	case DISPATCH_QUEUED:
	case DISPATCH_SENT:
	case DISPATCH_ACKNOWLEDGED:
	case DISPATCH_RUNNING:
	case N_DISPATCH_STATES:
		break;
	}
	return e->state == EXPERIMENT_IS_DONE;
}

bool experiments_follow(struct txn *d, int64_t run_change_id, int64_t now_ms, int64_t *ret_explained)
{
	struct experiment_list l = experiments_read(
	    db_rows(d, "SELECT " EXPERIMENT_COLUMNS " FROM experiment WHERE run_change_id = ?1", V_INT(run_change_id)));
	struct dispatch_list run = {0};
	bool has_moved = false;

	if (l.n && l.at[0].state != EXPERIMENT_IS_CANCELLED) /* a cancelled one stays so, because it is not needed */
		run = experiment_dispatches(d->view, &l.at[0]);
	if (run.n)
		has_moved = follow_dispatch(d, &l.at[0], &run.at[0], now_ms);
	if (has_moved) {
		*ret_explained = l.at[0].change_id;
		experiment_sharers_due(d, &l.at[0], now_ms);
		experiment_counterpart_moves(d, &l.at[0], now_ms);
	}
	experiment_list_release(&l);
	dispatch_list_release(&run);
	return has_moved;
}
