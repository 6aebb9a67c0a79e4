/* Machines that fall silent, and their late reports. At the end a long walk of random steps, after each of which the
 * invariants must hold. */
#include "db/db.h"
#include "lease_rig.h"

#define HEAD_D "dddddddddddddddddddddddddddddddddddddddd"

/* ---- running out ---- */

static void a_lease_that_expires_requeues_its_dispatch(void **state)
{
	struct lease_offer first, second;
	struct expire_leases e;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	first = take("npu-1", "c1", 0);
	e = expire(59 * SECOND);
	assert_int_equal(e.n_expired, 0);
	assert_int_equal(e.next_due_ms, T0 + MINUTE);
	rig_topics = 0;
	e = expire(MINUTE);
	assert_int_equal(e.n_expired, 1);
	assert_int_equal(e.next_due_ms, 0);
	assert_true(rig_topics & STORE_QUEUE);
	assert_true(rig_topics & STORE_LEASES);
	ASSERT_DISPATCHES(HEAD_A, "npu queued*");
	ASSERT_LEASES("npu-1 expired");
	ASSERT_CELLS(HEAD_A, "");
	assert_job(first.job_id, "stale: npu-1 sent no heartbeat for 60s");
	second = take("npu-2", "c1", MINUTE);
	assert_int_equal(second.attempt, 2);
	ASSERT_RENEWED(&first, "npu-1", MINUTE, LEASE_LOST, "went on without");
	assert_job(second.job_id, "in_progress");
	finish(&second, "success", 2 * MINUTE);
	ASSERT_RENEWED(&first, "npu-1", 3 * MINUTE, LEASE_LOST, "went on without");
	ASSERT_CELLS(HEAD_A, "npu farm/tests PASS");
	lease_offer_release(&first);
	lease_offer_release(&second);
}

static void a_late_heartbeat_revives_the_lease(void **state)
{
	struct lease_offer o;
	struct job_detail *j;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	o = take("npu-1", "c1", 0);
	expire(2 * MINUTE);
	ASSERT_RENEWED(&o, "npu-1", 3 * MINUTE, LEASE_ACTIVE, "");
	ASSERT_DISPATCHES(HEAD_A, "npu running*");
	ASSERT_LEASES("npu-1 active");
	assert_job(o.job_id, "in_progress");
	j = job_of(o.job_id);
	assert_int_equal(j->job.completed_ms, 0);
	job_detail_free(j);
	assert_false(claim("npu-2", "c1", 3 * MINUTE).is_found);
	assert_int_equal(expire(3 * MINUTE).next_due_ms, T0 + 4 * MINUTE);
	finish(&o, "failure", 4 * MINUTE);
	ASSERT_DISPATCHES(HEAD_A, "npu done*");
	ASSERT_CELLS(HEAD_A, "npu farm/tests FAIL");
	lease_offer_release(&o);
}

/* A daemon that was cut off from the database writes it minutes after the machine went on at another one. */
static void an_old_heartbeat_never_brings_the_end_nearer(void **state)
{
	struct lease_offer o, again;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	o = take("npu-1", "c1", 0);
	ASSERT_RENEWED(&o, "npu-1", 2 * MINUTE, LEASE_ACTIVE, "");
	ASSERT_RENEWED(&o, "npu-1", 30 * SECOND, LEASE_ACTIVE, "");
	assert_true(expire(MINUTE).next_due_ms >= T0 + 3 * MINUTE);
	again = take("npu-1", "c1", 40 * SECOND); /* the claim that it has is a heartbeat, too */
	assert_true(expire(MINUTE).next_due_ms >= T0 + 3 * MINUTE);
	assert_int_equal(expire(3 * MINUTE + SECOND).n_expired, 1);
	ASSERT_RENEWED(&o, "npu-1", 90 * SECOND, LEASE_LOST, "went on without");
	ASSERT_RENEWED(&o, "npu-1", 3 * MINUTE, LEASE_ACTIVE, "");
	lease_offer_release(&o);
	lease_offer_release(&again);
}

