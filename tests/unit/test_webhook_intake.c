/* Intake with a real server and store: each answer of the table, and the stored rows after it. */
#include "parts_rig.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <semaphore.h>
#include <sys/socket.h>

#include "db/seats.h"
#include "replaces.h"
#include "store/deliveries.h"
#include "webhook/intake.h"
#include "webhook_bodies.h"

#define GUID "72d3162e-cc78-11e3-81ab-4c9367dc0958"

REPLACES(store_has_seat);
REPLACES(store_is_acting);

static bool is_seat_here = true, is_acting = true;

bool store_is_acting(const struct store *s)
{
	(void)s;
	return is_acting;
}

bool store_has_seat(const struct store *s, enum seat seat)
{
	(void)s;
	assert_int_equal(seat, SEAT_PLANNER);
	return is_seat_here;
}

struct fixture {
	struct parts parts;
	struct intake *intake;
};

static int set_up_with(void **state, size_t max_queue_ops)
{
	struct fixture *f = xcalloc(1, sizeof *f);

	folder_setup(state);
	f->parts.max_queue_ops = max_queue_ops;
	parts_open(&f->parts);
	f->intake = intake_new(f->parts.loop, f->parts.store, f->parts.server);
	*state = f;
	return 0;
}

static int set_up(void **state) { return set_up_with(state, 0); }

static int set_up_small_queue(void **state) { return set_up_with(state, 2); }

static int tear_down(void **state)
{
	struct fixture *f = *state;

	parts_close_server(&f->parts);
	if (f->parts.store)
		parts_close_store(&f->parts);
	intake_free(f->intake);
	parts_close(&f->parts);
	free(f);
	return folder_teardown(state);
}

static const char *sign(const char *secret, const char *body, size_t n)
{
	static char header[128];
	uint8_t mac[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];

	hmac_sha256(secret, strlen(secret), body, n, mac);
	snprintf(header, sizeof header, "X-Hub-Signature-256: sha256=%s", hex_encode(mac, sizeof mac, hex));
	return header;
}

/* One delivery with these headers (NULL leaves one out); its status, and that the answer
 * contains `expected`. */
static int deliver(struct fixture *f, const char *guid, const char *event, const char *signature, const char *body,
    const char *expected)
{
	char guid_line[128], event_line[128];
	const char *headers[5] = {"Content-Type: application/json"};
	struct ask a;
	int n = 1, status;

	snprintf(guid_line, sizeof guid_line, "X-GitHub-Delivery: %s", guid ? guid : "");
	snprintf(event_line, sizeof event_line, "X-GitHub-Event: %s", event ? event : "");
	if (guid)
		headers[n++] = guid_line;
	if (event)
		headers[n++] = event_line;
	if (signature)
		headers[n++] = signature;
	ask_start(&f->parts, &a, "/github/webhook", headers, body, strlen(body));
	status = ask_wait(&f->parts, &a);
	if (!strstr(buf_str(&a.call.answer), expected))
		fail_msg("%d %s", status, buf_str(&a.call.answer));
	if (status == 503)
		assert_true(ask_has_header(&a, "Retry-After"));
	ask_release(&a);
	return status;
}

static int deliver_signed(
    struct fixture *f, const char *guid, const char *event, const char *body, const char *expected)
{
	return deliver(f, guid, event, sign("s3cret", body, strlen(body)), body, expected);
}

struct look_up {
	struct get_delivery get;
	bool is_done;
};

static void on_found(struct store_query *q) { CONTAINER_OF(q, struct look_up, get.q)->is_done = true; }

/* The stored delivery; release it. */
static struct delivery stored(struct fixture *f, const char *guid)
{
	struct look_up one = {.get = {.q = {.done = on_found}, .guid = guid}};

	assert_int_equal(store_get_delivery(f->parts.store, &one.get), 0);
	loop_run_until(f->parts.loop, &one.is_done);
	assert_int_equal(one.get.q.err, 0);
	return one.get.delivery;
}

