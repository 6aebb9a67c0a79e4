/* Known issues: which failures they match when they are added, removed and expire, and the counts. */
#include "model/test_result.h"
#include "store_rig.h"
#include "verdict/attribution.h"
#include "verdict/known_issues.h"

static const char ISSUE[] = "https://github.com/pytorch/pytorch/issues/77";

#define RED(s, n)                                                                                                      \
	{                                                                                                              \
		.suite = (char *)(s), .name = (char *)(n), .status = TEST_FAIL, .duration_ms = 5,                      \
		.message = (char *)"no such op"                                                                        \
	}

/* PR `number` with head `head`, tested by npu: these are red. */
static void tested(int64_t number, const char *head, struct test_result *tests, size_t n)
{
	struct plan_want wants[] = {GITHUB_WANT("npu", "Ascend/pytorch")};
	struct job_report j = {.status = JOB_COMPLETED,
	    .conclusion = (char *)"failure",
	    .workflow = (char *)"CI",
	    .name = (char *)"a",
	    .run_id = (char *)"1",
	    .run_attempt = 1,
	    .tests = tests,
	    .n_tests = n,
	    .digest = {1}};
	struct report_job op = {.report = &j, .now_ms = T0 + MINUTE};
	char *id;

	rig_apply(&(struct rig_plan){
	    .kind = PLAN_START, .number = number, .head = head, .event_ms = T0, .wants = wants, .n_wants = 1});
	free(rig_send(T0));
	id = rig_dispatch_id(head, "npu");
	op.dispatch_id = id;
	DO_OK(store_report_job, &op);
	assert_int_equal(op.outcome, REPORT_RECORDED);
	free(id);
}

static int64_t add(const char *pattern, const char *accelerator, int64_t until_ms)
{
	struct add_known op = {.pattern = pattern,
	    .accelerator = accelerator,
	    .url = ISSUE,
	    .until_ms = until_ms,
	    .now_ms = T0 + 2 * MINUTE};

	DO_OK(store_add_known, &op);
	assert_true(op.id > 0);
	return op.id;
}

/* Attributes all due changes as evidence/ does, without requests to GitHub. Returns their number. */
static size_t attribute_due(int64_t now_ms)
{
	struct claim_due_changes c = {.now_ms = now_ms, .limit = 100};
	size_t n;

	ASK_OK(store_claim_due_changes, &c);
	n = c.n;
	for (size_t i = 0; i < n; i++) {
		struct attribute_change a = {
		    .change_id = c.list[i].change_id, .generation = c.list[i].generation, .now_ms = now_ms};

		DO_OK(store_attribute_change, &a);
	}
	claim_due_changes_release(&c);
	return n;
}

/* The tests of a head that are known. free(). */
static char *known_of(const char *head)
{
	struct change_view *v = rig_view_of(0, head);
	struct buf text = BUF_INIT(4096);

	for (size_t i = 0; i < v->n_verdicts; i++)
		if (v->verdicts[i].attribution == ATTRIBUTION_KNOWN)
			buf_appendf(&text, "%s%s", text.len ? ", " : "", v->verdicts[i].test);
	change_view_free(v);
	return buf_detach(&text);
}

#define ASSERT_KNOWN(head, expected)                                                                                   \
	do {                                                                                                           \
		char *got_ = known_of(head);                                                                           \
		assert_string_equal(got_, expected);                                                                   \
		free(got_);                                                                                            \
	} while (0)

static struct known_issue only(int64_t now_ms)
{
	struct list_known l = {.now_ms = now_ms};
	struct known_issue k;

	ASK_OK(store_list_known, &l);
	assert_int_equal(l.n, 1);
	k = l.list[0];
	list_known_release(&l);
	return k; /* its numbers remain, its texts were deleted */
}

