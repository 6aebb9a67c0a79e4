/* `stress`: one test many times, on the head and on its merge base, and the reply with the results. */
#include "experiments/stress.h"

#include "experiments/experiment_rows.h"
#include "store/changes.h"
#include "store/commands.h"
#include "verdict/cells_moved.h"

/* The deadline of all rounds together. Each run ends at the deadline of its dispatch or at this one. */
static const int64_t EXPIRES_MS = INT64_C(24) * 3600 * 1000;

/* ---- plan ---- */

/* On the runner that reported the test, or else on the first that accepts experiments. */
bool stress_plan(struct txn *d, const struct stress *s)
{
	size_t n;
	struct rerunner *list = rerunners_of(d->view, s->change_id, s->accelerator, &n);
	const struct rerunner *u = n ? &list[0] : NULL;
	bool is_planned;
	char *runner = db_text(d,
	    "SELECT j.runner FROM cell v CROSS JOIN job j ON j.id = v.job_id WHERE v.change_id = ?1"
	    " AND v.accelerator = ?2 AND v.test_id = ?3",
	    V_INT(s->change_id), V_TEXT(s->accelerator), V_INT(s->tests[0]));

	for (size_t i = 0; runner && i < n; i++)
		if (strcmp(list[i].runner, runner) == 0)
			u = &list[i];
	is_planned = u && u->has_ended;
	for (int i = 0; is_planned && i < s->n_rounds * N_EXPERIMENT_SIDES; i++) {
		enum experiment_side side = (enum experiment_side)(i % N_EXPERIMENT_SIDES);
		struct experiment_tests tests = {.at = (int64_t *)s->tests, .n = s->n_tests};
		struct experiment e = {
		    .change_id = s->change_id,
		    .accelerator = (char *)s->accelerator,
		    .runner = u->runner,
		    .dispatch_id = u->dispatch_id,
		    .is_stress = true,
		    .round = 1 + i / N_EXPERIMENT_SIDES,
		    .side = side,
		    .sha = u->sha[side],
		    .command_id = s->command_id,
		    .expires_ms = s->now_ms + EXPIRES_MS,
		};

		if (e.sha)
			experiment_insert(d, &e, &tests, s->now_ms);
	}
	free(runner);
	rerunners_release(list, n);
	if (is_planned)
		cells_moved(d, s->change_id, s->accelerator, CELLS_EXPERIMENT_MOVED, s->now_ms);
	return is_planned;
}

/* ---- answer ---- */

#define STRESS_RUN_RECORD(F, S)                                                                                        \
	F(S, BORROWED, sha, NULL, "e.sha", "")                                                                         \
	F(S, BOOL, is_done, NULL, "e.state = " EXPERIMENT_SQL_DONE, "")                                                \
	F(S, INT, n_failed, NULL, "SUM(v.status IN ('FAIL', 'ERROR'))", "Tests.")                                      \
	F(S, INT, n_passed, NULL, "SUM(v.status IN ('PASS', 'DONE'))", "")
RECORD_LOCAL(stress_run, STRESS_RUN_RECORD)

/* A run passed if none of its tests failed and one passed. NULL: there was no run on this side. */
static json_t *side_json(const struct view *d, int64_t command_id, const char *accelerator, const char *side)
{
	struct rows *r = db_rows(d,
	    RECORD_QUERY(STRESS_RUN_RECORD, "FROM experiment e CROSS JOIN experiment_test t ON t.experiment_id = e.id"
					    " LEFT JOIN cell v ON v.change_id = e.run_change_id"
					    "  AND v.accelerator = e.accelerator AND v.test_id = t.test_id"
					    " WHERE e.command_id = ?1 AND e.accelerator = ?2 AND e.side = ?3"
					    " GROUP BY e.id, e.sha, e.state ORDER BY e.id"),
	    V_INT(command_id), V_TEXT(accelerator), V_TEXT(side));
	json_t *o = NULL;
	int64_t n_passed = 0, n_failed = 0, n_lost = 0;

	while (rows_next(r)) {
		struct stress_run run;

		record_read(r, &stress_run_record, &run);
		if (!o)
			o = json_pack("{s:s}", "sha", run.sha);
		if (!run.is_done || !(run.n_failed || run.n_passed))
			n_lost++;
		else if (run.n_failed)
			n_failed++;
		else
			n_passed++;
	}
	if (o) {
		json_set_int(o, "passed", n_passed);
		json_set_int(o, "failed", n_failed);
		json_set_int(o, "lost", n_lost);
	}
	return o;
}