/* It may continue only if no other lease loses its place. */
static void a_late_heartbeat_does_not_exceed_max_parallel(void **state)
{
	static const struct claim_choice one = {"farm", 1};
	const struct claim_dispatch as = {.choices = &one, .n_choices = 1};
	struct claim_dispatch old, new;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	old = claim_with(&as, "npu-1", "c1", 0);
	expire(2 * MINUTE);
	queue_pull(2, HEAD_B, 2 * MINUTE);
	new = claim_with(&as, "npu-2", "c1", 2 * MINUTE); /* the newer change took its place */
	assert_string_equal(new.offer.head_sha, HEAD_B);
	ASSERT_RENEWED(&old.offer, "npu-1", 2 * MINUTE, LEASE_LOST, "");
	ASSERT_DISPATCHES(HEAD_A, "npu queued*");
	finish(&new.offer, "success", 3 * MINUTE);
	ASSERT_RENEWED(&old.offer, "npu-1", 3 * MINUTE, LEASE_ACTIVE, "");
	lease_offer_release(&old.offer);
	lease_offer_release(&new.offer);
}

/* The machine gave up waiting for the answer and got other work under the same claim_id. */
static void a_claim_id_identifies_one_lease(void **state)
{
	struct lease_offer old, new;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	old = take("npu-1", "c1", 0);
	expire(2 * MINUTE);
	queue_pull(2, HEAD_B, 2 * MINUTE);
	new = take("npu-1", "c1", 2 * MINUTE);
	assert_string_equal(new.head_sha, HEAD_B);
	ASSERT_RENEWED(&old, "npu-1", 2 * MINUTE, LEASE_LOST, "");
	lease_offer_release(&old);
	lease_offer_release(&new);
}

static void a_superseded_lease_is_not_revived(void **state)
{
	struct lease_offer o;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	o = take("npu-1", "c1", 0);
	expire(2 * MINUTE);
	queue_pull(1, HEAD_B, 3 * MINUTE);
	ASSERT_RENEWED(&o, "npu-1", 3 * MINUTE, LEASE_LOST, "");
	ASSERT_DISPATCHES(HEAD_A, "npu superseded*");
	lease_offer_release(&o);
}

/* Four machines one after the other; returns the last offer, whose lease has expired. */
static struct lease_offer wear_out(bool is_silent)
{
	struct lease_offer o = {0};

	queue_pull(1, HEAD_A, 0);
	for (int i = 0; i < 1 + LEASE_HANDOVERS_MAX; i++) {
		char machine[16];

		lease_offer_release(&o);
		snprintf(machine, sizeof(machine), "npu-%d", i + 1);
		o = claim_with(&(struct claim_dispatch){.is_silent = is_silent}, machine, "c1", i * 2 * MINUTE).offer;
		assert_int_equal(o.attempt, i + 1);
		assert_int_equal(expire((i * 2 + 1) * MINUTE).n_expired, 1);
	}
	return o;
}

static void a_dispatch_fails_after_three_handovers(void **state)
{
	static const char why[] = "taken by a machine 4 times and never reported back; the last was npu-4";
	struct lease_offer o;
	struct claim_outbox comments;

	(void)state;
	o = wear_out(false);
	ASSERT_DISPATCHES(HEAD_A, "npu failed*");
	ASSERT_CELLS(HEAD_A, "npu farm/tests MISS");
	assert_cell_says(HEAD_A, why);
	assert_false(claim("npu-5", "c1", HOUR).is_found);
	ASSERT_RENEWED(&o, "npu-4", HOUR, LEASE_LOST, "");
	comments = rig_claim(COMMENTS, T0 + HOUR);
	assert_int_equal(comments.n, 1);
	claim_outbox_release(&comments);
	/* no report of the machine yet; then its late report counts */
	assert_int_equal(finish(&o, "success", HOUR), REPORT_RECORDED);
	ASSERT_DISPATCHES(HEAD_A, "npu done*");
	ASSERT_CELLS(HEAD_A, "npu farm/tests PASS late");
	assert_job(o.job_id, "success");
	lease_offer_release(&o);
}

