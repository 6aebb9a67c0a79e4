/* The functions that change states refuse an illegal step and change nothing. */
#include "store_rig.h"

#include "db/db.h"
#include "history/red_episodes.h"
#include "store/deliveries.h"
#include "store/jobs.h"
#include "store/leases.h"
#include "store/outbox.h"
#include "store/schedules.h"

enum { STEPS_MAX = 8 };

/* Runs `steps` in the writer's transaction; the test's own thread compares their results afterwards. */
struct steps_op {
	struct store_op op;
	void (*steps)(struct txn *d, struct steps_op *o);
	bool has_moved[STEPS_MAX];
	char *text; /* the row at the end */
};

static int steps_run(struct store_op *op, struct txn *d)
{
	struct steps_op *o = CONTAINER_OF(op, struct steps_op, op);

	o->steps(d, o);
	return db_status(d);
}

static int steps_submit(struct store *s, struct steps_op *o)
{
	o->op.run = steps_run;
	o->op.bytes = sizeof(*o);
	return store_submit(s, &o->op);
}

/* moved: 'x' for a step that was made, '.' for a refused one */
static void assert_steps(void (*steps)(struct txn *d, struct steps_op *o), const char *moved, const char *text)
{
	struct steps_op o = {.steps = steps};

	DO_OK(steps_submit, &o);
	for (size_t i = 0; moved[i]; i++)
		assert_int_equal(o.has_moved[i], moved[i] == 'x');
	assert_string_equal(o.text, text);
	free(o.text);
}

#define ROW_TEXT                                                                                                       \
	"state || ' ' || n_attempts || ' ' || (next_ms - first_ms) || ' ' || generation || ' ' || is_uncertain || ' "  \
	"' ||"                                                                                                         \
	" COALESCE(last_error, '-') || ' ' || COALESCE(epoch, 0)"

static void outbox_steps(struct txn *d, struct steps_op *o)
{
	const struct outbox_request q = {.kind = OUTBOX_GITHUB_CLOSED,
	    .key = "k",
	    .lane = "k",
	    .target = "Ascend/pytorch",
	    .target_key = "ascend/pytorch"};
	struct outbox_place at, none = {0};
	char *waiting;

	outbox_insert(d, &q, T0);
	outbox_insert(d, &q, T0 + 1);
	at = outbox_find(d->view, "k");
	o->has_moved[0] = outbox_enter(d, &at, OUTBOX_IS_DEAD, NULL);
	at.n_attempts = 1;
	o->has_moved[1] = outbox_enter(d, &at, OUTBOX_IS_SENDING, NULL);
	at.next_ms = T0 + 5;
	at.is_uncertain = true;
	o->has_moved[2] = outbox_enter(d, &at, OUTBOX_IS_WAITING, "no answer");
	at = outbox_find(d->view, "k");
	at.generation++;
	o->has_moved[3] = outbox_enter(d, &at, OUTBOX_IS_WAITING, NULL);
	waiting = db_text(d, "SELECT " ROW_TEXT " FROM outbox");
	o->has_moved[4] = outbox_enter(d, &at, OUTBOX_IS_SENT, NULL);
	o->has_moved[5] = outbox_enter(d, &at, OUTBOX_IS_CANCELLED, NULL);
	o->has_moved[6] = outbox_enter(d, &none, OUTBOX_IS_SENT, NULL);
	o->text = db_text(d, "SELECT ?1 || ', ' || group_concat(" ROW_TEXT ") FROM outbox", V_TEXT(waiting));
	free(waiting);
}

static void an_outbox_row_makes_only_legal_steps(void **state)
{
	(void)state;
	assert_steps(outbox_steps, ".xxxx..", "waiting 1 5 2 1 no answer 0, sent 1 5 2 1 - 0");
}

static void delivery_steps(struct txn *d, struct steps_op *o)
{
	int64_t id;

	delivery_put_synthetic(d, "g1", "push", "", UPSTREAM, "{}", 2, T0);
	id = db_int(d, 0, "SELECT id FROM delivery");
	o->has_moved[0] = delivery_enter(d, id, DELIVERY_IS_ACCEPTED, NULL, T0);
	o->has_moved[1] = delivery_enter(d, id, DELIVERY_IS_FAILED, "no", T0);
	o->has_moved[2] = delivery_enter(d, id + 1, DELIVERY_IS_PLANNED, NULL, T0);
	o->text = db_text(d, "SELECT state || ' ' || error FROM delivery");
}

static void a_delivery_makes_only_legal_steps(void **state)
{
	(void)state;
	assert_steps(delivery_steps, "xx.", "failed no");
}

