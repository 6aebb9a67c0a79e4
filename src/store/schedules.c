#include "store/schedules.h"

#include "db/key.h"
#include "store/changes.h"
#include "store/plans.h"

#define HOUR_MS INT64_C(3600000)

enum { SELF_REPORT_HOURS = 12 };

static const char *const cause_names[] = {
    [CAUSE_SCHEDULE] = "schedule",
    [CAUSE_CAUGHT_UP] = "caught_up",
    [CAUSE_OPERATOR] = "operator",
    [CAUSE_SELF_REPORT] = "self_report",
};

int64_t schedule_run_begin(
    struct txn *d, const char *accelerator, int64_t due_ms, enum schedule_cause cause, int64_t now_ms)
{
	return db_exec_int(d, 0,
	    "INSERT INTO schedule_run (accelerator, due_ms, cause, state, started_ms)"
	    " VALUES (?1, ?2, ?3, ?5, ?4) RETURNING id",
	    V_TEXT(accelerator), V_INT(due_ms), V_TEXT(cause_names[cause]), V_INT(now_ms),
	    V_TEXT(schedule_run_state_name(SCHEDULE_RUN_IS_READING)));
}

bool schedule_run_enter(struct txn *d, int64_t run_id, enum schedule_run_state to, int64_t now_ms)
{
	enum schedule_run_state from = (enum schedule_run_state)rows_first_word(
	    db_rows(d, "SELECT state FROM schedule_run WHERE id = ?1", V_INT(run_id)), &schedule_run_state_words);
	bool is_over = to != SCHEDULE_RUN_IS_READING && to != SCHEDULE_RUN_IS_DISPATCHED;

	if (from == N_SCHEDULE_RUN_STATES || !schedule_run_may_enter(from, to))
		return false;
	if (from != to)
		db_exec(d, "UPDATE schedule_run SET state = ?2, ended_ms = ?3 WHERE id = ?1", V_INT(run_id),
		    V_TEXT(schedule_run_state_name(to)), V_INT_OR_NULL(is_over ? now_ms : 0));
	return true;
}

void schedule_run_end(struct txn *d, int64_t run_id, enum schedule_run_state to, const char *reason, int64_t now_ms)
{
	if (schedule_run_enter(d, run_id, to, now_ms))
		db_exec(d, "UPDATE schedule_run SET outcome = ?2, reason = ?3 WHERE id = ?1", V_INT(run_id),
		    V_TEXT(schedule_run_state_name(to)), V_TEXT(reason));
}

#define GOING_RUN_RECORD(F, S)                                                                                         \
	F(S, ID, id, NULL, "id", "")                                                                                   \
	F(S, TIME, due_ms, NULL, "due_ms", "")                                                                         \
	F(S, ID, change_id, NULL, "change_id", "")                                                                     \
	F(S, SCHEDULE_RUN_STATE, state, NULL, "state", "")
RECORD_LOCAL(going_run, GOING_RUN_RECORD)

/* Whether a run of the accelerator has not ended; *why names it then. Ends a run without an unfinished dispatch, also if it
 * was never judged (at L1, or when its runners have left the registry). */
static bool schedule_run_going(struct txn *d, const char *accelerator, int64_t now_ms, char why[SCHEDULE_REASON_BYTES])
{
	struct going_run run;
	char time[RFC3339_BYTES];

	if (!RECORD_READ_FIRST(d, going_run, GOING_RUN_RECORD, &run,
		"FROM schedule_run WHERE accelerator = ?1 AND ended_ms IS NULL ORDER BY id DESC LIMIT 1",
		V_TEXT(accelerator)))
		return false;
	if (run.state != SCHEDULE_RUN_IS_READING &&
	    !db_has(d,
		"SELECT 1 FROM dispatch WHERE change_id = ?1 AND accelerator = ?2"
		" AND is_current = 1 AND " DISPATCH_IS_UNFINISHED " LIMIT 1",
		V_INT(run.change_id), V_TEXT(accelerator))) {
		schedule_run_enter(d, run.id, SCHEDULE_RUN_IS_DONE, now_ms);
		return false;
	}
	snprintf(why, SCHEDULE_REASON_BYTES, "the run of %s is still going", rfc3339_format(run.due_ms, time));
	return true;
}