static void a_return_does_not_count_as_a_handover(void **state)
{
	struct lease_offer o;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	for (int i = 0; i < 6; i++) {
		o = take("npu-1", "c1", i * 2 * MINUTE);
		if (i % 2)
			assert_int_equal(expire((i * 2 + 1) * MINUTE).n_expired, 1);
		else
			assert_int_equal(give_back(&o, "npu-1", "drained", i * 2 * MINUTE), 0);
		lease_offer_release(&o);
	}
	ASSERT_DISPATCHES(HEAD_A, "npu queued*"); /* three expired, three came back */
}

static void a_revived_lease_does_not_count_as_expired(void **state)
{
	struct lease_offer o;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	o = take("npu-1", "c1", 0);
	for (int i = 1; i < 8; i++) {
		assert_int_equal(expire(i * 2 * MINUTE).n_expired, 1);
		ASSERT_RENEWED(&o, "npu-1", i * 2 * MINUTE, LEASE_ACTIVE, "");
	}
	ASSERT_LEASES("npu-1 active");
	lease_offer_release(&o);
}

/* ---- late reports ---- */

static void a_late_report_removes_the_dispatch_from_the_queue(void **state)
{
	struct lease_offer o;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	o = take("npu-1", "c1", 0);
	expire(2 * MINUTE);
	assert_int_equal(finish(&o, "success", 3 * MINUTE), REPORT_RECORDED);
	ASSERT_DISPATCHES(HEAD_A, "npu done*");
	ASSERT_CELLS(HEAD_A, "npu farm/tests PASS");
	assert_int_equal(n_queued(), 0);
	assert_job(o.job_id, "success");
	assert_int_equal(finish(&o, "success", 4 * MINUTE), REPORT_UNCHANGED);
	assert_int_equal(finish(&o, "failure", 4 * MINUTE), REPORT_CONFLICT);
	ASSERT_LEASES("npu-1 expired");
	lease_offer_release(&o);
}

static void an_overtaken_report_is_not_shown(void **state)
{
	struct lease_offer first, second;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	first = take("npu-1", "c1", 0);
	expire(2 * MINUTE);
	second = take("npu-2", "c1", 2 * MINUTE);
	assert_int_equal(finish(&first, "failure", 3 * MINUTE), REPORT_RECORDED);
	assert_job(first.job_id, "failure");
	ASSERT_CELLS(HEAD_A, "");
	ASSERT_DISPATCHES(HEAD_A, "npu running*");
	ASSERT_LEASES("npu-2 active, npu-1 expired");
	finish(&second, "success", 4 * MINUTE);
	ASSERT_CELLS(HEAD_A, "npu farm/tests PASS");
	lease_offer_release(&first);
	lease_offer_release(&second);
}

/* Two machines fell silent: the report of the first is better than nothing, until the second reports. */
static void an_older_report_is_shown_until_a_newer_arrives(void **state)
{
	struct lease_offer first, second;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	first = take("npu-1", "c1", 0);
	expire(2 * MINUTE);
	second = take("npu-2", "c1", 2 * MINUTE);
	expire(4 * MINUTE);
	finish(&first, "failure", 5 * MINUTE);
	ASSERT_DISPATCHES(HEAD_A, "npu done*");
	ASSERT_CELLS(HEAD_A, "npu farm/tests FAIL");
	finish(&second, "success", 6 * MINUTE);
	ASSERT_CELLS(HEAD_A, "npu farm/tests PASS");
	lease_offer_release(&first);
	lease_offer_release(&second);
}

/* The same after the last of them: any machine's result is better than a MISS. */
static void an_older_report_replaces_a_miss(void **state)
{
	struct lease_offer first, last;

	(void)state;
	last = wear_out(false);
	first = last;
	first.attempt = 2;
	assert_int_equal(finish(&first, "success", HOUR), REPORT_RECORDED);
	ASSERT_DISPATCHES(HEAD_A, "npu done*");
	ASSERT_CELLS(HEAD_A, "npu farm/tests PASS late");
	/* an even older one is overtaken, and the newest overtakes it */
	first.attempt = 1;
	assert_int_equal(finish(&first, "failure", HOUR), REPORT_RECORDED);
	ASSERT_CELLS(HEAD_A, "npu farm/tests PASS late");
	assert_int_equal(finish(&last, "failure", HOUR), REPORT_RECORDED);
	ASSERT_CELLS(HEAD_A, "npu farm/tests FAIL late");
	lease_offer_release(&last);
}

