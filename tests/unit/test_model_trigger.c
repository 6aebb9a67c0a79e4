#include <setjmp.h>

#include <cmocka.h>

#include "model/plan.h"

static void globs_match_paths(void **state)
{
	static const struct {
		const char *pattern, *path;
		bool matches;
	} table[] = {
	    {"aten/**", "aten/src/ATen/native/x.cpp", true},
	    {"aten/**", "aten/x", true},
	    {"aten/**", "caffe2/aten/x", false},
	    {"aten/*", "aten/x", true},
	    {"aten/*", "aten/src/x", false},
	    {"**/*.cpp", "x.cpp", true},
	    {"**/*.cpp", "a/b/c/x.cpp", true},
	    {"**/*.cpp", "a/b/c/x.h", false},
	    {"a/**/b", "a/b", true},
	    {"a/**/b", "a/x/y/b", true},
	    {"a/**/b", "a/xb", false},
	    {"a/**/b/*.c", "a/b/b/b/x.c", true},
	    {"**", "any/thing/at/all", true},
	    {"torch/**/test_*.py", "torch/testing/_internal/test_x.py", true},
	    {"torch/**/test_*.py", "torch/testing/best_x.py", false},
	    {"c1?/x", "c10/x", true},
	    {"c1?/x", "c1/x", false},
	    {"a?b", "a/b", false},
	    {"[a-c]x", "bx", true},
	    {"[!a-c]x", "bx", false},
	    {"[!a-c]x", "/x", false},
	    {"*.md", "README.md", true},
	    {"*.md", "docs/README.md", false},
	    {"exact/path", "exact/path", true},
	    {"exact/path", "exact/path2", false},
	    {"exact/path", "exact", false},
	    {"a*b*c", "aXXbYYc", true},
	    {"a*b*c", "aXXcYYb", false},
	    {"", "", true},
	    {"", "a", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (glob_matches(table[i].pattern, table[i].path) != table[i].matches)
			fail_msg("%s against %s", table[i].pattern, table[i].path);
}

static void a_hostile_glob_ends_soon(void **state)
{
	char path[4097];

	(void)state;
	memset(path, 'a', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_false(glob_matches("**a**a**a**a**a**a**a*a*a*a*a*a*b", path));
}

static void globs_are_checked(void **state)
{
	(void)state;
	assert_true(glob_is_valid("aten/**"));
	assert_true(glob_is_valid("[]]x"));
	assert_false(glob_is_valid(""));
	assert_false(glob_is_valid("/abs"));
	assert_false(glob_is_valid("a[b"));
}

static struct accelerator npu(char **paths, enum label_rule label, bool drafts)
{
	return (struct accelerator){
	    .name = (char *)"npu",
	    .triggers = {.has_pull_request = true, .paths = paths, .label = label, .drafts = drafts},
	};
}

static void pull_requests_match_triggers(void **state)
{
	char *paths[] = {(char *)"aten/**", NULL};
	char *labels[] = {(char *)"open source", (char *)"ciflow/crcr/NPU", NULL}, *none[] = {NULL};
	const char *const hit[] = {"README.md", "aten/x.cpp", NULL};
	const char *const miss[] = {"README.md", NULL};
	struct pull_info plain = {.labels = none}, labelled = {.labels = labels};
	struct pull_info draft = {.labels = none, .is_draft = true};
	struct accelerator any = npu(NULL, LABEL_OPTIONAL, true);
	struct accelerator with_paths = npu(paths, LABEL_OPTIONAL, true);
	struct accelerator on_label = npu(NULL, LABEL_REQUIRED, true);
	struct accelerator no_drafts = npu(NULL, LABEL_OPTIONAL, false);
	struct accelerator off = {.name = (char *)"off"};

	(void)state;
	assert_int_equal(trigger_pull(&any, &plain, NULL), TRIGGER_YES);
	assert_int_equal(trigger_pull(&with_paths, &plain, NULL), TRIGGER_NEEDS_FILES);
	assert_int_equal(trigger_pull(&with_paths, &plain, hit), TRIGGER_YES);
	assert_int_equal(trigger_pull(&with_paths, &plain, miss), TRIGGER_NO);
	assert_int_equal(trigger_pull(&on_label, &plain, hit), TRIGGER_NO);
	assert_int_equal(trigger_pull(&on_label, &labelled, hit), TRIGGER_YES);
	assert_int_equal(trigger_pull(&any, &draft, NULL), TRIGGER_YES);
	assert_int_equal(trigger_pull(&no_drafts, &draft, NULL), TRIGGER_NO);
	assert_int_equal(trigger_pull(&off, &plain, hit), TRIGGER_NO);
}

static void pushes_match_triggers(void **state)
{
	char *branches[] = {(char *)"main", (char *)"release/2.9", NULL};
	struct accelerator listed = {.triggers = {.has_push = true, .branches = branches}};
	struct accelerator all = {.triggers = {.has_push = true}}, none = {0};

	(void)state;
	assert_true(trigger_push(&listed, "release/2.9"));
	assert_false(trigger_push(&listed, "viable"));
	assert_true(trigger_push(&all, "main"));
	assert_false(trigger_push(&none, "main"));
}

static void trust_decides_who_is_held(void **state)
{
	static const struct {
		enum trust trust;
		const char *association;
		bool is_held;
	} table[] = {
	    {TRUST_ANYONE, "NONE", false},
	    {TRUST_CONTRIBUTORS, "OWNER", false},
	    {TRUST_CONTRIBUTORS, "MEMBER", false},
	    {TRUST_CONTRIBUTORS, "COLLABORATOR", false},
	    {TRUST_CONTRIBUTORS, "CONTRIBUTOR", false},
	    {TRUST_CONTRIBUTORS, "FIRST_TIME_CONTRIBUTOR", true},
	    {TRUST_CONTRIBUTORS, "FIRST_TIMER", true},
	    {TRUST_CONTRIBUTORS, "MANNEQUIN", true},
	    {TRUST_CONTRIBUTORS, "NONE", true},
	    {TRUST_CONTRIBUTORS, "", true},
	    {TRUST_CONTRIBUTORS, "owner", true},
	    {TRUST_MEMBERS, "COLLABORATOR", false},
	    {TRUST_MEMBERS, "CONTRIBUTOR", true},
	    {TRUST_APPROVED, "OWNER", true},
	    {TRUST_MERGED, "OWNER", true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		assert_int_equal(trust_holds_pull(table[i].trust, table[i].association) != NULL, table[i].is_held);
	assert_non_null(trust_holds_pull(TRUST_MEMBERS, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(globs_match_paths),
	    cmocka_unit_test(a_hostile_glob_ends_soon),
	    cmocka_unit_test(globs_are_checked),
	    cmocka_unit_test(pull_requests_match_triggers),
	    cmocka_unit_test(pushes_match_triggers),
	    cmocka_unit_test(trust_decides_who_is_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
