/* The engine against a store in this file, which returns rows and records how they ended, and kinds of effects that
 * end when the test says so. */
#include "stand_ins.h"

#include "model/schedule.h"
#include "outbox/engine.h"
#include "replaces.h"

REPLACES(store_claim_outbox);
REPLACES(outbox_row_release);
REPLACES(claim_outbox_release);
REPLACES(store_outbox_done);
REPLACES(clock_mono_ms);

enum { ROWS_MAX = 32 };
enum { FAST_LANE, SLOW_LANE, N_LANES };

struct test_effect {
	struct effect effect;
	char *memory; /* for release() */
};

struct due_row {
	enum outbox_kind kind;
	const char *target;
	int64_t age_ms;
	bool is_claimed;
};

static struct world {
	struct loop *loop;
	struct engine *engine;
	struct lane_limits lanes[N_LANES];
	bool is_running, is_closed;

	/* the store; the id of a row is its place here */
	struct due_row rows[ROWS_MAX];
	int n_rows;
	int n_claims_busy, n_claims_failing, n_done_busy, n_done_failing;
	int done_error;
	struct outbox_done done[ROWS_MAX];
	char errors[ROWS_MAX][200];

	/* the effects */
	void (*begin)(struct effect *e); /* the result of begin(); NULL: it waits for the test */
	struct effect *begun[ROWS_MAX];
	int n_begun, n_ended, n_done, n_released;
	const int *counter; /* wait_for() */
	int n_expected;
	bool is_enough;
	int64_t mono_ahead_ms;
} w;

/* It stands still, because the engine distinguishes targets by whether they answered lately. */
int64_t clock_mono_ms(void) { return INT64_C(1000000) + w.mono_ahead_ms; }

static void count_one(int *counter)
{
	++*counter;
	if (w.counter && *w.counter >= w.n_expected)
		w.is_enough = true;
}

/* Runs the loop until the counter has the value. */
static void wait_for(const int *counter, int n)
{
	w.counter = counter;
	w.n_expected = n;
	w.is_enough = *counter >= n;
	if (!w.is_enough)
		loop_run_until(w.loop, &w.is_enough);
	assert_int_equal(*counter, n);
}

/* ---- the store ---- */

int store_claim_outbox(struct store *s, struct claim_outbox *op)
{
	(void)s;
	if (w.n_claims_busy > 0) {
		w.n_claims_busy--;
		trace("busy");
		return ERR_BUSY;
	}
	if (w.n_claims_failing > 0) {
		w.n_claims_failing--;
		trace("failed");
		op->op.err = ERR_FULL;
		end_op(w.loop, &op->op);
		return 0;
	}
	op->rows = xcalloc(ROWS_MAX, sizeof(*op->rows));
	for (int i = 0; i < w.n_rows && (int)op->n < op->limit; i++) {
		struct due_row *r = &w.rows[i];

		if (r->is_claimed || !(op->kinds & 1u << r->kind) || str_eq(r->target, op->past))
			continue;
		r->is_claimed = true;
		op->rows[op->n++] = (struct outbox_row){.id = i,
		    .kind = r->kind,
		    .target = xstrdup(r->target),
		    .generation = 3,
		    .first_ms = op->now_ms - r->age_ms};
	}
	end_op(w.loop, &op->op);
	return 0;
}

void outbox_row_release(struct outbox_row *r) { free(r->target); }

void claim_outbox_release(struct claim_outbox *op)
{
	for (size_t i = 0; i < op->n; i++)
		outbox_row_release(&op->rows[i]);
	FREE_ALL(op->rows, op->past);
}

int store_outbox_done(struct store *s, struct outbox_done *op)
{
	static const char *const words[] = {"ok", "retry", "dead", "not_yet", "again"};

	(void)s;
	assert_int_equal(op->generation, 3);
	if (w.n_done_busy > 0) {
		w.n_done_busy--;
		trace("busy");
		return ERR_BUSY;
	}
	if (w.n_done_failing > 0) {
		w.n_done_failing--;
		trace("failed");
		op->op.err = w.done_error;
	} else {
		trace("%s:%d", words[op->result], (int)op->id);
	}
	w.done[op->id] = *op;
	snprintf(w.errors[op->id], sizeof(w.errors[op->id]), "%s", op->error ? op->error : "");
	end_op(w.loop, &op->op);
	count_one(&w.n_done);
	return 0;
}

