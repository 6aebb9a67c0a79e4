#include "model/dashboard.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static const char *const OUTCOMES[N_DAY_OUTCOMES] = {
    NULL, "green", "red", "skipped", "missed", "failed", "running"};

const char *day_outcome_name(enum day_outcome o)
{
	return OUTCOMES[o];
}

enum day_outcome day_outcome_parse(const char *name)
{
	for (int o = DAY_GREEN; name && o < N_DAY_OUTCOMES; o++)
		if (strcmp(name, OUTCOMES[o]) == 0)
			return (enum day_outcome)o;
	return DAY_RUNNING;
}

/* ---- suites ---- */

static int usual_place(const char *name)
{
	static const char *const USUAL[] = {"build", "unit", "model", "benchmark", "integration"};
	int n = (int)ARRAY_LEN(USUAL);

	for (int i = 0; i < n; i++)
		if (strcmp(USUAL[i], name) == 0)
			return i;
	return n;
}

bool suite_is_usual(const char *name)
{
	return usual_place(name) < usual_place("");
}

int suite_order(const char *a, const char *b)
{
	int difference = usual_place(a) - usual_place(b);

	return difference ? difference : strcmp(a, b);
}

/* ---- the order of rows ---- */

void dashboard_row_runs(const struct dashboard_row *r, int64_t *ret_n_runs, int64_t *ret_n_green)
{
	*ret_n_runs = *ret_n_green = 0;
	for (int i = 0; i < DASHBOARD_DAYS; i++) {
		*ret_n_runs += r->days[i].n_runs;
		*ret_n_green += r->days[i].n_green;
	}
}

static int64_t n_broken(const struct dashboard_row *r)
{
	int64_t n = 0;

	for (size_t i = 0; i < r->n_suites; i++)
		n += r->suites[i].n_broken;
	return n;
}

const char *red_by_name(int64_t red_since_ms, bool is_silence)
{
	if (!red_since_ms)
		return NULL;
	return is_silence ? "silence" : "tests";
}

enum row_class { ROW_OVERDUE, ROW_RED, ROW_BROKEN, ROW_SILENT, ROW_TESTED, ROW_UNHEARD };

struct ranked {
	enum row_class class;
	int64_t key;  /* within the class, lowest first */
	size_t place; /* as it was */
};

/* Shares of runs are compared in millionths. */
static int64_t pass_rate_key(const struct dashboard_row *r)
{
	int64_t n_runs, n_green;

	dashboard_row_runs(r, &n_runs, &n_green);
	return n_runs ? n_green * 1000000 / n_runs : 1000001;
}

static struct ranked rank(const struct dashboard_row *r, int64_t now_ms)
{
	int64_t broken = n_broken(r);

	if (r->red_since_ms)
		return (struct ranked){r->is_overdue ? ROW_OVERDUE : ROW_RED, r->red_since_ms, 0};
	if (broken)
		return (struct ranked){ROW_BROKEN, -broken, 0};
	if (!r->last_report_ms)
		return (struct ranked){ROW_UNHEARD, 0, 0};
	if (now_ms - r->last_report_ms > SILENT_AFTER_MS)
		return (struct ranked){ROW_SILENT, r->last_report_ms, 0};
	return (struct ranked){ROW_TESTED, pass_rate_key(r), 0};
}

static int by_rank(const void *x, const void *y)
{
	const struct ranked *a = x, *b = y;

	if (a->class != b->class)
		return a->class < b->class ? -1 : 1;
	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return (a->place > b->place) - (a->place < b->place);
}

void dashboard_sort(struct dashboard *d, int64_t now_ms)
{
	struct dashboard_row *rows;
	struct ranked *order;

	if (!d->n_rows)
		return;
	rows = xcalloc(d->n_rows, sizeof(*rows));
	order = xcalloc(d->n_rows, sizeof(*order));
	for (size_t i = 0; i < d->n_rows; i++) {
		order[i] = rank(&d->rows[i], now_ms);
		order[i].place = i;
	}
	qsort(order, d->n_rows, sizeof(*order), by_rank);
	for (size_t i = 0; i < d->n_rows; i++)
		rows[i] = d->rows[order[i].place];
	free(d->rows);
	free(order);
	d->rows = rows;
}

void dashboard_free(struct dashboard *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->n_rows; i++) {
		struct dashboard_row *r = &d->rows[i];

		for (size_t k = 0; k < r->n_suites; k++)
			free(r->suites[k].suite);
		free(r->suites);
		free(r->name);
		free(r->title);
		free(r->vendor);
		free(r->docs_url);
		free(r->help_url);
		free(r->sha);
		free(r->silent_sha);
	}
	for (size_t i = 0; i < d->n_running; i++) {
		free(d->running[i].id);
		free(d->running[i].accelerator);
		free(d->running[i].runner);
		free(d->running[i].head_sha);
		free(d->running[i].title);
	}
	free(d->rows);
	free(d->running);
	free(d->sha);
	free(d->title);
	free(d->author);
	free(d);
}