/* Now, or a later time when a run with this cause has it: there are two in one millisecond, or the clock was set back. */
static int64_t unused_due_ms(const struct view *d, const char *accelerator, enum schedule_cause cause, int64_t now_ms)
{
	return db_int(d, now_ms,
	    "SELECT MAX(due_ms) + 1 FROM schedule_run WHERE accelerator = ?1 AND cause = ?3 HAVING MAX(due_ms) >= ?2",
	    V_TEXT(accelerator), V_INT(now_ms), V_TEXT(cause_names[cause]));
}

void schedule_run_self_reported(
    struct txn *d, int64_t change_id, const char *accelerator, const char *head_sha, int64_t now_ms)
{
	if (db_has(d,
		"SELECT 1 FROM schedule_run WHERE change_id = ?1 AND accelerator = ?2"
		" AND (ended_ms IS NULL OR (started_ms > ?3 AND started_ms <= ?4))",
		V_INT(change_id), V_TEXT(accelerator), V_INT(now_ms - SELF_REPORT_HOURS * HOUR_MS), V_INT(now_ms)))
		return;
	db_exec(d,
	    "INSERT INTO schedule_run (accelerator, due_ms, cause, state, upstream_sha, change_id,"
	    " started_ms, ended_ms) VALUES (?1, ?2, 'self_report', ?6, ?3, ?4, ?5, ?5)",
	    V_TEXT(accelerator), V_INT(unused_due_ms(d->view, accelerator, CAUSE_SELF_REPORT, now_ms)),
	    V_TEXT(head_sha), V_INT(change_id), V_INT(now_ms), V_TEXT(schedule_run_state_name(SCHEDULE_RUN_IS_DONE)));
}

#define RUN_SOURCE_RECORD(F, S)                                                                                        \
	F(S, TEXT, git_url, NULL, "source_url", "")                                                                    \
	F(S, TEXT, branch, NULL, "source_branch", "")                                                                  \
	F(S, TEXT, sha, NULL, "source_sha", "")
RECORD_DEFINE_PART(run_source, source_head, RUN_SOURCE_RECORD);

void schedule_run_source(
    const struct view *d, int64_t change_id, const char *accelerator, struct source_head **list, size_t *n)
{
	struct source_head head = {0};

	RECORD_READ_FIRST(d, run_source, RUN_SOURCE_RECORD, &head,
	    "FROM schedule_run WHERE change_id = ?1 AND accelerator = ?2 AND cause <> 'self_report'"
	    " ORDER BY id DESC LIMIT 1",
	    V_INT(change_id), V_TEXT(accelerator));
	if (!head.sha) {
		source_head_release(&head);
		return;
	}
	head.accelerator = xstrdup(accelerator);
	*ARRAY_PUSH(*list, *n) = head;
}

/* ---- due runs ---- */

#define STORED_SCHEDULE_RECORD(F, S)                                                                                   \
	F(S, TEXT, crons, NULL, "cron", "JSON; NULL: no row.")                                                         \
	F(S, TEXTS, cron_list, NULL, "cron", "The same.")                                                              \
	F(S, TIME, last_ms, NULL, "last_due_ms", "")                                                                   \
	F(S, TIME, next_ms, NULL, "next_ms", "")                                                                       \
	F(S, BOOL, is_next_skipped, NULL, "is_next_skipped", "")
RECORD_LOCAL(stored_schedule, STORED_SCHEDULE_RECORD)
RECORD_DEFINE(schedule_task, SCHEDULE_TASK_RECORD);
RECORD_DEFINE(schedule_row, SCHEDULE_ROW_RECORD);