/* ---- the effects ---- */

static void begin_test_effect(struct effect *e)
{
	struct test_effect *t = CONTAINER_OF(e, struct test_effect, effect);

	trace("begin:%d", (int)e->row.id);
	t->memory = xstrdup("x");
	w.begun[e->row.id] = e;
	if (w.begin)
		w.begin(e);
	count_one(&w.n_begun);
}

static void cancel_test_effect(struct effect *e)
{
	assert_false(effect_may_go_on(e));
	trace("cancel:%d", (int)e->row.id);
	effect_end(e, OUTBOX_NOT_YET, clock_wall_ms());
}

static void release_test_effect(struct effect *e)
{
	free(CONTAINER_OF(e, struct test_effect, effect)->memory);
	count_one(&w.n_released);
}

static char *test_target_name(const struct effect *e) { return xstrdup(e->row.target); }

static void on_effect_end(struct effect *e)
{
	assert_ptr_equal(engine_owner(e->engine), &w);
	w.n_ended++;
}

#define KIND(its_kind, its_lane, ...)                                                                                  \
	&(const struct effect_kind)                                                                                    \
	{                                                                                                              \
		.kind = OUTBOX_##its_kind, .lane = its_lane, .bytes = sizeof(struct test_effect),                      \
		.begin = begin_test_effect, .cancel = cancel_test_effect, .release = release_test_effect, __VA_ARGS__  \
	}
static const struct effect_kind *const KINDS[] = {
    KIND(REACTION, FAST_LANE),
    KIND(WEBHOOK_DISPATCH, SLOW_LANE, .target_name = test_target_name),
    KIND(WEBHOOK_CANCEL, SLOW_LANE, .target_name = test_target_name),
};

static void end_ok(struct effect *e) { effect_end(e, OUTBOX_OK, 0); }

static void end_after_back_off(struct effect *e)
{
	int64_t next_ms;
	bool has_time = effect_back_off(e, 0, &next_ms);

	error_set(&e->why, ERR_NETWORK, "no answer");
	effect_end(e, has_time ? OUTBOX_RETRY : OUTBOX_DEAD, next_ms);
}

static void put_off(struct effect *e) { effect_put_off(e, 5000); }

static void write_paced(struct effect *e)
{
	if (effect_may_write(e, WRITE_EDIT))
		effect_end(e, OUTBOX_OK, 0);
}

/* ---- up and down ---- */

static void add_row(enum outbox_kind kind, const char *target)
{
	w.rows[w.n_rows++] = (struct due_row){.kind = kind, .target = target};
}

static int set_up(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	stand_ins_reset();
	log_setup(LOG_ERROR + 1, LOG_TEXT);
	w.loop = loop_new();
	w.lanes[FAST_LANE] = (struct lane_limits){4, 4, 4};
	w.lanes[SLOW_LANE] = (struct lane_limits){16, 4, 2};
	alarm(60); /* a test that waits for the regular look of each minute fails */
	return 0;
}

static void start_engine(void)
{
	w.engine = engine_new(&(struct engine_options){
	    .loop = w.loop,
	    .owner = &w,
	    .kinds = KINDS,
	    .n_kinds = ARRAY_LEN(KINDS),
	    .lanes = w.lanes,
	    .n_lanes = N_LANES,
	    .writes_per_minute = 1,
	    .claim_failed_event = "claim_failed",
	    .settle_failed_event = "settle_failed",
	    .on_end = on_effect_end,
	});
	w.is_running = true;
}

static void on_engine_closed(void *owner)
{
	assert_ptr_equal(owner, &w);
	assert_false(w.is_closed);
	w.is_closed = true;
	trace("closed");
}

