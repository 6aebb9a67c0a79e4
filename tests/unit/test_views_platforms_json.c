/* The platforms page's JSON: the state of a platform, the offered versions, and their order. */
#include <setjmp.h>

#include <cmocka.h>

#include "views/platforms.h"

#define HOUR INT64_C(3600000)
#define DAY  (24 * HOUR)
#define NOW  INT64_C(1795176000000) /* 2026-11-20T12:00:00Z */

static char *commands[] = {(char *)"pip install torch", NULL};
static char *versions[] = {(char *)"CANN 8.2", NULL};
static char *no_texts[] = {NULL};

#define INSTALL(b, release, system)                                                                                    \
	{                                                                                                              \
		.build = (b), .torch = (char *)(release), .os = (system), .package = PACKAGE_PIP,                      \
		.version = (char *)"CANN 8.2", .commands = commands                                                    \
	}
static struct platform_install installs[] = {
    INSTALL(BUILD_STABLE, "2.9.1", OS_LINUX),
    INSTALL(BUILD_STABLE, "2.9.1", OS_WINDOWS),
    INSTALL(BUILD_NIGHTLY, NULL, OS_LINUX),
};

static struct platform platform = {
    .integration = PLATFORM_OUT_OF_TREE,
    .device = (char *)"npu",
    .summary = (char *)"A </script><b>chip</b>.",
    .max_age_ms = 14 * DAY,
    .extension_package = (char *)"torch-npu",
    .is_autoloaded = true,
    .versions = versions,
    .installs = installs,
    .n_installs = ARRAY_LEN(installs),
};
static struct accelerator npu = {
    .name = (char *)"npu", .title = (char *)"NPU", .level = LEVEL_2, .platform = &platform};

static struct platform_test tested(const char *torch, const char *os, int64_t ago, bool is_green)
{
	return (struct platform_test){
	    .accelerator = (char *)"npu",
	    .build = platform_build_of(torch),
	    .torch = (char *)torch,
	    .os = (char *)os,
	    .head_sha = (char *)"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	    .job_id = 7,
	    .at_ms = NOW - ago,
	    .red_since_ms = is_green ? 0 : NOW - ago - 3 * DAY,
	    .n_passed = is_green ? 2 : 1,
	    .n_failed = is_green ? 0 : 1,
	};
}

static void assert_standing(struct platform_test *tests, size_t n, const char *state, const char *text)
{
	struct platform_entry e = {.a = &npu, .tests = tests, .n_tests = n};
	json_t *v = platform_json(&e, NOW, "https://o.example");

	assert_string_equal(json_get_str(v, "state"), state);
	assert_string_equal(json_get_str(v, "state_text"), text);
	json_decref(v);
}

static void test_states_of_a_platform(void **state)
{
	struct platform_test t[3];

	(void)state;
	assert_standing(NULL, 0, "untested", "not tested yet");
	t[0] = tested("2.9.1", "Ubuntu", 5 * HOUR, true);
	assert_standing(t, 1, "tested", "must-pass tests passed 5 hours ago");
	t[0] = tested("2.10.0a0", "Ubuntu", 60000, true);
	assert_standing(t, 1, "tested", "must-pass tests passed 1 minute ago");
	t[0] = tested("2.10.0a0", "Ubuntu", -HOUR, true); /* the clock was put back */
	assert_standing(t, 1, "tested", "must-pass tests passed less than a minute ago");
	t[0] = tested("2.10.0a0", "Ubuntu", 0, false);
	t[1] = tested("2.9.1", "Ubuntu", HOUR, true);
	assert_standing(t, 2, "red", "must-pass tests have been red for 3 days");
	t[0] = tested("2.9.1", "Ubuntu", 14 * DAY + 1, true);
	assert_standing(t, 1, "stale", "last tested 14 days ago");
	/* an old red result of a system that is no longer tested does not count */
	t[0] = tested("2.9.1", "Ubuntu 24.04", HOUR, true);
	t[1] = tested("2.9.1", "Ubuntu 20.04", 20 * DAY, false);
	assert_standing(t, 2, "tested", "must-pass tests passed 1 hour ago");
	/* a release that is not installed */
	t[1] = tested("2.8.0", "Ubuntu 24.04", HOUR, false);
	assert_standing(t, 2, "tested", "must-pass tests passed 1 hour ago");
	t[0].n_passed = 0;
	assert_standing(t, 1, "untested", "no must-pass tests are named for it");
}

