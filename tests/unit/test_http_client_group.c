/* Which addresses count as one client, for which client a request counts, and the amounts per client. */
#include <setjmp.h>

#include <cmocka.h>

#include "http/client_group.h"
#include "http_rig.h"

static struct http_client_group group(const char *text)
{
	uint8_t address[16];
	int rc = http_address_parse(text, strlen(text), address);

	assert_int_equal(rc, 0);
	return http_client_group_of(address);
}

static bool is_one_group(const char *a, const char *b)
{
	struct http_client_group first = group(a), second = group(b);

	return http_client_group_equal(&first, &second);
}

static void an_ipv4_address_is_one_client_and_an_ipv6_network_of_64_bits(void **state)
{
	(void)state;
	assert_true(is_one_group("192.0.2.1", "192.0.2.1"));
	assert_true(is_one_group("192.0.2.1", "::ffff:192.0.2.1"));
	assert_false(is_one_group("192.0.2.1", "192.0.2.2"));
	assert_true(is_one_group("2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff"));
	assert_false(is_one_group("2001:db8:1:2::1", "2001:db8:1:3::1"));
	assert_false(is_one_group("::1", "127.0.0.1"));
}

static void amounts_add_up_per_group(void **state)
{
	struct http_group_amounts *t = http_group_amounts_new();
	struct http_client_group a = group("192.0.2.1"), b = group("2001:db8::1");

	(void)state;
	assert_int_equal(http_group_amount(t, &a), 0);
	http_group_amount_add(t, &a, 5);
	http_group_amount_add(t, &a, 2);
	http_group_amount_add(t, &b, 0);
	assert_int_equal(http_group_amount(t, &a), 7);
	assert_int_equal(http_group_amount(t, &b), 0);
	assert_int_equal(http_group_amounts_n(t), 1);
	assert_true(http_group_amount_reserve(t, &a, 3, 10));
	assert_false(http_group_amount_reserve(t, &a, 1, 10));
	assert_true(http_group_amount_reserve(t, &b, 10, 10));
	http_group_amount_add(t, &a, -10);
	assert_int_equal(http_group_amount(t, &a), 0);
	assert_int_equal(http_group_amounts_n(t), 1);
	http_group_amounts_free(t);
}

static void small_amounts_are_removed(void **state)
{
	struct http_group_amounts *t = http_group_amounts_new();
	struct http_client_group a = group("192.0.2.1"), b = group("192.0.2.2");

	(void)state;
	http_group_amount_add(t, &a, 5);
	http_group_amount_add(t, &b, 6);
	http_group_amounts_keep_above(t, 5);
	assert_int_equal(http_group_amounts_n(t), 1);
	assert_int_equal(http_group_amount(t, &a), 0);
	assert_int_equal(http_group_amount(t, &b), 6);
	http_group_amounts_free(t);
}

/* Checks the table against a plain array through many random additions and removals. */
static void amounts_stay_right_while_groups_come_and_go(void **state)
{
	enum { N = 300 };
	struct http_group_amounts *t = http_group_amounts_new();
	int64_t expected[N] = {0};
	size_t n_expected = 0;
	uint32_t random = 1;

	(void)state;
	for (int step = 0; step < 30000; step++) {
		struct http_client_group g = {{[10] = 0xff, [11] = 0xff}};
		int i;

		random = random * 1103515245 + 12345;
		i = (int)((random >> 16) % N);
		g.address[14] = (uint8_t)(i >> 8);
		g.address[15] = (uint8_t)i;
		n_expected -= expected[i] != 0;
		/* Every second group is emptied each time. */
		if (expected[i] && (random >> 30)) {
			http_group_amount_add(t, &g, -expected[i]);
			expected[i] = 0;
		} else {
			http_group_amount_add(t, &g, 1);
			expected[i]++;
		}
		n_expected += expected[i] != 0;
		assert_int_equal(http_group_amount(t, &g), expected[i]);
		assert_int_equal(http_group_amounts_n(t), n_expected);
	}
	for (int i = 0; i < N; i++) {
		struct http_client_group g = {{[10] = 0xff, [11] = 0xff}};

		g.address[14] = (uint8_t)(i >> 8);
		g.address[15] = (uint8_t)i;
		assert_int_equal(http_group_amount(t, &g), expected[i]);
	}
	http_group_amounts_free(t);
}

static void name_group(struct http_request *r, void *owner)
{
	struct http_client_group g = http_client_group(r);
	char text[INET6_ADDRSTRLEN];

	(void)owner;
	http_address_format(g.address, text);
	http_respond(r, 200, "text/plain", NULL, text, strlen(text));
}

static bool trusts_loopback(const uint8_t address[16], void *owner)
{
	(void)owner;
	return address[12] == 127;
}

static void group_is(int fd, const char *header, const char *expected)
{
	char *request = xasprintf("GET /group HTTP/1.1\r\nHost: x\r\n%s\r\n", header);
	struct rig_answer a;

	rig_say(fd, request);
	a = rig_answer(fd, false);
	assert(a.status == 200 && strcmp(buf_str(&a.body), expected) == 0);
	rig_answer_release(&a);
	free(request);
}

static void asking_client(struct rig *g)
{
	int fd = rig_connect(g);

	group_is(fd, "", "127.0.0.1");
	group_is(fd, "X-Forwarded-For: 192.0.2.7\r\n", "192.0.2.7");
	group_is(fd, "X-Forwarded-For: 192.0.2.6, ::ffff:192.0.2.7\r\n", "192.0.2.7");
	group_is(fd, "X-Forwarded-For: 2001:db8:1:2:3:4:5:6\r\n", "2001:db8:1:2::");
	close(fd);
}

static void a_request_counts_for_the_client_behind_the_proxy(void **state)
{
	static const struct http_route ROUTES[] = {
	    {.method = "GET", .pattern = "/group", .on_request = name_group},
	};
	struct rig g = {0};

	(void)state;
	rig_open(&g, NULL, ROUTES, ARRAY_LEN(ROUTES));
	http_server_trust_proxies(g.server, trusts_loopback, NULL);
	rig_run(&g, asking_client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(an_ipv4_address_is_one_client_and_an_ipv6_network_of_64_bits),
	    cmocka_unit_test(amounts_add_up_per_group),
	    cmocka_unit_test(small_amounts_are_removed),
	    cmocka_unit_test(amounts_stay_right_while_groups_come_and_go),
	    cmocka_unit_test(a_request_counts_for_the_client_behind_the_proxy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