static void close_engine(int64_t grace_ms)
{
	w.is_running = false;
	engine_close(w.engine, grace_ms, on_engine_closed, &w);
	assert_false(w.is_closed);
	loop_run_until(w.loop, &w.is_closed);
	assert_true(w.is_closed);
	assert_int_equal(engine_n_claimed(w.engine), 0);
	assert_int_equal(w.n_ended, w.n_released); /* each effect ends once and is freed once */
	engine_free(w.engine);
}

static int tear_down(void **state)
{
	(void)state;
	if (w.is_running)
		close_engine(0);
	loop_stop(w.loop);
	loop_run(w.loop);
	loop_free(w.loop);
	alarm(0);
	return 0;
}

/* ---- the tests ---- */

static void sends_due_rows_and_records_how_they_ended(void **state)
{
	(void)state;
	add_row(OUTBOX_REACTION, "a");
	add_row(OUTBOX_WEBHOOK_CANCEL, "b");
	w.begin = end_ok;
	start_engine();
	wait_for(&w.n_released, 2);
	assert_string_equal(traced, "begin:0 ok:0 begin:1 ok:1");
	assert_int_equal(w.n_ended, 2);
	assert_null(w.done[0].error);
	add_row(OUTBOX_WEBHOOK_DISPATCH, "b");
	engine_ring(w.engine);
	wait_for(&w.n_released, 3);
}

static void shares_a_lane_among_its_targets(void **state)
{
	(void)state;
	w.lanes[SLOW_LANE] = (struct lane_limits){16, 2, 1};
	add_row(OUTBOX_WEBHOOK_DISPATCH, "a");
	add_row(OUTBOX_WEBHOOK_DISPATCH, "a");
	add_row(OUTBOX_WEBHOOK_DISPATCH, "b");
	add_row(OUTBOX_WEBHOOK_DISPATCH, "c");
	start_engine();
	wait_for(&w.n_begun, 2);
	assert_string_equal(effect_target(w.begun[2]), "b");
	effect_end(w.begun[0], OUTBOX_OK, 0);
	effect_end(w.begun[2], OUTBOX_OK, 0);
	assert_string_equal(traced, "begin:0 begin:2 ok:0 begin:1 ok:2 begin:3");
}

static void a_hanging_target_leaves_room_for_the_others(void **state)
{
	int64_t now_ms = clock_wall_ms();

	(void)state;
	for (int i = 0; i < 12; i++)
		add_row(OUTBOX_WEBHOOK_DISPATCH, "hanging");
	add_row(OUTBOX_WEBHOOK_DISPATCH, "fast");
	start_engine();
	wait_for(&w.n_begun, 3);
	assert_string_equal(traced, "begin:0 begin:1 not_yet:8 not_yet:9 not_yet:10 not_yet:11 begin:12");
	/* a new target has had no time to answer */
	assert_in_range(w.done[8].next_ms, now_ms + 100, clock_wall_ms() + 200);
	w.mono_ahead_ms = 1000;
	now_ms = clock_wall_ms();
	add_row(OUTBOX_WEBHOOK_DISPATCH, "hanging");
	engine_look(w.engine);
	wait_for(&w.n_done, 5);
	assert_in_range(w.done[13].next_ms, now_ms + 3000, clock_wall_ms() + 6000);
}

static void rows_of_a_target_that_fills_a_lane_are_not_claimed_and_put_off(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++)
		add_row(OUTBOX_WEBHOOK_DISPATCH, "busy");
	start_engine();
	wait_for(&w.n_begun, 2);
	effect_end(w.begun[0], OUTBOX_OK, 0);
	for (int i = 0; i < 8; i++)
		add_row(OUTBOX_WEBHOOK_DISPATCH, "busy");
	engine_look(w.engine);
	wait_for(&w.n_released, 1);
	wait_for(&w.n_begun, 3);
	for (int i = 0; i < 6; i++) /* three of them find a place */
		add_row(OUTBOX_WEBHOOK_DISPATCH, "busy");
	add_row(OUTBOX_WEBHOOK_DISPATCH, "other");
	engine_look(w.engine);
	wait_for(&w.n_begun, 4);
	assert_string_equal(traced, "begin:0 begin:1 ok:0 begin:2 begin:16");
	assert_int_equal(engine_n_claimed(w.engine), 13);
	w.begin = end_ok;
	for (int i = 1; i < 3; i++)
		effect_end(w.begun[i], OUTBOX_OK, 0);
	effect_end(w.begun[16], OUTBOX_OK, 0);
	wait_for(&w.n_released, 17);
}