static void a_cancelled_report_is_not_a_result(void **state)
{
	struct lease_offer o;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	o = take("npu-1", "c1", 0);
	expire(2 * MINUTE);
	assert_int_equal(finish(&o, "cancelled", 3 * MINUTE), REPORT_RECORDED);
	ASSERT_DISPATCHES(HEAD_A, "npu queued*");
	ASSERT_CELLS(HEAD_A, "");
	assert_job(o.job_id, "cancelled: npu-1 sent no heartbeat for 60s");
	/* it has reported that it stopped, so there is nothing to revive */
	ASSERT_RENEWED(&o, "npu-1", 3 * MINUTE, LEASE_LOST, "");
	lease_offer_release(&o);
}

static const char *const npu_is_silent[] = {"npu", NULL};

static void a_silent_accelerator_may_report_late_too(void **state)
{
	const struct claim_dispatch as = {.is_silent = true};
	struct lease_offer first, second;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	first = claim_with(&as, "npu-1", "c1", 0).offer;
	expire(2 * MINUTE);
	finish_with(&first, "cancelled", NULL, 0, npu_is_silent, 2 * MINUTE);
	ASSERT_DISPATCHES(HEAD_A, "npu queued*");
	second = claim_with(&as, "npu-2", "c1", 2 * MINUTE).offer;
	finish_with(&first, "success", NULL, 0, npu_is_silent, 3 * MINUTE);
	ASSERT_DISPATCHES(HEAD_A, "npu running*");
	expire(4 * MINUTE);
	finish_with(&first, "success", NULL, 0, npu_is_silent, 4 * MINUTE);
	ASSERT_DISPATCHES(HEAD_A, "npu done*");
	lease_offer_release(&first);
	lease_offer_release(&second);
}

static void a_silent_accelerator_reaches_the_handover_limit_too(void **state)
{
	struct lease_offer o;

	(void)state;
	o = wear_out(true);
	ASSERT_DISPATCHES(HEAD_A, "npu failed*");
	assert_int_equal(o.job_id, 0);
	lease_offer_release(&o);
}

/* ---- clocks ---- */

static void expire_dispatches(int64_t at)
{
	struct expire_dispatches e = {.now_ms = T0 + at};

	DO_OK(store_expire_dispatches, &e);
}

static void a_requeued_dispatch_has_a_new_start_deadline(void **state)
{
	struct lease_offer o;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	o = take("npu-1", "c1", 0);
	ASSERT_RENEWED(&o, "npu-1", 3 * HOUR, LEASE_ACTIVE, "");
	expire(3 * HOUR + MINUTE);
	expire_dispatches(4 * HOUR); /* past `start` of the first wait */
	ASSERT_DISPATCHES(HEAD_A, "npu queued*");
	expire_dispatches(5 * HOUR + MINUTE);
	ASSERT_DISPATCHES(HEAD_A, "npu expired*");
	assert_cell_says(HEAD_A, "did not start within 2h");
	lease_offer_release(&o);
}

static void the_finish_deadline_spans_all_leases(void **state)
{
	struct lease_offer o;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	o = take("npu-1", "c1", 0);
	ASSERT_RENEWED(&o, "npu-1", 5 * HOUR, LEASE_ACTIVE, "");
	expire(5 * HOUR + MINUTE);
	lease_offer_release(&o);
	o = take("npu-2", "c1", 5 * HOUR + MINUTE);
	expire_dispatches(6 * HOUR);
	ASSERT_RENEWED(&o, "npu-2", 6 * HOUR, LEASE_CANCELLED, "did not finish within 6h");
	lease_offer_release(&o);
}