static void assert_offer(struct platform_test *tests, size_t n, size_t i, const char *why_not)
{
	struct platform_entry e = {.a = &npu, .tests = tests, .n_tests = n};
	json_t *v = platform_json(&e, NOW, "https://o.example");
	json_t *one = json_array_get(json_object_get(v, "install"), i);

	assert_int_equal(json_is_true(json_object_get(one, "offered")), !why_not);
	if (why_not)
		assert_string_equal(json_get_str(one, "why_not"), why_not);
	else
		assert_true(json_is_null(json_object_get(one, "why_not")));
	json_decref(v);
}

static void test_offered_versions(void **state)
{
	struct platform_test t[3];

	(void)state;
	assert_offer(NULL, 0, 0, "PyTorch 2.9.1 was not tested");
	assert_offer(NULL, 0, 2, "the nightly was not tested");
	t[0] = tested("2.9.1+cpu", "Ubuntu 24.04", HOUR, true);
	assert_offer(t, 1, 0, NULL);
	assert_offer(t, 1, 1, "PyTorch 2.9.1 was not tested on Windows");
	assert_offer(t, 1, 2, "the nightly was not tested");
	/* one of the systems it names is enough for a release */
	t[1] = t[0];
	t[0] = tested("2.9.1", "openEuler 24.03", 0, false);
	assert_offer(t, 2, 0, NULL);
	assert_offer(t, 1, 0, "must-pass tests with PyTorch 2.9.1 have been red for 3 days");
	/* but a nightly is as good as the newest of them */
	t[0] = tested("2.10.0a0+gitabc", "Ubuntu", 0, false);
	t[1] = tested("2.10.0a0+gitdef", "Debian", HOUR, true);
	assert_offer(t, 2, 2, "must-pass tests with the nightly have been red for 3 days");
	t[0] = tested("2.10.0a0+gitabc", "Ubuntu", 0, true);
	assert_offer(t, 1, 2, NULL);
	t[0] = tested("2.9.1", "Ubuntu", 20 * DAY, true);
	assert_offer(t, 1, 0, "PyTorch 2.9.1 was last tested 20 days ago");
	t[0] = tested("2.9.1", "", 0, true);
	assert_offer(t, 1, 0, "PyTorch 2.9.1 was tested, but its report names no operating system");
	t[0] = tested("2.9.1", "Ubuntu", 0, true);
	t[0].n_passed = 0;
	assert_offer(t, 1, 0, "no must-pass tests are named for it");
	t[0] = tested("2.9.10", "Ubuntu", 0, true);
	assert_offer(t, 1, 0, "PyTorch 2.9.1 was not tested");
}

static void test_fields(void **state)
{
	static const char *const expected =
	    "{\"name\":\"npu\",\"title\":\"NPU\",\"vendor\":null,\"integration\":\"out-of-tree\","
	    "\"device\":\"npu\",\"summary\":\"A </script><b>chip</b>.\",\"is_example\":false,"
	    "\"links\":{\"docs\":null,\"help\":null},\"url\":\"https://o.example/platforms/npu\","
	    "\"extension\":{\"package\":\"torch-npu\",\"import\":null,\"autoload\":true,"
	    "\"url\":null},\"versions\":[\"CANN 8.2\"],\"state\":\"tested\","
	    "\"state_text\":\"must-pass tests passed 1 hour "
	    "ago\",\"branch_state\":{\"name\":\"no_report\",\"word\":\"no report\","
	    "\"symbol\":\"?\",\"tone\":\"miss\",\"text\":\"no report\","
	    "\"since\":\"2026-11-18T12:00:00Z\",\"notes\":[]},"
	    "\"red_since\":\"2026-11-18T12:00:00Z\","
	    "\"red_by\":\"silence\",\"max_age\":1209600,"
	    "\"tested\":[{\"build\":\"stable\",\"torch\":\"2.9.1\",\"os\":null,"
	    "\"result\":\"green\",\"must_pass\":{\"passed\":2,\"failed\":0,\"missing\":0,"
	    "\"total\":2},\"at\":\"2026-11-20T11:00:00Z\",\"red_since\":null,\"is_stale\":false,"
	    "\"job\":null,\"url\":null,\"head_sha\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\","
	    "\"extension_version\":null}],"
	    "\"install\":[{\"build\":\"nightly\",\"torch\":null,\"os\":\"linux\","
	    "\"package\":\"pip\",\"platform\":\"CANN 8.2\",\"language\":\"python\","
	    "\"commands\":[\"pip install torch\"],\"note\":null,\"offered\":false,"
	    "\"why_not\":\"the nightly was not tested\"}],"
	    "\"prepare\":[],\"get_started\":null,\"help\":[]}";
	struct platform_test t = tested("2.9.1", "", HOUR, true);
	struct platform one = platform;
	struct accelerator a = npu;
	struct platform_entry e = {.a = &a,
	    .tests = &t,
	    .n_tests = 1,
	    .at.facts = {.level = LEVEL_2, .red_since_ms = NOW - 2 * DAY, .is_red_in_silence = true}};
	json_t *v, *expected_json;

	(void)state;
	t.job_id = 0;
	one.installs = &installs[2];
	one.n_installs = 1;
	a.platform = &one;
	e.at.state = accelerator_state_of(&e.at.facts, NOW);
	v = platform_json(&e, NOW, "https://o.example");
	assert_int_equal(json_parse(expected, strlen(expected), &expected_json, NULL), 0);
	if (!json_equal(v, expected_json))
		fail_msg("%s\n%s", json_text(v), expected);
	json_decref(expected_json);
	json_decref(v);
}