static void claims_more_when_a_full_lane_has_room(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++)
		add_row(OUTBOX_REACTION, "a");
	start_engine();
	wait_for(&w.n_begun, 4); /* the lane is full */
	for (int i = 0; i < 4; i++)
		effect_end(w.begun[i], OUTBOX_OK, 0);
	w.begin = end_ok;
	wait_for(&w.n_released, 10);
}

static void retries_a_failed_claim(void **state)
{
	(void)state;
	w.n_claims_busy = 1;
	w.n_claims_failing = 1;
	w.begin = end_ok;
	add_row(OUTBOX_REACTION, "a");
	add_row(OUTBOX_WEBHOOK_DISPATCH, "b");
	start_engine();
	wait_for(&w.n_released, 2);
	assert_int_equal(strncmp(traced, "busy failed ", 12), 0);
}

static void add_row_and_look(void *p)
{
	(void)p;
	add_row(OUTBOX_REACTION, "a");
	engine_look(w.engine);
}

static void a_look_during_a_claim_is_not_lost(void **state)
{
	(void)state;
	w.begin = end_ok;
	start_engine();
	loop_reap(w.loop, add_row_and_look, NULL); /* the claim below has begun, and ends after this */
	engine_look(w.engine);
	add_row_and_look(NULL);
	wait_for(&w.n_released, 2);
}

static void records_an_end_although_the_store_is_busy(void **state)
{
	(void)state;
	w.n_done_busy = 1;
	w.n_done_failing = 1;
	w.done_error = ERR_FULL;
	w.begin = end_ok;
	add_row(OUTBOX_REACTION, "a");
	start_engine();
	wait_for(&w.n_released, 1);
	assert_string_equal(traced, "begin:0 busy failed ok:0");
	assert_int_equal(w.n_ended, 1);
}

static void a_deleted_row_is_not_recorded_again(void **state)
{
	(void)state;
	w.n_done_failing = 1;
	w.done_error = ERR_NOT_FOUND;
	w.begin = end_ok;
	add_row(OUTBOX_REACTION, "a");
	start_engine();
	wait_for(&w.n_released, 1);
	assert_string_equal(traced, "begin:0 failed");
}

static void retries_until_a_day_has_passed(void **state)
{
	(void)state;
	w.begin = end_after_back_off;
	add_row(OUTBOX_REACTION, "a");
	add_row(OUTBOX_REACTION, "a");
	w.rows[1].age_ms = BACKOFF_GIVE_UP_MS;
	start_engine();
	wait_for(&w.n_released, 2);
	assert_string_equal(traced, "begin:0 retry:0 begin:1 dead:1");
	assert_true(w.done[0].next_ms > w.done[0].now_ms);
	assert_string_equal(w.errors[0], "no answer");
}

static void postpones_until_a_day_has_passed(void **state)
{
	int64_t now_ms = clock_wall_ms();

	(void)state;
	w.begin = put_off;
	add_row(OUTBOX_REACTION, "a");
	add_row(OUTBOX_REACTION, "a");
	w.rows[1].age_ms = BACKOFF_GIVE_UP_MS;
	start_engine();
	wait_for(&w.n_released, 2);
	assert_string_equal(traced, "begin:0 not_yet:0 begin:1 dead:1");
	assert_in_range(w.done[0].next_ms, now_ms + 5000, clock_wall_ms() + 5000);
	assert_string_equal(w.errors[0], "");
	assert_string_equal(w.errors[1], "it could not be sent within a day");
}

