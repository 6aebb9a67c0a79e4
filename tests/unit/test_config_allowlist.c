/* CRCR's allowlist in every form that CRCR accepts. */
#include "config_folder.h"

#include "config/allowlist.h"

#define WITH_LIST MINIMAL_YML "accelerators: {allowlist: list.yml}\n"

static int setup(void **state)
{
	folder_setup(state);
	folder_write("outpost.yml", WITH_LIST);
	return 0;
}

static void assert_oncall(const struct accelerator *a, const char *expected)
{
	struct buf all = BUF_INIT(1024);

	for (char **login = a->oncall; *login; login++)
		buf_appendf(&all, "%s%s", login == a->oncall ? "" : ",", *login);
	assert_string_equal(buf_str(&all), expected);
	buf_release(&all);
}

static void test_levels(void **state)
{
	const struct accelerator *a;
	struct config *c;

	(void)state;
	folder_write("list.yml", "# a comment\n"
				 "L1:\n"
				 "  - Some-Org/torch_x.y\n"
				 "  - /org/slashes/\n"
				 "L2:\n"
				 "  - o/plain\n"
				 "  - o/text: alice, bob\n"
				 "  - o/list: [alice, \"@bob\"]\n"
				 "  - o/at: \"@alice,@bob\"\n"
				 "  - o/bare: @alice, @bob\n"
				 "  - o/bare-list: [@alice,@bob]\n"
				 "  - \"o/quoted: alice, bob\"\n"
				 "  - o/nobody:\n"
				 "L3:\n"
				 "  npu:\n"
				 "    o/npu: [alice]\n"
				 "    o/npu-two: bob, alice\n"
				 "    o/npu-three:\n"
				 "  Other_Device:\n"
				 "    - o/other: alice\n"
				 "    - \"o/other-two: carol\"\n"
				 "L4:\n");
	c = folder_load();
	assert_int_equal(c->n_accelerators, 12);
	a = config_accelerator(c, "some-org-torch-x-y");
	assert_int_equal(a->level, LEVEL_1);
	assert_int_equal(a->trust, TRUST_ANYONE);
	assert_true(a->triggers.has_pull_request);
	assert_null(a->triggers.paths);
	assert_true(a->triggers.has_push);
	assert_null(a->triggers.branches);
	assert_int_equal(a->n_runners, 1);
	assert_int_equal(a->runners[0].kind, RUNNER_GITHUB);
	assert_string_equal(a->runners[0].repository, "Some-Org/torch_x.y");
	assert_string_equal(a->title, "Some-Org/torch_x.y");
	assert_string_equal(a->file, "list.yml");
	assert_int_equal(a->line, 3);
	assert_oncall(a, "");
	assert_string_equal(config_accelerator(c, "org-slashes")->runners[0].repository, "org/slashes");
	assert_oncall(config_accelerator(c, "o-text"), "alice,bob");
	assert_oncall(config_accelerator(c, "o-list"), "alice,bob");
	assert_oncall(config_accelerator(c, "o-at"), "alice,bob");
	assert_oncall(config_accelerator(c, "o-bare"), "alice,bob");
	assert_oncall(config_accelerator(c, "o-bare-list"), "alice,bob");
	assert_oncall(config_accelerator(c, "o-quoted"), "alice,bob");
	assert_oncall(config_accelerator(c, "o-nobody"), "");
	a = config_accelerator(c, "npu");
	assert_int_equal(a->level, LEVEL_3);
	assert_int_equal(a->n_runners, 3);
	assert_string_equal(a->runners[1].name, "o-npu-two");
	assert_string_equal(a->runners[2].repository, "o/npu-three");
	assert_oncall(a, "alice,bob");
	a = config_accelerator(c, "other-device");
	assert_int_equal(a->n_runners, 2);
	assert_oncall(a, "alice,carol");
	config_unref(c);
}

static bool is_nightly_only(const struct config *c, const char *accelerator, size_t runner)
{
	const struct accelerator *a = config_accelerator(c, accelerator);

	assert_true(a->triggers.has_pull_request && a->triggers.has_push);
	return a->runners[runner].is_nightly_only;
}

static void test_events(void **state)
{
	struct config *c;

	(void)state;
	folder_write("list.yml", "L2:\n"
				 "  - o/both: {oncalls: [x], events: [pull_request, nightly]}\n"
				 "  - o/nightly: {events: [nightly]}\n"
				 "  - o/pulls: {oncalls: \"y, z\", events: [pull_request]}\n"
				 "  - o/default: {oncalls: x}\n"
				 "  - o/null: {oncalls: , events: }\n"
				 "  - o/tilde: {events: ~}\n");
	c = folder_load();
	assert_false(is_nightly_only(c, "o-both", 0));
	assert_oncall(config_accelerator(c, "o-both"), "x");
	assert_true(is_nightly_only(c, "o-nightly", 0));
	assert_false(is_nightly_only(c, "o-pulls", 0));
	assert_oncall(config_accelerator(c, "o-pulls"), "y,z");
	assert_false(is_nightly_only(c, "o-default", 0));
	assert_false(is_nightly_only(c, "o-null", 0));
	assert_oncall(config_accelerator(c, "o-null"), "");
	assert_false(is_nightly_only(c, "o-tilde", 0));
	config_unref(c);
}

