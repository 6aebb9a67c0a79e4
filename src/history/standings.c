#include "history/standings.h"

#include "db/record_rows.h"
#include "db/settings.h"
#include "history/days.h"
#include "history/red_episodes.h"
#include "history/run_note.h"

enum {
	NEWEST_LOOKED_AT = 16,  /* pushes become known nearly in their order, so the newest tested one is among these */
	PUSHES_LOOKED_AT = 200, /* some of them are of other branches */
	FIGURE_DAYS = 30,
};

/* ---- the branch ---- */

static const char REPOSITORY[] = "upstream.repository", BRANCH[] = "upstream.branch";

void upstream_branch_put(struct txn *d, const char *repository, const char *branch)
{
	if (!repository)
		return;
	setting_put_text(d, REPOSITORY, repository);
	setting_put_text(d, BRANCH, branch ? branch : "");
}

struct upstream_branch upstream_branch_read(const struct view *d)
{
	char *repository = setting_text(d, REPOSITORY), *branch = setting_text(d, BRANCH);
	struct upstream_branch u = {.repository = repository_key(repository ? repository : "")};

	snprintf(u.name, sizeof(u.name), "%s", branch ? branch : "");
	free(repository);
	free(branch);
	return u;
}

/* ---- its newest runs there ---- */

/* The newest pushes between ?4 and ?5. Those of other branches count for the limit: each row costs the same. */
#define NEWEST_PUSHES                                                                                                  \
	"FROM run r CROSS JOIN change c ON c.id = r.change_id LEFT JOIN branch_commit b"                               \
	" ON b.repository_key = ?2 AND b.ref = ?3 AND b.sha = c.head_sha"                                              \
	" WHERE r.accelerator = ?1 AND r.is_push = 1 AND r.change_id > ?4 AND r.change_id < ?5"                        \
	" ORDER BY r.change_id DESC LIMIT ?6"
#define IS_OF_BRANCH "c.repository_key = ?2 AND c.ref IN (?3, 'refs/heads/' || ?3)"

#define TESTED_PUSH_RECORD(F, S)                                                                                       \
	F(S, INT, change_id, NULL, "c.id", "")                                                                         \
	F(S, BORROWED, sha, NULL, "c.head_sha", "")                                                                    \
	F(S, TIME, commit_ms, NULL, "COALESCE(b.at_ms, c.created_ms)", "")                                             \
	F(S, COUNT, position, NULL, "b.position", "")                                                                  \
	F(S, TIME, ended_ms, NULL, "r.ended_ms", "")                                                                   \
	F(S, BORROWED, outcome, NULL, "r.outcome", "")                                                                 \
	F(S, BOOL, has_red, NULL, "r.n_fail + r.n_error + r.n_miss > 0", "")                                           \
	F(S, BOOL, has_red_tests, NULL, RUN_HAS_RED_TESTS, "")
RECORD_LOCAL(tested_push, TESTED_PUSH_RECORD)

#define PUSH_PLACE_RECORD(F, S)                                                                                        \
	F(S, INT, change_id, NULL, "c.id", "")                                                                         \
	F(S, COUNT, position, NULL, "b.position", "")                                                                  \
	F(S, BOOL, is_of_branch, NULL, IS_OF_BRANCH, "")
RECORD_LOCAL(push_place, PUSH_PLACE_RECORD)

#define SILENT_PUSH_RECORD(F, S)                                                                                       \
	F(S, BORROWED, sha, NULL, "c.head_sha", "")                                                                    \
	F(S, COUNT, position, NULL, "b.position", "")                                                                  \
	F(S, TIME, ended_ms, NULL, "r.ended_ms", "")                                                                   \
	F(S, BOOL, is_one, NULL, IS_OF_BRANCH " AND " RUN_IS_SILENT, "")
RECORD_LOCAL(silent_push, SILENT_PUSH_RECORD)

/* Of a run with a report. False: its answer is awaited. */
static bool read_tested_push(const struct view *d, const char *accelerator, const struct upstream_branch *u,
    int64_t change_id, struct standing *s)
{
	struct rows *r = db_rows(d,
	    RECORD_QUERY(TESTED_PUSH_RECORD,
		"FROM run r CROSS JOIN change c ON c.id = r.change_id LEFT JOIN branch_commit b ON b.repository_key = "
		"?2"
		" AND b.ref = ?3 AND b.sha = c.head_sha WHERE r.change_id = ?4 AND r.accelerator = ?1"
		" AND NOT " RUN_IS_SILENT),
	    V_TEXT(accelerator), V_TEXT(u->repository.text), V_TEXT(u->name), V_INT(change_id));
	struct tested_push push;

	if (rows_next(r)) {
		record_read(r, &tested_push_record, &push);
		free(s->sha);
		s->change_id = push.change_id;
		s->sha = xstrdup(push.sha);
		s->commit_ms = push.commit_ms;
		s->position = push.position;
		s->facts.tested_ms = push.ended_ms;
		if (strcmp(push.outcome, RUN_GREEN) == 0)
			s->facts.newest = push.has_red ? BRANCH_EXPLAINED : BRANCH_PASSED;
		else if (strcmp(push.outcome, RUN_NOTHING) == 0)
			s->facts.newest = BRANCH_NO_PASS;
		else
			s->facts.newest = push.has_red_tests ? BRANCH_RED : BRANCH_NO_REPORT;
	}
	rows_end(r);
	return !rows_are_awaited(r);
}