static json_t *stress_json(const struct view *d, int64_t command_id)
{
	static const char *const sides[] = {"head", "base"};
	json_t *o = json_object(), *list = json_array();
	char *test = db_text(d,
	    "SELECT s.suite || '/' || s.name FROM experiment e CROSS JOIN experiment_test t"
	    " ON t.experiment_id = e.id CROSS JOIN test s ON s.id = t.test_id WHERE e.command_id = ?1 LIMIT 1",
	    V_INT(command_id));
	struct rows *r = db_rows(
	    d, "SELECT DISTINCT accelerator FROM experiment WHERE command_id = ?1 ORDER BY 1", V_INT(command_id));

	while (rows_next(r)) {
		json_t *one = json_object();

		json_set_str(one, "accelerator", rows_key(r));
		for (size_t i = 0; i < ARRAY_LEN(sides); i++) {
			json_t *side = side_json(d, command_id, rows_key(r), sides[i]);

			if (side)
				json_object_set_new(one, sides[i], side);
		}
		json_array_append_new(list, one);
	}
	json_set_str(o, "test", test);
	json_set_int(
	    o, "rounds", db_int(d, 0, "SELECT MAX(round) FROM experiment WHERE command_id = ?1", V_INT(command_id)));
	json_object_set_new(o, "accelerators", list);
	free(test);
	return o;
}

#define STRESSED_CHANGE_RECORD(F, S)                                                                                   \
	F(S, TEXT, repository, NULL, "c.repository", "")                                                               \
	F(S, ID, id, NULL, "c.id", "")                                                                                 \
	F(S, ID, number, NULL, "k.number", "Of the pull request with the comment; 0: not known.")
RECORD_LOCAL(stressed_change, STRESSED_CHANGE_RECORD)

void stress_answer(struct txn *d, int64_t command_id, int64_t now_ms)
{
	struct stressed_change c = {.id = 0};
	struct answer_place at = {.comment_id = command_id};

	if (db_has(d, "SELECT 1 FROM experiment WHERE command_id = ?1 AND " EXPERIMENT_IS_OPEN " LIMIT 1",
		V_INT(command_id)))
		return;
	record_read_first(
	    db_rows(d,
		RECORD_QUERY(STRESSED_CHANGE_RECORD, "FROM experiment e JOIN change c ON c.id = e.change_id"
						     " LEFT JOIN command k ON k.comment_id = e.command_id"
						     " WHERE e.command_id = ?1 LIMIT 1"),
		V_INT(command_id)),
	    &stressed_change_record, &c);
	at.repository = c.repository;
	at.change_id = c.id;
	at.number = c.number ? c.number : change_pull(d->view, c.id);
	if (c.repository && at.number)
		stress_reply_put(d, &at, stress_json(d->view, command_id), now_ms);
	record_release(&stressed_change_record, &c);
}

/* ---- the command: which test ---- */

enum { VARIANTS_MAX = 100, NEAR_MAX = 1000 };

/* The tests of one suite and name: one for each dtype. */
struct meant {
	int64_t tests[VARIANTS_MAX];
	size_t n;
	bool is_ambiguous; /* tests of other suites have that name as well */
};

#define IS_WHOLE_NAME "?3 IN (t.suite || '/' || t.name, t.suite || '/' || t.name || ' (' || t.dtype || ')')"

#define NAMED_TEST_RECORD(F, S)                                                                                        \
	F(S, ID, id, NULL, "t.id", "")                                                                                 \
	F(S, BORROWED, suite, NULL, "t.suite", "")                                                                     \
	F(S, BOOL, is_whole, NULL, IS_WHOLE_NAME " AS is_whole", "")
RECORD_LOCAL(named_test, NAMED_TEST_RECORD)

/* A comment shows a test as `suite/name`, as `name` if the suite has the same name, and with ` (dtype)`. A whole name has
 * precedence over a name in any suite. */
static void find_tests(const struct view *d, int64_t change_id, const struct command *c, struct meant *ret)
{
	struct rows *r = db_rows(d,
	    RECORD_QUERY_DISTINCT(NAMED_TEST_RECORD, "FROM cell v CROSS JOIN test t ON t.id = v.test_id"
						     " WHERE v.change_id = ?1 AND v.job_id IS NOT NULL"
						     " AND (?2 = '' OR v.accelerator = ?2) AND (" IS_WHOLE_NAME
						     " OR ?3 IN (t.name, t.name || ' (' || t.dtype || ')'))"
						     " ORDER BY is_whole DESC, t.suite, t.id LIMIT ?4"),
	    V_INT(change_id), V_TEXT(c->word), V_TEXT(c->test), V_INT(VARIANTS_MAX));
	char *suite = NULL;
	bool is_whole = false;

	*ret = (struct meant){.n = 0};
	while (rows_next(r)) {
		struct named_test t;

		record_read(r, &named_test_record, &t);
		if (!suite) {
			suite = xstrdup(t.suite);
			is_whole = t.is_whole;
		}
		if (strcmp(suite, t.suite) == 0)
			ret->tests[ret->n++] = t.id;
		else
			ret->is_ambiguous |= !is_whole;
	}
	free(suite);
}

