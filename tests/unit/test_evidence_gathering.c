/* The gatherer against a store and a GitHub in this file. Each operation is recorded as words, and the test sets both
 * answers. Whole-program tests use the real ones. */
#include "stand_ins.h"

#include "evidence/evidence.h"
#include "replaces.h"
#include "store/changes.h"
#include "verdict/attribution.h"

REPLACES(store_claim_due_changes);
REPLACES(claim_due_changes_release);
REPLACES(store_attribute_change);
REPLACES(store_put_merge_base);
REPLACES(store_put_files);
REPLACES(github_compare_get);
REPLACES(github_pull_files_get);
REPLACES(github_pull_files_release);
REPLACES(github_call_release);
REPLACES(github_cancel);
REPLACES(clock_wall_ms);
extern __typeof__(clock_wall_ms) real_clock_wall_ms __asm__("__real_clock_wall_ms");

#define BASE_SHA "5eeaadb15eeaadb15eeaadb15eeaadb15eeaadb1"

enum { CHANGES_MAX = 8 };

static struct world {
	struct loop *loop;
	struct evidence *evidence;
	struct timer *stop_later;

	struct due { /* the due changes of the store, until they are attributed */
		int64_t id;
		int64_t waited_ms;
		int n_tries;
		bool needs_merge_base, needs_files, is_push, is_baseless;
	} due[CHANGES_MAX];
	int n_due;
	int n_left; /* the number of attributions after which the run ends */
	struct attribute_change last;
	char *files; /* the stored evidence, in words */
	bool is_store_silent;
	int n_busy, n_claims;

	int compare_err, files_err;
	bool is_final, is_incomplete, is_mute;
	int64_t retry_after_ms;
	struct github_call *unanswered[CHANGES_MAX];
	int n_unanswered, n_asked_at_once;

	bool holds_second_claim, is_closed;
	struct store_query *held;
	struct timer *answer_held;

	int64_t stands_at_ms; /* of the clock; 0: it runs */
} w;

int64_t clock_wall_ms(void) { return w.stands_at_ms ? w.stands_at_ms : real_clock_wall_ms(); }

/* ---- the store ---- */

static void on_closed(void *owner)
{
	(void)owner;
	w.is_closed = true;
	timer_close(w.stop_later);
	loop_stop(w.loop);
}

static void close_now(struct timer *t)
{
	(void)t;
	evidence_close(w.evidence, on_closed, NULL);
	if (w.held)
		timer_start(w.answer_held, 20);
}

static void answer_held_claim(struct timer *t)
{
	timer_close(t);
	assert_false(w.is_closed);
	end_query(w.loop, w.held);
	w.held = NULL;
}

int store_claim_due_changes(struct store *s, struct claim_due_changes *q)
{
	(void)s;
	w.n_claims++;
	if (w.is_store_silent)
		return ERR_CLOSING;
	if (w.holds_second_claim && w.n_claims == 2) {
		w.held = &q->q;
		end_call(w.loop, w.unanswered[0]);
		return 0;
	}
	q->list = xcalloc(CHANGES_MAX, sizeof(*q->list));
	for (int i = 0; i < w.n_due && (int)q->n < q->limit; i++)
		q->list[q->n++] = (struct due_change){
		    .change_id = w.due[i].id,
		    .generation = 7,
		    .since_ms = clock_wall_ms() - w.due[i].waited_ms,
		    .n_tries = w.due[i].n_tries,
		    .repository = xstrdup("pytorch/pytorch"),
		    .head_sha = xstrdup("head"),
		    .base_ref = w.due[i].is_baseless ? NULL : xstrdup("main"),
		    .number = w.due[i].is_push ? 0 : w.due[i].id,
		    .needs_merge_base = w.due[i].needs_merge_base,
		    .needs_files = w.due[i].needs_files,
		};
	q->next_ms = 0;
	end_query(w.loop, &q->q);
	return 0;
}

void claim_due_changes_release(struct claim_due_changes *q)
{
	for (size_t i = 0; i < q->n; i++) {
		free(q->list[i].repository);
		free(q->list[i].head_sha);
		free(q->list[i].base_ref);
		free(q->list[i].base_sha);
	}
	FREE_AND_NULL(q->list);
	q->n = 0;
}

int store_attribute_change(struct store *s, struct attribute_change *op)
{
	int i = 0;

	(void)s;
	if (w.n_busy > 0) {
		w.n_busy--;
		trace("busy%lld", (long long)op->change_id);
		if (w.held)
			timer_start(w.stop_later, 0);
		return ERR_BUSY;
	}
	assert_int_equal(op->generation, 7);
	while (w.due[i].id != op->change_id)
		i++;
	w.last = *op;
	trace("%s%lld", op->again_ms ? "again" : "cells", (long long)op->change_id);
	w.due[i] = w.due[--w.n_due];
	op->has_moved = true;
	end_op(w.loop, &op->op);
	if (--w.n_left == 0)
		timer_start(w.stop_later, 0);
	return 0;
}

