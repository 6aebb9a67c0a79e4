/* The writer against a store and a GitHub in this file: they record operations as one line of words, and fail as the
 * test says. The real ones are not linked, because this file defines their functions; whole-program tests use them. */
#include "stand_ins.h"

#include "model/schedule.h"
#include "outbox/pacing.h"
#include "publish/publish.h"
#include "publish/publish_internal.h"
#include "replaces.h"
#include "store/changes.h"
#include "store/outbox.h"
#include "store/published.h"
#include "text/comment.h"
#include "view_builder.h"
#include "views/change.h"

REPLACES(store_claim_outbox);
REPLACES(outbox_row_release);
REPLACES(claim_outbox_release);
REPLACES(store_outbox_done);
REPLACES(store_get_change);
REPLACES(store_get_comment);
REPLACES(store_put_comment);
REPLACES(store_list_checks);
REPLACES(list_checks_release);
REPLACES(store_put_check);
REPLACES(store_doubt_check);
REPLACES(github_check_create);
REPLACES(github_check_update);
REPLACES(github_checks_list);
REPLACES(github_check_list_release);
REPLACES(github_cancel);
REPLACES(github_call_release);
REPLACES(github_comment_search_release);
REPLACES(github_app_slug);
REPLACES(github_app_get);
REPLACES(github_comment_find);
REPLACES(github_comment_create);
REPLACES(github_comment_react);
REPLACES(github_comment_update);

enum { CALLS_MAX = 8 };

struct scripted { /* the result of the n-th call of a kind; zero: success */
	int err, status;
	bool is_final, was_sent;
	int64_t retry_after_ms;
};

static struct world {
	struct loop *loop;
	struct publisher *publisher;
	struct config config;
	struct timer *stop_later;

	/* the store */
	int n_due_rows;     /* rows that are due */
	int n_rows_to_come; /* rows that have to be returned before the end */
	bool is_uncertain, is_pull_unknown, is_change_silent, has_red, is_running;
	int64_t row_age_ms;
	bool comes_during_claim;  /* the first request, during the second round of claims */
	struct get_comment known; /* the result of store_get_comment() */
	bool is_being_attributed, is_rerunning;
	struct put_comment put;
	struct outbox_done done;
	char done_error[256];
	bool is_forgetful; /* store_put_comment() stores nothing, so all texts are new */
	int n_done_busy;   /* store_outbox_done() fails this often */

	/* GitHub */
	int64_t comment_id; /* 0: no comment */
	char *comment_text;
	struct scripted find[CALLS_MAX], create[CALLS_MAX], update[CALLS_MAX];
	int n_find, n_create, n_update;
	bool is_mute;        /* the search gets no answer */
	bool create_arrives; /* the write happens although the answer is an error */
	struct github_call *unanswered;
	bool knows_app, app_fails;
} w;

/* ---- the store ---- */

static void on_closed(void *owner)
{
	(void)owner;
	trace("closed");
	timer_close(w.stop_later);
	loop_stop(w.loop);
}

static void close_now(struct timer *t)
{
	(void)t;
	publish_close(w.publisher, on_closed, NULL);
}

/* One ring wakes the publisher soon; before that it looks for another reason, and the second ring comes when the
 * comments were already claimed. */
static void ring_during_claim(void *p)
{
	(void)p;
	ring();
	publish_configure(w.publisher, &w.config);
	w.n_due_rows = 1;
	ring();
}

int store_claim_outbox(struct store *s, struct claim_outbox *op)
{
	(void)s;
	if (op->kinds == 1u << OUTBOX_COMMENT && w.n_due_rows > 0) {
		w.n_due_rows--;
		op->rows = xcalloc(1, sizeof(*op->rows));
		op->n = 1;
		op->rows[0].id = 5;
		op->rows[0].kind = OUTBOX_COMMENT;
		op->rows[0].target = xstrdup("pytorch/pytorch");
		op->rows[0].number = 4711;
		op->rows[0].generation = 3;
		op->rows[0].first_ms = op->now_ms - w.row_age_ms;
		op->rows[0].is_uncertain = w.is_uncertain;
		op->next_due_ms = w.n_due_rows ? op->now_ms : 0;
	}
	end_op(w.loop, &op->op);
	if (op->kinds == 1u << OUTBOX_RED_ISSUE && w.comes_during_claim) {
		w.comes_during_claim = false;
		loop_reap(w.loop, ring_during_claim, NULL);
	}
	return 0;
}

