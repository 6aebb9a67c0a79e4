#include <string.h>

#include "store/days.h"
#include "store/percentile.h"
#include "store/quality.h"
#include "store/red_episodes.h"
#include "store/run_jobs.h"
#include "store/run_note.h"

enum { TIMES_MAX = 1000000 }; /* of a busier accelerator than anybody has: its newest */

struct runs {
	struct quality *q;
	struct times queue, run;
};

static void read_days(struct db *d, const char *accelerator, int64_t first_day, struct runs *ret)
{
	struct quality *n = ret->q;
	struct rows *r = db_rows(d,
	    "SELECT n_runs, n_green, n_dispatches, n_met, queue_times, run_times FROM day"
	    " WHERE accelerator = ?1 AND day >= ?2 ORDER BY day DESC",
	    V_TEXT(accelerator), V_INT(first_day));

	while (rows_next(r)) {
		n->n_push_runs += rows_int(r, 0);
		n->n_push_green += rows_int(r, 1);
		n->level.n_dispatches += rows_int(r, 2);
		n->level.n_deadlines_met += rows_int(r, 3);
		times_add_packed(&ret->queue, r, 4);
		times_add_packed(&ret->run, r, 5);
	}
	rows_end(r);
}

/* The day that is only in part within the time. */
static void read_runs(
    struct db *d, const char *accelerator, int64_t after_ms, int64_t end_ms, struct runs *ret)
{
	struct quality *n = ret->q;
	struct rows *r = db_rows(d,
	    "SELECT is_push, outcome, n_dispatches, n_met, queue_ms, run_ms FROM run"
	    " WHERE accelerator = ?1 AND ended_ms >= ?2 AND ended_ms < ?3",
	    V_TEXT(accelerator), V_INT(after_ms), V_INT(end_ms));

	while (rows_next(r)) {
		const char *outcome = rows_text(r, 1);

		if (rows_int(r, 0) && strcmp(outcome, RUN_NOTHING) != 0) {
			n->n_push_runs++;
			n->n_push_green += strcmp(outcome, RUN_GREEN) == 0;
		}
		n->level.n_dispatches += rows_int(r, 2);
		n->level.n_deadlines_met += rows_int(r, 3);
		times_add(&ret->queue, r, 4);
		times_add(&ret->run, r, 5);
	}
	rows_end(r);
}

/* Those that were red within the time, from told to green where that is over. */
static void read_episodes(
    struct db *d, const char *accelerator, int64_t after_ms, int64_t now_ms, struct quality *q)
{
	struct rows *r = db_rows(d,
	    "SELECT COUNT(*), CAST(AVG(ended_ms - COALESCE(told_ms, first_bad_ms)) AS INTEGER)"
	    " FROM red_episode WHERE accelerator = ?1 AND (ended_ms IS NULL OR ended_ms >= ?2)",
	    V_TEXT(accelerator), V_INT(after_ms));

	if (rows_next(r)) {
		q->n_episodes = rows_int(r, 0);
		q->level.reaction_ms = rows_is_null(r, 1) ? -1 : rows_int(r, 1);
	}
	rows_end(r);
	q->red_since_ms = red_since_ms(d, accelerator);
	q->is_red_in_silence = q->red_since_ms && red_is_silence(d, accelerator);
	q->is_overdue = red_is_overdue(q->red_since_ms, now_ms);
}

void quality_read(struct db *d, const char *accelerator, int64_t now_ms, struct quality *ret)
{
	struct runs runs = {.q = ret, .queue = times_new(TIMES_MAX), .run = times_new(TIMES_MAX)};
	int64_t after_ms = now_ms - QUALITY_DAYS_MS, next_day = day_of(after_ms) + 1;

	*ret = (struct quality){.n_push_runs = 0};
	level_read(d, accelerator, NULL, now_ms, &ret->level);
	read_days(d, accelerator, next_day, &runs);
	read_runs(d, accelerator, after_ms, next_day * DAY_MS, &runs);
	ret->queue_p50_ms = percentile(&runs.queue, 50);
	ret->queue_p90_ms = percentile(&runs.queue, 90);
	ret->run_p50_ms = percentile(&runs.run, 50);
	ret->run_p90_ms = percentile(&runs.run, 90);
	read_episodes(d, accelerator, after_ms, now_ms, ret);
	ret->unhealthy_since_ms =
	    db_int(d, 0, "SELECT COALESCE(unhealthy_since_ms, 0) FROM accelerator WHERE name = ?1",
		V_TEXT(accelerator));
	times_release(&runs.queue);
	times_release(&runs.run);
}