static void test_order_and_choices(void **state)
{
	struct platform_test green = tested("2.9.1", "Ubuntu", 0, true);
	struct platform_test red = tested("2.9.1", "Ubuntu", 0, false);
	struct platform example = platform, bare = platform, cpp = platform;
	struct accelerator a[5] = {npu, npu, npu, npu, npu};
	struct platform_entry list[] = {{.a = &a[0], .tests = &green, .n_tests = 1}, {.a = &a[1]},
	    {.a = &a[2], .tests = &red, .n_tests = 1}, {.a = &a[3], .tests = &green, .n_tests = 1},
	    {.a = &a[4], .tests = &green, .n_tests = 1}};
	static const char *const order[] = {"alpha", "beta", "red", "untested", "example"};
	struct platform_install extra[] = {INSTALL(BUILD_NIGHTLY, NULL, OS_MACOS)};
	json_t *v, *one;
	char *text;
	size_t i;

	(void)state;
	example.is_example = true;
	bare.versions = no_texts;
	extra[0].package = PACKAGE_LIBTORCH;
	extra[0].language = LANGUAGE_CPP;
	cpp.installs = extra;
	cpp.n_installs = 1;
	a[0].name = a[0].title = (char *)"example";
	a[0].platform = &example;
	a[1].name = a[1].title = (char *)"untested";
	a[2].name = a[2].title = (char *)"red";
	a[3].name = a[3].title = (char *)"beta";
	a[3].platform = &bare;
	a[4].name = (char *)"alpha";
	a[4].title = (char *)"Alpha";
	a[4].platform = &cpp;
	v = platforms_json(list, ARRAY_LEN(list), NOW, "https://o.example");
	json_array_foreach(json_object_get(v, "platforms"), i, one)
	    assert_string_equal(json_get_str(one, "name"), order[i]);
	assert_int_equal(i, ARRAY_LEN(order));
	text = json_text(json_object_get(v, "choices"));
	assert_string_equal(text, "{\"build\":[\"stable\",\"nightly\"],\"os\":[\"linux\",\"macos\",\"windows\"],"
				  "\"package\":[\"pip\",\"libtorch\"],\"platform\":["
				  "{\"name\":\"alpha\",\"title\":\"Alpha\",\"versions\":[\"CANN 8.2\"]},"
				  "{\"name\":\"beta\",\"title\":\"beta\",\"versions\":[]},"
				  "{\"name\":\"red\",\"title\":\"red\",\"versions\":[\"CANN 8.2\"]},"
				  "{\"name\":\"untested\",\"title\":\"untested\",\"versions\":[\"CANN 8.2\"]},"
				  "{\"name\":\"example\",\"title\":\"example\",\"versions\":[\"CANN 8.2\"]}],"
				  "\"language\":[\"python\",\"cpp\"]}");
	free(text);
	json_decref(v);
	v = platforms_json(list, 0, NOW, "https://o.example");
	text = json_text(v);
	assert_string_equal(text, "{\"choices\":{\"build\":[],\"os\":[],\"package\":[],"
				  "\"platform\":[],\"language\":[]},\"platforms\":[]}");
	free(text);
	json_decref(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_states_of_a_platform),
	    cmocka_unit_test(test_offered_versions),
	    cmocka_unit_test(test_fields),
	    cmocka_unit_test(test_order_and_choices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
