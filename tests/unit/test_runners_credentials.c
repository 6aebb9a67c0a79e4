/* Tokens in memory: their format, the machine that each identifies, when they are read again, and how their uses are
 * recorded. The store answers when the test says so. */
#include <setjmp.h>

#include <cmocka.h>

#include "replaces.h"
#include "runners/credentials.h"

REPLACES(token_kind_name);
REPLACES(store_list_tokens);
REPLACES(list_tokens_release);
REPLACES(store_touch_tokens);

#define HOME "192.0.2.1"

/* ---- a store that waits ---- */

static struct {
	int submit_err;
	struct list_tokens *list;
	struct touch_tokens *touch;
	int n_lists, n_touches;
	bool is_asked;
} fake;

const char *token_kind_name(enum token_kind k) { return k == TOKEN_API ? "api" : "runner"; }

int store_list_tokens(struct store *s, struct list_tokens *q)
{
	(void)s;
	fake.n_lists++;
	fake.is_asked = true;
	if (fake.submit_err)
		return fake.submit_err;
	assert_null(fake.list);
	assert_true(q->only_valid);
	fake.list = q;
	return 0;
}

void list_tokens_release(struct list_tokens *q)
{
	for (size_t i = 0; i < q->n; i++) {
		free(q->list[i].accelerator);
		free(q->list[i].name);
		free(q->list[i].last_address);
	}
	FREE_AND_NULL(q->list);
	q->n = 0;
}

int store_touch_tokens(struct store *s, struct touch_tokens *op)
{
	(void)s;
	if (fake.submit_err)
		return fake.submit_err;
	fake.n_touches++;
	assert_null(fake.touch);
	fake.touch = op;
	return 0;
}

struct row {
	int64_t id;
	const char *accelerator, *name; /* name "": an API token */
	const char *text;
	int64_t used_ms;
};

static void answer_list(const struct row *rows, size_t n, int err)
{
	struct list_tokens *q = fake.list;

	assert_non_null(q);
	fake.list = NULL;
	q->q.err = err;
	q->n = n;
	q->list = xcalloc(n + 1, sizeof(*q->list));
	for (size_t i = 0; i < n; i++) {
		q->list[i] = (struct token_row){
		    .id = rows[i].id,
		    .kind = *rows[i].name ? TOKEN_RUNNER : TOKEN_API,
		    .accelerator = xstrdup(rows[i].accelerator),
		    .name = xstrdup(rows[i].name),
		    .last_used_ms = rows[i].used_ms,
		};
		credential_hash(rows[i].text, q->list[i].hash);
	}
	q->q.done(&q->q);
}

static void answer_touch(void)
{
	struct touch_tokens *op = fake.touch;

	assert_non_null(op);
	fake.touch = NULL;
	op->op.done(&op->op);
}

/* ---- the parts ---- */

static char texts[4][CREDENTIAL_TEXT_BYTES];

struct fixture {
	struct loop *loop;
	struct credentials *credentials;
	struct credential who;
	int retry_after_s, n_changes;
	bool is_closed;
};

static void on_change(void *owner) { ((struct fixture *)owner)->n_changes++; }

static void on_closed(void *owner) { *(bool *)owner = true; }

static int set_up(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));

	log_setup(LOG_ERROR + 1, LOG_TEXT);
	memset(&fake, 0, sizeof(fake));
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		credential_make(i == 3 ? TOKEN_API : TOKEN_RUNNER, texts[i]);
	f->loop = loop_new();
	f->credentials = credentials_new(f->loop, NULL);
	credentials_on_change(f->credentials, on_change, f);
	*state = f;
	return 0;
}

static void close_all(struct fixture *f)
{
	credentials_close(f->credentials, on_closed, &f->is_closed);
	if (fake.touch)
		answer_touch();
	if (fake.list)
		answer_list(NULL, 0, 0);
	loop_run_until(f->loop, &f->is_closed);
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	if (!f->is_closed)
		close_all(f);
	credentials_free(f->credentials);
	loop_stop(f->loop);
	loop_run(f->loop);
	loop_free(f->loop);
	free(f);
	return 0;
}

static void until_asked(struct fixture *f)
{
	fake.is_asked = fake.list != NULL;
	loop_run_until(f->loop, &fake.is_asked);
}

