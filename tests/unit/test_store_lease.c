/* Machines that claim work: which machine gets which dispatch, the answers to heartbeats, and how a lease ends. */
#include <signal.h>
#include <sys/wait.h>

#include "lease_rig.h"
#include "verdict/known_issues.h"

/* ---- claim ---- */

static void a_claim_returns_a_complete_offer(void **state)
{
	struct lease_offer o;
	struct claim_outbox comments;
	struct job_detail *j;

	(void)state;
	queue_pull(7, HEAD_A, 0);
	assert_true(rig_topics & STORE_QUEUE);
	assert_int_equal(n_queued(), 1);
	o = take("npu-17", "c1", SECOND);
	assert_int_equal(o.lease_ms, LEASE_MS);
	assert_int_equal(o.attempt, 1);
	assert_string_equal(o.accelerator, "npu");
	assert_string_equal(o.runner, "farm");
	assert_string_equal(o.run_id, o.dispatch_id);
	assert_int_equal(o.kind, CHANGE_PULL_REQUEST);
	assert_string_equal(o.repository, UPSTREAM);
	assert_string_equal(o.head_sha, HEAD_A);
	assert_int_equal(o.number, 7);
	assert_null(o.ref);
	assert_string_equal(o.title, "A change");
	assert_string_equal(o.author, "alice");
	assert_string_equal(o.base_ref, "main");
	assert_string_equal(o.base_sha, HEAD_C);
	assert_string_equal(o.event_type, "pull_request");
	assert_string_equal(o.action, "opened");
	assert_non_null(o.delivery_id);
	ASSERT_DISPATCHES(HEAD_A, "npu running*");
	assert_int_equal(n_queued(), 0);
	j = job_of(o.job_id);
	assert_string_equal(j->job.workflow, "farm");
	assert_string_equal(j->job.name, "tests");
	assert_string_equal(j->job.run_id, o.dispatch_id);
	assert_int_equal(j->job.run_attempt, 1);
	assert_int_equal(j->job.status, JOB_IN_PROGRESS);
	assert_int_equal(j->job.started_ms, T0 + SECOND);
	assert_string_equal(j->machine, "npu-17");
	assert_int_equal(j->log_bytes, -1);
	job_detail_free(j);
	comments = rig_claim(COMMENTS, T0 + MINUTE);
	assert_int_equal(comments.n, 1);
	assert_int_equal(comments.rows[0].number, 7);
	claim_outbox_release(&comments);
	lease_offer_release(&o);
}

static void the_newest_change_goes_first(void **state)
{
	struct lease_offer a, b;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	queue_pull(2, HEAD_B, SECOND);
	a = take("npu-1", "c1", 2 * SECOND);
	b = take("npu-2", "c1", 2 * SECOND);
	assert_string_equal(a.head_sha, HEAD_B);
	assert_string_equal(b.head_sha, HEAD_A);
	lease_offer_release(&a);
	lease_offer_release(&b);
}

static void a_push_is_offered_with_its_ref(void **state)
{
	struct plan_want wants[] = {PULL_WANT("npu", "farm")};
	struct plan p = {
	    .kind = PLAN_START,
	    .change_kind = CHANGE_PUSH,
	    .repository = (char *)UPSTREAM,
	    .head_sha = (char *)HEAD_B,
	    .ref = (char *)"refs/heads/main",
	    .title = (char *)"A landed change",
	    .event_type = "push",
	    .sent_action = (char *)"",
	    .original_action = (char *)"",
	    .wants = wants,
	    .n_wants = 1,
	};
	struct apply_plan op = {.guid = "g", .plan = &p, .body = "{}", .body_bytes = 2};
	struct lease_offer o;

	(void)state;
	op.now_ms = T0;
	DO_OK(store_apply_plan, &op);
	o = take("npu-17", "c1", 0);
	assert_int_equal(o.kind, CHANGE_PUSH);
	assert_int_equal(o.number, 0);
	assert_string_equal(o.ref, "refs/heads/main");
	assert_string_equal(o.title, "A landed change");
	assert_null(o.base_ref);
	lease_offer_release(&o);
}

