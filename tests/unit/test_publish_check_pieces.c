/* A check run with more annotations than one request can carry, interrupted in between: GitHub cannot remove
 * annotations, so the next try must know that some have arrived. */
#include "stand_ins.h"

#include "publish/publish.h"
#include "publish/publish_internal.h"
#include "replaces.h"
#include "store/changes.h"
#include "store/outbox.h"
#include "store/published.h"
#include "view_builder.h"
#include "views/change.h"

REPLACES(store_claim_outbox);
REPLACES(outbox_row_release);
REPLACES(claim_outbox_release);
REPLACES(store_outbox_done);
REPLACES(store_get_change);
REPLACES(store_list_checks);
REPLACES(list_checks_release);
REPLACES(store_put_check);
REPLACES(store_doubt_check);
REPLACES(github_cancel);
REPLACES(github_call_release);
REPLACES(github_app_slug);
REPLACES(github_app_get);
REPLACES(github_check_create);
REPLACES(github_check_update);
REPLACES(github_checks_list);
REPLACES(github_check_list_release);

enum { FAILURES = 120, CHECK = 55 };

static struct world {
	struct loop *loop;
	struct publisher *publisher;
	struct config config;
	struct timer *stop_later;

	bool is_requested, is_uncertain;
	int n_more_jobs;   /* that reported "success" */
	int n_annotations; /* that GitHub shows of the first job's check run */
	int n_updates, refused_update;
} w;

/* ---- the store ---- */

static void on_closed(void *owner)
{
	(void)owner;
	timer_close(w.stop_later);
	loop_stop(w.loop);
}

static void close_now(struct timer *t)
{
	(void)t;
	publish_close(w.publisher, on_closed, NULL);
}

int store_claim_outbox(struct store *s, struct claim_outbox *op)
{
	(void)s;
	if (op->kinds == 1u << OUTBOX_CHECKS && w.is_requested) {
		w.is_requested = false;
		op->rows = xcalloc(1, sizeof(*op->rows));
		op->n = 1;
		op->rows[0] = (struct outbox_row){.id = 5,
		    .kind = OUTBOX_CHECKS,
		    .target = xstrdup("pytorch/pytorch"),
		    .number = 4711,
		    .first_ms = op->now_ms,
		    .is_uncertain = w.is_uncertain};
	}
	end_op(w.loop, &op->op);
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
	trace("%s", words[op->result]);
	w.is_uncertain = op->is_uncertain;
	end_op(w.loop, &op->op);
	timer_start(w.stop_later, 0);
	return 0;
}

static void add_job(struct accelerator_view *x, int i, const char *conclusion)
{
	struct job_view *j = VIEW_PUSH(x->jobs, x->n_jobs);

	*j = (struct job_view){.id = 7 + i,
	    .workflow = xstrdup("ci"),
	    .name = xasprintf("job%02d", i),
	    .run_id = xstrdup("900"),
	    .dispatch_id = xstrdup(x->dispatches[0].id),
	    .runner = xstrdup(x->dispatches[0].runner),
	    .status = JOB_COMPLETED,
	    .conclusion = xstrdup(conclusion)};
}

/* One job that reported "failure", with the place of each failed test; and the other jobs. */
int store_get_change(struct store *s, struct get_change *q)
{
	struct change_view *v = view_new();
	size_t a = view_add_accelerator(v, "npu", "NPU", LEVEL_4, DISPATCH_RUNNING);
	struct accelerator_view *x = &v->accelerators[a];

	(void)s;
	add_job(x, 0, "failure");
	for (int i = 1; i <= w.n_more_jobs; i++)
		add_job(x, i, "success");
	for (int i = 0; i < FAILURES; i++) {
		char test[16];

		snprintf(test, sizeof(test), "t%03d", i);
		view_add_verdict(v, a, "unit", test, TEST_FAIL, 7);
		v->verdicts[i].file = xstrdup("test/test_ops.py");
		v->verdicts[i].line = i + 1;
	}
	q->view = v;
	end_query(w.loop, &q->q);
	return 0;
}

/* The check run was begun when the job was. */
int store_list_checks(struct store *s, struct list_checks *q)
{
	(void)s;
	q->labels = strv_copy(NULL);
	q->named_number = 4711;
	q->n = (size_t)w.n_more_jobs + 1;
	q->list = xcalloc(q->n, sizeof(*q->list));
	for (size_t i = 0; i < q->n; i++)
		q->list[i] = (struct stored_check){.head_sha = xstrdup("unused"),
		    .name = xasprintf("outpost/npu/ci/job%02d", (int)i),
		    .accelerator = xstrdup("npu"),
		    .check_id = CHECK + (int64_t)i,
		    .job_id = 7 + (int64_t)i,
		    .is_of_head = true};
	end_query(w.loop, &q->q);
	return 0;
}

void list_checks_release(struct list_checks *q)
{
	for (size_t i = 0; i < q->n; i++) {
		free(q->list[i].head_sha);
		free(q->list[i].name);
		free(q->list[i].accelerator);
	}
	free(q->list);
	strv_free(q->labels);
}

int store_put_check(struct store *s, struct put_check *op)
{
	(void)s;
	trace("put");
	assert_in_range(op->check_id, CHECK, CHECK + w.n_more_jobs);
	end_op(w.loop, &op->op);
	return 0;
}

int store_doubt_check(struct store *s, struct doubt_check *op)
{
	(void)s;
	trace("doubt");
	assert_ptr_equal(strstr(op->name, "outpost/npu/ci/job"), op->name);
	end_op(w.loop, &op->op);
	return 0;
}