static void read_all(void)
{
	const struct row rows[] = {
	    {.id = 4, .accelerator = "npu", .name = "", .text = texts[3]},
	    {.id = 1, .accelerator = "npu", .name = "a", .text = texts[0], .used_ms = 1000},
	    {.id = 2, .accelerator = "npu", .name = "a", .text = texts[1], .used_ms = 2000},
	    {.id = 3, .accelerator = "npu", .name = "b", .text = texts[2]},
	};

	answer_list(rows, ARRAY_LEN(rows), 0);
}

static enum credential_verdict check(struct fixture *f, const char *text, const char *address)
{
	return credentials_check(f->credentials, text, address, &f->who, &f->retry_after_s);
}

static void test_format(void **state)
{
	static const char *const wrong[] = {"", "ort_", "x", "ort_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
	    "ort_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
	    "ort_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "art_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		assert_int_equal(strlen(texts[i]), 47);
		assert_true(str_has_prefix(texts[i], i == 3 ? "oat_" : "ort_"));
		assert_true(credential_is_shaped(texts[i]));
	}
	assert_string_not_equal(texts[0], texts[1]);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		assert_false(credential_is_shaped(wrong[i]));
}

static void test_a_token_identifies_its_machine(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(check(f, texts[0], HOME), CREDENTIAL_UNREAD);
	assert_false(credentials_are_read(f->credentials));
	read_all();
	assert_true(credentials_are_read(f->credentials));
	assert_int_equal(f->n_changes, 1);
	assert_int_equal(check(f, texts[2], HOME), CREDENTIAL_GOOD);
	assert_int_equal(f->who.id, 3);
	assert_int_equal(f->who.kind, TOKEN_RUNNER);
	assert_string_equal(f->who.accelerator, "npu");
	assert_string_equal(f->who.name, "b");
	assert_int_equal(check(f, texts[3], HOME), CREDENTIAL_GOOD);
	assert_int_equal(f->who.kind, TOKEN_API);
	assert_int_equal(check(f, "ort_x", HOME), CREDENTIAL_WRONG);
	assert_int_equal(credentials_n_wrong(f->credentials), 1);
}

static void test_wrong_tokens_are_limited_by_address(void **state)
{
	struct fixture *f = *state;
	char address[64];

	read_all();
	for (int i = 0; i < CREDENTIALS_WRONG_PER_MINUTE; i++) {
		snprintf(address, sizeof(address), "2001:db8:0:1::%x", i);
		assert_int_equal(check(f, "ort_x", HOME), CREDENTIAL_WRONG);
		assert_int_equal(check(f, "ort_x", address), CREDENTIAL_WRONG);
	}
	assert_int_equal(check(f, "ort_x", HOME), CREDENTIAL_OVER_RATE);
	assert_in_range(f->retry_after_s, 1, 60);
	assert_int_equal(check(f, "ort_x", "2001:db8:0:1:ffff::1"), CREDENTIAL_OVER_RATE);
	assert_int_equal(check(f, "ort_x", "2001:db8:0:2::1"), CREDENTIAL_WRONG);
	assert_int_equal(check(f, "ort_x", "192.0.2.2"), CREDENTIAL_WRONG);
	/* Another machine behind the same address. */
	assert_int_equal(check(f, texts[0], HOME), CREDENTIAL_GOOD);
}

struct waiting {
	struct credentials_wait wait;
	int n;
};

static void on_known(struct credentials_wait *w) { CONTAINER_OF(w, struct waiting, wait)->n++; }

static void test_reads_again(void **state)
{
	const struct row left = {.id = 3, .accelerator = "npu", .name = "b", .text = texts[2]};
	struct fixture *f = *state;
	struct waiting w = {.wait.done = on_known};
	int64_t used_ms;
	const char *address;

	read_all();
	assert_int_equal(check(f, texts[0], HOME), CREDENTIAL_GOOD);
	assert_int_equal(check(f, texts[2], "192.0.2.9"), CREDENTIAL_GOOD);
	credentials_on_tokens(f->credentials);
	/* This change may be newer than the rows that are being read. */
	credentials_await(f->credentials, &w.wait);
	answer_list(&left, 1, 0);
	assert_int_equal(w.n, 0);
	until_asked(f);
	answer_list(&left, 1, 0);
	assert_int_equal(w.n, 1);
	assert_int_equal(w.wait.err, 0);
	assert_int_equal(fake.n_lists, 3);
	assert_int_equal(check(f, texts[0], HOME), CREDENTIAL_WRONG);
	assert_false(credentials_has(f->credentials, 1));
	assert_true(credentials_has(f->credentials, 3));
	assert_true(credentials_last_use(f->credentials, 3, &used_ms, &address));
	assert_string_equal(address, "192.0.2.9");
	/* The use of the removed token was recorded before it was forgotten. */
	assert_int_equal(fake.touch->n, 2);
	answer_touch();
}