void outbox_row_release(struct outbox_row *r) { free(r->target); }

void claim_outbox_release(struct claim_outbox *op)
{
	for (size_t i = 0; i < op->n; i++)
		outbox_row_release(&op->rows[i]);
	free(op->rows);
}

int store_outbox_done(struct store *s, struct outbox_done *op)
{
	static const char *const words[] = {"ok", "retry", "dead", "not_yet", "again"};

	(void)s;
	if (w.n_done_busy > 0) {
		w.n_done_busy--;
		trace("busy");
		return ERR_BUSY;
	}
	assert_int_equal(op->id, 5);
	assert_int_equal(op->generation, 3);
	trace("%s", words[op->result]);
	w.done = *op;
	w.is_uncertain = op->is_uncertain;
	snprintf(w.done_error, sizeof(w.done_error), "%s", op->error ? op->error : "");
	end_op(w.loop, &op->op);
	if (--w.n_rows_to_come == 0)
		timer_start(w.stop_later, 0);
	return 0;
}

int store_get_change(struct store *s, struct get_change *q)
{
	size_t a;

	(void)s;
	assert_string_equal(q->repository, "pytorch/pytorch");
	assert_int_equal(q->number, 4711);
	if (w.is_pull_unknown) {
		q->q.err = ERR_NOT_FOUND;
	} else {
		q->view = view_new();
		a = view_add_accelerator(q->view, "npu", "NPU", LEVEL_2,
		    w.is_running || w.is_change_silent ? DISPATCH_RUNNING : DISPATCH_DONE);
		if (!w.is_change_silent)
			view_add_verdict(q->view, a, "s", "t", w.has_red ? TEST_FAIL : TEST_PASS, 1)->rerun =
			    w.is_rerunning ? RERUN_PENDING : RERUN_NONE;
		q->view->is_being_attributed = w.is_being_attributed;
	}
	end_query(w.loop, &q->q);
	return 0;
}

int store_get_comment(struct store *s, struct get_comment *q)
{
	(void)s;
	q->is_known = w.known.is_known;
	q->comment_id = w.known.comment_id;
	q->change_id = w.known.change_id;
	q->written_ms = w.known.written_ms;
	q->has_red_written = w.known.has_red_written;
	memcpy(q->body_hash, w.known.body_hash, SHA256_BYTES);
	end_query(w.loop, &q->q);
	return 0;
}

int store_put_comment(struct store *s, struct put_comment *op)
{
	(void)s;
	trace("put");
	if (!w.is_forgetful) {
		w.known.is_known = true;
		w.known.comment_id = op->comment_id;
		w.known.change_id = op->change_id;
		w.known.written_ms = op->written_ms;
		w.known.has_red_written = op->has_red_written;
		memcpy(w.known.body_hash, op->body_hash, SHA256_BYTES);
	}
	end_op(w.loop, &op->op);
	return 0;
}

/* ---- issues and check runs, which are never requested here ---- */

static void fail_to_begin(struct effect *e)
{
	(void)e;
	fail();
}

const struct effect_kind red_issue_kind = {
    .kind = OUTBOX_RED_ISSUE, .lane = RED_ISSUE_LANE, .bytes = sizeof(struct effect), .begin = fail_to_begin};

int store_list_checks(struct store *s, struct list_checks *q)
{
	(void)s;
	(void)q;
	fail();
	return ERR_CLOSING;
}

void list_checks_release(struct list_checks *q) { (void)q; }

int store_put_check(struct store *s, struct put_check *op)
{
	(void)s;
	(void)op;
	fail();
	return ERR_CLOSING;
}

int store_doubt_check(struct store *s, struct doubt_check *op)
{
	(void)s;
	(void)op;
	fail();
	return ERR_CLOSING;
}

void github_check_create(
    struct github *g, struct github_call *call, const char *repository, const struct github_check *check)
{
	(void)g;
	(void)call;
	(void)repository;
	(void)check;
	fail();
}