/* ---- the other kinds, which are never requested ---- */

static void fail_to_begin(struct effect *e)
{
	(void)e;
	fail();
}

#define KIND_THAT_FAILS(its_kind, its_lane)                                                                            \
	{                                                                                                              \
		.kind = its_kind, .lane = its_lane, .bytes = sizeof(struct effect), .begin = fail_to_begin             \
	}
const struct effect_kind comment_kind = KIND_THAT_FAILS(OUTBOX_COMMENT, COMMENT_LANE);
const struct effect_kind reaction_kind = KIND_THAT_FAILS(OUTBOX_REACTION, REACTION_LANE);
const struct effect_kind reply_kind = KIND_THAT_FAILS(OUTBOX_REPLY, REPLY_LANE);
const struct effect_kind red_issue_kind = KIND_THAT_FAILS(OUTBOX_RED_ISSUE, RED_ISSUE_LANE);

/* ---- GitHub ---- */

void github_cancel(struct github *g, struct github_call *call)
{
	(void)g;
	(void)call;
	fail();
}

void github_call_release(struct github_call *call)
{
	json_decref(call->answer);
	call->answer = NULL;
}

const char *github_app_slug(const struct github *g)
{
	(void)g;
	return "outpost-ci";
}

void github_app_get(struct github *g, struct github_call *call)
{
	(void)g;
	(void)call;
	fail();
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
	(void)g;
	(void)repository;
	assert_true(check_id == CHECK || !check->n_annotations);
	if (++w.n_updates == w.refused_update) { /* its turn has not come */
		call->result.err = ERR_BUSY;
		call->result.retry_after_ms = 1000;
		trace("refused");
	} else {
		w.n_annotations += (int)check->n_annotations;
		trace("update");
	}
	end_call(w.loop, call);
}

void github_checks_list(struct github *g, struct github_check_list *list, const char *repository, const char *head_sha)
{
	(void)g;
	(void)repository;
	(void)head_sha;
	trace("list");
	list->n = 1;
	list->list = xcalloc(1, sizeof(*list->list));
	list->list[0] = (struct github_listed_check){.id = CHECK,
	    .name = xstrdup("outpost/npu/ci/job00"),
	    .external_id = xstrdup("900:4711"),
	    .n_annotations = w.n_annotations};
	end_call(w.loop, &list->call);
}

void github_check_list_release(struct github_check_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		free(list->list[i].name);
		free(list->list[i].external_id);
	}
	free(list->list);
}

/* ---- the test ---- */

/* Runs a new publisher until the row is returned. */
static void run(void)
{
	static char public_url[] = "https://outpost.example.org", github_api_url[] = "https://api.github.com";

	stand_ins_reset();
	w.config = (struct config){.checks_enabled = true,
	    .github_writes_per_minute = 80,
	    .github_api_url = github_api_url,
	    .public_url = public_url};
	w.is_requested = true;
	w.loop = loop_new();
	w.stop_later = timer_new(w.loop, close_now, NULL);
	w.publisher = publish_new(&(struct publish_deps){.loop = w.loop}, &w.config);
	loop_run(w.loop);
	publish_free(w.publisher);
	loop_free(w.loop);
}

static void all_annotations_are_sent_in_one_run(void **state)
{
	(void)state;
	w = (struct world){.is_requested = true};
	run();
	assert_string_equal(traced, "doubt update update update put ok");
	assert_int_equal(w.n_annotations, FAILURES);
	assert_false(w.is_uncertain);
}

static void annotations_that_arrived_before_a_refusal_are_not_sent_again(void **state)
{
	(void)state;
	w = (struct world){.refused_update = 2};
	run();
	assert_string_equal(traced, "doubt update refused not_yet");
	run();
	assert_string_equal(traced, "list doubt update update put ok");
	assert_int_equal(w.n_annotations, FAILURES);
	assert_false(w.is_uncertain);
}

static void a_refusal_of_the_first_request_leaves_nothing_uncertain(void **state)
{
	(void)state;
	w = (struct world){.refused_update = 1};
	run();
	assert_string_equal(traced, "doubt refused not_yet");
	assert_false(w.is_uncertain);
	run();
	assert_string_equal(traced, "doubt update update update put ok");
}

/* Outpost does not know which of the check runs is the uncertain one. */
static void one_known_check_run_does_not_settle_the_others(void **state)
{
	(void)state;
	w = (struct world){.is_uncertain = true, .n_more_jobs = 1};
	run();
	assert_string_equal(traced, "list doubt update update update put not_yet"); /* paced */
	assert_true(w.is_uncertain);
	w = (struct world){.is_uncertain = true, .n_more_jobs = 1, .n_annotations = 100};
	w.refused_update = 2;
	run();
	assert_string_equal(traced, "list doubt update put doubt refused not_yet");
	assert_true(w.is_uncertain);
	w.refused_update = 0;
	run();
	assert_string_equal(traced, "list doubt update put doubt update put ok");
	assert_false(w.is_uncertain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(all_annotations_are_sent_in_one_run),
	    cmocka_unit_test(annotations_that_arrived_before_a_refusal_are_not_sent_again),
	    cmocka_unit_test(a_refusal_of_the_first_request_leaves_nothing_uncertain),
	    cmocka_unit_test(one_known_check_run_does_not_settle_the_others),
	};

	log_setup(LOG_ERROR + 1, LOG_TEXT);
	return cmocka_run_group_tests_name("publish_check_pieces", tests, NULL, NULL);
}