/* One L3 device is one accelerator with several repositories; each has events of its own. */
static void test_events_hold_for_one_repository(void **state)
{
	struct config *c;

	(void)state;
	folder_write("list.yml", "L3:\n"
				 "  npu:\n"
				 "    o/first: {oncalls: [x], events: [pull_request]}\n"
				 "    o/second: {events: [nightly]}\n"
				 "    o/third: [y]\n");
	c = folder_load();
	assert_int_equal(config_accelerator(c, "npu")->n_runners, 3);
	assert_false(is_nightly_only(c, "npu", 0));
	assert_true(is_nightly_only(c, "npu", 1));
	assert_false(is_nightly_only(c, "npu", 2));
	config_unref(c);
}

static void test_empty(void **state)
{
	static const char *const texts[] = {"", "# nothing\n", "L1:\nL2: []\nL3:\nL4: []\n", "L3: {}\n", "L3: []\n"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct config *c;

		folder_write("list.yml", texts[i]);
		c = folder_load();
		assert_int_equal(c->n_accelerators, 0);
		config_unref(c);
	}
}

static const struct {
	const char *text, *expected;
} WRONG[] = {
    {"L5:\n", "list.yml:1: unknown key \"L5\"; the levels are L1, L2, L3, L4\n"},
    {"- a/b\n", "list.yml:1: the file must be a map of the levels L1, L2, L3, L4\n"},
    {"L1: a/b\n", "list.yml:1: L1 must be a list of repositories\n"},
    {"L1: {a/b: x}\n", "list.yml:1: L1 must be a list of repositories\n"},
    {"L1: [a]\n", "list.yml:1: an entry must be owner/repo, not \"a\"\n"},
    {"L1: [a/b/c]\n", "list.yml:1: an entry must be owner/repo, not \"a/b/c\"\n"},
    {"L1: ['']\n", "list.yml:1: an entry must be owner/repo, not \"\"\n"},
    {"L1: [[a/b]]\n", "list.yml:1: an entry must be owner/repo or owner/repo: oncalls\n"},
    {"L1: [{a/b: x, c/d: y}]\n", "list.yml:1: an entry must be owner/repo or owner/repo: oncalls\n"},
    {"L1:\n  - a/b\n  - A/B\n", "list.yml:3: repository \"A/B\" is listed twice; first under line 2\n"},
    {"L1:\n  - a/b\nL3:\n  npu:\n    a/b:\n", "list.yml:5: repository \"a/b\" is listed twice; first under line 2\n"},
    {"L2:\n  - a/b-c\n  - a-b/c\n", "list.yml:3: the name \"a-b-c\" is taken by list.yml:2\n"},
    {"L3: [a/b]\n", "list.yml:1: L3 must be a map of devices, each with its repositories\n"},
    {"L3:\n  npu:\n", "list.yml:2: device \"npu\" must have repositories\n"},
    {"L3:\n  npu: a/b\n", "list.yml:2: device \"npu\" must have repositories\n"},
    {"L3:\n  '-': {a/b: }\n", "list.yml:2: a device must be a name of letters and digits, not \"-\"\n"},
    {"L1: [{a/b: [x y, {c: d}]}]\n", "list.yml:1: an oncall must be a GitHub login, not \"x y\"\n"
				     "list.yml:1: an oncall must be a GitHub login, not a map\n"},
    {"L1: [{a/b: {oncall: x}}]\n", "list.yml:1: unknown key \"oncall\"; an entry has oncalls and events\n"},
    {"L1: [{a/b: {events: [push]}}]\n", "list.yml:1: an event must be one of pull_request, nightly\n"},
    {"L1: [{a/b: {events: []}}]\n", "list.yml:1: events must be a list with an entry\n"},
    {"L1: [{a/b: {events: nightly}}]\n", "list.yml:1: events must be a list with an entry\n"},
    {"L1:\n  - a/b:\n      events:\n        - nightly\n        - nightly\n",
	"list.yml:5: event nightly is listed twice\n"},
    {"L3:\n  npu:\n    a/b:\n      events: [nightly,\n        pull_request, pull_request]\n",
	"list.yml:5: event pull_request is listed twice\n"},
    {"L1: [{a/b: {events: [[nightly]]}}]\n", "list.yml:1: an event must be one of pull_request, nightly\n"},
};

static void test_wrong(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(WRONG); i++) {
		folder_write("list.yml", WRONG[i].text);
		folder_expect(WRONG[i].expected);
	}
}

static void test_clash_with_a_vendors_file(void **state)
{
	(void)state;
	folder_write("outpost.yml", MINIMAL_YML "accelerators: {allowlist: list.yml, directory: a.d}\n");
	folder_write("list.yml", "L2:\n- o/r\n");
	folder_write("a.d/x.yml", "title: x\nlevel: L1\nname: o-r\n"
				  "runners: [{name: ci, github: {repository: o/r}}]\n");
	folder_expect("list.yml:2: the name \"o-r\" is taken by a.d/x.yml:3\n");
}