static void other_accelerators_and_runners_get_no_work(void **state)
{
	static const struct claim_choice lab = {"lab", 9};

	(void)state;
	assert_false(claim("npu-1", "c1", 0).is_found);
	queue_pull(1, HEAD_A, 0);
	assert_false(claim_with(&(struct claim_dispatch){.accelerator = "xpu"}, "x-1", "c1", 0).is_found);
	assert_false(claim_with(&(struct claim_dispatch){.choices = &lab, .n_choices = 1}, "npu-1", "c1", 0).is_found);
	ASSERT_DISPATCHES(HEAD_A, "npu queued*");
	ASSERT_LEASES("");
}

/* Held dispatches wait for a member; superseded and closed ones are never offered. */
static void only_current_dispatches_are_offered(void **state)
{
	struct plan_want held[] = {PULL_WANT("npu", "farm")};

	(void)state;
	held[0].held_reason = (char *)"not a contributor";
	rig_start("opened", HEAD_A, 0, held, 1);
	assert_false(claim("npu-1", "c1", SECOND).is_found);
	queue_pull(2, HEAD_B, 0);
	rig_close_pull(2, HEAD_B, 5);
	assert_false(claim("npu-1", "c1", SECOND).is_found);
	queue_pull(3, HEAD_C, 0);
	queue_pull(3, "dddddddddddddddddddddddddddddddddddddddd", 9 * SECOND);
	struct lease_offer o = take("npu-1", "c1", 10 * SECOND);
	assert_int_equal(o.head_sha[0], 'd');
	lease_offer_release(&o);
	assert_false(claim("npu-2", "c1", 10 * SECOND).is_found);
}

static void the_same_claim_gets_the_same_lease(void **state)
{
	struct claim_dispatch again, other;
	struct lease_offer o;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	queue_pull(2, HEAD_B, 0);
	o = take("npu-1", "c1", 0);
	again = claim("npu-1", "c1", 50 * SECOND);
	assert_true(again.is_found && again.was_known);
	assert_string_equal(again.offer.lease_id, o.lease_id);
	assert_string_equal(again.offer.dispatch_id, o.dispatch_id);
	assert_string_equal(again.offer.head_sha, o.head_sha);
	assert_string_equal(again.offer.title, o.title);
	assert_int_equal(again.offer.job_id, o.job_id);
	assert_int_equal(again.offer.attempt, 1);
	assert_int_equal(expire(65 * SECOND).n_expired, 0); /* it counts as a heartbeat */
	other = claim("npu-2", "c1", 0);
	assert_true(other.is_found && !other.was_known);
	assert_string_not_equal(other.offer.lease_id, o.lease_id);
	/* ended: its id is not valid any more */
	finish(&o, "success", MINUTE);
	assert_false(claim("npu-1", "c1", MINUTE).is_found);
	lease_offer_release(&again.offer);
	lease_offer_release(&other.offer);
	lease_offer_release(&o);
}

static void max_parallel_is_kept(void **state)
{
	static const struct claim_choice one = {"farm", 1};
	const struct claim_dispatch as = {.choices = &one, .n_choices = 1};
	struct claim_dispatch first, second;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	queue_pull(2, HEAD_B, 0);
	first = claim_with(&as, "npu-1", "c1", 0);
	assert_true(first.is_found);
	assert_false(claim_with(&as, "npu-2", "c1", 0).is_found);
	rig_topics = 0;
	finish(&first.offer, "success", SECOND);
	assert_true(rig_topics & STORE_QUEUE); /* there is room again */
	assert_false(rig_topics & STORE_LEASES);
	second = claim_with(&as, "npu-2", "c1", SECOND);
	assert_true(second.is_found);
	lease_offer_release(&first.offer);
	lease_offer_release(&second.offer);
}