void github_check_update(struct github *g, struct github_call *call, const char *repository, int64_t check_id,
    const struct github_check *check)
{
	(void)check_id;
	github_check_create(g, call, repository, check);
}

void github_checks_list(struct github *g, struct github_check_list *list, const char *repository, const char *head_sha)
{
	(void)head_sha;
	github_check_create(g, &list->call, repository, NULL);
}

void github_check_list_release(struct github_check_list *list) { (void)list; }

/* ---- GitHub ---- */

static void answer(struct github_call *call, const struct scripted *script)
{
	call->result.err = script->err;
	call->result.status = script->status;
	call->result.is_final = script->is_final;
	call->result.was_sent = script->was_sent;
	call->result.retry_after_ms = script->retry_after_ms;
	if (script->err)
		error_set(&call->result.why, script->err, "GitHub says %d", script->status);
	end_call(w.loop, call);
}

void github_cancel(struct github *g, struct github_call *call)
{
	(void)g;
	assert_ptr_equal(call, w.unanswered);
	trace("cancel");
	answer(call, &(struct scripted){.err = ERR_CANCELLED});
}

void github_call_release(struct github_call *call)
{
	json_decref(call->answer);
	call->answer = NULL;
}

void github_comment_search_release(struct github_comment_search *search) { github_call_release(&search->call); }

const char *github_app_slug(const struct github *g)
{
	(void)g;
	return w.knows_app ? "outpost-ci" : NULL;
}

void github_app_get(struct github *g, struct github_call *call)
{
	(void)g;
	trace("app");
	w.knows_app = !w.app_fails;
	answer(call, &(struct scripted){.err = w.app_fails ? ERR_IO : 0});
}

void github_comment_find(
    struct github *g, struct github_comment_search *search, const char *repository, int64_t number, const char *marker)
{
	(void)g;
	(void)repository;
	trace("find");
	if (w.is_mute) {
		w.unanswered = &search->call;
		timer_start(w.stop_later, 0);
		return;
	}
	assert_int_equal(number, 4711);
	assert_string_equal(marker, COMMENT_MARKER);
	search->comment_id = w.comment_id;
	answer(&search->call, &w.find[w.n_find++]);
}

static void keep_text(const char *text)
{
	free(w.comment_text);
	w.comment_text = xstrdup(text);
}

void github_comment_create(
    struct github *g, struct github_call *call, const char *repository, int64_t number, const char *text)
{
	const struct scripted *script = &w.create[w.n_create++];

	(void)g;
	(void)repository;
	(void)number;
	trace("create");
	if (!script->err || w.create_arrives) {
		assert_int_equal(w.comment_id, 0); /* never two */
		w.comment_id = 99;
		keep_text(text);
	}
	if (!script->err)
		call->answer = json_pack("{s:i}", "id", 99);
	answer(call, script);
}

void github_comment_react(
    struct github *g, struct github_call *call, const char *repository, int64_t comment_id, const char *content)
{
	(void)g;
	(void)repository;
	assert_int_equal(comment_id, 77);
	trace("%s", content);
	answer(call, &w.create[w.n_create++]);
}

void github_comment_update(
    struct github *g, struct github_call *call, const char *repository, int64_t comment_id, const char *text)
{
	const struct scripted *script = &w.update[w.n_update++];

	(void)g;
	(void)repository;
	trace("update");
	if (!script->err) {
		assert_int_equal(comment_id, w.comment_id);
		keep_text(text);
	}
	answer(call, script);
}

/* ---- the tests ---- */

static int set_up(void **state)
{
	static char public_url[] = "https://outpost.example.org";
	static char api_url[] = "https://api.github.com", repository[] = "pytorch/pytorch";

	(void)state;
	memset(&w, 0, sizeof(w));
	stand_ins_reset();
	w.config.comment_enabled = true;
	w.config.comment_min_interval_ms = 60 * 1000;
	w.config.github_writes_per_minute = 80;
	w.config.public_url = public_url;
	w.config.github_api_url = api_url;
	w.config.upstream_repository = repository;
	w.knows_app = true;
	log_setup(LOG_ERROR + 1, LOG_TEXT);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	free(w.comment_text);
	return 0;
}

