#include "report/requirements.h"

#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "base/strv.h"
#include "report/table_internal.h"

static bool is_asked(const struct table_column *c)
{
	return c->state == COLUMN_FINISHED && !c->silent && !c->n_running_jobs;
}

/* Is `name` this "suite/test"? */
static bool is_named(const char *name, const struct table_entry *e)
{
	size_t n = strlen(e->suite);

	if (n == 0)
		return str_eq(name, e->test);
	return strncmp(name, e->suite, n) == 0 && name[n] == '/' && str_eq(name + n + 1, e->test);
}

static enum requirement_state state_of(enum test_status s)
{
	if (s == TEST_PASS)
		return REQUIREMENT_MET;
	return test_status_is_red(s) ? REQUIREMENT_RED : REQUIREMENT_NOT_PASSED;
}

/* A test with several dtypes is as good as the worst of them. */
static enum requirement_state worse(enum requirement_state x, enum requirement_state y)
{
	if (x == REQUIREMENT_NOT_REPORTED || x == REQUIREMENT_UNKNOWN)
		return y;
	return x == REQUIREMENT_MET || y == REQUIREMENT_RED ? y : x;
}

static void look_at(struct requirements *q, const struct table_entry *e)
{
	for (size_t i = 0; i < q->n_suites; i++)
		if (str_eq(q->accelerator->required_suites[i], e->suite))
			q->suites[i] = REQUIREMENT_MET;
	for (size_t i = 0; i < q->n_tests; i++)
		if (is_named(q->accelerator->must_pass[i], e))
			q->tests[i] = worse(q->tests[i], state_of(e->verdict->status));
}

static void ask(struct requirements *q, const struct table *t, const struct table_column *c)
{
	enum requirement_state nothing =
	    t->view->is_cut ? REQUIREMENT_UNKNOWN : REQUIREMENT_NOT_REPORTED;

	q->accelerator = c->accelerator;
	if (!is_asked(c))
		return;
	q->n_suites = strv_len((const char *const *)q->accelerator->required_suites);
	q->n_tests = strv_len((const char *const *)q->accelerator->must_pass);
	q->suites = xcalloc(q->n_suites + 1, sizeof(*q->suites));
	q->tests = xcalloc(q->n_tests + 1, sizeof(*q->tests));
	for (size_t i = 0; i < q->n_suites; i++)
		q->suites[i] = nothing;
	for (size_t i = 0; i < q->n_tests; i++)
		q->tests[i] = nothing;
}

struct requirements *requirements_read(const struct table *t)
{
	struct requirements *list = xcalloc(t->n_columns + 1, sizeof(*list));

	for (size_t i = 0; i < t->n_columns; i++)
		ask(&list[i], t, &t->columns[i]);
	for (size_t i = 0; i < t->n_entries; i++) {
		const struct table_entry *e = &t->entries[i];

		/* a test that was not run is not reported */
		if (e->verdict && e->verdict->status != TEST_MISS)
			look_at(&list[e->column], e);
	}
	return list;
}

void requirements_free(struct requirements *list, const struct table *t)
{
	for (size_t i = 0; list && i < t->n_columns; i++) {
		free(list[i].suites);
		free(list[i].tests);
	}
	free(list);
}

static bool is_lacking(enum requirement_state s)
{
	return s == REQUIREMENT_NOT_PASSED || s == REQUIREMENT_NOT_REPORTED;
}

void requirements_count(struct table *t)
{
	struct requirements *list = requirements_read(t);

	for (size_t c = 0; c < t->n_columns; c++) {
		for (size_t i = 0; i < list[c].n_suites; i++)
			t->columns[c].n_lacking += is_lacking(list[c].suites[i]);
		for (size_t i = 0; i < list[c].n_tests; i++)
			t->columns[c].n_lacking += is_lacking(list[c].tests[i]);
	}
	requirements_free(list, t);
}
