#include "verdict/verdicts.h"

#include "db/record_rows.h"
#include "model/attribution.h"
#include "verdict/cells_moved.h"

/* The position in this text orders statuses: the earlier one wins. */
#define X(e)         #e " "
#define STATUS_ORDER "'" TEST_STATUSES(X) "'"

enum { ATTEMPTS_BACK_MAX = 8 };

struct cell {
	int64_t change_id;
	const char *accelerator;
	int64_t test_id;
	enum test_status status;
	const char *message; /* or NULL */
	int64_t job_id;      /* 0: none */
	bool is_late;
};

/* The dispatch of job j was cancelled before the job ended. Outpost ends a machine's job then, and a vendor's job may run
 * on and report; neither is a result of the change. */
#define ENDED_AFTER_CALL_OFF                                                                                           \
	" EXISTS (SELECT 1 FROM dispatch x WHERE x.id = j.dispatch_id"                                                 \
	"  AND x.accelerator = j.accelerator AND x.runner = j.runner"                                                  \
	"  AND x.state IN ('superseded', 'cancelled')"                                                                 \
	"  AND (j.digest IS NULL OR j.completed_ms > x.finished_ms))"

int64_t test_id_of(struct txn *d, const char *suite, const char *name, const char *dtype)
{
	const char *type = dtype ? dtype : "";
	int64_t id = db_int(d, 0, "SELECT id FROM test WHERE suite = ?1 AND name = ?2 AND dtype = ?3", V_TEXT(suite),
	    V_TEXT(name), V_TEXT(type));

	return id ? id
		  : db_exec_int(d, 0, "INSERT INTO test (suite, name, dtype) VALUES (?1, ?2, ?3) RETURNING id",
			V_TEXT(suite), V_TEXT(name), V_TEXT(type));
}

/* As many tests as one statement names; `place` is the position among them. */
enum { NAMED_TOGETHER = 16 };
#define WITH_NAMED                                                                                                     \
	"WITH named (suite, name, dtype, place) AS (VALUES "                                                           \
	"(?1, ?2, ?3, 0), (?4, ?5, ?6, 1), (?7, ?8, ?9, 2), (?10, ?11, ?12, 3), "                                      \
	"(?13, ?14, ?15, 4), (?16, ?17, ?18, 5), (?19, ?20, ?21, 6), (?22, ?23, ?24, 7), "                             \
	"(?25, ?26, ?27, 8), (?28, ?29, ?30, 9), (?31, ?32, ?33, 10), (?34, ?35, ?36, 11), "                           \
	"(?37, ?38, ?39, 12), (?40, ?41, ?42, 13), (?43, ?44, ?45, 14), (?46, ?47, ?48, 15)) "
#define ID_OF_NAMED                                                                                                    \
	"(SELECT id FROM test WHERE test.suite = named.suite AND test.name = named.name AND test.dtype = named.dtype)"

#define NAMED_TEST_RECORD(F, S)                                                                                        \
	F(S, INT, place, NULL, "place", "")                                                                            \
	F(S, INT, id, NULL, ID_OF_NAMED, "")
RECORD_LOCAL(named_test, NAMED_TEST_RECORD)

/* PostgreSQL gets the INSERT with the SELECT, so the tests cost one round trip. The condition keeps the numbers of ids close together: a
 * conflict would use one up. A subquery finds each test by the index; for a join, PostgreSQL reads the whole table if it had few rows when
 * the statement was planned. */
static void ids_of_named(struct txn *d, const struct value *names, int64_t *ids)
{
	struct rows *r;

	db_exec_values(d,
	    WITH_NAMED "INSERT INTO test (suite, name, dtype) SELECT suite, name, dtype FROM named"
		       " WHERE " ID_OF_NAMED " IS NULL ORDER BY place ON CONFLICT DO NOTHING",
	    names);
	r = db_rows_values(d->view, WITH_NAMED RECORD_QUERY(NAMED_TEST_RECORD, "FROM named"), names);
	while (rows_next(r)) {
		struct named_test row;

		record_read(r, &named_test_record, &row);
		ids[row.place] = row.id;
	}
}