static void the_newest_change_of_several_runners_goes_first(void **state)
{
	static const struct claim_choice both[] = {{"farm", 1}, {"lab", 1}};
	const struct claim_dispatch as = {.choices = both, .n_choices = 2};
	struct plan_want lab[] = {PULL_WANT("npu", "lab")};
	struct claim_dispatch first, second;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	rig_apply(&(struct rig_plan){
	    .kind = PLAN_START, .number = 2, .head = HEAD_B, .event_ms = T0 + SECOND, .wants = lab, .n_wants = 1});
	first = claim_with(&as, "npu-1", "c1", SECOND);
	second = claim_with(&as, "npu-1", "c2", SECOND);
	assert_string_equal(first.offer.runner, "lab");
	assert_string_equal(second.offer.runner, "farm");
	lease_offer_release(&first.offer);
	lease_offer_release(&second.offer);
}

static int n_claims_done;

static void claim_done(struct store_op *op)
{
	(void)op;
	rig_is_done = ++n_claims_done == 8;
}

/* Eight claims in one transaction: each finds the work that the earlier ones left. */
static void two_machines_never_get_the_same_dispatch(void **state)
{
	static const struct claim_choice farm = {"farm", 8};
	struct claim_dispatch c[8];
	char machines[8][16];
	int n_found = 0;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	queue_pull(2, HEAD_B, 0);
	queue_pull(3, HEAD_C, 0);
	n_claims_done = 0;
	rig_is_done = false;
	for (int i = 0; i < 8; i++) {
		snprintf(machines[i], sizeof(machines[i]), "npu-%d", i);
		c[i] = (struct claim_dispatch){.op.done = claim_done,
		    .accelerator = "npu",
		    .choices = &farm,
		    .n_choices = 1,
		    .machine = machines[i],
		    .claim_id = "c1",
		    .lease_ms = LEASE_MS,
		    .now_ms = T0};
		assert_int_equal(store_claim_dispatch(rig_store, &c[i]), 0);
	}
	loop_run_until(rig_loop, &rig_is_done);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(c[i].op.err, 0);
		n_found += c[i].is_found;
		for (int k = 0; k < i; k++)
			if (c[i].is_found && c[k].is_found)
				assert_string_not_equal(c[i].offer.dispatch_id, c[k].offer.dispatch_id);
	}
	assert_int_equal(n_found, 3);
	for (int i = 0; i < 8; i++)
		lease_offer_release(&c[i].offer);
}

static const char *const npu_is_silent[] = {"npu", NULL};

static void a_silent_accelerator_records_no_job(void **state)
{
	struct claim_dispatch c;
	struct list_leases l = {0};

	(void)state;
	queue_pull(1, HEAD_A, 0);
	c = claim_with(&(struct claim_dispatch){.is_silent = true}, "npu-1", "c1", 0);
	assert_true(c.is_found);
	assert_int_equal(c.offer.job_id, 0);
	ASSERT_DISPATCHES(HEAD_A, "npu running*");
	ASK_OK(store_list_leases, &l);
	assert_int_equal(l.list[0].job_id, 0);
	list_leases_release(&l);
	assert_int_equal(finish_with(&c.offer, "success", NULL, 0, npu_is_silent, SECOND), REPORT_IGNORED_LEVEL);
	ASSERT_DISPATCHES(HEAD_A, "npu done*");
	ASSERT_LEASES("npu-1 done");
	lease_offer_release(&c.offer);
}

static void a_job_ends_though_its_accelerator_fell_silent(void **state)
{
	struct lease_offer o;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	o = take("npu-1", "c1", 0);
	assert_int_equal(finish_with(&o, "success", NULL, 0, npu_is_silent, SECOND), REPORT_IGNORED_LEVEL);
	ASSERT_DISPATCHES(HEAD_A, "npu done*");
	assert_job(o.job_id, "neutral: it ended when its accelerator was at L1");
	lease_offer_release(&o);
}

/* ---- heartbeats, and how a lease ends ---- */

static void a_heartbeat_extends_the_lease(void **state)
{
	struct lease_offer o;
	struct expire_leases e;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	o = take("npu-1", "c1", 0);
	ASSERT_RENEWED(&o, "npu-1", 59 * SECOND, LEASE_ACTIVE, "");
	e = expire(118 * SECOND);
	assert_int_equal(e.n_expired, 0);
	assert_int_equal(e.next_due_ms, T0 + 119 * SECOND);
	ASSERT_RENEWED(&o, "npu-2", 60 * SECOND, LEASE_LOST, "no such lease");
	o.lease_id[0] = '!';
	ASSERT_RENEWED(&o, "npu-1", 60 * SECOND, LEASE_LOST, "no such lease");
	lease_offer_release(&o);
}