static void begin(void)
{
	traced[0] = '\0';
	w.loop = loop_new();
	w.stop_later = timer_new(w.loop, close_now, NULL);
	w.publisher = publish_new(&(struct publish_deps){.loop = w.loop}, &w.config);
	assert_int_equal(subscriber.topics, STORE_COMMENTS | STORE_NODE);
}

/* Runs a new publisher until n rows are returned. */
static void run(int n)
{
	w.n_due_rows = n;
	w.n_rows_to_come = n;
	begin();
	loop_run(w.loop);
	publish_free(w.publisher);
	loop_free(w.loop);
}

static void know_comment(int64_t age_ms)
{
	w.comment_id = 99;
	w.known.is_known = true;
	w.known.comment_id = 99;
	w.known.written_ms = clock_wall_ms() - age_ms;
}

static void test_first_comment(void **state)
{
	(void)state;
	w.knows_app = false;
	run(1);
	assert_string_equal(traced, "app find create put ok closed");
	assert_non_null(strstr(w.comment_text, "✓ **NPU passed**"));
	assert_int_equal(w.known.comment_id, 99);
	assert_false(w.known.has_red_written);
}

static void test_unchanged_is_not_written(void **state)
{
	(void)state;
	run(2);
	assert_string_equal(traced, "find create put ok ok closed");
	run(1);
	assert_string_equal(traced, "ok closed");
	w.is_uncertain = true; /* the text on GitHub is unknown */
	run(1);
	assert_string_equal(traced, "update put ok closed");
}

static void test_no_comment_without_results(void **state)
{
	(void)state;
	w.is_change_silent = true;
	run(1);
	assert_string_equal(traced, "ok closed");
	know_comment(3600 * 1000); /* the results of an old head are removed */
	run(1);
	assert_string_equal(traced, "update put ok closed");
	assert_non_null(strstr(w.comment_text, "**No accelerator has reported yet**"));
	w.is_pull_unknown = true;
	run(1);
	assert_string_equal(traced, "ok closed");
}

static void test_switched_off(void **state)
{
	(void)state;
	w.config.comment_enabled = false;
	run(1);
	assert_string_equal(traced, "ok closed");
}

static void test_lost_comment_is_found_by_its_marker(void **state)
{
	(void)state;
	w.comment_id = 98;
	run(1);
	assert_string_equal(traced, "find update put ok closed");
	assert_int_equal(w.known.comment_id, 98);
}

static void test_deleted_comment_is_created_again(void **state)
{
	(void)state;
	know_comment(3600 * 1000);
	w.comment_id = 0;
	w.update[0] = (struct scripted){.err = ERR_NOT_FOUND, .status = 404, .is_final = true};
	run(1);
	assert_string_equal(traced, "update find create put ok closed");
	assert_int_equal(w.known.comment_id, 99);
}

static void test_lost_answer_creates_no_second_comment(void **state)
{
	(void)state;
	w.create[0] = (struct scripted){.err = ERR_TIMEOUT, .was_sent = true};
	w.create_arrives = true;
	run(2);
	assert_string_equal(traced, "find create retry find update put ok closed");
	assert_int_equal(w.n_create, 1);
}

static void test_lost_answer_makes_the_old_text_uncertain(void **state)
{
	(void)state;
	run(1);
	w.known.written_ms -= 3600 * 1000;
	w.has_red = true;
	w.update[0] = (struct scripted){.err = ERR_TIMEOUT, .was_sent = true};
	run(1);
	assert_string_equal(traced, "update retry closed");
	w.has_red = false; /* the text is as before, but GitHub may show the red one */
	run(1);
	assert_string_equal(traced, "update put ok closed");
	run(1);
	assert_string_equal(traced, "ok closed");
	w.has_red = true;
	w.update[2] = (struct scripted){.err = ERR_BUSY, .retry_after_ms = 30000};
	run(1);
	assert_string_equal(traced, "update not_yet closed");
	w.has_red = false; /* it was never sent */
	run(1);
	assert_string_equal(traced, "ok closed");
}