void test_ids_of(struct txn *d, const struct test_result *tests, size_t n, int64_t *ids)
{
	struct value names[3 * NAMED_TOGETHER + 1];
	size_t i = 0;

	for (; n - i >= NAMED_TOGETHER; i += NAMED_TOGETHER) {
		for (size_t k = 0; k < NAMED_TOGETHER; k++) {
			const struct test_result *t = &tests[i + k];

			names[3 * k] = V_TEXT(t->suite);
			names[3 * k + 1] = V_TEXT(t->name);
			names[3 * k + 2] = V_TEXT(t->dtype ? t->dtype : "");
		}
		names[3 * NAMED_TOGETHER] = (struct value){.type = VALUE_END};
		ids_of_named(d, names, ids + i);
	}
	for (; i < n; i++)
		ids[i] = test_id_of(d, tests[i].suite, tests[i].name, tests[i].dtype);
}

#define WORSE_WINS                                                                                                     \
	" ON CONFLICT (change_id, accelerator, test_id) DO UPDATE SET status = excluded.status,"                       \
	" attribution = excluded.attribution, message = excluded.message, job_id = excluded.job_id,"                   \
	" is_late = excluded.is_late, file = excluded.file, line = excluded.line, reason = NULL,"                      \
	" evidence_job = NULL, evidence_url = NULL, needs = 0"                                                         \
	" WHERE instr(" STATUS_ORDER ", excluded.status) < instr(" STATUS_ORDER ", verdict.status)"

/* Adds one source of a cell. The cell shows the worst of its sources, by the order of enum test_status. */
static void verdict_put(struct txn *d, const struct cell *c)
{
	db_exec(d,
	    "INSERT INTO verdict (change_id, accelerator, test_id, status, attribution, message,"
	    " job_id, is_late) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)" WORSE_WINS,
	    V_INT(c->change_id), V_TEXT(c->accelerator), V_INT(c->test_id), V_TEXT(test_status_name(c->status)),
	    V_TEXT(test_status_is_red(c->status) ? "UNCLASSIFIED" : NULL), V_TEXT(c->message), V_INT_OR_NULL(c->job_id),
	    V_INT(c->is_late));
}

bool job_needs_cell(const struct job_outcome *o)
{
	if (o->n_tests == 0 || o->is_given_up)
		return true;
	return o->n_red == 0 && test_status_is_red(test_status_of_conclusion(o->conclusion));
}

char *job_outcome_text(const struct job_outcome *o)
{
	if (o->message)
		return xstrdup(o->message);
	if (!test_status_is_red(test_status_of_conclusion(o->conclusion)))
		return NULL;
	return xasprintf("the job ended with %s%s", o->conclusion ? o->conclusion : "no conclusion",
	    o->n_tests ? " although no test in it is red" : "");
}

/* Of a result r of job j. The other packed results need no row: the table `cell` (db/packed_cell.c) shows them as the job reports
 * them, as long as it is counted. */
#define RESULT_HAS_CELL "r.ordinal < j.n_tests AND (r.is_packed = 0 OR r.status IN ('FAIL', 'ERROR', 'MISS'))"

/* Of a job j: it has results from a version before packed results. */
#define HAS_UNPACKED "j.n_tests > COALESCE((SELECT SUM(p.n) FROM packed_job p WHERE p.job_id = j.id), 0)"

/* A completed job j. */
#define ENDED_JOB_RECORD(F, S)                                                                                         \
	F(S, ID, id, NULL, "j.id", "")                                                                                 \
	F(S, TEXT, workflow, NULL, "j.workflow", "")                                                                   \
	F(S, TEXT, name, NULL, "j.name", "")                                                                           \
	F(S, TEXT, conclusion, NULL, "j.conclusion", "")                                                               \
	F(S, INT, n_tests, NULL, "j.n_tests", "")                                                                      \
	F(S, INT, n_red, NULL, "j.n_red", "")                                                                          \
	F(S, BOOL, is_late, NULL, "j.is_late", "")                                                                     \
	F(S, TEXT, message, NULL, "j.message", "")                                                                     \
	F(S, BOOL, is_given_up, NULL, "j.digest IS NULL", "")                                                          \
	F(S, BOOL, has_results, NULL, "EXISTS (SELECT 1 FROM result r WHERE r.job_id = j.id AND " RESULT_HAS_CELL ")", \
	    "Some of its results are rows of `verdict`.")                                                              \
	F(S, BOOL, is_distinct, NULL,                                                                                  \
	    "EXISTS (SELECT 1 FROM packed_job p CROSS JOIN test_list l ON l.id = p.list_id"                            \
	    " WHERE p.job_id = j.id AND p.n = j.n_tests AND l.is_distinct = 1)",                                       \
	    "It has no test twice.")                                                                                   \
	F(S, BOOL, is_unpacked, NULL, HAS_UNPACKED, "")