int store_put_merge_base(struct store *s, struct put_merge_base *op)
{
	(void)s;
	assert_string_equal(op->sha, BASE_SHA);
	assert_true(op->now_ms > 0);
	trace("base%lld", (long long)op->change_id);
	end_op(w.loop, &op->op);
	return 0;
}

int store_put_files(struct store *s, struct put_files *op)
{
	(void)s;
	assert_string_equal(op->head_sha, "head");
	for (const char *const *f = op->files; *f; f++) {
		char *longer = w.files ? xasprintf("%s %s", w.files, *f) : xstrdup(*f);

		free(w.files);
		w.files = longer;
	}
	end_op(w.loop, &op->op);
	return 0;
}

/* ---- GitHub ---- */

static void answer(struct github_call *call, int err)
{
	call->result.err = err;
	call->result.is_final = err && w.is_final;
	call->result.retry_after_ms = err ? w.retry_after_ms : 0;
	if (err)
		error_set(&call->result.why, err, "GitHub does not say");
	if (w.is_mute && !err)
		w.unanswered[w.n_unanswered++] = call;
	else
		end_call(w.loop, call);
	if (w.n_unanswered > w.n_asked_at_once)
		w.n_asked_at_once = w.n_unanswered;
}

void github_compare_get(
    struct github *g, struct github_compare *c, const char *repository, const char *base, const char *head)
{
	(void)g;
	assert_string_equal(repository, "pytorch/pytorch");
	assert_string_equal(base, "main");
	assert_string_equal(head, "head");
	trace("compare0");
	snprintf(c->merge_base_sha, sizeof(c->merge_base_sha), "%s", BASE_SHA);
	answer(&c->call, w.compare_err);
}

void github_pull_files_get(struct github *g, struct github_pull_files *f, const char *repository, int64_t number)
{
	(void)g;
	assert_string_equal(repository, "pytorch/pytorch");
	trace("files%lld", (long long)number);
	f->names = strv_copy(NULL);
	if (!w.files_err) {
		strv_add(&f->names, "a.c");
		strv_add(&f->names, "b.c");
		f->is_incomplete = w.is_incomplete;
	}
	answer(&f->call, w.files_err);
}

void github_pull_files_release(struct github_pull_files *f)
{
	strv_free(f->names);
	f->names = NULL;
}

void github_call_release(struct github_call *call) { (void)call; }

void github_cancel(struct github *g, struct github_call *call)
{
	(void)g;
	answer(call, ERR_CANCELLED);
}

/* ---- the tests ---- */

static int set_up(void **state)
{
	(void)state;
	log_setup(LOG_ERROR, LOG_TEXT);
	memset(&w, 0, sizeof(w));
	stand_ins_reset();
	w.loop = loop_new();
	w.stop_later = timer_new(w.loop, close_now, NULL);
	w.n_left = 1;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	free(w.files);
	return 0;
}

static void add(struct due due) { w.due[w.n_due++] = due; }

static struct evidence_counters run(void)
{
	const struct evidence_deps deps = {.loop = w.loop};
	struct evidence_counters counters;

	w.evidence = evidence_new(&deps);
	assert_int_equal(subscriber.topics, STORE_ATTRIBUTION);
	loop_run(w.loop);
	evidence_read_counters(w.evidence, &counters);
	evidence_free(w.evidence);
	loop_free(w.loop);
	return counters;
}

static void expect(const char *expected) { assert_string_equal(traced, expected); }

static void requests_missing_evidence(void **state)
{
	struct evidence_counters c;

	(void)state;
	add((struct due){.id = 1, .needs_merge_base = true, .needs_files = true});
	c = run();
	expect("compare0 base1 files1 cells1");
	assert_string_equal(w.files, "a.c b.c");
	assert_true(w.last.has_learnt);
	assert_int_equal(c.n_asked, 2);
	assert_int_equal(c.n_attributed, 1);
	assert_int_equal(c.n_moved, 1);
	assert_int_equal(c.n_failures, 0);
	assert_int_equal(c.n_in_hand, 0);
}

static void requests_nothing_else(void **state)
{
	(void)state;
	w.n_left = 3;
	add((struct due){.id = 1});
	add((struct due){.id = 2, .is_push = true, .needs_files = true}); /* a push has no list of files */
	add((struct due){.id = 3, .needs_merge_base = true, .is_baseless = true});
	run();
	expect("cells1 cells2 cells3");
}

static void a_truncated_list_may_contain_any_path(void **state)
{
	(void)state;
	w.is_incomplete = true;
	add((struct due){.id = 1, .needs_files = true});
	run();
	expect("files1 cells1");
	assert_string_equal(w.files, "a.c b.c /");
}

static void known_evidence_counts_while_github_is_down(void **state)
{
	struct evidence_counters c;

	(void)state;
	w.stands_at_ms = real_clock_wall_ms();
	w.compare_err = w.files_err = ERR_NETWORK;
	add((struct due){.id = 1, .needs_merge_base = true, .needs_files = true});
	c = run();
	expect("compare0 files1 again1");
	assert_false(w.last.has_learnt);
	assert_null(w.files);
	assert_true(w.last.again_ms == w.stands_at_ms + 2000);
	assert_int_equal(c.n_failures, 2);
}