static void sends_rows_that_an_operation_claimed(void **state)
{
	struct outbox_offer offer = {0};

	(void)state;
	w.begin = end_ok;
	start_engine();
	engine_offer(w.engine, OUTBOX_REACTION, 3, &offer);
	engine_offer(w.engine, OUTBOX_WEBHOOK_DISPATCH, 1, &offer);
	engine_offer(w.engine, OUTBOX_REACTION, 2, &offer); /* of four places, one is left */
	assert_int_equal(offer.places[OUTBOX_REACTION], 3);
	assert_int_equal(offer.places[OUTBOX_WEBHOOK_DISPATCH], 1);
	add_row(OUTBOX_REACTION, "a");
	w.rows[0].is_claimed = true;
	offer.places[OUTBOX_REACTION]--;
	*ARRAY_PUSH(offer.rows, offer.n) =
	    (struct outbox_row){.id = 0, .kind = OUTBOX_REACTION, .target = xstrdup("a"), .generation = 3};
	engine_adopt(w.engine, &offer);
	wait_for(&w.n_released, 1);
	assert_string_equal(traced, "begin:0 ok:0");
	engine_offer(w.engine, OUTBOX_REACTION, 4, &offer);
	assert_int_equal(offer.places[OUTBOX_REACTION], 4);
	engine_adopt(w.engine, &offer);
}

static void on_offer_back(void *p)
{
	struct outbox_offer *offer = p;

	offer->places[OUTBOX_REACTION]--;
	*ARRAY_PUSH(offer->rows, offer->n) =
	    (struct outbox_row){.id = 0, .kind = OUTBOX_REACTION, .target = xstrdup("a"), .generation = 3};
	engine_adopt(w.engine, offer);
}

static void closing_waits_for_an_offer_and_puts_its_rows_back(void **state)
{
	struct outbox_offer offer = {0};

	(void)state;
	start_engine();
	engine_offer(w.engine, OUTBOX_REACTION, 1, &offer);
	loop_reap(w.loop, on_offer_back, &offer);
	close_engine(0);
	assert_string_equal(traced, "not_yet:0 closed");
}

static void paces_writes(void **state)
{
	(void)state;
	w.begin = write_paced;
	add_row(OUTBOX_REACTION, "a");
	add_row(OUTBOX_REACTION, "a");
	start_engine();
	wait_for(&w.n_released, 2);
	assert_string_equal(traced, "begin:0 ok:0 begin:1 not_yet:1");
	assert_in_range(w.done[1].next_ms, w.done[1].now_ms + 1, clock_wall_ms() + PACING_LATEST_MS);
	assert_int_equal(engine_n_paced(w.engine), 1);
}

static void start_one_and_park_one(void)
{
	w.lanes[SLOW_LANE] = (struct lane_limits){16, 1, 1};
	add_row(OUTBOX_WEBHOOK_DISPATCH, "a");
	add_row(OUTBOX_WEBHOOK_DISPATCH, "b");
	start_engine();
	wait_for(&w.n_begun, 1);
}

static void a_daemon_that_must_not_act_cuts_requests_off(void **state)
{
	(void)state;
	start_one_and_park_one();
	is_node_silent = true;
	engine_follow_node(w.engine);
	wait_for(&w.n_released, 1);
	assert_string_equal(traced, "begin:0 cancel:0 not_yet:0");
	w.begin = end_ok;
	is_node_silent = false;
	engine_follow_node(w.engine);
	wait_for(&w.n_released, 2);
	assert_string_equal(traced, "begin:0 cancel:0 not_yet:0 begin:1 ok:1");
}

/* The others may have taken the rows over, so none of them begins. */
static void rows_of_an_earlier_epoch_end(void **state)
{
	(void)state;
	start_one_and_park_one();
	this_epoch = 1;
	engine_follow_node(w.engine);
	wait_for(&w.n_released, 2);
	assert_int_equal(w.n_begun, 1);
	assert_int_equal(w.done[1].epoch, 0);
}