RECORD_LOCAL(ended_job, ENDED_JOB_RECORD)

/* A packed result of the test is worse. Only a cell that is milder than PASS can meet one, because a red result has a row. */
static bool packed_result_wins(const struct view *d, const struct cell *c)
{
	return (c->status == TEST_DONE || c->status == TEST_SKIP) &&
	       db_has(d,
		   "SELECT 1 FROM cell WHERE change_id = ?1 AND accelerator = ?2 AND test_id = ?3"
		   " AND (status = 'PASS' OR (status = 'DONE' AND ?4 <> 0))",
		   V_INT(c->change_id), V_TEXT(c->accelerator), V_INT(c->test_id), V_INT(c->status == TEST_SKIP));
}

/* Adds the cell of the job itself, if it needs one. */
static void put_cell_of_job(struct txn *d, int64_t change_id, const char *accelerator, const struct ended_job *j)
{
	struct job_outcome o = {j->conclusion, j->n_tests, j->n_red, j->message, j->is_given_up};
	struct cell c = {.change_id = change_id, .accelerator = accelerator, .job_id = j->id, .is_late = j->is_late};
	char *message;

	if (!job_needs_cell(&o))
		return;
	message = job_outcome_text(&o);
	c.test_id = test_id_of(d, j->workflow, j->name, NULL);
	c.status = test_status_of_conclusion(j->conclusion);
	c.message = message;
	if (!packed_result_wins(d->view, &c))
		verdict_put(d, &c);
	free(message);
}

/* The cells of the results of job ?1. */
#define PUT_RESULTS                                                                                                    \
	"INSERT INTO verdict (change_id, accelerator, test_id, status, attribution, message, job_id, is_late, file,"   \
	" line) SELECT change_id, accelerator, test_id, status,"                                                       \
	" CASE WHEN status IN ('FAIL', 'ERROR', 'MISS') THEN 'UNCLASSIFIED' END, message, job_id, is_late, file, line" \
	" FROM (SELECT j.change_id, j.accelerator, r.test_id, r.status, r.message, j.id AS job_id, j.is_late, r.file," \
	"  r.line"
#define OF_JOB " FROM job j JOIN result r ON r.job_id = j.id AND " RESULT_HAS_CELL " WHERE j.id = ?1) results"

/* A report names nearly always each test once. If one has several results, the cell shows the worst of them, because no row may
 * be written twice; to find it takes longer than to write all rows. */
static void put_results_of(struct txn *d, const struct ended_job *j)
{
	if (j->has_results && j->is_distinct)
		db_exec(d, PUT_RESULTS OF_JOB " WHERE true" WORSE_WINS, V_INT(j->id));
	else if (j->has_results)
		db_exec(d,
		    PUT_RESULTS ", ROW_NUMBER() OVER (PARTITION BY r.test_id ORDER BY instr(" STATUS_ORDER
				", r.status), r.ordinal) AS n" OF_JOB " WHERE n = 1" WORSE_WINS,
		    V_INT(j->id));
}

#define TESTS_COUNTED_AS                                                                                               \
	"(SELECT r.test_id FROM job j CROSS JOIN job_test r ON r.job_id = j.id WHERE j.change_id = ?1"                 \
	" AND j.accelerator = ?2 AND j.is_counted = 1 AND (?3 = 0 OR j.id = ?3) AND r.status IN "

/* Deletes cells with a row that a packed result wins over: PASS over DONE, and both over SKIP. Such a row is of a job without
 * tests, or of a version before packed results. job_id: only the results of this job are new; 0: any may be. It reads all
 * tests of these jobs. */
static void drop_milder_cells(struct txn *d, int64_t change_id, const char *accelerator, int64_t job_id)
{
	db_exec(d,
	    "DELETE FROM verdict WHERE change_id = ?1 AND accelerator = ?2"
	    " AND ((status = 'SKIP' AND test_id IN " TESTS_COUNTED_AS "('PASS', 'DONE')))"
	    " OR (status = 'DONE' AND test_id IN " TESTS_COUNTED_AS "('PASS'))))",
	    V_INT(change_id), V_TEXT(accelerator), V_INT(job_id));
}

