/* Bodies of webhooks are stored as differences to an earlier one, and read back whole, whatever happens to that one. */
#include "store/deliveries.h"
#include "store_rig.h"

enum { BODY_BYTES = 6000, LINE_BYTES = 60 };

/* A body of text that does not compress by itself, with a line of its own. free() */
static char *body_of(int own)
{
	struct buf body = BUF_INIT(BODY_BYTES * 2);
	uint32_t x = 1;

	buf_appendf(&body, "{\"own\":%d", own);
	for (int line = 0; body.len < BODY_BYTES; line++) {
		buf_appendf(&body, ",\"%d\":\"", line);
		for (int i = 0; i < LINE_BYTES; i++) {
			x = x * 1664525 + 1013904223;
			buf_append_char(&body, (char)('A' + (x >> 24) % 26));
		}
		buf_append_char(&body, '"');
	}
	buf_append_char(&body, '}');
	return buf_detach(&body);
}

static void put(const char *guid, const char *event, int own, int64_t now_ms)
{
	char *body = body_of(own);
	struct put_delivery p = {.guid = guid,
	    .event = event,
	    .action = "opened",
	    .repository = UPSTREAM,
	    .body = body,
	    .body_bytes = strlen(body),
	    .now_ms = now_ms};

	DO_OK(store_put_delivery, &p);
	assert_true(p.delivery_id > 0);
	free(body);
}

static void assert_body(const char *guid, int own)
{
	struct get_delivery g = {.guid = guid};
	char *body = body_of(own);

	ASK_OK(store_get_delivery, &g);
	assert_string_equal(g.delivery.body, body);
	assert_int_equal(g.delivery.body_len, strlen(body));
	delivery_release(&g.delivery);
	free(body);
}

struct look_op {
	struct store_op op;
	void (*work)(struct txn *d, struct look_op *o);
	const char *sql; /* of look_at() */
	int64_t n;
	int rc;
};

static int run_look(struct store_op *op, struct txn *d)
{
	struct look_op *o = CONTAINER_OF(op, struct look_op, op);

	o->work(d, o);
	return o->rc;
}

static int submit_look(struct store *s, struct look_op *o)
{
	o->op.run = run_look;
	o->op.bytes = sizeof(*o);
	return store_submit(s, &o->op);
}

static void run_sql(struct txn *d, struct look_op *o) { o->n = db_exec_int_values(d, -1, o->sql, VALUES()); }

static int64_t look_at(const char *sql)
{
	struct look_op o = {.work = run_sql, .sql = sql};

	DO_OK(submit_look, &o);
	return o.n;
}

static void a_body_takes_the_room_of_its_difference(void **state)
{
	(void)state;
	put("first", "pull_request", 1, T0);
	put("second", "pull_request", 2, T0);
	put("push", "push", 3, T0);
	assert_int_equal(look_at("SELECT COUNT(*) FROM body_base"), 2);
	assert_true(look_at("SELECT MAX(length(body)) FROM delivery") < 200);
	assert_true(look_at("SELECT MIN(length(body)) FROM body_base") > 2000);
	rig_close();
	rig_open();
	put("third", "pull_request", 4, T0);
	assert_int_equal(look_at("SELECT COUNT(*) FROM body_base"), 2);
	assert_body("first", 1);
	assert_body("second", 2);
	assert_body("push", 3);
	assert_body("third", 4);
}

static void a_base_is_used_for_a_month(void **state)
{
	(void)state;
	put("first", "pull_request", 1, T0);
	put("second", "pull_request", 2, T0 + 30 * DAY);
	assert_int_equal(look_at("SELECT COUNT(*) FROM body_base"), 1);
	put("third", "pull_request", 3, T0 + 30 * DAY + 1);
	put("fourth", "pull_request", 4, T0 + 31 * DAY);
	assert_int_equal(look_at("SELECT COUNT(*) FROM body_base"), 2);
	assert_int_equal(look_at("SELECT COUNT(DISTINCT base_id) FROM delivery"), 2);
	assert_body("first", 1);
	assert_body("second", 2);
	assert_body("third", 3);
	assert_body("fourth", 4);
}

static void put_undone(struct txn *d, struct look_op *o)
{
	char *body = body_of(1);

	(void)o;
	delivery_put_synthetic(d, "undone", "nightly", "", UPSTREAM, body, strlen(body), T0);
	free(body);
}

static void put_synthetic(struct txn *d, struct look_op *o)
{
	char *body = body_of(7);

	(void)o;
	delivery_put_synthetic(d, "kept", "nightly", "", UPSTREAM, body, strlen(body), T0);
	assert_true(delivery_copy(d, "kept", "copy", T0));
	free(body);
}

static void a_base_that_was_undone_is_not_used(void **state)
{
	struct look_op undone = {.work = put_undone, .rc = ERR_INVALID}, kept = {.work = put_synthetic};

	(void)state;
	assert_int_equal(DO(submit_look, &undone), ERR_INVALID);
	assert_int_equal(look_at("SELECT COUNT(*) FROM body_base"), 0);
	put("first", "pull_request", 1, T0);
	DO_OK(submit_look, &kept);
	assert_int_equal(look_at("SELECT COUNT(*) FROM body_base"), 2);
	rig_close();
	rig_open();
	assert_body("first", 1);
	assert_body("kept", 7);
	assert_body("copy", 7);
}

static void a_damaged_base_costs_the_bodies_that_need_it(void **state)
{
	struct get_delivery g = {.guid = "first"};
	struct next_deliveries next = {.limit = 10};

	(void)state;
	put("first", "pull_request", 1, T0);
	look_at("UPDATE body_base SET body = x'00'");
	rig_close();
	rig_open();
	assert_int_equal(ASK(store_get_delivery, &g), ERR_NOT_FOUND);
	put("second", "pull_request", 2, T0);
	assert_body("second", 2);
	/* bodies of another base: the checksum does not fit */
	look_at("UPDATE delivery SET base_id = (SELECT MAX(id) FROM body_base) WHERE base_id = 1");
	look_at("UPDATE body_base SET body = (SELECT x.body FROM body_base x WHERE x.id = 2) WHERE id = 1");
	ASK_OK(store_next_deliveries, &next);
	assert_int_equal(next.n, 2);
	assert_non_null(next.list[1].body);
	next_deliveries_release(&next);
	look_at("UPDATE delivery SET base_id = 99");
	assert_int_equal(ASK(store_get_delivery, &g), ERR_NOT_FOUND);
}

static void small_and_large_bodies_are_no_base(void **state)
{
	struct get_delivery g = {.guid = "large"};
	char *large = xcalloc(70001, 1);
	struct put_delivery p = {.guid = "large",
	    .event = "pull_request",
	    .action = "opened",
	    .repository = UPSTREAM,
	    .body = large,
	    .body_bytes = 70000,
	    .now_ms = T0};

	(void)state;
	memset(large, 'x', 70000);
	assert_true(rig_put("small", "{}"));
	DO_OK(store_put_delivery, &p);
	assert_int_equal(look_at("SELECT COUNT(*) FROM body_base"), 0);
	assert_int_equal(look_at("SELECT COUNT(base_id) FROM delivery"), 0);
	ASK_OK(store_get_delivery, &g);
	assert_string_equal(g.delivery.body, large);
	delivery_release(&g.delivery);
	free(large);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
	    TEST(a_body_takes_the_room_of_its_difference),
	    TEST(a_base_is_used_for_a_month),
	    TEST(a_base_that_was_undone_is_not_used),
	    TEST(a_damaged_base_costs_the_bodies_that_need_it),
	    TEST(small_and_large_bodies_are_no_base),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
