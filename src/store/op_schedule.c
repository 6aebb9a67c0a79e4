/* When periodic runs are due: the schedules follow the registry, what is due becomes a run, and
 * operators put one in or leave one out. */
#include <jansson.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/strv.h"
#include "store/db.h"
#include "store/schedule_runs.h"

struct stored_schedule {
	char *crons; /* JSON; NULL: no row */
	int64_t last_ms, next_ms;
	bool is_next_skipped;
};

static struct stored_schedule read_schedule(struct db *d, const char *accelerator)
{
	struct rows *r = db_rows(d,
	    "SELECT cron, last_due_ms, next_ms, is_next_skipped FROM schedule"
	    " WHERE accelerator = ?1",
	    V_TEXT(accelerator));
	struct stored_schedule s = {0};

	if (rows_next(r))
		s = (struct stored_schedule){
		    .crons = rows_dup(r, 0),
		    .last_ms = rows_int(r, 1),
		    .next_ms = rows_int(r, 2),
		    .is_next_skipped = rows_int(r, 3),
		};
	rows_end(r);
	return s;
}

static char *crons_text(const char *const *crons)
{
	json_t *list = json_array();
	char *text;

	for (; *crons; crons++)
		json_array_append_new(list, json_string(*crons));
	text = json_text(list);
	json_decref(list);
	return text;
}

/* The clock was put back, and this due time has come round before. */
static bool was_acted_upon(struct db *d, const char *accelerator, int64_t due_ms)
{
	return db_has(d,
	    "SELECT 1 FROM schedule_run WHERE accelerator = ?1 AND due_ms = ?2"
	    " AND cause IN ('schedule', 'caught_up')",
	    V_TEXT(accelerator), V_INT(due_ms));
}

static void take(struct db *d, struct look_at_schedules *o, const char *accelerator,
    const struct schedule_look *look, bool is_left_out)
{
	char why[SCHEDULE_REASON_BYTES] = "left out: an operator had it skipped";
	int64_t going_due_ms, run_id;
	bool is_skipped = is_left_out;

	if (!is_left_out && schedule_run_going(d, accelerator, o->now_ms, &going_due_ms)) {
		schedule_going_text(going_due_ms, why);
		is_skipped = true;
	}
	run_id = schedule_run_begin(d, accelerator, look->due_ms,
	    look->is_missed ? CAUSE_CAUGHT_UP : CAUSE_SCHEDULE, o->now_ms);
	if (is_skipped)
		schedule_run_end(d, run_id, "skipped", why, o->now_ms);
	o->n_skipped += is_skipped;
	o->n_taken += !is_skipped;
	db_tell_accelerator(d, accelerator);
}

static struct schedule_look look_at_other(
    const struct stored_schedule *s, const struct schedule_entry *e, int64_t now_ms)
{
	char **texts = strv_copy(NULL);
	json_t *list = NULL, *text;
	struct schedule before;
	struct schedule_look look;
	size_t i;

	if (json_parse(s->crons, strlen(s->crons), &list, NULL) == 0)
		json_array_foreach(list, i, text)
		{
			if (json_is_string(text))
				strv_add(&texts, json_string_value(text));
		}
	schedule_init(&before, e->accelerator, (const char *const *)texts, e->times->jitter_ms);
	look = schedule_look_at_other(e->times, &before, s->last_ms, now_ms);
	schedule_release(&before);
	json_decref(list);
	strv_free(texts);
	return look;
}

static void look_at(struct db *d, struct look_at_schedules *o, const struct schedule_entry *e)
{
	struct stored_schedule s = read_schedule(d, e->accelerator);
	char *crons = crons_text(e->crons);
	bool is_first = !s.crons || !s.next_ms;
	bool is_other = is_first || strcmp(s.crons, crons) != 0;
	/* One without a schedule before has missed nothing. */
	int64_t last_ms = is_first && s.last_ms < o->now_ms ? o->now_ms : s.last_ms;
	struct schedule_look look = is_other && !is_first
					? look_at_other(&s, e, o->now_ms)
					: schedule_look(e->times, last_ms, o->now_ms);
	bool is_due = look.due_ms && !was_acted_upon(d, e->accelerator, look.due_ms);

	if (is_due)
		take(d, o, e->accelerator, &look, s.is_next_skipped);
	if (is_other || look.last_ms != s.last_ms || look.next_ms != s.next_ms)
		db_exec(d,
		    "INSERT INTO schedule (accelerator, cron, last_due_ms, next_ms,"
		    " is_next_skipped) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (accelerator) DO"
		    " UPDATE SET cron = excluded.cron, last_due_ms = excluded.last_due_ms,"
		    " next_ms = excluded.next_ms, is_next_skipped = excluded.is_next_skipped",
		    V_TEXT(e->accelerator), V_TEXT(crons), V_INT(look.last_ms),
		    V_INT_OR_NULL(look.next_ms), V_INT(s.is_next_skipped && !is_due));
	if (look.next_ms && (!o->next_ms || look.next_ms < o->next_ms))
		o->next_ms = look.next_ms;
	free(crons);
	free(s.crons);
}