static void schedule_steps(struct txn *d, struct steps_op *o)
{
	int64_t id = schedule_run_begin(d, "npu", T0, CAUSE_SCHEDULE, T0);

	o->has_moved[0] = schedule_run_enter(d, id, SCHEDULE_RUN_IS_DONE, T0 + 1);
	o->has_moved[1] = schedule_run_enter(d, id, SCHEDULE_RUN_IS_DISPATCHED, T0 + 2);
	o->has_moved[2] = schedule_run_enter(d, id, SCHEDULE_RUN_IS_DONE, T0 + 3);
	o->has_moved[3] = schedule_run_enter(d, id, SCHEDULE_RUN_IS_DONE, T0 + 4);
	schedule_run_end(d, id, SCHEDULE_RUN_IS_FAILED, "too late", T0 + 5);
	o->text = db_text(d, "SELECT state || ' ' || (ended_ms - started_ms) || ' ' ||"
			     " COALESCE(reason, '-') FROM schedule_run");
}

static void a_schedule_run_makes_only_legal_steps(void **state)
{
	(void)state;
	assert_steps(schedule_steps, ".xxx", "done 3 -");
}

static void lease_steps(struct txn *d, struct steps_op *o)
{
	struct stored_lease l = {.id = "l",
	    .dispatch_id = "d",
	    .accelerator = (char *)"npu",
	    .runner = (char *)"farm",
	    .machine = (char *)"m",
	    .claim_id = (char *)"c",
	    .attempt = 1,
	    .lease_ms = 60000,
	    .until_ms = T0 + 60000};

	lease_insert(d, &l, T0);
	o->has_moved[0] = lease_enter(d, &l, LEASE_IS_EXPIRED, "silent", T0 + 1);
	o->has_moved[1] = lease_enter(d, &l, LEASE_IS_DONE, NULL, T0 + 2);
	o->has_moved[2] = lease_enter(d, &l, LEASE_IS_ACTIVE, NULL, T0 + 3);
	o->has_moved[3] = lease_enter(d, &l, LEASE_IS_RETURNED, "handed back", T0 + 4);
	o->has_moved[4] = lease_enter(d, &l, LEASE_IS_CANCELLED, "over", T0 + 5);
	o->text = db_text(d, "SELECT state || ', ' || reason || ', ' || (ended_ms - granted_ms) FROM lease");
}

static void a_lease_makes_only_legal_steps(void **state)
{
	(void)state;
	assert_steps(lease_steps, "x.xx.", "returned, handed back, 4");
}

static void job_steps(struct txn *d, struct steps_op *o)
{
	const struct job_place at = {
	    .change_id = 1, .dispatch_id = "d", .accelerator = "npu", .runner = "ci", .is_shown = true};
	struct job_report p = {.workflow = (char *)"w",
	    .name = (char *)"n",
	    .run_id = (char *)"1",
	    .run_attempt = 1,
	    .status = JOB_IN_PROGRESS};
	int64_t id = job_put(d, &at, &p, T0).job_id;

	o->has_moved[0] = job_enter(d, id, JOB_COMPLETED);
	o->has_moved[1] = job_enter(d, id, JOB_IN_PROGRESS); /* it was given up only */
	p.status = JOB_COMPLETED;
	p.conclusion = (char *)"success";
	o->has_moved[2] = job_put(d, &at, &p, T0).outcome == REPORT_RECORDED;
	o->has_moved[3] = job_enter(d, id, JOB_IN_PROGRESS);
	job_give_up(d, id, "cancelled", "too late", false, T0);
	o->text = db_text(d, "SELECT status || ' ' || conclusion FROM job");
}

static void a_reported_job_stays_completed(void **state)
{
	(void)state;
	assert_steps(job_steps, "xxx.", "completed success");
}

static void episode_steps(struct txn *d, struct steps_op *o)
{
	int64_t id = db_exec_int(d, 0,
	    "INSERT INTO red_episode (accelerator, repository_key, ref, first_bad_change,"
	    " first_bad_ms) VALUES ('npu', 'pytorch/pytorch', 'main', 1, ?1) RETURNING id",
	    V_INT(T0));

	o->has_moved[0] = red_episode_enter(d, id, RED_EPISODE_IS_CLOSED, T0 + 1);
	o->has_moved[1] = red_episode_enter(d, id, RED_EPISODE_IS_ENDED, T0 + 2);
	o->has_moved[2] = red_episode_enter(d, id, RED_EPISODE_IS_ENDED, T0 + 3);
	o->has_moved[3] = red_episode_enter(d, id, RED_EPISODE_IS_CLOSED, T0 + 4);
	o->has_moved[4] = red_episode_enter(d, id, RED_EPISODE_IS_ENDED, T0 + 5);
	o->text = db_text(d, "SELECT (ended_ms - first_bad_ms) || ' ' || (closed_ms - first_bad_ms)"
			     " FROM red_episode");
}

static void a_red_episode_makes_only_legal_steps(void **state)
{
	(void)state;
	assert_steps(episode_steps, ".x.x.", "2 4");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(an_outbox_row_makes_only_legal_steps),
	    TEST(a_delivery_makes_only_legal_steps),
	    TEST(a_schedule_run_makes_only_legal_steps),
	    TEST(a_lease_makes_only_legal_steps),
	    TEST(a_reported_job_stays_completed),
	    TEST(a_red_episode_makes_only_legal_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