/* Each pause is as long as the wait so far, in seconds. */
static void the_back_off_grows(void **state)
{
	static const int64_t waited[] = {0, 2, 60, 1800, 7200}, expected[] = {2, 2, 60, 1800, 1800};

	for (size_t i = 0; i < ARRAY_LEN(waited); i++) {
		set_up(state);
		w.stands_at_ms = real_clock_wall_ms();
		w.compare_err = ERR_TIMEOUT;
		add((struct due){.id = 1, .waited_ms = 1000 * waited[i], .needs_merge_base = true});
		run();
		assert_true(w.last.again_ms == w.stands_at_ms + 1000 * expected[i]);
	}
	set_up(state);
	w.stands_at_ms = real_clock_wall_ms();
	w.compare_err = ERR_BUSY;
	w.retry_after_ms = 90000;
	add((struct due){.id = 1, .needs_merge_base = true});
	run();
	assert_true(w.last.again_ms == w.stands_at_ms + 90000);
}

/* Twenty jobs report while GitHub is down for a minute, and each makes the change due at once. */
static void gathering_gives_up_after_tries_and_time(void **state)
{
	static const int64_t DAY_MS = 24 * 3600 * 1000;

	set_up(state);
	w.compare_err = w.files_err = ERR_TIMEOUT;
	add((struct due){.id = 1, .n_tries = 19, .waited_ms = 60000, .needs_merge_base = true, .needs_files = true});
	run();
	expect("compare0 files1 again1");
	assert_null(w.files);
	set_up(state);
	w.compare_err = ERR_TIMEOUT;
	add((struct due){.id = 1, .n_tries = 2, .waited_ms = DAY_MS, .needs_merge_base = true});
	run();
	expect("compare0 again1"); /* this server was down all day */
	set_up(state);
	w.compare_err = ERR_TIMEOUT;
	add((struct due){.id = 1, .n_tries = 9, .waited_ms = DAY_MS, .needs_merge_base = true});
	run();
	expect("compare0 cells1");
	assert_true(w.last.again_ms == 0);
}

static void a_final_answer_of_github_is_not_requested_twice(void **state)
{
	(void)state;
	w.compare_err = ERR_NOT_FOUND;
	w.is_final = true;
	w.n_left = 2;
	add((struct due){.id = 1, .needs_merge_base = true, .needs_files = true});
	add((struct due){.id = 1, .needs_merge_base = true});
	run();
	expect("compare0 files1 cells1 cells1");
}

static void files_that_github_never_lists(void **state)
{
	(void)state;
	w.files_err = ERR_NOT_FOUND;
	w.is_final = true;
	add((struct due){.id = 1, .needs_files = true});
	run();
	expect("files1 cells1");
	assert_string_equal(w.files, "/");
}

static void a_busy_store_is_retried(void **state)
{
	(void)state;
	w.n_busy = 1;
	add((struct due){.id = 1});
	run();
	expect("busy1 cells1");
}

static void ring_all(struct timer *t)
{
	ring();
	ring();
	timer_close(t);
}

/* A gathering that ends at a busy store does not end the look that runs: its claim still belongs to a reader. */
static void a_busy_store_ends_no_running_look(void **state)
{
	struct timer *ring = timer_new(w.loop, ring_all, NULL);

	(void)state;
	w.is_mute = w.holds_second_claim = true;
	w.answer_held = timer_new(w.loop, answer_held_claim, NULL);
	w.n_busy = 1;
	add((struct due){.id = 1, .needs_merge_base = true});
	timer_start(ring, 0);
	run();
	expect("compare0 base1 busy1");
	assert_null(w.held);
	assert_int_equal(w.n_claims, 2);
}

/* Four are running; closing leaves them due. */
static void closing_cancels_the_requests(void **state)
{
	struct timer *ring = timer_new(w.loop, ring_all, NULL);
	struct evidence_counters c;

	(void)state;
	w.is_mute = true;
	for (int64_t id = 1; id <= CHANGES_MAX; id++)
		add((struct due){.id = id, .needs_merge_base = true});
	timer_start(ring, 10);
	timer_start(w.stop_later, 80);
	c = run();
	expect("compare0 compare0 compare0 compare0");
	assert_int_equal(w.n_asked_at_once, 4);
	assert_int_equal(w.n_due, CHANGES_MAX);
	assert_int_equal(c.n_in_hand, 0);
	assert_int_equal(c.n_failures, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(requests_missing_evidence),
	    TEST(requests_nothing_else),
	    TEST(a_truncated_list_may_contain_any_path),
	    TEST(known_evidence_counts_while_github_is_down),
	    cmocka_unit_test(the_back_off_grows),
	    cmocka_unit_test(gathering_gives_up_after_tries_and_time),
	    TEST(a_final_answer_of_github_is_not_requested_twice),
	    TEST(files_that_github_never_lists),
	    TEST(a_busy_store_is_retried),
	    TEST(closing_cancels_the_requests),
	    TEST(a_busy_store_ends_no_running_look),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