/* The attempts e of a job j in its second or a later attempt, and j itself. A report without tests, or with a list that was
 * cut, does not claim to name all tests. The results of a lease whose work went to another machine are not a whole attempt.
 * Only the newest attempts are read, so that a job that was retried often does not block the writer. */
#define ATTEMPTS_OF_RETRIED                                                                                            \
	" FROM job j CROSS JOIN job e ON e.change_id = j.change_id"                                                    \
	"  AND e.dispatch_id = j.dispatch_id AND e.accelerator = j.accelerator"                                        \
	"  AND e.workflow = j.workflow AND e.name = j.name AND e.run_id = j.run_id"                                    \
	"  AND e.run_attempt BETWEEN j.run_attempt - ?3 AND j.run_attempt"                                             \
	"  WHERE j.change_id = ?1 AND j.accelerator = ?2 AND j.is_current = 1"                                         \
	"  AND j.status = 'completed' AND j.run_attempt > 1 AND j.n_tests > 0 AND j.n_cut = 0"                         \
	"  AND NOT" ENDED_AFTER_CALL_OFF                                                                               \
	"  AND e.status = 'completed' AND e.digest IS NOT NULL AND NOT EXISTS (SELECT 1"                               \
	"   FROM lease l WHERE l.dispatch_id = e.dispatch_id AND l.attempt = e.run_attempt"                            \
	"   AND l.job_id = e.id AND l.state <> 'done')"

/* Whether the cells may contain results of an earlier attempt of a job, because that attempt was red. */
static bool verdicts_are_of_retries(const struct view *d, int64_t change_id, const char *accelerator)
{
	return db_has(d, "SELECT 1" ATTEMPTS_OF_RETRIED " AND e.run_attempt < j.run_attempt AND e.n_red > 0 LIMIT 1",
	    V_INT(change_id), V_TEXT(accelerator), V_INT(ATTEMPTS_BACK_MAX));
}

/* Adds cells for tests that failed and that the retry does not report, because otherwise the job would become green. An
 * ERROR may disappear: the error of a file that cannot be collected has a name only while it exists. */
static void put_unnamed_by_retries(struct txn *d, int64_t change_id, const char *accelerator)
{
	db_exec(d,
	    "WITH attempt AS (SELECT e.id, e.run_attempt, j.id AS last_id, j.run_attempt AS last_attempt,"
	    "  j.is_late" ATTEMPTS_OF_RETRIED "),"
	    /* the newest attempt that names it, and whether it failed there */
	    " named AS (SELECT a.last_id, a.last_attempt, a.run_attempt, a.is_late, r.test_id, r.file, r.line,"
	    "  r.status, ROW_NUMBER() OVER (PARTITION BY a.last_id, r.test_id"
	    "   ORDER BY a.run_attempt DESC, r.status = 'FAIL' DESC, r.ordinal) AS age"
	    "  FROM attempt a CROSS JOIN job_test r ON r.job_id = a.id)"
	    " INSERT INTO verdict (change_id, accelerator, test_id, status, attribution, message, job_id, is_late,"
	    " file, line) SELECT ?1, ?2, test_id, 'MISS', 'UNCLASSIFIED', 'failed in attempt ' || run_attempt"
	    " || ', and not in the report of attempt ' || last_attempt, last_id, is_late, file, line FROM named"
	    " WHERE run_attempt < last_attempt AND age = 1 AND status = 'FAIL' AND NOT EXISTS (SELECT 1 FROM cell c"
	    "  WHERE c.change_id = ?1 AND c.accelerator = ?2 AND c.test_id = named.test_id)"
	    " ORDER BY last_id ON CONFLICT DO NOTHING",
	    V_INT(change_id), V_TEXT(accelerator), V_INT(ATTEMPTS_BACK_MAX));
}

#define MISSING_RESULT_RECORD(F, S)                                                                                    \
	F(S, ID, job_id, NULL, "job_id", "0: its dispatch has none.")                                                  \
	F(S, BORROWED, suite, NULL, "suite", "")                                                                       \
	F(S, BORROWED, name, NULL, "name", "")                                                                         \
	F(S, BORROWED, error, NULL, "error", "")
RECORD_LOCAL(missing_result, MISSING_RESULT_RECORD)

/* Adds a cell for each job that began and did not end before its dispatch expired or failed, and for each dispatch that
 * expired or failed without any job. */