static void a_report_ends_the_lease(void **state)
{
	struct test_result tests[] = {
	    {.suite = (char *)"model", .name = (char *)"llama3", .status = TEST_PASS, .duration_ms = -1}};
	struct lease_offer o;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	o = take("npu-1", "c1", 0);
	assert_int_equal(finish_with(&o, "success", tests, 1, NULL, SECOND), REPORT_RECORDED);
	ASSERT_LEASES("npu-1 done");
	ASSERT_DISPATCHES(HEAD_A, "npu done*");
	ASSERT_CELLS(HEAD_A, "npu model/llama3 PASS");
	ASSERT_RENEWED(&o, "npu-1", MINUTE, LEASE_LOST, "reported already");
	assert_int_equal(give_back(&o, "npu-1", "late", MINUTE), 0);
	ASSERT_DISPATCHES(HEAD_A, "npu done*");
	assert_int_equal(expire(HOUR).n_expired, 0);
	assert_int_equal(finish_with(&o, "success", tests, 1, NULL, HOUR), REPORT_UNCHANGED);
	lease_offer_release(&o);
}

/* The next machine's job replaces the last one's; the red cell of another runner keeps its attribution. */
static void the_next_claim_keeps_the_attribution_of_other_cells(void **state)
{
	struct plan_want two[] = {PULL_WANT("npu", "farm"), GITHUB_WANT("npu", "Ascend/pytorch")};
	struct add_known k = {.pattern = "CI/*", .url = "https://example.org/1", .now_ms = T0};
	struct job_report j = {.status = JOB_COMPLETED,
	    .conclusion = (char *)"failure",
	    .workflow = (char *)"CI",
	    .name = (char *)"all",
	    .run_id = (char *)"100",
	    .run_attempt = 1};
	struct report_job op = {.accelerator = "npu", .report = &j, .now_ms = T0 + SECOND};
	struct lease_offer first, second;
	struct change_view *v;
	char *id;

	(void)state;
	DO_OK(store_add_known, &k);
	rig_apply(&(struct rig_plan){.kind = PLAN_START, .head = HEAD_A, .event_ms = T0, .wants = two, .n_wants = 2});
	id = rig_dispatch_id(HEAD_A, "npu");
	op.dispatch_id = id;
	DO_OK(store_report_job, &op);
	assert_int_equal(op.outcome, REPORT_RECORDED);
	free(id);
	first = take("npu-1", "claim-1", 2 * SECOND);
	assert_int_equal(give_back(&first, "npu-1", "drained", 3 * SECOND), 0);
	second = take("npu-2", "claim-2", 4 * SECOND);
	v = rig_view_of(0, HEAD_A);
	for (size_t i = 0; i < v->n_verdicts; i++)
		if (strcmp(v->verdicts[i].suite, "CI") == 0)
			assert_int_equal(v->verdicts[i].attribution, ATTRIBUTION_KNOWN);
	assert_in_range(v->n_verdicts, 1, 2);
	change_view_free(v);
	lease_offer_release(&first);
	lease_offer_release(&second);
}