static void a_clock_jump_ends_no_lease(void **state)
{
	struct shift_clock shift = {.delta_ms = 5 * HOUR, .now_ms = T0 + 5 * HOUR};
	struct lease_offer o;
	struct expire_leases e;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	o = take("npu-1", "c1", 0);
	rig_topics = 0;
	DO_OK(store_shift_clock, &shift);
	assert_true(rig_topics & STORE_LEASES); /* its timer has to be set again */
	e = expire(5 * HOUR + 59 * SECOND);
	assert_int_equal(e.n_expired, 0);
	assert_int_equal(e.next_due_ms, T0 + 5 * HOUR + MINUTE);
	assert_int_equal(expire(5 * HOUR + MINUTE).n_expired, 1);
	lease_offer_release(&o);
}

/* The jump is noticed only seconds later, and heartbeats arrive meanwhile. */
static void a_clock_jump_ends_no_lease_that_was_renewed_since(void **state)
{
	static const int64_t jumps[] = {-2 * HOUR, 2 * HOUR};
	struct lease_offer o;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	o = take("npu-1", "c1", 0);
	for (size_t i = 0; i < ARRAY_LEN(jumps); i++) {
		int64_t now = jumps[i] + 3 * SECOND;
		struct shift_clock shift = {.delta_ms = jumps[i], .now_ms = T0 + now};

		ASSERT_RENEWED(&o, "npu-1", now, LEASE_ACTIVE, "");
		DO_OK(store_shift_clock, &shift);
		assert_int_equal(expire(now + MINUTE - SECOND).n_expired, 0);
	}
	assert_int_equal(expire(jumps[1] + 3 * SECOND + MINUTE).n_expired, 1);
	lease_offer_release(&o);
}

/* The late heartbeat is newer than the last one, although the clock says something else. */
static void a_lease_that_expired_before_the_clock_was_put_back_resumes(void **state)
{
	struct shift_clock shift = {.delta_ms = -2 * HOUR, .now_ms = T0 - HOUR};
	struct lease_offer o;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	o = take("npu-1", "c1", 0);
	ASSERT_RENEWED(&o, "npu-1", HOUR - 2 * MINUTE, LEASE_ACTIVE, "");
	assert_int_equal(expire(HOUR - MINUTE).n_expired, 1);
	DO_OK(store_shift_clock, &shift);
	ASSERT_RENEWED(&o, "npu-1", -HOUR - 2 * MINUTE, LEASE_LOST,
	    "the lease expired, and the work went on without this machine");
	ASSERT_RENEWED(&o, "npu-1", -HOUR, LEASE_ACTIVE, "");
	ASSERT_LEASES("npu-1 active");
	lease_offer_release(&o);
}

static void downtime_of_the_server_expires_no_lease(void **state)
{
	int64_t now = clock_wall_ms() - T0;
	struct lease_offer active, over;
	struct expire_leases e;

	(void)state;
	queue_pull(1, HEAD_A, 0);
	queue_pull(2, HEAD_B, 0);
	over = take("npu-1", "c1", now - HOUR);
	expire(now - 10 * MINUTE);
	active = take("npu-2", "c1", now - 10 * MINUTE);
	rig_reopen();
	e = expire(now);
	assert_int_equal(e.n_expired, 0);
	assert_in_range(e.next_due_ms, T0 + now + MINUTE, clock_wall_ms() + MINUTE);
	ASSERT_LEASES("npu-2 active, npu-1 expired");
	lease_offer_release(&active);
	lease_offer_release(&over);
}

/* ---- a long walk ---- */

enum { PULLS = 4, MACHINES = 5, STEPS = 700, OFFERS = 4000 };

static struct walk {
	uint32_t first_seed, seed;
	int64_t at; /* since T0 */
	int heads[PULLS];
	struct lease_offer offers[OFFERS];
	int machines[OFFERS];
	int n_offers;
	struct db *db;
} walk;

static int dice(int n)
{
	walk.seed = walk.seed * 1664525u + 1013904223u;
	return (int)((walk.seed >> 8) % (uint32_t)n);
}

static const char *machine_name(int i)
{
	static char name[16];

	snprintf(name, sizeof(name), "npu-%d", i);
	return name;
}

static void head_name(char out[41], int number, int n)
{
	snprintf(out, 41, "%020u%020u", (unsigned)number, (unsigned)n);
}

