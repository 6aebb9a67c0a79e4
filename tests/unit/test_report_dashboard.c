/* The dashboard's JSON: where its changes lead. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json.h"
#include "report/dashboard_json.h"

static void check(enum change_kind kind, int64_t number, const char *expected)
{
	json_t *obj = json_object();

	json_set_change_url(obj, "url", "https://o", kind, number, "abc");
	assert_string_equal(json_get_str(obj, "url"), expected);
	json_decref(obj);
}

/* One commit may be a push and a periodic run. */
static void a_change_has_an_address(void **state)
{
	(void)state;
	check(CHANGE_PULL_REQUEST, 7, "https://o/pulls/7");
	check(CHANGE_PUSH, 0, "https://o/commits/abc");
	check(CHANGE_NIGHTLY, 0, "https://o/commits/abc?kind=nightly");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_change_has_an_address)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