static void put_missing_results(struct txn *d, int64_t change_id, const char *accelerator)
{
	struct rows *r = db_rows(d,
	    RECORD_QUERY(MISSING_RESULT_RECORD,
		"FROM (SELECT j.id AS job_id, j.workflow AS suite, j.name AS name,"
		"  x.last_error AS error FROM job j JOIN dispatch x"
		"  ON x.id = j.dispatch_id AND x.accelerator = j.accelerator AND x.runner = j.runner"
		"  WHERE j.change_id = ?1 AND j.accelerator = ?2 AND j.is_current = 1"
		"  AND j.status = 'in_progress' AND x.state IN ('expired', 'failed')"
		" UNION ALL SELECT 0, 'dispatch', x.runner, x.last_error FROM dispatch x"
		"  WHERE x.change_id = ?1 AND x.accelerator = ?2 AND x.is_current = 1"
		"  AND x.state IN ('expired', 'failed') AND NOT EXISTS (SELECT 1 FROM job j"
		"   WHERE j.change_id = x.change_id AND j.dispatch_id = x.id"
		"   AND j.accelerator = x.accelerator AND j.is_current = 1)) missing ORDER BY job_id, name"),
	    V_INT(change_id), V_TEXT(accelerator));

	while (rows_next(r)) {
		struct missing_result m;

		record_read(r, &missing_result_record, &m);
		verdict_put(d, &(struct cell){
				   .change_id = change_id,
				   .accelerator = accelerator,
				   .test_id = test_id_of(d, m.suite, m.name, NULL),
				   .status = TEST_MISS,
				   .message = m.error,
				   .job_id = m.job_id,
			       });
	}
}

/* `t` is the test that s.value, SUITE/TEST, names. A suite has no slash. */
#define TEST_IS_NAMED                                                                                                  \
	" ON t.suite = substr(s.value, 1, instr(s.value, '/') - 1)"                                                    \
	" AND t.name = substr(s.value, instr(s.value, '/') + 1)"

/* The last step. job_id: only the cells of its tests are new; 0: any may be. skip: a JSON array. */
static void apply_skips(struct txn *d, int64_t change_id, const char *accelerator, int64_t job_id, const char *skip)
{
	db_exec(d,
	    "INSERT INTO verdict (change_id, accelerator, test_id, status, message, job_id, is_late)"
	    " SELECT c.change_id, c.accelerator, c.test_id, 'SKIP', 'not supported by this accelerator', c.job_id,"
	    "  c.is_late FROM (SELECT DISTINCT value FROM json_each(?3)) s CROSS JOIN test t" TEST_IS_NAMED
	    /* each cell is looked up in all jobs of the change */
	    " AND (?4 = 0 OR t.id IN (SELECT test_id FROM job_test WHERE job_id = ?4)"
	    "  OR EXISTS (SELECT 1 FROM job j WHERE j.id = ?4 AND j.workflow = t.suite AND j.name = t.name))"
	    " CROSS JOIN cell c ON c.change_id = ?1 AND c.accelerator = ?2 AND c.test_id = t.id WHERE TRUE"
	    " ON CONFLICT (change_id, accelerator, test_id) DO UPDATE SET status = excluded.status,"
	    " attribution = NULL, message = excluded.message, file = NULL, line = NULL, reason = NULL,"
	    " evidence_job = NULL, evidence_url = NULL, needs = 0",
	    V_INT(change_id), V_TEXT(accelerator), V_TEXT(skip), V_INT(job_id));
}

/* The rows besides the results that cells may come from. One statement finds them, because most changes have none. */
#define OTHER_SOURCES_RECORD(F, S)                                                                                     \
	F(S, BOOL, has_retries, NULL, "EXISTS (SELECT 1" CURRENT_JOBS " AND j.run_attempt > 1)", "")                   \
	F(S, BOOL, has_silence, NULL,                                                                                  \
	    "EXISTS (SELECT 1 FROM dispatch x WHERE x.change_id = ?1 AND x.accelerator = ?2"                           \
	    " AND x.state IN ('expired', 'failed'))",                                                                  \
	    "A dispatch ended without a result.")                                                                      \
	F(S, BOOL, has_empty, NULL, "EXISTS (SELECT 1" CURRENT_JOBS " AND j.n_tests = 0)", "A job has no tests.")      \
	F(S, BOOL, has_unpacked, NULL, "EXISTS (SELECT 1" CURRENT_JOBS " AND " HAS_UNPACKED ")", "")                   \
	F(S, TEXT, skip, NULL, "(SELECT skip FROM accelerator WHERE name = ?2 AND skip <> '[]')", "NULL: none.")