static void push_something(void)
{
	int number = dice(PULLS);
	char head[41];

	head_name(head, number, ++walk.heads[number]);
	queue_pull(number + 1, head, walk.at);
}

static void retest_something(void)
{
	struct plan_want wants[] = {PULL_WANT("npu", "farm")};
	int number = dice(PULLS);
	char head[41];

	if (!walk.heads[number])
		return;
	head_name(head, number, walk.heads[number]);
	rig_apply(&(struct rig_plan){.kind = PLAN_START,
	    .number = number + 1,
	    .head = head,
	    .event_ms = T0 + walk.at,
	    .starts_round = true,
	    .action = "edited",
	    .sent_action = "synchronize",
	    .wants = wants,
	    .n_wants = 1});
}

static void claim_something(void)
{
	int machine = dice(MACHINES);
	struct claim_dispatch c = claim(machine_name(machine), dice(2) ? "c1" : "c2", walk.at);

	if (!c.is_found)
		return;
	walk.machines[walk.n_offers] = machine;
	walk.offers[walk.n_offers++] = c.offer;
}

/* Returns one of the newer offers, which may still matter. */
static int some_offer(void)
{
	int n = walk.n_offers < 8 ? walk.n_offers : 8;

	return walk.n_offers - 1 - dice(n);
}

static void report_document(const struct lease_offer *o)
{
	struct test_result t = {.suite = (char *)"model",
	    .name = (char *)"llama3",
	    .status = dice(3) ? TEST_PASS : TEST_FAIL,
	    .duration_ms = -1};
	struct put_report p = {.job_id = o->job_id, .tests = &t, .n_tests = 1, .now_ms = T0 + walk.at};

	DO_OK(store_put_report, &p);
}

static void step(void)
{
	static const char *const conclusions[] = {"success", "failure", "cancelled"};
	int what = dice(32), i;

	walk.at += dice(25) * SECOND;
	if (what < 1)
		push_something();
	else if (what < 2)
		retest_something();
	else if (what < 10 || !walk.n_offers)
		claim_something();
	else if (what < 18)
		expire(walk.at);
	else if (what < 19)
		expire_dispatches(walk.at + dice(20) * MINUTE);
	else {
		i = some_offer();
		if (what < 23)
			renew(&walk.offers[i], machine_name(walk.machines[i]), walk.at);
		else if (what < 26)
			assert_int_equal(
			    give_back(&walk.offers[i], machine_name(walk.machines[i]), "drained", walk.at), 0);
		else if (what < 29)
			report_document(&walk.offers[i]);
		else
			finish(&walk.offers[i], conclusions[dice(3)], walk.at);
	}
}

#define NEVER(sql)                                                                                                     \
	do {                                                                                                           \
		if (db_has(walk.db, sql))                                                                              \
			fail_msg("seed %u, %d:%02d: %s", walk.first_seed, (int)(walk.at / HOUR),                       \
			    (int)(walk.at % HOUR / MINUTE), sql);                                                      \
	} while (0)
#define OF_LEASE " JOIN dispatch x ON x.id = l.dispatch_id"