static void test_refused_for_good(void **state)
{
	struct publish_counters counters;

	(void)state;
	w.create[0] = (struct scripted){.err = ERR_DENIED, .status = 403, .is_final = true};
	w.n_due_rows = w.n_rows_to_come = 1;
	begin();
	loop_run(w.loop);
	publish_read_counters(w.publisher, &counters);
	assert_string_equal(traced, "find create dead closed");
	assert_string_equal(w.done_error, "GitHub says 403");
	assert_int_equal(counters.n_dead, 1);
	assert_string_equal(counters.last_error, "GitHub says 403");
	publish_free(w.publisher);
	loop_free(w.loop);
}

static void test_failures_are_retried(void **state)
{
	(void)state;
	w.find[0] = (struct scripted){.err = ERR_NETWORK};
	run(1);
	assert_string_equal(traced, "find retry closed");
	assert_true(w.done.next_ms > w.done.now_ms);
	w.row_age_ms = BACKOFF_GIVE_UP_MS;
	w.n_find = 0;
	run(1);
	assert_string_equal(traced, "find dead closed");
	/* our own budget: nothing was tried */
	w.find[1] = (struct scripted){.err = ERR_BUSY, .retry_after_ms = 30000};
	w.n_find = 1;
	run(1);
	assert_string_equal(traced, "find not_yet closed");
	assert_true(w.done.next_ms >= w.done.now_ms + 30000 - 1000);
}

static void test_edits_wait_for_the_interval(void **state)
{
	(void)state;
	know_comment(10 * 1000);
	w.is_running = true;
	run(1);
	assert_string_equal(traced, "not_yet closed");
	assert_int_equal(w.done.next_ms, w.known.written_ms + 60 * 1000);
	w.has_red = true; /* the first failure does not */
	run(1);
	assert_string_equal(traced, "update put ok closed");
	assert_true(w.known.has_red_written);
}

static void test_first_failure_of_a_new_head_is_written_at_once(void **state)
{
	(void)state;
	know_comment(10 * 1000);
	w.is_running = w.has_red = w.known.has_red_written = true;
	w.known.change_id = 0; /* the red result that was shown belongs to another head */
	run(1);
	assert_string_equal(traced, "update put ok closed");
	w.known.written_ms = clock_wall_ms() - 10 * 1000;
	memset(w.known.body_hash, 0, sizeof(w.known.body_hash));
	run(1); /* now the failure is shown */
	assert_string_equal(traced, "not_yet closed");
}

static void test_edits_leave_room_for_failures(void **state)
{
	struct publish_counters counters;

	(void)state;
	know_comment(3600 * 1000);
	w.config.github_writes_per_minute = 2; /* one of them is not for edits */
	w.is_running = w.is_forgetful = true;
	w.n_due_rows = w.n_rows_to_come = 2;
	begin();
	loop_run(w.loop);
	publish_read_counters(w.publisher, &counters);
	assert_int_equal(counters.n_paced, 1);
	assert_string_equal(traced, "update put ok not_yet closed");
	assert_in_range(w.done.next_ms, clock_wall_ms() + 1, clock_wall_ms() + PACING_LATEST_MS);
	publish_free(w.publisher);
	loop_free(w.loop);
}

static void test_last_result_is_written_at_once(void **state)
{
	(void)state;
	know_comment(10 * 1000);
	run(1);
	assert_string_equal(traced, "update put ok closed");
}

/* The end of the last experiment is the last result: until then an edit waits for its turn. */
static void test_a_running_experiment_delays_the_last_result(void **state)
{
	(void)state;
	know_comment(10 * 1000);
	w.known.has_red_written = true;
	w.known.change_id = 1;
	w.has_red = w.is_rerunning = true;
	run(1);
	assert_string_equal(traced, "not_yet closed");
	w.is_rerunning = false;
	run(1);
	assert_string_equal(traced, "update put ok closed");
}