static bool has_entry(const struct look_at_schedules *o, const char *accelerator)
{
	for (size_t i = 0; i < o->n_entries; i++)
		if (strcmp(o->entries[i].accelerator, accelerator) == 0)
			return true;
	return false;
}

/* Whoever is not among the entries any more is never due. */
static void drop_others(struct db *d, const struct look_at_schedules *o)
{
	struct rows *r = db_rows(d, "SELECT accelerator FROM schedule WHERE next_ms IS NOT NULL");
	char **gone = NULL;
	size_t n = 0;

	while (rows_next(r)) {
		if (has_entry(o, rows_text(r, 0)))
			continue;
		gone = xrealloc(gone, (n + 1) * sizeof(*gone));
		gone[n++] = rows_dup(r, 0);
	}
	for (size_t i = 0; i < n; i++) {
		db_exec(d,
		    "UPDATE schedule SET next_ms = NULL, is_next_skipped = 0"
		    " WHERE accelerator = ?1",
		    V_TEXT(gone[i]));
		free(gone[i]);
	}
	free(gone);
}

static void read_tasks(struct db *d, struct look_at_schedules *o)
{
	struct rows *r =
	    db_rows(d, "SELECT id, accelerator, due_ms FROM schedule_run INDEXED BY"
		       " schedule_run_open WHERE ended_ms IS NULL AND state = 'reading'"
		       " ORDER BY id"); /* by itself it would walk over all of them */

	while (rows_next(r)) {
		o->tasks = xrealloc(o->tasks, (o->n + 1) * sizeof(*o->tasks));
		o->tasks[o->n++] = (struct schedule_task){
		    .id = rows_int(r, 0),
		    .accelerator = rows_dup(r, 1),
		    .due_ms = rows_int(r, 2),
		};
	}
}

static int look_run(struct store_op *op, struct db *d)
{
	struct look_at_schedules *o = CONTAINER_OF(op, struct look_at_schedules, op);

	look_at_schedules_release(o);
	o->next_ms = 0;
	o->n_taken = o->n_skipped = 0;
	drop_others(d, o);
	for (size_t i = 0; i < o->n_entries; i++)
		look_at(d, o, &o->entries[i]);
	read_tasks(d, o);
	return 0;
}

int store_look_at_schedules(struct store *s, struct look_at_schedules *op)
{
	op->op.run = look_run;
	op->op.bytes = sizeof(*op);
	return store_submit(s, &op->op);
}

void look_at_schedules_release(struct look_at_schedules *op)
{
	for (size_t i = 0; i < op->n; i++)
		free(op->tasks[i].accelerator);
	FREE_AND_NULL(op->tasks);
	op->n = 0;
}

/* ---- operators ---- */

static int ask_run(struct store_op *op, struct db *d)
{
	struct ask_schedule_run *o = CONTAINER_OF(op, struct ask_schedule_run, op);
	char why[SCHEDULE_REASON_BYTES];
	int64_t due_ms;

	if (schedule_run_going(d, o->accelerator, o->now_ms, &due_ms)) {
		schedule_going_text(due_ms, why);
		return error_set(&op->why, ERR_CONFLICT, "%s", why);
	}
	/* The clock was put back, and now comes round again. */
	due_ms = db_int(d, o->now_ms,
	    "SELECT MAX(due_ms) + 1 FROM schedule_run WHERE accelerator = ?1"
	    " AND cause = 'operator' HAVING MAX(due_ms) >= ?2",
	    V_TEXT(o->accelerator), V_INT(o->now_ms));
	o->run_id = schedule_run_begin(d, o->accelerator, due_ms, CAUSE_OPERATOR, o->now_ms);
	db_tell(d, STORE_SCHEDULES);
	db_tell_accelerator(d, o->accelerator);
	return 0;
}

int store_ask_schedule_run(struct store *s, struct ask_schedule_run *op)
{
	op->op.run = ask_run;
	op->op.bytes = sizeof(*op);
	return store_submit(s, &op->op);
}

static int skip_run(struct store_op *op, struct db *d)
{
	struct skip_schedule *o = CONTAINER_OF(op, struct skip_schedule, op);
	struct stored_schedule s = read_schedule(d, o->accelerator);

	free(s.crons);
	if (!s.next_ms)
		return error_set(&op->why, ERR_NOT_FOUND, "%s has no schedule", o->accelerator);
	o->next_ms = s.next_ms;
	o->was_skipped = s.is_next_skipped;
	db_exec(d, "UPDATE schedule SET is_next_skipped = 1 WHERE accelerator = ?1",
	    V_TEXT(o->accelerator));
	db_tell_accelerator(d, o->accelerator);
	return 0;
}

int store_skip_schedule(struct store *s, struct skip_schedule *op)
{
	op->op.run = skip_run;
	op->op.bytes = sizeof(*op);
	return store_submit(s, &op->op);
}