#define CURRENT_JOBS                                                                                                   \
	" FROM job j WHERE j.change_id = ?1 AND j.accelerator = ?2 AND j.is_current = 1 AND j.status = 'completed'"
RECORD_LOCAL(other_sources, OTHER_SOURCES_RECORD)

void verdicts_rebuild(struct txn *d, int64_t change_id, const char *accelerator)
{
	struct other_sources has = {.skip = NULL};
	struct ended_job *jobs = NULL;
	size_t n = 0;

	if (!accelerator[0])
		return; /* the infra repository itself has no cells */
	db_exec(
	    d, "DELETE FROM verdict WHERE change_id = ?1 AND accelerator = ?2", V_INT(change_id), V_TEXT(accelerator));
	db_exec(d, "UPDATE job SET is_counted = 0 WHERE change_id = ?1 AND accelerator = ?2 AND is_counted = 1",
	    V_INT(change_id), V_TEXT(accelerator));
	db_exec(d,
	    "UPDATE job AS j SET is_counted = 1 WHERE j.change_id = ?1 AND j.accelerator = ?2 AND j.is_current = 1"
	    " AND j.status = 'completed' AND j.digest IS NOT NULL AND NOT" ENDED_AFTER_CALL_OFF,
	    V_INT(change_id), V_TEXT(accelerator));
	RECORD_READ_FIRST(d, other_sources, OTHER_SOURCES_RECORD, &has, "", V_INT(change_id), V_TEXT(accelerator));
	RECORDS_READ(
	    db_rows(d, RECORD_SELECT(ENDED_JOB_RECORD) CURRENT_JOBS " AND NOT" ENDED_AFTER_CALL_OFF " ORDER BY j.id",
		V_INT(change_id), V_TEXT(accelerator)),
	    ended_job, jobs, n);
	for (size_t i = 0; i < n; i++)
		if (!jobs[i].is_given_up)
			put_results_of(d, &jobs[i]);
	if (has.has_retries && verdicts_are_of_retries(d->view, change_id, accelerator))
		put_unnamed_by_retries(d, change_id, accelerator);
	for (size_t i = 0; i < n; i++)
		put_cell_of_job(d, change_id, accelerator, &jobs[i]);
	if (has.has_silence)
		put_missing_results(d, change_id, accelerator);
	if (has.has_unpacked)
		drop_milder_cells(d, change_id, accelerator, 0);
	if (has.skip)
		apply_skips(d, change_id, accelerator, 0, has.skip);
	RECORDS_RELEASE(ended_job, jobs, n);
	record_release(&other_sources_record, &has);
}

void verdicts_add_job(struct txn *d, int64_t change_id, const char *accelerator, int64_t job_id)
{
	struct other_sources has = {.skip = NULL};
	struct ended_job j;

	RECORD_READ_FIRST(d, other_sources, OTHER_SOURCES_RECORD, &has, "", V_INT(change_id), V_TEXT(accelerator));
	/* the results of an earlier attempt may count as well */
	if (has.has_retries && verdicts_are_of_retries(d->view, change_id, accelerator)) {
		verdicts_rebuild(d, change_id, accelerator);
	} else if (RECORD_READ_FIRST(d, ended_job, ENDED_JOB_RECORD, &j, "FROM job j WHERE j.id = ?1", V_INT(job_id))) {
		db_exec(d, "UPDATE job SET is_counted = 1 WHERE id = ?1", V_INT(job_id));
		put_results_of(d, &j);
		put_cell_of_job(d, change_id, accelerator, &j);
		if (has.has_empty || has.has_unpacked)
			drop_milder_cells(d, change_id, accelerator, j.is_unpacked ? 0 : job_id);
		if (has.skip)
			apply_skips(d, change_id, accelerator, job_id, has.skip);
		record_release(&ended_job_record, &j);
	}
	record_release(&other_sources_record, &has);
}

/* ==== failures ==== */

enum { FAILURES_DROPPED_AT_ONCE = 2000, FAILURES_OF_REPORT_MAX = 2000 };