static void look_at_everything(void)
{
	NEVER("SELECT 1 FROM lease WHERE state = 'active' GROUP BY dispatch_id"
	      " HAVING COUNT(*) > 1");
	NEVER("SELECT 1 FROM lease WHERE state = 'active' GROUP BY accelerator, runner"
	      " HAVING COUNT(*) > MAX(max_parallel)");
	NEVER("SELECT 1 FROM lease GROUP BY dispatch_id HAVING MAX(attempt) <> COUNT(*)");
	/* a dispatch runs if and only if it has a lease */
	NEVER("SELECT 1 FROM lease l" OF_LEASE
	      " WHERE l.state = 'active' AND (x.state <> 'running' OR x.is_current = 0)");
	NEVER("SELECT 1 FROM dispatch x WHERE x.state = 'running' AND NOT EXISTS"
	      " (SELECT 1 FROM lease l WHERE l.dispatch_id = x.id AND l.state = 'active')");
	NEVER("SELECT 1 FROM lease l JOIN job j ON j.id = l.job_id WHERE"
	      " (l.state = 'active') <> (j.status = 'in_progress' AND j.is_current = 1)");
	NEVER("SELECT 1 FROM job WHERE is_current = 1 GROUP BY dispatch_id HAVING COUNT(*) > 1");
	/* no result is shown early, and none ends without a reason */
	NEVER("SELECT 1 FROM dispatch x CROSS JOIN cell v ON v.change_id = x.change_id"
	      " WHERE x.is_current = 1 AND x.state IN ('queued', 'running')");
	NEVER("SELECT 1 FROM dispatch x WHERE x.is_current = 1"
	      " AND x.state IN ('done', 'failed', 'expired') AND NOT EXISTS"
	      " (SELECT 1 FROM cell v WHERE v.change_id = x.change_id)");
	NEVER("SELECT 1 FROM dispatch WHERE state IN ('queued', 'running')"
	      " AND next_due_ms IS NULL");
	NEVER("SELECT 1 FROM counter c WHERE c.name LIKE 'lease.%' AND c.n <>"
	      " (SELECT COUNT(*) FROM lease l WHERE 'lease.' || l.state = c.name)");
	NEVER("SELECT 1 FROM job j WHERE j.n_tests <>"
	      " (SELECT COUNT(*) FROM job_test r WHERE r.job_id = j.id)");
	assert_int_equal(db_status(walk.db), 0);
}

static void take_a_walk(uint32_t seed)
{
	char *path = rig_path();

	walk = (struct walk){.first_seed = seed, .seed = seed};
	assert_int_equal(db_open(path, DB_READER, &walk.db, NULL), 0);
	for (int i = 0; i < STEPS; i++) {
		step();
		look_at_everything();
	}
	/* the walk has passed the relevant steps */
	assert_true(db_int(walk.db, 0, "SELECT COUNT(DISTINCT state) FROM lease") >= 4);
	assert_true(db_has(walk.db, "SELECT 1 FROM lease WHERE attempt > 3"));
	assert_true(
	    db_has(walk.db, "SELECT 1 FROM change c CROSS JOIN cell v ON v.change_id = c.id WHERE v.status = 'PASS'"));
	for (int i = 0; i < walk.n_offers; i++)
		lease_offer_release(&walk.offers[i]);
	db_close(walk.db);
	free(path);
}

static void the_rules_hold_on_a_random_walk(void **state)
{
	(void)state;
	take_a_walk(1);
}

static void the_rules_hold_on_another_random_walk(void **state)
{
	(void)state;
	take_a_walk(20261121);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(a_lease_that_expires_requeues_its_dispatch),
	    TEST(a_late_heartbeat_revives_the_lease),
	    TEST(an_old_heartbeat_never_brings_the_end_nearer),
	    TEST(a_late_heartbeat_does_not_exceed_max_parallel),
	    TEST(a_claim_id_identifies_one_lease),
	    TEST(a_superseded_lease_is_not_revived),
	    TEST(a_dispatch_fails_after_three_handovers),
	    TEST(a_return_does_not_count_as_a_handover),
	    TEST(a_revived_lease_does_not_count_as_expired),
	    TEST(a_late_report_removes_the_dispatch_from_the_queue),
	    TEST(an_overtaken_report_is_not_shown),
	    TEST(an_older_report_is_shown_until_a_newer_arrives),
	    TEST(an_older_report_replaces_a_miss),
	    TEST(a_cancelled_report_is_not_a_result),
	    TEST(a_silent_accelerator_may_report_late_too),
	    TEST(a_silent_accelerator_reaches_the_handover_limit_too),
	    TEST(a_requeued_dispatch_has_a_new_start_deadline),
	    TEST(the_finish_deadline_spans_all_leases),
	    TEST(a_clock_jump_ends_no_lease),
	    TEST(a_clock_jump_ends_no_lease_that_was_renewed_since),
	    TEST(a_lease_that_expired_before_the_clock_was_put_back_resumes),
	    TEST(downtime_of_the_server_expires_no_lease),
	    TEST(the_rules_hold_on_a_random_walk),
	    TEST(the_rules_hold_on_another_random_walk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
