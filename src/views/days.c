#include "views/days.h"

#include <math.h>

#include "db/record_rows.h"
#include "history/days.h"
#include "views/record_json.h"

#define DAY_TESTS(F, S) TEST_COUNTS_RECORD(F, S, "n_")

void days_read(const struct view *d, const char *accelerator, int64_t last_day, struct day_view *ret, int n)
{
	int64_t first = last_day - n + 1;

	for (int i = 0; i < n; i++)
		ret[i] = empty_day;
	struct rows *r = db_rows(d,
	    RECORD_SELECT_BY("day", DAY_VIEW_RECORD) RECORD_COLUMNS(DAY_DETAILS_RECORD)
		RECORD_COLUMNS(DAY_TESTS) " FROM day WHERE accelerator = ?1 AND day >= ?2 AND day <= ?3",
	    V_TEXT(accelerator), V_INT(first), V_INT(last_day));
	while (rows_next(r)) {
		struct day_view *v = &ret[rows_key_number(r) - first];

		record_read(r, &day_view_record, v);
		record_read(r, &day_details_record, v);
		record_read(r, &test_counts_record, &v->tests);
	}
}

#define DAY_OUTCOME_RECORD(F, S) F(S, TEXT, outcome, NULL, "outcome", "")
RECORD_LOCAL(outcome_of_day, DAY_OUTCOME_RECORD)

/* Of several runs on one day the last one counts, but a skipped run does not hide another one. A run that ended without
 * an outcome was at L1. */
void nightly_days_read(const struct view *d, const char *accelerator, int64_t last_day, enum day_outcome *ret, int n)
{
	int64_t first = last_day - n + 1;

	for (int i = 0; i < n; i++)
		ret[i] = DAY_NO_RUN;
	struct rows *r = db_rows(d,
	    RECORD_QUERY_BY("due_ms", DAY_OUTCOME_RECORD,
		"FROM schedule_run WHERE accelerator = ?1 AND due_ms >= ?2 AND due_ms < ?3 AND "
		"(outcome IS NOT NULL OR ended_ms IS NULL) ORDER BY due_ms, id"),
	    V_TEXT(accelerator), V_INT(first * DAY_MS), V_INT((last_day + 1) * DAY_MS));
	while (rows_next(r)) {
		enum day_outcome *at = &ret[day_of(rows_key_number(r)) - first], o;
		struct outcome_of_day run;

		record_read(r, &outcome_of_day_record, &run);
		o = day_outcome_parse(run.outcome);
		if (o != DAY_SKIPPED || *at == DAY_NO_RUN)
			*at = o;
		record_release(&outcome_of_day_record, &run);
	}
}

const char *day_text(int64_t day, char *out)
{
	enum { N_CHARS = 10 };
	char time[RFC3339_BYTES];

	memcpy(out, rfc3339_format(day * DAY_MS, time), N_CHARS);
	out[N_CHARS] = '\0';
	return out;
}

void trend_out(
    struct buf *out, const char *key, const struct day_view *days, int n, int64_t last_day, enum trend_detail detail)
{
	char text[DAY_TEXT_BYTES];

	json_out_open(out, key, '[');
	for (int i = 0; i < n; i++) {
		const struct day_view *v = &days[i];

		json_out_open(out, NULL, '{');
		json_out_text(out, "day", day_text(last_day - n + 1 + i, text));
		record_out(out, &day_view_record, v);
		json_out_real(out, "pass_rate", v->n_runs > 0 ? (double)v->n_green / (double)v->n_runs : NAN);
		if (detail == TREND_FULL) {
			record_object_out(out, "tests", &test_counts_record, &v->tests);
			record_out(out, &day_details_record, v);
		}
		json_out_close(out, '}');
	}
	json_out_close(out, ']');
}

/* In front of the day. free() */
static char *nightly_url_prefix(const char *accelerator, const char *public_url)
{
	return xasprintf("%s/nightly?accelerator=%s&until=", public_url, accelerator);
}

void calendar_out(struct buf *out, const char *key, const enum day_outcome *days, int n, int64_t last_day,
    const char *accelerator, const char *public_url)
{
	char text[DAY_TEXT_BYTES], *url = nightly_url_prefix(accelerator, public_url);

	json_out_open(out, key, '[');
	for (int i = 0; i < n; i++) {
		day_text(last_day - n + 1 + i, text);
		json_out_open(out, NULL, '{');
		json_out_text(out, "day", text);
		json_out_text(out, "outcome", day_outcome_name(days[i]));
		if (days[i] == DAY_NO_RUN)
			json_out_raw(out, "url", "null");
		else
			json_out_texts(out, "url", url, text, "&days=1", NULL);
		json_out_close(out, '}');
	}
	json_out_close(out, ']');
	free(url);
}

static void run_out(struct buf *out, const char *key, const struct schedule_run_view *v, const char *url)
{
	char day[DAY_TEXT_BYTES];

	if (!v->id) {
		json_out_raw(out, key, "null");
		return;
	}
	json_out_open(out, key, '{');
	record_out(out, &schedule_run_view_record, v);
	json_out_text(out, "day", day_text(v->due_ms / DAY_MS, day));
	json_out_texts(out, "url", url, day, "&days=1", NULL);
	json_out_close(out, '}');
}

void schedule_runs_out(struct buf *out, const char *key, const struct schedule_run_view *list, size_t n,
    const char *accelerator, const char *public_url)
{
	char *url = nightly_url_prefix(accelerator, public_url);

	json_out_open(out, key, '[');
	for (size_t i = 0; i < n; i++)
		run_out(out, NULL, &list[i], url);
	json_out_close(out, ']');
	free(url);
}

void schedule_run_out(struct buf *out, const char *key, const struct schedule_run_view *v, const char *accelerator,
    const char *public_url)
{
	char *url = nightly_url_prefix(accelerator, public_url);

	run_out(out, key, v, url);
	free(url);
}