#define NEAR_TEST_RECORD(F, S)                                                                                         \
	F(S, BORROWED, whole_name, NULL, "t.suite || '/' || t.name", "")                                               \
	F(S, BOOL, is_other_suite, NULL, "t.name = ?3", "The name is the requested one.")
RECORD_LOCAL(near_test, NEAR_TEST_RECORD)

/* Suggests the whole name of the nearest test in c->hint; nothing if none is near, or if the name is too long. */
static void suggest_test(const struct view *d, int64_t change_id, struct asked_command *c)
{
	struct rows *r = db_rows(d,
	    RECORD_QUERY(NEAR_TEST_RECORD,
		"FROM cell v CROSS JOIN test t ON t.id = v.test_id WHERE v.change_id = ?1 AND v.job_id IS NOT NULL"
		" AND (?2 = '' OR v.accelerator = ?2) GROUP BY t.suite, t.name"
		" ORDER BY t.name = ?3 DESC, COUNT(v.attribution) = 0, t.suite, t.name LIMIT ?4"),
	    V_INT(change_id), V_TEXT(c->command.word), V_TEXT(c->command.test), V_INT(NEAR_MAX));
	char **names = strv_copy(NULL);
	const char *near = NULL;
	bool is_other_suite = false;

	while (rows_next(r)) {
		struct near_test t;

		record_read(r, &near_test_record, &t);
		strv_add(&names, t.whole_name);
		is_other_suite |= t.is_other_suite;
	}
	near = is_other_suite ? names[0] : str_nearest(c->command.test, (const char *const *)names);
	if (near && strlen(near) < sizeof(c->hint))
		snprintf(c->hint, sizeof(c->hint), "%s", near);
	strv_free(names);
}

/* ---- the command ---- */

/* The limits are reached, or this comment has a stress already: its reply names one test. */
static bool is_stress_busy(const struct view *d, const struct answer_place *at)
{
	return db_has(d,
	    "SELECT 1 FROM (SELECT COUNT(DISTINCT command_id) AS n,"
	    " COUNT(DISTINCT CASE WHEN change_id = ?1 THEN command_id END) AS n_here"
	    " FROM experiment WHERE cause = 'stress' AND " EXPERIMENT_IS_OPEN ") open"
	    " WHERE n >= ?2 OR n_here >= ?3 OR EXISTS (SELECT 1 FROM experiment WHERE command_id = ?4)",
	    V_INT(at->change_id), V_INT(STRESS_MAX), V_INT(STRESS_OF_A_CHANGE_MAX), V_INT(at->comment_id));
}

/* Plans it on each accelerator that reported the test. Returns on how many. */
static int plan_command(
    struct txn *d, const struct answer_place *at, const struct command *c, const struct meant *m, int64_t now_ms)
{
	char **names = rows_keys(db_rows(d,
	    "SELECT DISTINCT accelerator FROM cell WHERE change_id = ?1 AND test_id = ?2"
	    " AND job_id IS NOT NULL AND (?3 = '' OR accelerator = ?3) ORDER BY accelerator",
	    V_INT(at->change_id), V_INT(m->tests[0]), V_TEXT(c->word)));
	int n = 0;

	for (char **name = names; *name; name++)
		n += stress_plan(d, &(struct stress){.command_id = at->comment_id,
					.change_id = at->change_id,
					.accelerator = *name,
					.tests = m->tests,
					.n_tests = m->n,
					.n_rounds = c->n_rounds,
					.now_ms = now_ms});
	strv_free(names);
	return n;
}

void stress_command(struct txn *d, const struct answer_place *at, struct asked_command *c, int64_t now_ms)
{
	struct meant m = {.n = 0};

	find_tests(d->view, at->change_id, &c->command, &m);
	if (m.n && !m.is_ambiguous && is_stress_busy(d->view, at))
		c->result = COMMAND_STRESS_BUSY;
	else if (m.n && !m.is_ambiguous && plan_command(d, at, &c->command, &m, now_ms) > 0)
		c->result = COMMAND_DONE;
	else if (db_has(d,
		     "SELECT 1 FROM dispatch WHERE change_id = ?1 AND is_current = 1"
		     " AND state = 'held' AND accelerator <> '' AND (?2 = '' OR accelerator = ?2)",
		     V_INT(at->change_id), V_TEXT(c->command.word)))
		c->result = COMMAND_STRESS_HELD;
	else
		c->result = m.n && !m.is_ambiguous ? COMMAND_NO_RERUNS : COMMAND_NO_TEST;
	if (c->result == COMMAND_NO_TEST)
		suggest_test(d->view, at->change_id, c);
}