static void test_accepts_after_storing(void **state)
{
	static const char body[] = BODY_OF_PULL("opened", "");
	static const char answer[] = "{\"status\":\"accepted\",\"delivery\":\"" GUID "\"}";
	struct fixture *f = *state;
	struct delivery d;

	intake_configure(f->intake, f->parts.config);
	assert_int_equal(deliver_signed(f, GUID, "pull_request", body, answer), 202);
	assert_int_equal(
	    deliver_signed(f, GUID, "pull_request", body, "{\"status\":\"duplicate\",\"delivery\":\"" GUID "\"}"), 200);
	assert_int_equal(deliver_signed(f, "no-uuid-7", "push", BODY_PUSH, "accepted"), 202);
	assert_int_equal(deliver_signed(f, "c", "installation", BODY_INSTALLATION, "accepted"), 202);
	d = stored(f, GUID);
	assert_string_equal(d.body, body);
	assert_string_equal(d.event, "pull_request");
	assert_string_equal(d.action, "opened");
	assert_string_equal(d.repository, "pytorch/pytorch");
	assert_string_equal(d.state, "accepted");
	delivery_release(&d);
	assert_int_equal(intake_counters(f->intake)->n_accepted, 3);
	assert_int_equal(intake_counters(f->intake)->n_duplicate, 1);
}

/* GitHub may send an escaped NUL in a text that a stranger wrote. The body is stored without it, so the planner can read it. */
static void test_stores_no_nul(void **state)
{
	static const char body[] = "{\"ref\":\"refs/heads/main\",\"repository\":{\"full_name\":\"pytorch/pytorch\"},"
				   "\"title\":\"a\\u0000b\\\\u0000\"}";
	struct fixture *f = *state;
	struct delivery d;

	intake_configure(f->intake, f->parts.config);
	assert_int_equal(deliver_signed(f, GUID, "push", body, "accepted"), 202);
	d = stored(f, GUID);
	assert_non_null(strstr(d.body, "\"a\\ufffdb\\\\u0000\""));
	assert_int_equal(d.body_len, strlen(body));
	delivery_release(&d);
}

static void test_pongs_and_ignores(void **state)
{
	struct fixture *f = *state;

	intake_configure(f->intake, f->parts.config);
	assert_int_equal(deliver_signed(f, "a", "ping", "{\"zen\":\"z\"}", "{\"status\":\"pong\"}"), 200);
	assert_int_equal(
	    deliver_signed(f, "a", "star", "{}", "{\"status\":\"ignored\",\"reason\":\"the event is not used\"}"), 200);
	assert_int_equal(deliver_signed(f, "a", "pull_request", BODY_OF_PULL("locked", ""), "action"), 200);
	assert_int_equal(deliver_signed(f, "a", "push", "{\"ref\":\"refs/heads/main\"}", "upstream"), 200);
	assert_int_equal(intake_counters(f->intake)->n_pong, 1);
	assert_int_equal(intake_counters(f->intake)->n_ignored, 3);
	/* the failed request did not use up the GUID */
	assert_int_equal(deliver_signed(f, "a", "push", BODY_PUSH, "accepted"), 202);
}

static void test_refuses_bad_requests(void **state)
{
	static const char *const guids[] = {
	    NULL, "", "a b", "a/b", "12345678901234567890123456789012345678901234567890123456789012345"};
	struct fixture *f = *state;
	const char *good = sign("s3cret", BODY_PUSH, strlen(BODY_PUSH));

	intake_configure(f->intake, f->parts.config);
	assert_int_equal(deliver(f, GUID, "push", NULL, BODY_PUSH, "X-Hub-Signature-256"), 400);
	assert_int_equal(deliver(f, GUID, "push", "X-Hub-Signature-256: sha256=12", BODY_PUSH, "error"), 400);
	assert_int_equal(deliver(f, GUID, NULL, good, BODY_PUSH, "X-GitHub-Event"), 400);
	assert_int_equal(deliver(f, GUID, "pu sh", good, BODY_PUSH, "X-GitHub-Event"), 400);
	for (size_t i = 0; i < ARRAY_LEN(guids); i++)
		assert_int_equal(deliver(f, guids[i], "push", good, BODY_PUSH, "X-GitHub-Delivery"), 400);
	assert_int_equal(deliver_signed(f, GUID, "push", "{\"a\":", "not JSON"), 400);
	assert_int_equal(deliver_signed(f, GUID, "ping", "", "not JSON"), 400);
	assert_int_equal(intake_counters(f->intake)->n_bad_request, 11);
}

static void test_says_how_to_send_json(void **state)
{
	static const char body[] = "payload=%7B%7D";
	const char *const headers[] = {"Content-Type: application/x-www-form-urlencoded", "X-GitHub-Event: push",
	    "X-GitHub-Delivery: a", sign("s3cret", body, strlen(body)), NULL};
	struct fixture *f = *state;
	struct ask a;

	intake_configure(f->intake, f->parts.config);
	ask_start(&f->parts, &a, "/github/webhook", headers, body, strlen(body));
	assert_int_equal(ask_wait(&f->parts, &a), 400);
	assert_non_null(strstr(buf_str(&a.call.answer), "content type to application/json"));
	ask_release(&a);
}