static struct stored_schedule read_schedule(const struct view *d, const char *accelerator)
{
	struct stored_schedule s = {0};

	RECORD_READ_FIRST(d, stored_schedule, STORED_SCHEDULE_RECORD, &s, "FROM schedule WHERE accelerator = ?1",
	    V_TEXT(accelerator));
	return s;
}

static void look_at_schedule(struct txn *d, struct look_at_schedules *o, const struct schedule_entry *e)
{
	struct stored_schedule s = read_schedule(d->view, e->accelerator);
	char *crons = json_text_of_strings(e->crons);
	char why[SCHEDULE_REASON_BYTES] = "skipped by an operator";
	bool is_first = !s.crons || !s.next_ms;
	bool is_other = is_first || strcmp(s.crons, crons) != 0, is_due;
	struct schedule before;
	struct schedule_look look;

	if (is_other && !is_first) {
		schedule_init(&before, e->accelerator, (const char *const *)s.cron_list, e->times->jitter_ms);
		look = schedule_look_at_other(e->times, &before, s.last_ms, o->now_ms);
		schedule_release(&before);
	} else {
		/* An accelerator that had no schedule before has missed nothing. */
		look = schedule_look(e->times, is_first && s.last_ms < o->now_ms ? o->now_ms : s.last_ms, o->now_ms);
	}
	/* When the clock was set back, this due time was used before. */
	is_due = look.due_ms && !db_has(d,
				    "SELECT 1 FROM schedule_run WHERE accelerator = ?1 AND due_ms = ?2"
				    " AND cause IN ('schedule', 'caught_up')",
				    V_TEXT(e->accelerator), V_INT(look.due_ms));
	if (is_due) {
		bool is_skipped = s.is_next_skipped || schedule_run_going(d, e->accelerator, o->now_ms, why);
		int64_t run_id = schedule_run_begin(
		    d, e->accelerator, look.due_ms, look.is_missed ? CAUSE_CAUGHT_UP : CAUSE_SCHEDULE, o->now_ms);

		if (is_skipped)
			schedule_run_end(d, run_id, SCHEDULE_RUN_IS_SKIPPED, why, o->now_ms);
		o->n_skipped += is_skipped;
		o->n_taken += !is_skipped;
		db_notify_accelerator(d, e->accelerator);
	}
	if (is_other || look.last_ms != s.last_ms || look.next_ms != s.next_ms)
		db_exec(d,
		    "INSERT INTO schedule (accelerator, cron, last_due_ms, next_ms,"
		    " is_next_skipped) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (accelerator) DO"
		    " UPDATE SET cron = excluded.cron, last_due_ms = excluded.last_due_ms,"
		    " next_ms = excluded.next_ms, is_next_skipped = excluded.is_next_skipped",
		    V_TEXT(e->accelerator), V_TEXT(crons), V_INT(look.last_ms), V_INT_OR_NULL(look.next_ms),
		    V_INT(s.is_next_skipped && !is_due));
	if (look.next_ms && (!o->next_ms || look.next_ms < o->next_ms))
		o->next_ms = look.next_ms;
	free(crons);
	record_release(&stored_schedule_record, &s);
}

static int look_at_schedules_run(struct store_op *op, struct txn *d)
{
	struct look_at_schedules *o = CONTAINER_OF(op, struct look_at_schedules, op);
	char **scheduled = rows_keys(db_rows(d, "SELECT accelerator FROM schedule WHERE next_ms IS NOT NULL"));

	look_at_schedules_release(o);
	o->next_ms = 0;
	o->n_taken = o->n_skipped = 0;
	for (char **name = scheduled; *name; name++) {
		bool is_listed = false;

		for (size_t i = 0; i < o->n_entries; i++)
			is_listed |= strcmp(o->entries[i].accelerator, *name) == 0;
		if (!is_listed) /* it is never due */
			db_exec(d, "UPDATE schedule SET next_ms = NULL, is_next_skipped = 0 WHERE accelerator = ?1",
			    V_TEXT(*name));
	}
	strv_free(scheduled);
	for (size_t i = 0; i < o->n_entries; i++)
		look_at_schedule(d, o, &o->entries[i]);
	RECORDS_READ(db_rows(d, RECORD_QUERY(SCHEDULE_TASK_RECORD,
				    "FROM schedule_run INDEXED BY" /* or it would read all runs */
				    " schedule_run_open WHERE ended_ms IS NULL AND state = 'reading' ORDER BY id")),
	    schedule_task, o->tasks, o->n);
	return 0;
}
STORE_OPERATION(look_at_schedules)