/* Another node does the work of the part meanwhile. */
static void a_paused_engine_ends_its_work_and_claims_nothing(void **state)
{
	(void)state;
	w.lanes[FAST_LANE] = (struct lane_limits){4, 1, 1};
	add_row(OUTBOX_REACTION, "a");
	add_row(OUTBOX_REACTION, "a");
	start_engine();
	wait_for(&w.n_begun, 1);
	engine_pause(w.engine, true);
	wait_for(&w.n_done, 1); /* the one that waited for its turn */
	add_row(OUTBOX_REACTION, "b");
	engine_look(w.engine);
	engine_ring(w.engine);
	effect_end(w.begun[0], OUTBOX_OK, 0);
	wait_for(&w.n_released, 2);
	assert_int_equal(engine_n_claimed(w.engine), 0);
	assert_false(w.rows[2].is_claimed);
	w.begin = end_ok;
	engine_pause(w.engine, false);
	wait_for(&w.n_released, 3);
	close_engine(0);
	assert_string_equal(traced, "begin:0 not_yet:1 ok:0 begin:2 ok:2 closed");
}

static void closing_puts_rows_back_and_then_cancels(void **state)
{
	(void)state;
	w.lanes[FAST_LANE] = (struct lane_limits){4, 1, 1};
	add_row(OUTBOX_REACTION, "a");
	add_row(OUTBOX_REACTION, "a");
	start_engine();
	wait_for(&w.n_begun, 1);
	assert_int_equal(engine_n_claimed(w.engine), 2);
	assert_non_null(engine_next(w.engine, engine_next(w.engine, NULL)));
	close_engine(0);
	assert_string_equal(traced, "begin:0 not_yet:1 cancel:0 not_yet:0 closed");
}

static void a_claim_that_ends_after_the_close_starts_no_effect(void **state)
{
	(void)state;
	start_engine();
	add_row(OUTBOX_REACTION, "a");
	engine_look(w.engine);
	close_engine(1000 * 1000);
	assert_string_equal(traced, "not_yet:0 closed");
}

static void set_flag(void *flag) { *(bool *)flag = true; }

static void closing_does_not_wait_for_a_store_that_fails(void **state)
{
	bool has_failed = false;

	(void)state;
	w.n_done_failing = 2;
	w.done_error = ERR_CORRUPT; /* recorded again after 10 s, or when the engine closes */
	w.begin = end_ok;
	add_row(OUTBOX_REACTION, "a");
	start_engine();
	wait_for(&w.n_done, 1);
	loop_reap(w.loop, set_flag, &has_failed); /* runs after the end of the store's operation */
	loop_run_until(w.loop, &has_failed);
	close_engine(1000 * 1000);
	assert_string_equal(traced, "begin:0 failed failed closed");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	    TEST(sends_due_rows_and_records_how_they_ended),
	    TEST(shares_a_lane_among_its_targets),
	    TEST(a_hanging_target_leaves_room_for_the_others),
	    TEST(rows_of_a_target_that_fills_a_lane_are_not_claimed_and_put_off),
	    TEST(claims_more_when_a_full_lane_has_room),
	    TEST(retries_a_failed_claim),
	    TEST(a_look_during_a_claim_is_not_lost),
	    TEST(records_an_end_although_the_store_is_busy),
	    TEST(a_deleted_row_is_not_recorded_again),
	    TEST(retries_until_a_day_has_passed),
	    TEST(postpones_until_a_day_has_passed),
	    TEST(sends_rows_that_an_operation_claimed),
	    TEST(closing_waits_for_an_offer_and_puts_its_rows_back),
	    TEST(paces_writes),
	    TEST(a_daemon_that_must_not_act_cuts_requests_off),
	    TEST(rows_of_an_earlier_epoch_end),
	    TEST(a_paused_engine_ends_its_work_and_claims_nothing),
	    TEST(closing_puts_rows_back_and_then_cancels),
	    TEST(a_claim_that_ends_after_the_close_starts_no_effect),
	    TEST(closing_does_not_wait_for_a_store_that_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