static void an_issue_explains_the_failures_that_it_matches(void **state)
{
	struct test_result a[] = {RED("model", "Qwen"), RED("model", "llama3")};
	struct test_result b[] = {RED("unit", "x")};
	struct remove_known gone = {.now_ms = T0 + 5 * MINUTE};

	(void)state;
	tested(1, HEAD_A, a, 2);
	tested(2, HEAD_B, b, 1);
	attribute_due(T0 + MINUTE);
	gone.id = add("model/Q*", "npu", 0);
	assert_int_equal(attribute_due(T0 + 3 * MINUTE), 1);
	ASSERT_KNOWN(HEAD_A, "Qwen");
	ASSERT_KNOWN(HEAD_B, "");
	assert_int_equal(only(T0 + HOUR).n_matches, 1);
	assert_true(only(T0 + HOUR).is_used);
	DO_OK(store_remove_known, &gone);
	assert_int_equal(attribute_due(T0 + 5 * MINUTE), 1);
	ASSERT_KNOWN(HEAD_A, "");
	assert_int_equal(DO(store_remove_known, &gone), ERR_NOT_FOUND);
}

static void an_issue_of_another_accelerator_explains_nothing(void **state)
{
	struct test_result a[] = {RED("model", "Qwen")};

	(void)state;
	tested(1, HEAD_A, a, 1);
	attribute_due(T0 + MINUTE);
	add("**", "tpu", 0);
	assert_int_equal(attribute_due(T0 + 3 * MINUTE), 0);
	assert_int_equal(only(T0 + HOUR).n_matches, 0);
	assert_false(only(T0 + HOUR).is_used);
}

static void an_issue_counts_a_change_once(void **state)
{
	struct test_result a[] = {RED("model", "Qwen"), RED("model", "llama3")};

	(void)state;
	add("model/*", NULL, 0);
	tested(1, HEAD_A, a, 2);
	ASSERT_KNOWN(HEAD_A, "Qwen, llama3");
	assert_int_equal(only(T0 + HOUR).n_matches, 1);
	tested(2, HEAD_B, a, 1);
	assert_int_equal(only(T0 + HOUR).n_matches, 2);
	assert_int_equal(only(T0 + HOUR).last_match_ms, T0 + MINUTE);
}

static void an_issue_is_used_while_it_explains_an_open_change(void **state)
{
	struct test_result a[] = {RED("model", "Qwen")};

	(void)state;
	add("model/*", NULL, 0);
	tested(1, HEAD_A, a, 1);
	assert_true(only(T0 + 30 * DAY).is_used);
	rig_close_pull(1, HEAD_A, 3600);
	assert_true(only(T0 + 6 * DAY).is_used);
	assert_false(only(T0 + 30 * DAY).is_used);
}

static void an_issue_expires_once(void **state)
{
	struct test_result a[] = {RED("model", "Qwen")};
	struct expire_known x = {.now_ms = T0 + 3 * MINUTE};

	(void)state;
	tested(1, HEAD_A, a, 1);
	attribute_due(T0 + MINUTE);
	add("model/*", NULL, T0 + HOUR);
	attribute_due(T0 + 3 * MINUTE);
	ASSERT_KNOWN(HEAD_A, "Qwen");
	DO_OK(store_expire_known, &x);
	assert_int_equal(x.n_expired, 0);
	assert_int_equal(x.next_ms, T0 + HOUR);
	x.now_ms = T0 + HOUR;
	DO_OK(store_expire_known, &x);
	assert_int_equal(x.n_expired, 1);
	assert_int_equal(x.next_ms, 0);
	assert_int_equal(attribute_due(T0 + HOUR), 1);
	ASSERT_KNOWN(HEAD_A, "");
	DO_OK(store_expire_known, &x);
	assert_int_equal(x.n_expired, 0);
	assert_int_equal(attribute_due(T0 + HOUR), 0);
	assert_int_equal(only(T0 + HOUR).until_ms, T0 + HOUR); /* listed all the same */
}

#define T(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    T(an_issue_explains_the_failures_that_it_matches),
	    T(an_issue_of_another_accelerator_explains_nothing),
	    T(an_issue_counts_a_change_once),
	    T(an_issue_is_used_while_it_explains_an_open_change),
	    T(an_issue_expires_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