void look_at_schedules_release(struct look_at_schedules *op) { RECORDS_RELEASE(schedule_task, op->tasks, op->n); }

/* ---- operators ---- */

static int ask_schedule_run_run(struct store_op *op, struct txn *d)
{
	struct ask_schedule_run *o = CONTAINER_OF(op, struct ask_schedule_run, op);
	char why[SCHEDULE_REASON_BYTES];

	if (schedule_run_going(d, o->accelerator, o->now_ms, why))
		return error_set(&op->why, ERR_CONFLICT, "%s", why);
	o->run_id = schedule_run_begin(d, o->accelerator,
	    unused_due_ms(d->view, o->accelerator, CAUSE_OPERATOR, o->now_ms), CAUSE_OPERATOR, o->now_ms);
	db_notify(d, STORE_SCHEDULES);
	db_notify_accelerator(d, o->accelerator);
	return 0;
}
STORE_OPERATION(ask_schedule_run)

static int skip_schedule_run(struct store_op *op, struct txn *d)
{
	struct skip_schedule *o = CONTAINER_OF(op, struct skip_schedule, op);
	struct stored_schedule s = read_schedule(d->view, o->accelerator);

	record_release(&stored_schedule_record, &s);
	if (!s.next_ms)
		return error_set(&op->why, ERR_NOT_FOUND, "%s has no schedule", o->accelerator);
	o->next_ms = s.next_ms;
	o->was_skipped = s.is_next_skipped;
	db_exec(d, "UPDATE schedule SET is_next_skipped = 1 WHERE accelerator = ?1", V_TEXT(o->accelerator));
	db_notify_accelerator(d, o->accelerator);
	return 0;
}
STORE_OPERATION(skip_schedule)

/* ---- a run starts ---- */

#define STORED_RUN_RECORD(F, S)                                                                                        \
	F(S, TEXT, accelerator, NULL, "accelerator", "")                                                               \
	F(S, BOOL, is_asked_for, NULL, "cause = 'operator'", "")
RECORD_LOCAL(stored_run, STORED_RUN_RECORD)

/* False: it is not `reading` any more. */
static bool read_unstarted_run(const struct view *d, int64_t id, struct stored_run *ret)
{
	return RECORD_READ_FIRST(d, stored_run, STORED_RUN_RECORD, ret,
	    "FROM schedule_run WHERE id = ?1 AND state = ?2", V_INT(id),
	    V_TEXT(schedule_run_state_name(SCHEDULE_RUN_IS_READING)));
}

