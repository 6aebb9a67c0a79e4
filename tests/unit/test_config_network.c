/* Networks in CIDR notation, and which addresses are not public. */
#include <setjmp.h>

#include <cmocka.h>

#include "config/network.h"

static void test_contains(void **state)
{
	static const struct {
		const char *network, *address;
		bool is_in;
	} cases[] = {
	    {"127.0.0.0/8", "127.255.255.255", true},
	    {"127.0.0.0/8", "128.0.0.0", false},
	    {"127.0.0.0/8", "::1", false},
	    {"10.1.2.3", "10.1.2.3", true},
	    {"10.1.2.3", "10.1.2.2", false},
	    {"10.1.2.3/32", "::ffff:10.1.2.3", true},
	    {"172.16.0.0/12", "172.31.255.255", true},
	    {"172.16.0.0/12", "172.32.0.0", false},
	    {"0.0.0.0/0", "8.8.8.8", true},
	    {"0.0.0.0/0", "2001:db8::1", false},
	    {"::/0", "2001:db8::1", true},
	    {"fd00::/8", "fdff::1", true},
	    {"fd00::/8", "fc00::1", false},
	    {"::1", "::1", true},
	    {"2001:db8::/33", "2001:db8:7fff::", true},
	    {"2001:db8::/33", "2001:db8:8000::", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct network n;
		uint8_t address[16];

		assert_int_equal(network_parse(cases[i].network, &n, NULL), 0);
		assert_int_equal(address_parse(cases[i].address, address), 0);
		if (network_contains(&n, 1, address) != cases[i].is_in)
			fail_msg("%s in %s", cases[i].address, cases[i].network);
		assert_false(network_contains(&n, 0, address));
	}
}

static void test_refused(void **state)
{
	static const char *const texts[] = {"", "/8", "10", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/8/8",
	    "10.0.0.1/8", "010.0.0.1", "127.1", "localhost", "fd00::/129", "fd00::1/8", "[::1]", "::1%lo",
	    "10.0.0.0/ 8", "10.0.0.0/8 ", "1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb:cccc:dddd"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct error e = {0};
		struct network n;

		if (network_parse(texts[i], &n, &e) != ERR_INVALID)
			fail_msg("%s is accepted", texts[i]);
		assert_true(e.text[0]);
	}
}

static void test_private(void **state)
{
	static const struct {
		const char *address;
		bool is_private;
	} cases[] = {
	    {"8.8.8.8", false},
	    {"140.82.112.3", false},
	    {"11.0.0.0", false},
	    {"172.15.255.255", false},
	    {"172.32.0.0", false},
	    {"100.63.255.255", false},
	    {"223.255.255.255", false},
	    {"0.0.0.0", true},
	    {"10.255.255.255", true},
	    {"100.64.0.1", true},
	    {"127.0.0.1", true},
	    {"169.254.169.254", true},
	    {"172.16.0.1", true},
	    {"172.31.255.255", true},
	    {"192.0.0.1", true},
	    {"192.168.0.1", true},
	    {"198.18.0.1", true},
	    {"224.0.0.1", true},
	    {"255.255.255.255", true},
	    {"2606:4700:4700::1111", false},
	    {"2a00:1450::1", false},
	    {"::", true},
	    {"::1", true},
	    {"::8.8.8.8", true},
	    {"::ffff:8.8.8.8", false},
	    {"::ffff:10.0.0.1", true},
	    {"64:ff9b::8.8.8.8", false},
	    {"64:ff9b::10.0.0.1", true},
	    {"64:ff9b:1::8.8.8.8", true},
	    {"2002:808:808::1", false},
	    {"2002:7f00:1::1", true},
	    {"2001::1", true},
	    {"2001:db8::1", true},
	    {"3fff::1", true},
	    {"fc00::1", true},
	    {"fdff::1", true},
	    {"fe80::1", true},
	    {"fec0::1", true},
	    {"ff02::1", true},
	    {"100::1", true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint8_t address[16];

		assert_int_equal(address_parse(cases[i].address, address), 0);
		if (network_is_private(address) != cases[i].is_private)
			fail_msg("%s", cases[i].address);
	}
}

static void test_permits(void **state)
{
	static const struct {
		const char *url, *address;
		bool is_permitted;
	} cases[] = {
	    {"https://ci.example", "8.8.8.8", true},
	    {"HTTPS://ci.example", "8.8.8.8", true},
	    {"http://ci.example", "8.8.8.8", false},
	    {"git://ci.example", "8.8.8.8", false},
	    {"https://ci.example", "10.0.0.1", false},
	    {"https://ci.example", "10.1.2.3", true},
	    {"http://ci.example", "10.1.2.3", true},
	};
	struct network allowed;

	(void)state;
	assert_int_equal(network_parse("10.1.0.0/16", &allowed, NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint8_t address[16];

		assert_int_equal(address_parse(cases[i].address, address), 0);
		if (network_permits(&allowed, 1, cases[i].url, address) != cases[i].is_permitted)
			fail_msg("%s %s", cases[i].url, cases[i].address);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_contains),
	    cmocka_unit_test(test_refused),
	    cmocka_unit_test(test_private),
	    cmocka_unit_test(test_permits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