/* ---- as files of accelerators.d ---- */

static void assert_same(const struct accelerator *a, const struct accelerator *b)
{
	assert_string_equal(a->name, b->name);
	assert_string_equal(a->title, b->title);
	assert_int_equal(a->level, b->level);
	assert_int_equal(a->trust, b->trust);
	assert_int_equal(strv_len((const char *const *)a->oncall), strv_len((const char *const *)b->oncall));
	for (size_t i = 0; a->oncall[i]; i++)
		assert_string_equal(a->oncall[i], b->oncall[i]);
	assert_int_equal(a->n_runners, b->n_runners);
	for (size_t i = 0; i < a->n_runners; i++) {
		assert_string_equal(a->runners[i].name, b->runners[i].name);
		assert_string_equal(a->runners[i].repository, b->runners[i].repository);
		assert_int_equal(a->runners[i].is_nightly_only, b->runners[i].is_nightly_only);
	}
	assert_int_equal(a->triggers.has_pull_request, b->triggers.has_pull_request);
	assert_int_equal(a->triggers.has_push, b->triggers.has_push);
	assert_int_equal(a->triggers.label, b->triggers.label);
	assert_int_equal(a->triggers.drafts, b->triggers.drafts);
	assert_null(b->triggers.branches);
	assert_null(b->triggers.paths);
	assert_memory_equal(&a->deadlines, &b->deadlines, sizeof(a->deadlines));
}

static void test_files_mean_the_same(void **state)
{
	struct buf messages = BUF_INIT(4096);
	struct allowlist_files f;
	struct config *with_list, *with_files;

	(void)state;
	folder_write("list.yml", "L1:\n"
				 "  - o/null\n"
				 "L2:\n"
				 "  - Some-Org/torch_x.y: true, 123\n"
				 "  - o/nightly: {events: [nightly], oncalls: alice}\n"
				 "L3:\n"
				 "  \"N\\\"P\\\\U: #1\":\n"
				 "    o/npu: [alice]\n"
				 "    o/npu-two: {oncalls: [bob, alice], events: [nightly]}\n"
				 "L4:\n"
				 "  - o/last\n");
	assert_int_equal(allowlist_files_read("list.yml", &f, &messages), 0);
	assert_int_equal(f.list.n, 5);
	assert_string_equal(f.texts[4], "# From line 11 of CRCR's allowlist.\n"
					"name: \"o-last\"\n"
					"title: \"o/last\"\n"
					"level: L4\n"
					"trust: anyone\n"
					"runners:\n"
					"  - name: \"o-last\"\n"
					"    github: {repository: \"o/last\"}\n"
					"triggers:\n"
					"  pull_request: true\n"
					"  push: true\n");
	with_list = folder_load();
	folder_write("outpost.yml", MINIMAL_YML "accelerators: {directory: accelerators.d}\n");
	for (size_t i = 0; i < f.list.n; i++) {
		char *path = xasprintf("accelerators.d/%s.yml", f.list.items[i].name);

		folder_write(path, f.texts[i]);
		free(path);
	}
	with_files = folder_load();
	assert_int_equal(with_files->n_accelerators, 5);
	for (size_t i = 0; i < 5; i++)
		assert_same(&with_list->accelerators[i], &with_files->accelerators[i]);
	config_unref(with_list);
	config_unref(with_files);
	allowlist_files_release(&f);
	buf_release(&messages);
}

static void assert_no_files(const char *list, const char *expected)
{
	struct buf messages = BUF_INIT(4096);
	struct allowlist_files f;

	folder_write("list.yml", list);
	assert_int_equal(allowlist_files_read("list.yml", &f, &messages), ERR_INVALID);
	assert_string_equal(buf_str(&messages), expected);
	allowlist_files_release(&f);
	buf_release(&messages);
}

static void test_files_load_or_are_refused(void **state)
{
	struct buf messages = BUF_INIT(4096);
	struct allowlist_files f;

	(void)state;
	assert_no_files("L2:\n  - nobody\n", "list.yml:2: an entry must be owner/repo, not \"nobody\"\n");
	assert_no_files("L2:\n  - o/a.b\n  - o/a-b\n", "list.yml:3: the name \"o-a-b\" is taken by line 2\n");
	assert_no_files("L2:\n  - -o/a\n", "list.yml:2: \"-o-a\" cannot have a file of its own: name must be "
					   "letters a-z, digits and - between them, not \"-o-a\"\n");
	assert_int_equal(allowlist_files_read("none.yml", &f, &messages), ERR_INVALID);
	assert_string_equal(buf_str(&messages), "none.yml:1: cannot read none.yml: No such file or directory\n");
	allowlist_files_release(&f);
	buf_release(&messages);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, folder_teardown)
	    T(test_levels),
	    T(test_events),
	    T(test_events_hold_for_one_repository),
	    T(test_empty),
	    T(test_wrong),
	    T(test_clash_with_a_vendors_file),
	    T(test_files_mean_the_same),
	    T(test_files_load_or_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
