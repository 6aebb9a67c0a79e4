/* Credentials: two at a time, revoked by id or by name, with recorded uses. */
#include "store/credentials.h"
#include "store_rig.h"

static int add_with(int64_t *ret_id, enum token_kind kind, const char *accelerator, const char *name, int64_t at)
{
	static int n;
	struct add_token a = {.kind = kind, .accelerator = accelerator, .name = name, .now_ms = T0 + at};
	int rc;

	n++;
	sha256(&n, sizeof(n), a.hash);
	rc = DO(store_add_token, &a);
	if (ret_id)
		*ret_id = a.id;
	return rc;
}

static int64_t add(const char *name, int64_t at)
{
	int64_t id;

	assert_int_equal(add_with(&id, TOKEN_RUNNER, "npu", name, at), 0);
	assert_true(id > 0);
	return id;
}

static int end_token(int64_t id, const char *name, int64_t at)
{
	struct revoke_token r = {.id = id, .kind = TOKEN_RUNNER, .accelerator = "npu", .name = name, .now_ms = T0 + at};

	DO_OK(store_revoke_token, &r);
	return r.n_revoked;
}

/* "accelerator/name kind[ revoked]", … */
static void assert_tokens(bool only_valid, const char *expected)
{
	struct list_tokens l = {.only_valid = only_valid};
	struct buf text = BUF_INIT(4096);
	char *got;

	ASK_OK(store_list_tokens, &l);
	for (size_t i = 0; i < l.n; i++)
		buf_appendf(&text, "%s%s/%s %s%s", text.len ? ", " : "", l.list[i].accelerator, l.list[i].name,
		    token_kind_name(l.list[i].kind), l.list[i].revoked_ms ? " revoked" : "");
	list_tokens_release(&l);
	got = buf_detach(&text);
	assert_string_equal(got, expected);
	free(got);
}

static void two_tokens_are_valid_at_a_time(void **state)
{
	int64_t first;

	(void)state;
	first = add("npu-17", 0);
	assert_true(rig_topics & STORE_TOKENS);
	add("npu-17", 1);
	assert_int_equal(add_with(NULL, TOKEN_RUNNER, "npu", "npu-17", 2), ERR_EXISTS);
	/* another machine, accelerator or kind is a separate token */
	add("npu-18", 3);
	assert_int_equal(add_with(NULL, TOKEN_RUNNER, "xpu", "npu-17", 4), 0);
	assert_int_equal(add_with(NULL, TOKEN_API, "npu", "", 5), 0);
	assert_int_equal(add_with(NULL, TOKEN_API, "npu", "npu-17", 6), 0);
	assert_int_equal(end_token(first, NULL, 7), 1);
	assert_int_equal(add_with(NULL, TOKEN_RUNNER, "npu", "npu-17", 8), 0);
	assert_int_equal(add_with(NULL, TOKEN_RUNNER, "npu", "npu-17", 9), ERR_EXISTS);
	assert_tokens(false, "npu/ api, npu/npu-17 runner revoked, npu/npu-17 runner, npu/npu-17 api,"
			     " npu/npu-17 runner, npu/npu-18 runner, xpu/npu-17 runner");
}

static void revoking_ends_one_or_all_of_a_name(void **state)
{
	int64_t first, second;

	(void)state;
	first = add("npu-17", 0);
	second = add("npu-17", 1);
	add("npu-18", 2);
	rig_topics = 0;
	assert_int_equal(end_token(0, "nobody", 3), 0);
	assert_int_equal(end_token(999, NULL, 3), 0);
	assert_false(rig_topics & STORE_TOKENS);
	assert_int_equal(end_token(first, NULL, 4), 1);
	assert_true(rig_topics & STORE_TOKENS);
	assert_int_equal(end_token(first, NULL, 5), 0);
	assert_tokens(true, "npu/npu-17 runner, npu/npu-18 runner");
	add("npu-17", 6);
	assert_int_equal(end_token(0, "npu-17", 7), 2);
	assert_tokens(true, "npu/npu-18 runner");
	assert_int_equal(end_token(second, NULL, 8), 0);
}

static void uses_are_recorded(void **state)
{
	int64_t id, idle;
	struct token_use uses[3] = {{.used_ms = T0 + MINUTE, .address = "192.0.2.7"},
	    {.used_ms = T0 + HOUR, .address = "2001:db8::1"}, {.used_ms = T0 + MINUTE, .address = "192.0.2.8"}};
	struct touch_tokens t = {.uses = uses, .n = 3};
	struct list_tokens l = {.only_valid = true};

	(void)state;
	id = add("npu-17", 0);
	idle = add("npu-18", 0);
	uses[0].id = uses[1].id = uses[2].id = id; /* in any order: the newest time is kept */
	rig_topics = 0;
	DO_OK(store_touch_tokens, &t);
	assert_false(rig_topics & STORE_TOKENS);
	rig_reopen();
	ASK_OK(store_list_tokens, &l);
	assert_int_equal(l.n, 2);
	assert_int_equal(l.list[0].last_used_ms, T0 + HOUR);
	assert_string_equal(l.list[0].last_address, "2001:db8::1");
	assert_int_equal(l.list[0].created_ms, T0);
	assert_int_equal(l.list[1].id, idle);
	assert_int_equal(l.list[1].last_used_ms, 0);
	assert_null(l.list[1].last_address);
	list_tokens_release(&l);
}

static void the_hash_is_read_back_unchanged(void **state)
{
	struct add_token a = {.kind = TOKEN_API, .accelerator = "npu", .name = "", .now_ms = T0};
	struct list_tokens l = {0};

	(void)state;
	sha256("secret", 6, a.hash);
	DO_OK(store_add_token, &a);
	ASK_OK(store_list_tokens, &l);
	assert_int_equal(l.n, 1);
	assert_memory_equal(l.list[0].hash, a.hash, sizeof(a.hash));
	list_tokens_release(&l);
	/* one token is one credential */
	a.accelerator = "xpu";
	assert_int_equal(DO(store_add_token, &a), ERR_CONFLICT);
	assert_tokens(false, "npu/ api");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(two_tokens_are_valid_at_a_time),
	    TEST(revoking_ends_one_or_all_of_a_name),
	    TEST(uses_are_recorded),
	    TEST(the_hash_is_read_back_unchanged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