static void test_the_comment_waits_for_evidence_for_a_limited_time(void **state)
{
	int64_t now_ms = clock_wall_ms();

	(void)state;
	w.is_being_attributed = true;
	w.row_age_ms = 10 * 1000;
	run(1);
	assert_string_equal(traced, "not_yet closed");
	assert_in_range(w.done.next_ms, now_ms + 1000, clock_wall_ms() + 1000);
	w.row_age_ms = 15 * 1000;
	now_ms = clock_wall_ms();
	run(1);
	/* No other event says that the gathering ended without a change. */
	assert_string_equal(traced, "find create put again closed");
	assert_in_range(w.done.next_ms, now_ms + 15 * 1000, clock_wall_ms() + 15 * 1000);
}

/* A comment that was written without the App's name is checked again, until it has the name. */
static void test_the_name_of_the_app_is_added_later(void **state)
{
	int64_t now_ms = clock_wall_ms();

	(void)state;
	w.knows_app = false;
	w.app_fails = w.has_red = true;
	run(1);
	assert_string_equal(traced, "app find create put again closed");
	assert_in_range(w.done.next_ms, now_ms + 15 * 1000, clock_wall_ms() + 15 * 1000);
	assert_null(strstr(w.comment_text, "@outpost-ci"));
	w.app_fails = false;
	run(1); /* another publisher, so the pause of the first does not matter */
	assert_string_equal(traced, "app update put ok closed");
	assert_non_null(strstr(w.comment_text, "@outpost-ci"));
}

static void test_row_is_returned_when_the_busy_store_recovers(void **state)
{
	(void)state;
	w.is_pull_unknown = true;
	w.n_done_busy = 1;
	run(1);
	assert_string_equal(traced, "busy ok closed");
}

static void test_a_request_during_a_claim_is_handled_at_once(void **state)
{
	(void)state;
	w.comes_during_claim = true;
	w.n_rows_to_come = 1;
	begin();
	alarm(50); /* the regular look of each minute would find it later */
	loop_run(w.loop);
	alarm(0);
	publish_free(w.publisher);
	loop_free(w.loop);
	assert_string_equal(traced, "find create put ok closed");
}

static void test_closing_does_not_wait_for_a_silent_github(void **state)
{
	(void)state;
	w.is_mute = true;
	w.n_due_rows = 1;
	w.n_rows_to_come = -1; /* the call without an answer starts the close */
	begin();
	loop_run(w.loop);
	assert_string_equal(traced, "find cancel not_yet closed");
	publish_free(w.publisher);
	loop_free(w.loop);
}

static void on_preview(struct preview *preview)
{
	assert_int_equal(preview->err, 0);
	*(char **)preview->owner = preview->text;
	timer_start(w.stop_later, 0);
}

static void test_preview_writes_nothing(void **state)
{
	char *text = NULL;
	struct preview preview = {.number = 4711, .done = on_preview, .owner = &text};

	(void)state;
	begin();
	assert_int_equal(publish_preview(w.publisher, &preview), 0);
	loop_run(w.loop);
	assert_string_equal(traced, "closed");
	assert_non_null(strstr(text, COMMENT_MARKER "\n✓ **NPU passed**"));
	free(text);
	publish_free(w.publisher);
	loop_free(w.loop);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	    TEST(test_first_comment),
	    TEST(test_unchanged_is_not_written),
	    TEST(test_no_comment_without_results),
	    TEST(test_switched_off),
	    TEST(test_lost_comment_is_found_by_its_marker),
	    TEST(test_deleted_comment_is_created_again),
	    TEST(test_lost_answer_creates_no_second_comment),
	    TEST(test_lost_answer_makes_the_old_text_uncertain),
	    TEST(test_refused_for_good),
	    TEST(test_failures_are_retried),
	    TEST(test_the_name_of_the_app_is_added_later),
	    TEST(test_edits_wait_for_the_interval),
	    TEST(test_first_failure_of_a_new_head_is_written_at_once),
	    TEST(test_edits_leave_room_for_failures),
	    TEST(test_last_result_is_written_at_once),
	    TEST(test_a_running_experiment_delays_the_last_result),
	    TEST(test_the_comment_waits_for_evidence_for_a_limited_time),
	    TEST(test_row_is_returned_when_the_busy_store_recovers),
	    TEST(test_a_request_during_a_claim_is_handled_at_once),
	    TEST(test_closing_does_not_wait_for_a_silent_github),
	    TEST(test_preview_writes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