static void a_returned_dispatch_is_requeued(void **state)
{
	struct lease_offer first, second;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	first = take("npu-1", "c1", 0);
	assert_int_equal(give_back(&first, "npu-2", "not mine", SECOND), ERR_NOT_FOUND);
	rig_topics = 0;
	assert_int_equal(give_back(&first, "npu-1", "drained", SECOND), 0);
	assert_true(rig_topics & STORE_QUEUE);
	assert_false(rig_topics & STORE_LEASES);
	assert_int_equal(give_back(&first, "npu-1", "drained", 2 * SECOND), 0);
	ASSERT_DISPATCHES(HEAD_A, "npu queued*");
	ASSERT_CELLS(HEAD_A, "");
	assert_job(first.job_id, "cancelled: handed back by npu-1: drained");
	ASSERT_RENEWED(&first, "npu-1", 3 * SECOND, LEASE_LOST, "handed back");
	second = take("npu-2", "c1", 4 * SECOND);
	assert_string_equal(second.dispatch_id, first.dispatch_id);
	assert_int_equal(second.attempt, 2);
	assert_int_not_equal(second.job_id, first.job_id);
	ASSERT_LEASES("npu-2 active, npu-1 returned");
	/* reports of the first machine are ignored */
	assert_int_equal(give_back(&first, "npu-1", "drained", 5 * SECOND), 0);
	ASSERT_DISPATCHES(HEAD_A, "npu running*");
	lease_offer_release(&first);
	lease_offer_release(&second);
}

/* Its daemon returns a lease whose machine has left. The machine asked another daemon meanwhile, which answered with the lease. */
static void an_unclaimed_lease_is_returned_unless_its_machine_has_it(void **state)
{
	struct lease_offer o;
	struct return_lease r = {.accelerator = "npu", .machine = "npu-1", .reason = "left", .now_ms = T0 + SECOND};

	(void)state;
	queue_pull(1, HEAD_A, 0);
	for (int is_asked_again = 1; is_asked_again >= 0; is_asked_again--) {
		o = take("npu-1", "c1", 0);
		r.lease_id = o.lease_id;
		r.granted_until_ms = T0 + LEASE_MS;
		if (is_asked_again) {
			struct lease_offer same = take("npu-1", "c1", 0);

			assert_string_equal(same.lease_id, o.lease_id);
			lease_offer_release(&same);
		}
		DO_OK(store_return_lease, &r);
		ASSERT_LEASES(is_asked_again ? "npu-1 active" : "npu-1 returned, npu-1 returned");
		if (is_asked_again)
			assert_int_equal(give_back(&o, "npu-1", "drained", SECOND), 0);
		lease_offer_release(&o);
	}
}

static void a_dispatch_that_is_always_returned_fails(void **state)
{
	struct lease_offer o;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	for (int i = 0; i < 100; i++) {
		o = take("npu-1", "c1", i);
		assert_int_equal(o.attempt, i + 1);
		assert_int_equal(give_back(&o, "npu-1", NULL, i), 0);
		lease_offer_release(&o);
	}
	ASSERT_DISPATCHES(HEAD_A, "npu failed*");
	ASSERT_CELLS(HEAD_A, "npu farm/tests MISS");
	assert_false(claim("npu-1", "c1", MINUTE).is_found);
}

static void assert_cancelled(const struct lease_offer *o, const char *reason, const char *job)
{
	assert_true(rig_topics & STORE_LEASES);
	assert_true(rig_topics & STORE_QUEUE);
	ASSERT_RENEWED(o, "npu-1", 10 * HOUR, LEASE_CANCELLED, reason);
	assert_job(o->job_id, job);
	ASSERT_LEASES("npu-1 cancelled");
}

static void a_newer_push_cancels_the_lease(void **state)
{
	struct lease_offer o;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	o = take("npu-1", "c1", SECOND);
	rig_topics = 0;
	queue_pull(1, HEAD_B, 2 * SECOND);
	assert_cancelled(&o, "superseded by a newer push", "cancelled: superseded by a newer push");
	/* its last report is stored and not shown */
	assert_int_equal(finish(&o, "cancelled", 3 * SECOND), REPORT_RECORDED);
	assert_job(o.job_id, "cancelled: superseded by a newer push");
	ASSERT_DISPATCHES(HEAD_A, "npu superseded*");
	lease_offer_release(&o);
}

static void a_closed_pull_request_cancels_the_lease(void **state)
{
	struct lease_offer o;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	o = take("npu-1", "c1", SECOND);
	rig_topics = 0;
	rig_close_pull(1, HEAD_A, 5);
	assert_cancelled(&o, "closed, or no longer wanted", "cancelled: closed, or no longer wanted");
	lease_offer_release(&o);
}

