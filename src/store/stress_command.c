/* Which test is meant, on which accelerators, and whether more may run now. Only a test that was reported for
 * this very head can run again: so a comment cannot name what the vendor's runner never ran. */
#include "store/stress_command.h"

#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "base/strv.h"
#include "store/experiments.h"

enum { VARIANTS_MAX = 100, NEAR_MAX = 1000 };

/* ---- the test ---- */

/* The tests of one suite and name: one for each dtype. */
struct meant {
	int64_t tests[VARIANTS_MAX];
	size_t n;
	bool is_ambiguous; /* tests of other suites have that name as well */
};

/* A comment shows a test as `suite/name`, as `name` where the suite is called the same, and with ` (dtype)`. A
 * whole name goes before a name of any suite. */
static void find_tests(struct db *d, int64_t change_id, const struct command *c, struct meant *ret)
{
	struct rows *r = db_rows(d,
	    "SELECT DISTINCT t.id, t.suite, ?3 IN (t.suite || '/' || t.name,"
	    "  t.suite || '/' || t.name || ' (' || t.dtype || ')') AS is_whole"
	    " FROM verdict v JOIN test t ON t.id = v.test_id"
	    " WHERE v.change_id = ?1 AND v.job_id IS NOT NULL AND (?2 = '' OR v.accelerator = ?2)"
	    " AND (is_whole OR ?3 IN (t.name, t.name || ' (' || t.dtype || ')'))"
	    " ORDER BY is_whole DESC, t.suite, t.id LIMIT ?4",
	    V_INT(change_id), V_TEXT(c->word), V_TEXT(c->test), V_INT(VARIANTS_MAX));
	char *suite = NULL;
	bool is_whole = false;

	*ret = (struct meant){.n = 0};
	while (rows_next(r)) {
		if (!suite) {
			suite = rows_dup(r, 1);
			is_whole = rows_int(r, 2);
		}
		if (strcmp(suite, rows_text(r, 1)) == 0)
			ret->tests[ret->n++] = rows_int(r, 0);
		else
			ret->is_ambiguous |= !is_whole;
	}
	free(suite);
}

/* The whole name of a test that may have been meant; nothing where none is near, or it is too long. */
static void suggest(struct db *d, int64_t change_id, struct asked_command *c)
{
	struct rows *r = db_rows(d,
	    "SELECT DISTINCT t.suite || '/' || t.name, t.name = ?3 FROM verdict v"
	    " JOIN test t ON t.id = v.test_id WHERE v.change_id = ?1 AND v.job_id IS NOT NULL"
	    " AND (?2 = '' OR v.accelerator = ?2)"
	    " ORDER BY t.name = ?3 DESC, v.attribution IS NULL, t.suite, t.name LIMIT ?4",
	    V_INT(change_id), V_TEXT(c->command.word), V_TEXT(c->command.test), V_INT(NEAR_MAX));
	char **names = strv_copy(NULL);
	const char *near = NULL;
	bool is_other_suite = false;

	while (rows_next(r)) {
		strv_add(&names, rows_text(r, 0));
		is_other_suite |= rows_int(r, 1);
	}
	near = is_other_suite ? names[0] : str_nearest(c->command.test, (const char *const *)names);
	if (near && strlen(near) < sizeof(c->hint))
		snprintf(c->hint, sizeof(c->hint), "%s", near);
	strv_free(names);
}

/* ---- whether ---- */

static bool is_held(struct db *d, int64_t change_id, const char *accelerator)
{
	return db_has(d,
	    "SELECT 1 FROM dispatch WHERE change_id = ?1 AND is_current = 1 AND state = 'held'"
	    " AND accelerator <> '' AND (?2 = '' OR accelerator = ?2)",
	    V_INT(change_id), V_TEXT(accelerator));
}

static bool is_busy(struct db *d, const struct answer_place *at)
{
	int64_t n_here = db_int(d, 0,
	    "SELECT COUNT(DISTINCT command_id) FROM experiment WHERE change_id = ?1"
	    " AND cause = 'stress' AND " EXPERIMENT_IS_OPEN,
	    V_INT(at->change_id));
	int64_t n = db_int(d, 0,
	    "SELECT COUNT(DISTINCT command_id) FROM experiment WHERE cause = 'stress'"
	    " AND " EXPERIMENT_IS_OPEN);

	/* its reply names one test */
	return n_here >= STRESS_OF_A_CHANGE_MAX || n >= STRESS_MAX ||
	       db_has(d, "SELECT 1 FROM experiment WHERE command_id = ?1", V_INT(at->comment_id));
}

/* ---- both ---- */

/* Returns on how many accelerators that reported the test it was planned. */
static int plan(struct db *d, const struct answer_place *at, const struct command *c,
    const struct meant *m, int64_t now_ms)
{
	struct rows *r = db_rows(d,
	    "SELECT DISTINCT accelerator FROM verdict WHERE change_id = ?1 AND test_id = ?2"
	    " AND job_id IS NOT NULL AND (?3 = '' OR accelerator = ?3) ORDER BY accelerator",
	    V_INT(at->change_id), V_INT(m->tests[0]), V_TEXT(c->word));
	char **names = strv_copy(NULL);
	int n = 0;

	while (rows_next(r))
		strv_add(&names, rows_text(r, 0));
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

void stress_command(
    struct db *d, const struct answer_place *at, struct asked_command *c, int64_t now_ms)
{
	struct meant m = {.n = 0};

	find_tests(d, at->change_id, &c->command, &m);
	if (m.n && !m.is_ambiguous && is_busy(d, at))
		c->result = COMMAND_STRESS_BUSY;
	else if (m.n && !m.is_ambiguous && plan(d, at, &c->command, &m, now_ms) > 0)
		c->result = COMMAND_DONE;
	else if (is_held(d, at->change_id, c->command.word))
		c->result = COMMAND_STRESS_HELD;
	else
		c->result = m.n && !m.is_ambiguous ? COMMAND_NO_RERUNS : COMMAND_NO_TEST;
	if (c->result == COMMAND_NO_TEST)
		suggest(d, at->change_id, c);
}