static void test_refuses_wrong_signatures_unparsed(void **state)
{
	struct fixture *f = *state;
	const char *other = sign("another", BODY_PUSH, strlen(BODY_PUSH));

	intake_configure(f->intake, f->parts.config);
	assert_int_equal(deliver(f, GUID, "push", other, BODY_PUSH, "wrong"), 401);
	assert_int_equal(deliver(f, GUID, "push", other, "{ not json", "wrong"), 401);
	assert_int_equal(deliver(f, GUID, "ping", other, "", "wrong"), 401);
	assert_int_equal(intake_counters(f->intake)->n_bad_signature, 3);
}

static void test_swaps_the_secret(void **state)
{
	struct fixture *f = *state;
	struct config *next;

	intake_configure(f->intake, f->parts.config);
	folder_write("webhook", "n3xt");
	next = folder_load();
	intake_configure(f->intake, next);
	config_unref(next);
	assert_int_equal(deliver_signed(f, GUID, "push", BODY_PUSH, "wrong"), 401);
	assert_int_equal(
	    deliver(f, GUID, "push", sign("n3xt", BODY_PUSH, strlen(BODY_PUSH)), BODY_PUSH, "accepted"), 202);
}

/* An operation that keeps the store's writer busy until the test releases it. */
struct plug {
	struct store_op op;
	sem_t *may_end;
	bool is_done;
};

static int plug_run(struct store_op *op, struct txn *db)
{
	(void)db;
	return sem_wait(CONTAINER_OF(op, struct plug, op)->may_end);
}

static void plug_done(struct store_op *op) { CONTAINER_OF(op, struct plug, op)->is_done = true; }

static void test_is_busy_when_the_queue_is_full(void **state)
{
	struct fixture *f = *state;
	struct plug plugs[2] = {0};
	sem_t may_end;

	assert_int_equal(deliver_signed(f, GUID, "push", BODY_PUSH, ""), 503); /* not configured */
	intake_configure(f->intake, f->parts.config);
	sem_init(&may_end, 0, 0);
	for (size_t i = 0; i < ARRAY_LEN(plugs); i++) {
		plugs[i] = (struct plug){.op = {.run = plug_run, .done = plug_done}, .may_end = &may_end};
		assert_int_equal(store_submit(f->parts.store, &plugs[i].op), 0);
	}
	assert_int_equal(deliver_signed(f, GUID, "push", BODY_PUSH, ""), 503);
	for (size_t i = 0; i < ARRAY_LEN(plugs); i++)
		sem_post(&may_end);
	for (size_t i = 0; i < ARRAY_LEN(plugs); i++)
		loop_run_until(f->parts.loop, &plugs[i].is_done);
	assert_int_equal(deliver_signed(f, GUID, "push", BODY_PUSH, "accepted"), 202);
	assert_int_equal(intake_counters(f->intake)->n_busy, 2);
	sem_destroy(&may_end);
}

static void test_stores_one_of_two_equal_deliveries(void **state)
{
	enum { N = 8 };
	const char *const headers[] = {
	    "X-GitHub-Event: push", "X-GitHub-Delivery: " GUID, sign("s3cret", BODY_PUSH, strlen(BODY_PUSH)), NULL};
	struct fixture *f = *state;
	struct ask asks[N];
	int n_accepted = 0;

	intake_configure(f->intake, f->parts.config);
	for (int i = 0; i < N; i++)
		ask_start(&f->parts, &asks[i], "/github/webhook", headers, BODY_PUSH, strlen(BODY_PUSH));
	for (int i = 0; i < N; i++) {
		n_accepted += ask_wait(&f->parts, &asks[i]) == 202;
		ask_release(&asks[i]);
	}
	assert_int_equal(n_accepted, 1);
	assert_int_equal(intake_counters(f->intake)->n_duplicate, N - 1);
}

static void on_topic(unsigned topics, void *owner)
{
	if (topics & STORE_DELIVERIES)
		*(bool *)owner = true;
}