static void a_retest_cancels_the_lease_and_requeues(void **state)
{
	struct plan_want wants[] = {PULL_WANT("npu", "farm")};
	struct lease_offer first, second;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	first = take("npu-1", "c1", SECOND);
	rig_topics = 0;
	rig_apply(&(struct rig_plan){.kind = PLAN_START,
	    .head = HEAD_A,
	    .event_ms = T0 + 5 * SECOND,
	    .starts_round = true,
	    .action = "edited",
	    .sent_action = "synchronize",
	    .wants = wants,
	    .n_wants = 1});
	assert_cancelled(&first, "replaced by another round", "cancelled: replaced by another round");
	second = take("npu-1", "c2", 6 * SECOND);
	assert_int_equal(second.attempt, 1);
	assert_string_not_equal(second.dispatch_id, first.dispatch_id);
	assert_string_equal(second.action, "synchronize");
	/* the success of the first round arrives too late to be shown */
	finish(&first, "success", 7 * SECOND);
	ASSERT_CELLS(HEAD_A, "");
	ASSERT_DISPATCHES(HEAD_A, "npu running*, npu superseded");
	lease_offer_release(&first);
	lease_offer_release(&second);
}

static void expire_dispatches(int64_t at)
{
	struct expire_dispatches e = {.now_ms = T0 + at};

	DO_OK(store_expire_dispatches, &e);
}

static void a_deadline_cancels_the_lease(void **state)
{
	struct lease_offer o;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	o = take("npu-1", "c1", SECOND);
	expire_dispatches(5 * HOUR); /* `start` ended with the claim */
	ASSERT_DISPATCHES(HEAD_A, "npu running*");
	rig_topics = 0;
	expire_dispatches(7 * HOUR);
	assert_cancelled(&o, "did not finish within 6h", "timed_out: did not finish within 6h");
	ASSERT_CELLS(HEAD_A, "npu farm/tests MISS");
	assert_cell_says(HEAD_A, "did not finish within 6h");
	/* it was cancelled and reports that: that is not a result, and the reason stays */
	assert_int_equal(finish(&o, "cancelled", 7 * HOUR), REPORT_RECORDED);
	ASSERT_DISPATCHES(HEAD_A, "npu expired*");
	ASSERT_CELLS(HEAD_A, "npu farm/tests MISS late");
	assert_cell_says(HEAD_A, "did not finish within 6h");
	lease_offer_release(&o);
}

static void a_result_after_the_deadline_counts(void **state)
{
	struct lease_offer o;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	o = take("npu-1", "c1", SECOND);
	expire_dispatches(7 * HOUR);
	assert_int_equal(finish(&o, "success", 8 * HOUR), REPORT_RECORDED);
	ASSERT_DISPATCHES(HEAD_A, "npu done*");
	ASSERT_CELLS(HEAD_A, "npu farm/tests PASS late");
	assert_job(o.job_id, "success");
	lease_offer_release(&o);
}

/* A waiting dispatch has a deadline: without a machine, `start` passes, and no acknowledgement is expected. */
static void a_dispatch_expires_when_no_machine_claims_it(void **state)
{
	(void)state;
	queue_pull(1, HEAD_A, 0);
	expire_dispatches(HOUR);
	ASSERT_DISPATCHES(HEAD_A, "npu queued*");
	expire_dispatches(2 * HOUR);
	ASSERT_DISPATCHES(HEAD_A, "npu expired*");
	ASSERT_CELLS(HEAD_A, "npu dispatch/farm MISS");
	assert_cell_says(HEAD_A, "did not start within 2h");
	assert_false(claim("npu-1", "c1", 3 * HOUR).is_found);
}

/* A vendor's own job under the same dispatch is not the machine's. */
static void a_job_of_another_reporter_leaves_the_lease_alone(void **state)
{
	struct lease_offer o, as_other;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	o = take("npu-1", "c1", 0);
	as_other = o;
	as_other.run_id = (char *)"4711";
	as_other.runner = (char *)"lint";
	assert_int_equal(finish(&as_other, "success", SECOND), REPORT_RECORDED);
	ASSERT_LEASES("npu-1 active");
	ASSERT_DISPATCHES(HEAD_A, "npu running*");
	finish(&o, "success", 2 * SECOND);
	ASSERT_LEASES("npu-1 done");
	ASSERT_DISPATCHES(HEAD_A, "npu done*");
	lease_offer_release(&o);
}