static void test_keeps_old_tokens_while_it_cannot_read(void **state)
{
	struct fixture *f = *state;
	struct waiting w = {.wait.done = on_known};

	read_all();
	credentials_await(f->credentials, &w.wait);
	answer_list(NULL, 0, ERR_IO);
	assert_int_equal(w.n, 1);
	assert_int_equal(w.wait.err, ERR_IO);
	assert_int_equal(check(f, texts[0], HOME), CREDENTIAL_GOOD);
	assert_int_equal(f->n_changes, 1);
	/* If the query was not even accepted, the wait is until the next try. */
	fake.submit_err = ERR_BUSY;
	w.n = 0;
	credentials_await(f->credentials, &w.wait);
	until_asked(f);
	assert_int_equal(w.n, 0);
	fake.submit_err = 0;
	until_asked(f);
	read_all();
	assert_int_equal(w.n, 1);
	assert_int_equal(w.wait.err, 0);
}

static void test_records_uses(void **state)
{
	struct fixture *f = *state;
	int64_t before_ms = clock_wall_ms();

	read_all();
	assert_int_equal(fake.n_touches, 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(check(f, texts[0], i < 2 ? HOME : "192.0.2.7"), CREDENTIAL_GOOD);
	credentials_close(f->credentials, on_closed, &f->is_closed);
	assert_int_equal(fake.touch->n, 1);
	assert_int_equal(fake.touch->uses[0].id, 1);
	assert_string_equal(fake.touch->uses[0].address, "192.0.2.7");
	assert_true(fake.touch->uses[0].used_ms >= before_ms);
	assert_false(f->is_closed);
	answer_touch();
	loop_run_until(f->loop, &f->is_closed);
}

static void test_counts_machines(void **state)
{
	struct fixture *f = *state;

	read_all();
	assert_int_equal(credentials_n_machines_since(f->credentials, 500), 1);
	assert_int_equal(credentials_n_machines_since(f->credentials, 3000), 0);
	assert_int_equal(check(f, texts[0], HOME), CREDENTIAL_GOOD);
	assert_int_equal(check(f, texts[1], HOME), CREDENTIAL_GOOD); /* the same machine */
	assert_int_equal(check(f, texts[3], HOME), CREDENTIAL_GOOD); /* not a machine */
	assert_int_equal(credentials_n_machines_since(f->credentials, 3000), 1);
	assert_int_equal(check(f, texts[2], HOME), CREDENTIAL_GOOD);
	assert_int_equal(credentials_n_machines_since(f->credentials, 3000), 2);
}

static void test_closing_while_it_reads(void **state)
{
	struct fixture *f = *state;
	struct waiting now = {.wait.done = on_known}, next = now, late = now;

	credentials_await(f->credentials, &now.wait);
	read_all();
	until_asked(f);
	credentials_await(f->credentials, &next.wait);
	credentials_close(f->credentials, on_closed, &f->is_closed);
	assert_int_equal(next.n, 1);
	assert_int_equal(next.wait.err, ERR_CLOSING);
	credentials_await(f->credentials, &late.wait);
	read_all();
	assert_int_equal(now.n, 1);
	loop_run_until(f->loop, &f->is_closed);
	assert_int_equal(late.n, 1);
	assert_int_equal(late.wait.err, ERR_CLOSING);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	    TEST(test_format),
	    TEST(test_a_token_identifies_its_machine),
	    TEST(test_wrong_tokens_are_limited_by_address),
	    TEST(test_reads_again),
	    TEST(test_keeps_old_tokens_while_it_cannot_read),
	    TEST(test_records_uses),
	    TEST(test_counts_machines),
	    TEST(test_closing_while_it_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