static int start_schedule_run_run(struct store_op *op, struct txn *d)
{
	struct start_schedule_run *o = CONTAINER_OF(op, struct start_schedule_run, op);
	struct apply_plan apply = {
	    .guid = o->guid, .body = o->body, .body_bytes = o->body_bytes, .plan = o->plan, .now_ms = o->now_ms};
	char time[RFC3339_BYTES];
	const struct source_head *source = o->source;
	struct stored_run run;
	int64_t green_ms = 0;

	o->step = SCHEDULE_GONE;
	o->reason[0] = '\0';
	if (!read_unstarted_run(d->view, o->run_id, &run))
		return 0;
	/* The dispatches find the source by the change, so the run names it before they are written. */
	db_exec(d,
	    "UPDATE schedule_run SET upstream_sha = ?2, source_url = ?3, source_branch = ?4,"
	    " source_sha = ?5 WHERE id = ?1",
	    V_INT(o->run_id), V_TEXT(o->plan->head_sha), V_TEXT(source ? source->git_url : NULL),
	    V_TEXT(source ? source->branch : NULL), V_TEXT(source ? source->sha : NULL));
	/* was the newest run that tested anything green, with the same heads? */
	if (!run.is_asked_for)
		green_ms = db_int(d, 0,
		    "SELECT due_ms FROM (SELECT due_ms, outcome, upstream_sha, source_sha FROM schedule_run"
		    " WHERE accelerator = ?1 AND change_id IS NOT NULL ORDER BY id DESC LIMIT 1) newest"
		    " WHERE outcome = 'green' AND upstream_sha = ?2 AND COALESCE(source_sha, '') = ?3",
		    V_TEXT(run.accelerator), V_TEXT(o->plan->head_sha), V_TEXT(source ? source->sha : ""));
	if (!green_ms)
		plan_apply(d, &apply);
	if (green_ms) {
		o->step = SCHEDULE_NOTHING_NEW;
		snprintf(o->reason, sizeof(o->reason), "nothing new since the green run of %s",
		    rfc3339_format(green_ms, time));
		schedule_run_end(d, o->run_id, SCHEDULE_RUN_IS_SKIPPED, o->reason, o->now_ms);
	} else if (apply.n_new_dispatches == 0) {
		o->step = SCHEDULE_NOBODY;
		snprintf(o->reason, sizeof(o->reason), "it has no runner that takes it");
		schedule_run_end(d, o->run_id, SCHEDULE_RUN_IS_FAILED, o->reason, o->now_ms);
	} else {
		o->step = SCHEDULE_DISPATCHED;
		change_touch(d, apply.change_id, o->now_ms);
		schedule_run_enter(d, o->run_id, SCHEDULE_RUN_IS_DISPATCHED, o->now_ms);
		db_exec(d, "UPDATE schedule_run SET reason = NULL, change_id = ?2 WHERE id = ?1", V_INT(o->run_id),
		    V_INT(apply.change_id));
	}
	db_notify_accelerator(d, run.accelerator);
	free(run.accelerator);
	return 0;
}
STORE_HEAVY_OPERATION(start_schedule_run, op->body_bytes)

static int fail_schedule_run_run(struct store_op *op, struct txn *d)
{
	struct fail_schedule_run *o = CONTAINER_OF(op, struct fail_schedule_run, op);
	struct stored_run run;

	if (!read_unstarted_run(d->view, o->run_id, &run))
		return 0;
	if (o->is_tried_again)
		db_exec(d, "UPDATE schedule_run SET reason = ?2 WHERE id = ?1", V_INT(o->run_id), V_TEXT(o->reason));
	else
		schedule_run_end(d, o->run_id, SCHEDULE_RUN_IS_FAILED, o->reason, o->now_ms);
	db_notify_accelerator(d, run.accelerator);
	free(run.accelerator);
	return 0;
}
STORE_OPERATION(fail_schedule_run)

/* ---- list ---- */

static int list_schedules_run(struct store_query *q, const struct view *d)
{
	struct list_schedules *o = CONTAINER_OF(q, struct list_schedules, q);
	struct rows *r = db_rows(d,
	    RECORD_QUERY(SCHEDULE_ROW_RECORD,
		"FROM accelerator a LEFT JOIN schedule s ON s.accelerator = a.name"
		" LEFT JOIN schedule_run r ON r.id = (SELECT MAX(id) FROM schedule_run  WHERE accelerator = a.name)"
		" WHERE (s.next_ms IS NOT NULL OR r.id IS NOT NULL) AND (?1 IS NULL OR a.name = ?1) ORDER BY a.name"),
	    V_TEXT(o->accelerator));

	RECORDS_READ(r, schedule_row, o->list, o->n);
	return 0;
}
STORE_LIST(list_schedules, schedule_row)