/* In the order of the branch. A commit whose position is not known is as new as its change. The suites of a run are read only if it may
 * be the newest, which is usually the first one. PostgreSQL sends all rows of a statement, so each reads only a few. False: an answer is
 * awaited. */
static bool read_newest(
    const struct view *d, const char *accelerator, const struct upstream_branch *u, struct standing *s)
{
	int n = 0, n_rows = NEWEST_LOOKED_AT;
	struct push_place push = {.change_id = INT64_MAX};
	bool is_known = true;

	for (int i = 0; is_known && i < PUSHES_LOOKED_AT && n_rows == NEWEST_LOOKED_AT && n < NEWEST_LOOKED_AT;
	     i += n_rows) {
		struct rows *r = db_rows(d, RECORD_QUERY(PUSH_PLACE_RECORD, NEWEST_PUSHES), V_TEXT(accelerator),
		    V_TEXT(u->repository.text), V_TEXT(u->name), V_INT(0), V_INT(push.change_id),
		    V_INT(NEWEST_LOOKED_AT));

		for (n_rows = 0; is_known && n < NEWEST_LOOKED_AT && rows_next(r); n_rows++) {
			record_read(r, &push_place_record, &push);
			if (!push.is_of_branch)
				continue;
			if (!s->sha || push.position > s->position)
				is_known = read_tested_push(d, accelerator, u, push.change_id, s);
			n += s->sha != NULL;
		}
		rows_end(r);
		is_known &= !rows_are_awaited(r);
	}
	return is_known;
}

/* A run without a report is not a test: pages show it beside the newest test. */
static void read_silence(
    const struct view *d, const char *accelerator, const struct upstream_branch *u, struct standing *s)
{
	struct rows *r =
	    db_rows(d, RECORD_QUERY(SILENT_PUSH_RECORD, NEWEST_PUSHES), V_TEXT(accelerator), V_TEXT(u->repository.text),
		V_TEXT(u->name), V_INT(s->change_id), V_INT(INT64_MAX), V_INT(PUSHES_LOOKED_AT));
	struct silent_push push;

	for (int n = 0; !s->silent_sha && n < NEWEST_LOOKED_AT && rows_next(r);) {
		record_read(r, &silent_push_record, &push);
		n += push.is_one;
		if (!push.is_one || (push.position >= 0 && push.position < s->position))
			continue;
		s->silent_sha = xstrdup(push.sha);
		s->facts.no_report_ms = push.ended_ms;
	}
	rows_end(r);
}

/* ---- the whole ---- */

#define REGISTERED_FACTS_RECORD(F, S)                                                                                  \
	F(S, LEVEL, level, NULL, "level", "")                                                                          \
	F(S, BOOL, is_unhealthy, NULL, "unhealthy_since_ms IS NOT NULL", "")                                           \
	F(S, TIME, last_report_ms, NULL, "last_report_ms", "")
RECORD_DEFINE_PART(registered_facts, accelerator_facts, REGISTERED_FACTS_RECORD);

#define FIGURE_RECORD(F, S)                                                                                            \
	F(S, INT, n_runs, NULL, "SUM(n_runs)", "")                                                                     \
	F(S, INT, n_green, NULL, "SUM(n_green)", "")
RECORD_DEFINE_PART(figure, accelerator_facts, FIGURE_RECORD);

void standing_read(const struct view *d, const char *accelerator, const struct upstream_branch *u, int64_t now_ms,
    struct standing *ret)
{
	struct accelerator_facts *f = &ret->facts;

	standing_release(ret);
	*ret = (struct standing){.facts.level = LEVEL_1, .position = -1};
	if (record_read_first(db_rows(d, RECORD_QUERY(REGISTERED_FACTS_RECORD, "FROM accelerator WHERE name = ?1"),
				  V_TEXT(accelerator)),
		&registered_facts_record, f)) {
		f->red_since_ms = red_since_ms(d, accelerator);
		f->is_red_in_silence = f->red_since_ms && red_is_silence(d, accelerator);
		if (read_newest(d, accelerator, u, ret))
			read_silence(d, accelerator, u, ret);
		record_read_first(
		    db_rows(d,
			RECORD_QUERY(FIGURE_RECORD, "FROM day WHERE accelerator = ?1 AND day > ?2 AND day <= ?3"),
			V_TEXT(accelerator), V_INT(day_of(now_ms) - FIGURE_DAYS), V_INT(day_of(now_ms))),
		    &figure_record, f);
	}
	ret->state = accelerator_state_of(f, now_ms);
}

/* ---- 30 days ---- */

