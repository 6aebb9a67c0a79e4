#include "model/dashboard.h"

/* The last value is also the value of an unknown name. */
WORDS_DEFINE(day_outcome, DAY_RUNNING, NULL, "green", "red", "skipped", "missed", "failed", "running")

/* ---- suites ---- */

static int usual_place(const char *name)
{
	static const char *const USUAL[] = {"build", "unit", "model", "benchmark", "integration"};
	int i = 0;

	while (i < (int)ARRAY_LEN(USUAL) && strcmp(USUAL[i], name) != 0)
		i++;
	return i;
}

bool suite_is_usual(const char *name) { return usual_place(name) < usual_place(""); }

int suite_order(const char *a, const char *b)
{
	int difference = usual_place(a) - usual_place(b);

	return difference ? difference : strcmp(a, b);
}

/* ---- the order of rows ---- */

enum day_outcome dashboard_bad_night(const struct dashboard_row *r)
{
	for (int i = DASHBOARD_DAYS; i-- > 0;) {
		enum day_outcome o = r->nightly[i];

		if (o != DAY_NO_RUN && o != DAY_RUNNING && o != DAY_SKIPPED)
			return o == DAY_GREEN ? DAY_NO_RUN : o;
	}
	return DAY_NO_RUN;
}

struct ranked {
	enum accelerator_status status;
	int64_t key;  /* within the status, lowest first */
	size_t place; /* as it was */
};

static int by_rank(const void *x, const void *y)
{
	const struct ranked *a = x, *b = y;

	if (a->status != b->status)
		return a->status < b->status ? -1 : 1;
	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return (a->place > b->place) - (a->place < b->place);
}

void dashboard_sort(struct dashboard *d)
{
	struct dashboard_row *rows = xcalloc(d->n_rows, sizeof(*rows));
	struct ranked *order = xcalloc(d->n_rows, sizeof(*order));

	for (size_t i = 0; i < d->n_rows; i++) {
		const struct accelerator_facts *f = &d->rows[i].at.facts;
		const struct accelerator_state *s = &d->rows[i].at.state;
		int64_t rate = f->n_runs ? f->n_green * 1000000 / f->n_runs : 1000001;

		/* Both states that pass are one class, by the share of green runs in millionths. In any other state the
		 * longest comes first. */
		order[i] = accelerator_status_is_green(s->status) ? (struct ranked){ACCELERATOR_GREEN, rate, i}
								  : (struct ranked){s->status, s->since_ms, i};
	}
	qsort(order, d->n_rows, sizeof(*order), by_rank);
	for (size_t i = 0; i < d->n_rows; i++)
		rows[i] = d->rows[order[i].place];
	FREE_ALL(d->rows, order);
	d->rows = rows;
}

/* ---- the records ---- */

#define TEST_COUNTS(F, S) TEST_COUNTS_RECORD(F, S, "")
RECORD_DEFINE(test_counts, TEST_COUNTS)
RECORD_DEFINE(day_view, DAY_VIEW_RECORD)
RECORD_DEFINE_PART(day_details, day_view, DAY_DETAILS_RECORD)
RECORD_DEFINE(suite_view, SUITE_VIEW_RECORD)
RECORD_DEFINE(dashboard_row, DASHBOARD_ROW_RECORD)
RECORD_DEFINE(running_view, RUNNING_VIEW_RECORD)
RECORD_DEFINE(dashboard, DASHBOARD_RECORD)

const struct day_view empty_day = {.queue_p50_ms = -1, .queue_p90_ms = -1, .run_p50_ms = -1, .run_p90_ms = -1};

void dashboard_free(struct dashboard *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->n_rows; i++) {
		RECORDS_RELEASE(suite_view, d->rows[i].suites, d->rows[i].n_suites);
		standing_release(&d->rows[i].at);
	}
	RECORDS_RELEASE(dashboard_row, d->rows, d->n_rows);
	RECORDS_RELEASE(running_view, d->running, d->n_running);
	record_release(&dashboard_record, d);
	free(d);
}