static void put_failure(
    struct txn *d, const struct failure_place *at, int64_t test_id, enum test_status status, int64_t key)
{
	if (key)
		db_exec(d,
		    "INSERT INTO failure (accelerator, test_id, key, at_ms, job_id, change_id, status)"
		    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING",
		    V_TEXT(at->accelerator), V_INT(test_id), V_INT(key), V_INT(at->now_ms), V_INT(at->job_id),
		    V_INT(at->change_id), V_TEXT(test_status_name(status)));
}

/* The run of an experiment is evidence only for the change that it explains. */
static bool is_evidence(const struct view *d, int64_t change_id)
{
	return db_has(d, "SELECT 1 FROM change WHERE id = ?1 AND kind IN ('pull_request', 'push')", V_INT(change_id));
}

void failures_put(struct txn *d, const struct failure_place *at, const struct packed_tests *p)
{
	int n = 0;

	if (packed_tests_n_red(p) == 0 || !is_evidence(d->view, at->change_id))
		return;
	/* More failures at once are an outage, and are not compared with those of other changes. */
	for (size_t i = 0; i < p->n_rows && n < FAILURES_OF_REPORT_MAX; i++) {
		enum test_status status = p->tests[p->rows[i]].status;

		if (!attribution_applies(status))
			continue;
		n++;
		put_failure(d, at, p->ids[p->rows[i]], status, p->marks[i].key);
	}
}

void failure_put_job(struct txn *d, const struct failure_place *at, const char *workflow, const char *name,
    enum test_status status, const char *message)
{
	struct failure_text text = {message, NULL, workflow, name, ""};

	if (attribution_applies(status) && is_evidence(d->view, at->change_id))
		put_failure(d, at, test_id_of(d, workflow, name, NULL), status, failure_mark(status, &text).key);
}

/* The changes with failures that were made before ?1. A failure is not older than its change, so later changes have no failure before ?1.
 * The query reads one entry of the index for each change, and ends at the first later one. A change from after ?3, the present, was made
 * while the clock was wrong, so it does not end the list as long as its time is in the future. */
#define OLD_CHANGES                                                                                                    \
	"WITH RECURSIVE old (id) AS (SELECT MIN(change_id) FROM failure UNION ALL"                                     \
	" SELECT (SELECT MIN(f.change_id) FROM failure f WHERE f.change_id > old.id)"                                  \
	" FROM old LEFT JOIN change c ON c.id = old.id"                                                                \
	" WHERE old.id IS NOT NULL AND (c.created_ms IS NULL OR c.created_ms < ?1 OR c.created_ms > ?3))"

bool failures_drop(struct txn *d, int64_t before_ms)
{
	return db_exec_count(d,
		   "DELETE FROM failure WHERE (accelerator, test_id, key, at_ms, job_id) IN"
		   " (" OLD_CHANGES " SELECT f.accelerator, f.test_id, f.key, f.at_ms, f.job_id FROM old"
		   "  CROSS JOIN failure f ON f.change_id = old.id WHERE f.at_ms < ?1 LIMIT ?2)",
		   V_INT(before_ms), V_INT(FAILURES_DROPPED_AT_ONCE), V_INT(before_ms + FAILURES_KEPT_MS)) > 0;
}

/* ==== skips ==== */

void skips_changed(struct txn *d, const char *accelerator, const char *before, int64_t now_ms)
{
	struct rows *changes = db_rows(d,
	    "WITH moved AS ( SELECT b.value FROM json_each(?2) b WHERE b.value NOT IN"
	    "  (SELECT value FROM accelerator a, json_each(a.skip) WHERE a.name = ?1)"
	    " UNION SELECT s.value FROM accelerator a, json_each(a.skip) s WHERE a.name = ?1"
	    "  AND s.value NOT IN (SELECT value FROM json_each(?2))),"
	    " concerned AS (SELECT t.id FROM moved s JOIN test t" TEST_IS_NAMED ")"
	    " SELECT DISTINCT p.change_id FROM pull p WHERE p.state = 'open' AND EXISTS (SELECT 1 FROM concerned c"
	    "  CROSS JOIN cell v ON v.change_id = p.change_id AND v.accelerator = ?1 AND v.test_id = c.id)"
	    " ORDER BY p.change_id DESC LIMIT ?3",
	    V_TEXT(accelerator), V_TEXT(before), V_INT(SKIPS_CHANGES_MAX));

	cells_moved_each(d, changes, accelerator, CELLS_SKIPS_CHANGED, now_ms);
}
