/* What the signs mean, as far as they are in use: a table of nothing but ✓ speaks for itself. */
#include "base/strv.h"
#include "report/comment_internal.h"

struct use {
	bool statuses[N_TEST_STATUSES], words[N_FAILURE_GROUPS];
	bool running, no_report, not_supported, not_read;
};

static void note_column(struct use *u, const struct table *t, const struct table_column *c)
{
	struct table_cell empty = table_empty_cell(t, c);

	for (int s = 0; s < N_TEST_STATUSES; s++)
		u->statuses[s] = u->statuses[s] || c->n_cells[s];
	for (int g = 0; g < N_FAILURE_GROUPS; g++)
		u->words[g] = u->words[g] || c->n_failures[g];
	u->running = u->running || empty.kind == CELL_RUNNING || c->n_running_jobs;
	u->no_report = u->no_report || empty.kind == CELL_NO_REPORT;
	u->not_read = u->not_read || empty.kind == CELL_NOT_READ;
	u->not_supported =
	    u->not_supported || strv_len((const char *const *)c->accelerator->skip) > 0;
}

struct sign {
	bool is_used;
	const char *words;
};

void comment_append_legend(struct buf *out, const struct table *t)
{
	struct use u = {.running = false};
	const char *separator = "";
	bool needs_none = true;

	for (size_t i = 0; i < t->n_columns; i++)
		if (t->columns[i].is_shown)
			note_column(&u, t, &t->columns[i]);
	const struct sign signs[] = {
	    {u.statuses[TEST_PASS], "✓ passed"},
	    {u.statuses[TEST_FAIL], "✗ failed"},
	    {u.statuses[TEST_ERROR], "! the test itself broke"},
	    {u.words[FAILURE_NEW], "new: passed on the base"},
	    {u.words[FAILURE_KNOWN], "known: has an issue"},
	    {u.words[FAILURE_BASE], "base: red there, too"},
	    {u.words[FAILURE_FLAKY], "flaky: comes and goes"},
	    {u.words[FAILURE_NOT_COUNTED], "not counted: the accelerator is unhealthy"},
	    {u.statuses[TEST_MISS] || u.no_report, "? no report"},
	    {u.statuses[TEST_DONE], "• measured only"},
	    {u.statuses[TEST_SKIP] || u.not_supported, "– skipped or not supported"},
	    {u.running, "… running or waiting"},
	    {u.not_read, "· only on the page"},
	};

	for (size_t i = 1; i < sizeof(signs) / sizeof(signs[0]); i++)
		needs_none = needs_none && !signs[i].is_used;
	if (t->n_shown == 0 || needs_none)
		return;
	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
		if (!signs[i].is_used)
			continue;
		buf_appendf(out, "%s%s", separator, signs[i].words);
		separator = " · ";
	}
	buf_append_str(out, "\n\n");
}