static enum report_outcome finish_as(const char *machine, const struct lease_offer *o, const char *name, int64_t at)
{
	struct job_report j = {
	    .status = JOB_COMPLETED,
	    .conclusion = (char *)"success",
	    .workflow = o->runner,
	    .name = (char *)name,
	    .run_id = o->run_id,
	    .run_attempt = o->attempt,
	};
	struct report_job op = {
	    .dispatch_id = o->dispatch_id,
	    .accelerator = "npu",
	    .machine = machine,
	    .report = &j,
	    .now_ms = T0 + at,
	};

	DO_OK(store_report_job, &op);
	return op.outcome;
}

/* Finding 6. */
static void a_machine_reports_its_own_leases_alone(void **state)
{
	struct lease_offer first, second, never;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	first = take("npu-1", "c1", 0);
	assert_int_equal(finish_as("npu-2", &first, "tests", 1), REPORT_NOT_ITS_LEASE);
	assert_int_equal(finish_as("npu-1", &first, "lint", 1), REPORT_NOT_ITS_LEASE);
	assert_int_equal(finish_as("", &first, "tests", 1), REPORT_NOT_ITS_LEASE);
	ASSERT_LEASES("npu-1 active");
	assert_job(first.job_id, "in_progress");
	expire(LEASE_MS);
	second = take("npu-2", "c2", LEASE_MS);
	assert_int_equal(finish_as("npu-1", &second, "tests", LEASE_MS), REPORT_NOT_ITS_LEASE);
	assert_int_equal(finish_as("npu-2", &first, "tests", LEASE_MS), REPORT_NOT_ITS_LEASE);
	never = second;
	never.attempt = 3;
	assert_int_equal(finish_as("npu-2", &never, "tests", LEASE_MS), REPORT_NOT_ITS_LEASE);
	assert_int_equal(finish_as("npu-1", &first, "tests", LEASE_MS), REPORT_RECORDED);
	ASSERT_LEASES("npu-2 active, npu-1 expired");
	assert_int_equal(finish_as("npu-2", &second, "tests", LEASE_MS), REPORT_RECORDED);
	ASSERT_LEASES("npu-2 done, npu-1 expired");
	lease_offer_release(&first);
	lease_offer_release(&second);
}

/* ---- crashes ---- */

/* The server dies between the commit and the answer: the machine claims again and has lost nothing. */
static void a_claim_survives_a_kill(void **state)
{
	struct claim_dispatch again;
	struct list_leases l = {.only_active = true};
	int64_t before = clock_wall_ms();

	(void)state;
	queue_pull(1, HEAD_A, 0);
	rig_close();
	for (int round = 0; round < 2; round++) {
		int status;
		pid_t child = fork();

		if (child == 0) {
			rig_loop = loop_new();
			rig_open();
			if (claim("npu-1", "c1", round).is_found)
				raise(SIGKILL);
			_exit(1);
		}
		waitpid(child, &status, 0);
		assert_true(WIFSIGNALED(status));
	}
	rig_open();
	ASK_OK(store_list_leases, &l);
	assert_int_equal(l.n, 1);
	assert_true(l.list[0].until_ms >= before + LEASE_MS);
	list_leases_release(&l);
	again = claim("npu-1", "c1", 9);
	assert_true(again.is_found && again.was_known);
	assert_int_equal(again.offer.attempt, 1);
	lease_offer_release(&again.offer);
}

/* ---- lists and figures ---- */