enum { TIMES_MAX = 1000000 }; /* the newest; more than any accelerator has */

#define QUALITY_DAY_RECORD(F, S)                                                                                       \
	F(S, INT, n_runs, NULL, "n_runs", "")                                                                          \
	F(S, INT, n_green, NULL, "n_green", "")                                                                        \
	F(S, INT, n_dispatches, NULL, "n_dispatches", "")                                                              \
	F(S, INT, n_met, NULL, "n_met", "")                                                                            \
	F(S, BLOB, queue_times, NULL, "queue_times", "")                                                               \
	F(S, BLOB, run_times, NULL, "run_times", "")
RECORD_LOCAL(quality_day, QUALITY_DAY_RECORD)

#define QUALITY_RUN_RECORD(F, S)                                                                                       \
	F(S, BOOL, is_push_with_result, NULL, "is_push <> 0 AND outcome <> '" RUN_NOTHING "'", "")                     \
	F(S, BOOL, is_green, NULL, "outcome = '" RUN_GREEN "'", "")                                                    \
	F(S, INT, n_dispatches, NULL, "n_dispatches", "")                                                              \
	F(S, INT, n_met, NULL, "n_met", "")                                                                            \
	F(S, COUNT, queue_ms, NULL, "queue_ms", "")                                                                    \
	F(S, COUNT, run_ms, NULL, "run_ms", "")
RECORD_LOCAL(quality_run, QUALITY_RUN_RECORD)

#define QUALITY_EPISODES_RECORD(F, S)                                                                                  \
	F(S, INT, n_episodes, NULL, "COUNT(*)", "")                                                                    \
	F(S, COUNT, level.reaction_ms, NULL, "CAST(AVG(ended_ms - COALESCE(told_ms, first_bad_ms)) AS INTEGER)", "")
RECORD_DEFINE_PART(quality_episodes, quality, QUALITY_EPISODES_RECORD);

void quality_read(const struct view *d, const char *accelerator, int64_t now_ms, struct quality *ret)
{
	struct times queue = times_new(TIMES_MAX), run = times_new(TIMES_MAX);
	int64_t after_ms = now_ms - QUALITY_DAYS_MS, next_day = day_of(after_ms) + 1;
	struct quality_day day;
	struct quality_run one;
	struct rows *r;

	*ret = (struct quality){.n_push_runs = 0};
	level_read(d, accelerator, NULL, now_ms, &ret->level);
	r = db_rows(d,
	    RECORD_QUERY(QUALITY_DAY_RECORD, "FROM day WHERE accelerator = ?1 AND day >= ?2 ORDER BY day DESC"),
	    V_TEXT(accelerator), V_INT(next_day));
	while (rows_next(r)) {
		record_read(r, &quality_day_record, &day);
		ret->n_push_runs += day.n_runs;
		ret->n_push_green += day.n_green;
		ret->level.n_dispatches += day.n_dispatches;
		ret->level.n_deadlines_met += day.n_met;
		times_add_packed(&queue, &day.queue_times);
		times_add_packed(&run, &day.run_times);
	}
	/* the day that is only partly within the time */
	r = db_rows(d,
	    RECORD_QUERY(QUALITY_RUN_RECORD, "FROM run WHERE accelerator = ?1 AND ended_ms >= ?2 AND ended_ms < ?3"),
	    V_TEXT(accelerator), V_INT(after_ms), V_INT(next_day * DAY_MS));
	while (rows_next(r)) {
		record_read(r, &quality_run_record, &one);
		ret->n_push_runs += one.is_push_with_result;
		ret->n_push_green += one.is_push_with_result && one.is_green;
		ret->level.n_dispatches += one.n_dispatches;
		ret->level.n_deadlines_met += one.n_met;
		times_add(&queue, one.queue_ms);
		times_add(&run, one.run_ms);
	}
	ret->queue_p50_ms = percentile(&queue, 50);
	ret->queue_p90_ms = percentile(&queue, 90);
	ret->run_p50_ms = percentile(&run, 50);
	ret->run_p90_ms = percentile(&run, 90);
	/* the episodes that were open within the time; the reaction is the mean time from the notice to green */
	record_read_first(db_rows(d,
			      RECORD_QUERY(QUALITY_EPISODES_RECORD, "FROM red_episode WHERE accelerator = ?1"
								    " AND (ended_ms IS NULL OR ended_ms >= ?2)"),
			      V_TEXT(accelerator), V_INT(after_ms)),
	    &quality_episodes_record, ret);
	ret->red_since_ms = red_since_ms(d, accelerator);
	ret->is_red_in_silence = ret->red_since_ms && red_is_silence(d, accelerator);
	ret->is_overdue = red_is_overdue(ret->red_since_ms, now_ms);
	ret->unhealthy_since_ms = db_int(
	    d, 0, "SELECT COALESCE(unhealthy_since_ms, 0) FROM accelerator WHERE name = ?1", V_TEXT(accelerator));
	times_release(&queue);
	times_release(&run);
}
