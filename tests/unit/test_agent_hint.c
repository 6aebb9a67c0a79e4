/* What is said beside libcurl's words when the server cannot be reached: the texts are those that
 * a first day brought up, to the letter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "agent/hint.h"
#include "base/alloc.h"

static const char *const proxies[] = {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"};

static int without_proxy(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(proxies); i++)
		unsetenv(proxies[i]);
	return 0;
}

static void test_each_mistake(void **state)
{
	static const struct {
		const char *why, *word;
	} known[] = {
	    {"SSL certificate problem: self-signed certificate", "ca_file"},
	    {"SSL certificate problem: unable to get local issuer certificate", "ca_file"},
	    {"SSL certificate problem: certificate has expired", "clock"},
	    {"SSL certificate problem: certificate is not yet valid", "clock"},
	    {"SSL: no alternative certificate subject name matches target host name '127.0.0.1'",
		"the host in `server`"},
	    {"OpenSSL/3.0.19: error:0A00010B:SSL routines::wrong version number", "port"},
	    {"CONNECT tunnel failed, response 403", "https_proxy and no_proxy"},
	    {"CONNECT tunnel failed, response 407", "USER:PASSWORD"},
	    {"Could not resolve proxy: nix.invalid", "https_proxy"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		const char *hint = hint_text(0, known[i].why);

		assert_non_null(hint);
		assert_non_null(strstr(hint, known[i].word));
	}
}

static void test_nobody_there(void **state)
{
	static const char why[] =
	    "Failed to connect to 127.0.0.1 port 9 after 0 ms: Couldn't connect to server";

	(void)state;
	assert_null(hint_text(0, why));
	assert_int_equal(setenv("https_proxy", "http://127.0.0.1:9", 1), 0);
	assert_non_null(strstr(hint_text(0, why), "https_proxy is set"));
	assert_null(hint_text(0, "Could not resolve host: outpost.nowhere.invalid"));
}

static void test_answers(void **state)
{
	(void)state;
	assert_non_null(strstr(hint_text(404, "404"), "no Outpost"));
	assert_null(hint_text(503, "503: not now"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(test_each_mistake, without_proxy),
	    cmocka_unit_test_setup_teardown(test_nobody_there, without_proxy, without_proxy),
	    cmocka_unit_test(test_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