static void leases_are_listed(void **state)
{
	struct list_leases l = {.limit = 1}, active = {.only_active = true, .accelerator = "npu"},
			   none = {.accelerator = "xpu"};
	struct lease_offer a, b;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	queue_pull(2, HEAD_B, 0);
	queue_pull(3, HEAD_C, 0);
	a = take("npu-1", "c1", SECOND);
	b = take("npu-2", "c1", 2 * SECOND);
	finish(&b, "success", 3 * SECOND);
	ASK_OK(store_list_leases, &l);
	assert_int_equal(l.n, 1);
	assert_int_equal(l.n_queued, 1);
	assert_string_equal(l.list[0].machine, "npu-2");
	assert_string_equal(l.list[0].state, "done");
	assert_int_equal(l.list[0].granted_ms, T0 + 2 * SECOND);
	assert_int_equal(l.list[0].ended_ms, T0 + 3 * SECOND);
	assert_string_equal(l.list[0].head_sha, b.head_sha);
	assert_int_equal(l.list[0].number, b.number);
	assert_int_equal(l.list[0].job_id, b.job_id);
	list_leases_release(&l);
	ASK_OK(store_list_leases, &active);
	assert_int_equal(active.n, 1);
	assert_string_equal(active.list[0].id, a.lease_id);
	assert_int_equal(active.n_queued, 1);
	list_leases_release(&active);
	ASK_OK(store_list_leases, &none);
	assert_int_equal(none.n + (size_t)none.n_queued, 0);
	list_leases_release(&none);
	lease_offer_release(&a);
	lease_offer_release(&b);
}

static void leases_are_deleted_with_their_change(void **state)
{
	struct apply_retention r = {.deliveries_before_ms = T0 + 900 * DAY, .results_before_ms = T0 + 900 * DAY};
	struct get_totals t = {0};
	struct lease_offer o;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	o = take("npu-1", "c1", 0);
	finish(&o, "success", SECOND);
	rig_close_pull(1, HEAD_A, 5);
	ASK_OK(store_get_totals, &t);
	assert_int_equal(t.n_leases_done, 1);
	do {
		free(rig_send(T0 + 800 * DAY));
		struct claim_outbox c = rig_claim(COMMENTS, T0 + 800 * DAY);

		for (size_t i = 0; i < c.n; i++)
			rig_done(&c.rows[i], OUTBOX_OK, 0);
		claim_outbox_release(&c);
		DO_OK(store_apply_retention, &r);
	} while (r.has_more);
	ASSERT_LEASES("");
	ASK_OK(store_get_totals, &t);
	assert_int_equal(t.n_leases_done, 0);
	assert_int_equal(t.n_jobs, 0);
	lease_offer_release(&o);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(a_claim_returns_a_complete_offer),
	    TEST(the_newest_change_goes_first),
	    TEST(a_push_is_offered_with_its_ref),
	    TEST(other_accelerators_and_runners_get_no_work),
	    TEST(only_current_dispatches_are_offered),
	    TEST(the_same_claim_gets_the_same_lease),
	    TEST(max_parallel_is_kept),
	    TEST(the_newest_change_of_several_runners_goes_first),
	    TEST(two_machines_never_get_the_same_dispatch),
	    TEST(a_silent_accelerator_records_no_job),
	    TEST(a_job_ends_though_its_accelerator_fell_silent),
	    TEST(a_heartbeat_extends_the_lease),
	    TEST(a_report_ends_the_lease),
	    TEST(the_next_claim_keeps_the_attribution_of_other_cells),
	    TEST(a_returned_dispatch_is_requeued),
	    TEST(an_unclaimed_lease_is_returned_unless_its_machine_has_it),
	    TEST(a_dispatch_that_is_always_returned_fails),
	    TEST(a_newer_push_cancels_the_lease),
	    TEST(a_closed_pull_request_cancels_the_lease),
	    TEST(a_retest_cancels_the_lease_and_requeues),
	    TEST(a_deadline_cancels_the_lease),
	    TEST(a_result_after_the_deadline_counts),
	    TEST(a_dispatch_expires_when_no_machine_claims_it),
	    TEST(a_job_of_another_reporter_leaves_the_lease_alone),
	    TEST(a_machine_reports_its_own_leases_alone),
	    TEST(a_claim_survives_a_kill),
	    TEST(leases_are_listed),
	    TEST(leases_are_deleted_with_their_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