static void test_keeps_a_delivery_whose_client_left(void **state)
{
	struct fixture *f = *state;
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct linger at_once = {.l_onoff = 1};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	bool is_stored = false;
	struct delivery d;
	char *request;

	intake_configure(f->intake, f->parts.config);
	store_subscribe(f->parts.store, STORE_DELIVERIES, on_topic, &is_stored);
	sin.sin_port = htons((uint16_t)strtol(strrchr(f->parts.url, ':') + 1, NULL, 10));
	assert_int_equal(connect(fd, (const struct sockaddr *)&sin, sizeof sin), 0);
	request = xasprintf("POST /github/webhook HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n"
			    "X-GitHub-Event: push\r\nX-GitHub-Delivery: left\r\n%s\r\n\r\n%s",
	    strlen(BODY_PUSH), sign("s3cret", BODY_PUSH, strlen(BODY_PUSH)), BODY_PUSH);
	assert_int_equal(send(fd, request, strlen(request), 0), strlen(request));
	free(request);
	shutdown(fd, SHUT_WR);
	loop_run_until(f->parts.loop, &is_stored);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
	close(fd);
	d = stored(f, "left");
	assert_string_equal(d.body, BODY_PUSH);
	delivery_release(&d);
}

static void keep_delivery(struct delivery *d, void *owner)
{
	struct delivery *kept = owner;

	*kept = *d;
	memset(d, 0, sizeof(*d));
}

static void test_passes_new_deliveries_on(void **state)
{
	const char *const headers[] = {
	    "X-GitHub-Event: push", "X-GitHub-Delivery: " GUID, sign("s3cret", BODY_PUSH, strlen(BODY_PUSH)), NULL};
	struct fixture *f = *state;
	struct delivery kept = {0}, d;
	struct ask ask;

	intake_configure(f->intake, f->parts.config);
	intake_on_accepted(f->intake, keep_delivery, &kept);
	ask_start(&f->parts, &ask, "/github/webhook", headers, BODY_PUSH, strlen(BODY_PUSH));
	assert_int_equal(ask_wait(&f->parts, &ask), 202);
	ask_release(&ask);
	d = stored(f, GUID);
	assert_int_equal(kept.id, d.id);
	assert_int_equal(kept.received_ms, d.received_ms);
	assert_string_equal(kept.guid, GUID);
	assert_string_equal(kept.event, "push");
	assert_string_equal(kept.body, BODY_PUSH);
	assert_int_equal(kept.body_len, strlen(BODY_PUSH));
	delivery_release(&d);
	delivery_release(&kept);
	kept = (struct delivery){0};
	ask_start(&f->parts, &ask, "/github/webhook", headers, BODY_PUSH, strlen(BODY_PUSH));
	assert_int_equal(ask_wait(&f->parts, &ask), 200);
	ask_release(&ask);
	assert_null(kept.body); /* a duplicate */
}

static bool is_announced;
static void on_deliveries(unsigned topics, void *owner)
{
	(void)topics;
	(void)owner;
	is_announced = true;
}

static void test_refuses_while_the_database_does_not_answer(void **state)
{
	struct fixture *f = *state;

	intake_configure(f->intake, f->parts.config);
	is_acting = false;
	assert_int_equal(deliver_signed(f, GUID, "push", BODY_PUSH, "busy"), 503);
	is_acting = true;
	assert_int_equal(deliver_signed(f, GUID, "push", BODY_PUSH, "accepted"), 202);
}

/* Another node has the planner. If this one ended right after the commit, nobody else would announce the delivery. */
static void test_announces_a_delivery_with_its_commit_when_another_node_plans(void **state)
{
	struct fixture *f = *state;
	struct delivery kept = {0};

	intake_configure(f->intake, f->parts.config);
	intake_on_accepted(f->intake, keep_delivery, &kept);
	store_subscribe(f->parts.store, STORE_DELIVERIES, on_deliveries, NULL);
	is_announced = false;
	is_seat_here = false;
	assert_int_equal(deliver_signed(f, GUID, "push", BODY_PUSH, "accepted"), 202);
	is_seat_here = true;
	loop_run_until(f->parts.loop, &is_announced);
	assert_null(kept.body);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
	    TEST(test_accepts_after_storing),
	    TEST(test_stores_no_nul),
	    TEST(test_pongs_and_ignores),
	    TEST(test_refuses_bad_requests),
	    TEST(test_says_how_to_send_json),
	    TEST(test_refuses_wrong_signatures_unparsed),
	    TEST(test_swaps_the_secret),
	    cmocka_unit_test_setup_teardown(test_is_busy_when_the_queue_is_full, set_up_small_queue, tear_down),
	    TEST(test_stores_one_of_two_equal_deliveries),
	    TEST(test_keeps_a_delivery_whose_client_left),
	    TEST(test_passes_new_deliveries_on),
	    TEST(test_refuses_while_the_database_does_not_answer),
	    TEST(test_announces_a_delivery_with_its_commit_when_another_node_plans),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
