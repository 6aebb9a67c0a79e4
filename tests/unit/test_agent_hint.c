/* Every failure to reach the server has a hint beside libcurl's text. */
#include <setjmp.h>

#include <cmocka.h>

#include "agent/server.h"

static const char *const proxies[] = {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"};

static int without_proxy(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(proxies); i++)
		unsetenv(proxies[i]);
	return 0;
}

static void test_each_mistake_has_a_hint(void **state)
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
	    {"Could not resolve host: outpost.nowhere.invalid", "DNS"},
	    {"Failed to connect to 127.0.0.1 port 9 after 0 ms: Couldn't connect to server", "nothing listens"},
	    {"connect to 127.0.0.1 port 9 failed: Connection refused", "nothing listens"},
	    {"Connection timed out after 10001 milliseconds", "firewall"},
	    {"Operation timed out after 30000 milliseconds with 0 bytes received", "firewall"},
	    {"connect to 10.0.0.1 port 443 failed: Network is unreachable", "route"},
	    {"connect to 10.0.0.1 port 443 failed: No route to host", "route"},
	    {"OpenSSL SSL_connect: Connection reset by peer in connection to h:443", "TLS"},
	    {"error:0A000410:SSL routines::sslv3 alert handshake failure", "TLS"},
	    {"Empty reply from server", "port"},
	    {"Recv failure: Connection reset by peer", "port"},
	    {"Received HTTP/0.9 when not allowed", "not HTTP"},
	    {"Operation too slow. Less than 100 bytes/sec transferred the last 45 seconds", "slow"},
	    {"something that libcurl says one day", "server"},
	    {"", "server"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		const char *hint = hint_text(0, known[i].why);

		assert_non_null(hint);
		assert_non_null(strstr(hint, known[i].word));
	}
}

static void test_refused_connection_mentions_the_proxy(void **state)
{
	static const char why[] = "Failed to connect to 127.0.0.1 port 9 after 0 ms: Couldn't connect to server";

	(void)state;
	assert_null(strstr(hint_text(0, why), "https_proxy"));
	assert_int_equal(setenv("https_proxy", "http://127.0.0.1:9", 1), 0);
	assert_non_null(strstr(hint_text(0, why), "https_proxy is set"));
}

static void test_each_http_error_has_a_hint(void **state)
{
	(void)state;
	assert_non_null(strstr(hint_text(401, ""), "outpostctl runner add"));
	assert_non_null(strstr(hint_text(404, "404"), "not Outpost"));
	assert_non_null(strstr(hint_text(407, ""), "USER:PASSWORD"));
	assert_non_null(strstr(hint_text(503, "503: not now"), "busy"));
	for (int status = 100; status < 600; status++)
		assert_true(*hint_text(status, "") != '\0');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(test_each_mistake_has_a_hint, without_proxy),
	    cmocka_unit_test_setup_teardown(test_refused_connection_mentions_the_proxy, without_proxy, without_proxy),
	    cmocka_unit_test(test_each_http_error_has_a_hint),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
