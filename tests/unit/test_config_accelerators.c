/* accelerators.d/NAME.yml: the meaning of its keys, and the messages about mistakes. */
#include "config_folder.h"

#define WITH_FOLDER MINIMAL_YML "accelerators: {directory: a.d}\n"
#define HEAD        "name: npu\ntitle: NPU\nlevel: L3\n"
#define RUNNER      "runners: [{name: ci, github: {repository: o/r}}]\n"

static int setup(void **state)
{
	folder_setup(state);
	folder_write("outpost.yml", WITH_FOLDER);
	mkdir("a.d", 0700);
	return 0;
}

static void test_defaults(void **state)
{
	const struct accelerator *a;
	struct config *c;

	(void)state;
	folder_write("a.d/npu.yml", HEAD RUNNER);
	c = folder_load();
	assert_int_equal(c->n_accelerators, 1);
	a = config_accelerator(c, "npu");
	assert_non_null(a);
	assert_null(config_accelerator(c, "gpu"));
	assert_string_equal(a->title, "NPU");
	assert_null(a->vendor);
	assert_int_equal(a->level, LEVEL_3);
	assert_null(a->docs_url);
	assert_null(a->source_git_url);
	assert_int_equal(strv_len((const char *const *)a->oncall), 0);
	assert_int_equal(a->trust, TRUST_CONTRIBUTORS);
	assert_int_equal(a->visibility, VISIBILITY_PUBLIC);
	assert_int_equal(a->n_runners, 1);
	assert_int_equal(a->runners[0].kind, RUNNER_GITHUB);
	assert_string_equal(a->runners[0].repository, "o/r");
	assert_null(a->runners[0].workflow);
	assert_int_equal(a->runners[0].repository_id, 0);
	assert_int_equal(a->runners[0].repository_owner_id, 0);
	assert_true(a->triggers.has_pull_request);
	assert_null(a->triggers.paths);
	assert_int_equal(a->triggers.label, LABEL_OPTIONAL);
	assert_true(a->triggers.drafts);
	assert_false(a->triggers.has_push);
	assert_null(a->triggers.schedules);
	assert_int_equal(a->deadlines.acknowledge_ms, 0);
	assert_int_equal(a->deadlines.start_ms, 7200000);
	assert_int_equal(a->deadlines.finish_ms, 21600000);
	assert_int_equal(a->runners[0].reruns, RERUNS_NONE);
	assert_int_equal(a->experiments.tests, 50);
	assert_int_equal(a->experiments.per_head, 2);
	assert_int_equal(a->experiments.share_permille, 100);
	assert_null(a->must_pass[0]);
	assert_null(a->skip[0]);
	assert_null(a->platform);
	assert_string_equal(a->file, "a.d/npu.yml");
	assert_int_equal(a->line, 1);
	assert_ptr_equal(accelerator_runner(a, "ci"), &a->runners[0]);
	assert_null(accelerator_runner(a, "x"));
	config_unref(c);
}

static void test_everything_written(void **state)
{
	const struct accelerator *a;
	struct config *c;

	(void)state;
	folder_write("secrets/npu/hook", "vendor's\n");
	folder_write("a.d/npu.yml",
	    HEAD "vendor: Åström & Söhne\n"
		 "links: {docs: https://d.example/a?b#c, help: https://h.example}\n"
		 "source: {git_url: https://g.example/x.git}\n"
		 "oncall: ['@alice', bob]\n"
		 "trust: approved\n"
		 "visibility: summary\n"
		 "runners:\n"
		 "  - name: ci\n"
		 "    github: {repository: o/r, workflow: .github/workflows/x.yml,\n"
		 "      repository_id: 74, repository_owner_id: 9223372036854775807}\n"
		 "  - {name: lab, reruns: whole, webhook: {url: https://ci.example/hook, secret: "
		 "hook}}\n"
		 "  - {name: farm, reruns: tests, pull: {labels: [a, b], max_parallel: 2}}\n"
		 "  - {name: any, pull: }\n"
		 "triggers:\n"
		 "  pull_request: {paths: ['aten/**'], label: required, drafts: false}\n"
		 "  push: {branches: [main]}\n"
		 "  schedule: ['0 2 * * *', '@weekly']\n"
		 "deadlines: {acknowledge: 1s, start: 2m, finish: 3h}\n"
		 "experiments: {tests: 500, per_head: 1, share: 2.5%}\n"
		 "tests: {must_pass: [model/a], skip: [model/b]}\n");
	c = folder_load();
	a = config_accelerator(c, "npu");
	assert_string_equal(a->vendor, "Åström & Söhne");
	assert_string_equal(a->docs_url, "https://d.example/a?b#c");
	assert_string_equal(a->source_branch, "main");
	assert_string_equal(a->oncall[0], "alice");
	assert_string_equal(a->oncall[1], "bob");
	assert_int_equal(a->trust, TRUST_APPROVED);
	assert_int_equal(a->visibility, VISIBILITY_SUMMARY);
	assert_int_equal(a->n_runners, 4);
	assert_string_equal(a->runners[0].workflow, ".github/workflows/x.yml");
	assert_int_equal(a->runners[0].repository_id, 74);
	assert_int_equal(a->runners[0].repository_owner_id, INT64_MAX);
	assert_int_equal(a->runners[1].kind, RUNNER_WEBHOOK);
	assert_string_equal(a->runners[1].url, "https://ci.example/hook");
	assert_string_equal(secret_text(a->runners[1].secret), "vendor's");
	assert_int_equal(a->runners[2].kind, RUNNER_PULL);
	assert_string_equal(a->runners[2].labels[1], "b");
	assert_int_equal(a->runners[2].max_parallel, 2);
	assert_int_equal(a->runners[3].max_parallel, 1);
	assert_string_equal(a->triggers.paths[0], "aten/**");
	assert_int_equal(a->triggers.label, LABEL_REQUIRED);
	assert_false(a->triggers.drafts);
	assert_true(a->triggers.has_push);
	assert_string_equal(a->triggers.branches[0], "main");
	assert_string_equal(a->triggers.schedules[1], "@weekly");
	assert_int_equal(a->deadlines.finish_ms, 10800000);
	assert_int_equal(a->runners[0].reruns, RERUNS_NONE);
	assert_int_equal(a->runners[1].reruns, RERUNS_WHOLE);
	assert_int_equal(a->runners[2].reruns, RERUNS_TESTS);
	assert_int_equal(a->experiments.tests, 500);
	assert_int_equal(a->experiments.per_head, 1);
	assert_int_equal(a->experiments.share_permille, 25);
	assert_string_equal(a->must_pass[0], "model/a");
	assert_string_equal(a->skip[0], "model/b");
	config_unref(c);
}

/* A share of the time, kept in thousandths. */
static void test_shares(void **state)
{
	static const struct {
		const char *text;
		int permille;
	} right[] = {{"0%", 0}, {"100%", 1000}, {"100.0%", 1000}, {"99.9%", 999}, {"007%", 70}, {"'0.1%'", 1}};
	static const char *const wrong[] = {"10", "0.1", "101%", "100.1%", "-1%", "1.25%", ".5%", "1.%", "10 %", "10%%",
	    "1000%", "0x1%", "9999999999999999999%", "ten%", "%"};
	char *text;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(right); i++) {
		struct config *c;

		text = xasprintf("%s%sexperiments: {share: %s}\n", HEAD, RUNNER, right[i].text);
		folder_write("a.d/npu.yml", text);
		free(text);
		c = folder_load();
		assert_int_equal(c->accelerators[0].experiments.share_permille, right[i].permille);
		config_unref(c);
	}
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		char *expected = xasprintf("a.d/npu.yml:5: experiments.share must be a percentage "
					   "from 0%% to 100%%, such as 10%% or 2.5%%, not \"%s\"\n",
		    wrong[i]);

		text = xasprintf("%s%sexperiments: {share: '%s'}\n", HEAD, RUNNER, wrong[i]);
		folder_write("a.d/npu.yml", text);
		free(text);
		folder_expect(expected);
		free(expected);
	}
}

static void test_triggers_as_words(void **state)
{
	const struct accelerator *a;
	struct config *c;

	(void)state;
	folder_write("a.d/npu.yml", HEAD RUNNER "triggers: {pull_request: false, push: true}\n");
	c = folder_load();
	a = &c->accelerators[0];
	assert_false(a->triggers.has_pull_request);
	assert_true(a->triggers.has_push);
	assert_null(a->triggers.branches);
	config_unref(c);
	folder_write("a.d/npu.yml", HEAD RUNNER "triggers: {push: }\n");
	c = folder_load();
	assert_true(c->accelerators[0].triggers.has_pull_request);
	assert_true(c->accelerators[0].triggers.has_push);
	config_unref(c);
}

static void test_hosted_in_infra(void **state)
{
	const struct runner *r;
	struct config *c;

	(void)state;
	folder_write("a.d/npu.yml", HEAD);
	folder_expect("a.d/npu.yml:1: runners is missing, and outpost.yml has no infra.repository "
		      "to run it\n");
	folder_write("outpost.yml", WITH_FOLDER "infra: {repository: o/infra}\n");
	c = folder_load();
	assert_int_equal(c->accelerators[0].n_runners, 1);
	r = accelerator_runner(&c->accelerators[0], "infra");
	assert_int_equal(r->kind, RUNNER_INFRA);
	assert_string_equal(r->repository, "o/infra");
	config_unref(c);
}

/* Valid keys that have no effect. */
static void test_notes(void **state)
{
	static const struct {
		const char *text, *expected; /* the file; the note: "LINE: TEXT", or "" */
	} cases[] = {
	    {HEAD RUNNER, ""},
	    {HEAD RUNNER "experiments: {tests: 5}\n",
		"5: experiments has no effect: no runner has reruns: tests or reruns: whole"},
	    {HEAD "experiments: {}\nrunners:\n  - {name: ci, reruns: none, pull: {}}\n",
		"4: experiments has no effect: no runner has reruns: tests or reruns: whole"},
	    {HEAD "experiments: {tests: 5}\n"
		  "runners:\n"
		  "  - {name: ci, github: {repository: o/r}}\n"
		  "  - {name: farm, reruns: whole, pull: {}}\n",
		""},
	    {"name: npu\ntitle: NPU\nlevel: L1\n"
	     "runners:\n"
	     "  - name: farm\n"
	     "    pull: {}\n"
	     "    reruns: tests\n",
		"7: reruns has no effect at level L1: experiments begin at L2"},
	    /* finding 26 */
	    {HEAD "experiments: {share: 0%}\nrunners:\n  - {name: farm, reruns: tests, pull: {}}\n",
		"6: reruns has no effect: experiments.share is 0%"},
	    {HEAD "experiments: {share: 0%, tests: 3}\n" RUNNER,
		"4: experiments has no effect: no runner has reruns: tests or reruns: whole"},
	    {HEAD "trust: merged\nrunners:\n  - {name: farm, reruns: whole, pull: {}}\n",
		"6: reruns has no effect with trust: merged: experiments are for pull requests"},
	    {HEAD "triggers: {pull_request: false}\nrunners:\n  - {name: farm, reruns: whole, "
		  "pull: {}}\n",
		"6: reruns has no effect without triggers.pull_request: experiments are for pull "
		"requests"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct config *c;
		char *said;

		folder_write("a.d/npu.yml", cases[i].text);
		c = folder_load();
		said = c->notes.n ? xasprintf("%d: %s", c->notes.all[0].line, c->notes.all[0].text) : xstrdup("");
		assert_string_equal(said, cases[i].expected);
		assert_in_range(c->notes.n, 0, 1);
		if (c->notes.n)
			assert_string_equal(c->notes.all[0].file, "a.d/npu.yml");
		free(said);
		config_unref(c);
	}
}

/* The text after HEAD and RUNNER in a.d/npu.yml (from line 5), and the expected messages. */
static const struct {
	const char *more, *expected;
} WRONG[] = {
    {"tirggers: {}\n", "a.d/npu.yml:5: unknown key \"tirggers\"; did you mean \"triggers\"?\n"},
    {"vendor: \"a\\nb\"\n", "a.d/npu.yml:5: vendor must be one line without control characters, not \"a?b\"\n"},
    {"vendor: \"a\\u202eb\"\n", "a.d/npu.yml:5: vendor must be one line without control "
				"characters, not \"a\ufffdb\"\n"},
    {"links: {docs: http://x.example}\n", "a.d/npu.yml:5: links.docs must be an https URL, not \"http://x.example\"\n"},
    {"links: {docs: 'javascript:alert(1)'}\n",
	"a.d/npu.yml:5: links.docs must be an https URL, not \"javascript:alert(1)\"\n"},
    {"source: {branch: main}\n", "a.d/npu.yml:5: missing key \"source.git_url\"\n"},
    {"oncall: alice\n", "a.d/npu.yml:5: oncall must be a list, not \"alice\"\n"},
    {"oncall: [a b]\n", "a.d/npu.yml:5: oncall must be a GitHub login, not \"a b\"\n"},
    {"visibility: all\n", "a.d/npu.yml:5: visibility must be one of public, summary, not \"all\"\n"},
    {"trust: me\n", "a.d/npu.yml:5: trust must be one of anyone, contributors, members, "
		    "approved, merged, not \"me\"\n"},
    {"triggers: {pull_request: {paths: [/aten]}}\n",
	"a.d/npu.yml:5: triggers.pull_request.paths must be a path pattern such as \"aten/**\", "
	"not \"/aten\"\n"},
    {"triggers: {pull_request: {label: maybe}}\n",
	"a.d/npu.yml:5: triggers.pull_request.label must be one of optional, required, not "
	"\"maybe\"\n"},
    {"triggers: {pull_request: on}\n", "a.d/npu.yml:5: triggers.pull_request must be true or false, not \"on\"\n"},
    {"triggers: {schedule: ['0 2 * *', '61 2 * * *']}\n",
	"a.d/npu.yml:5: triggers.schedule must be a cron text such as \"0 2 * * *\" (five fields "
	"are needed: minute hour day-of-month month day-of-week), not \"0 2 * *\"\n"
	"a.d/npu.yml:5: triggers.schedule must be a cron text such as \"0 2 * * *\" (the minute "
	"goes from 0 to 59), not \"61 2 * * *\"\n"},
    {"deadlines: {start: 2 h}\n",
	"a.d/npu.yml:5: deadlines.start must be a duration from 100ms to 30d (500ms, 30s, 10m, "
	"6h, 30d), not \"2 h\"\n"},
    {"tests:\n  must_pass: [model/a]\n  skip: [model/a]\n",
	"a.d/npu.yml:5: \"model/a\" is in tests.must_pass and in tests.skip\n"},
    {"experiments: true\n", "a.d/npu.yml:5: experiments must be a map, not text\n"},
    {"experiments: {tests: 0, per_head: 21}\n",
	"a.d/npu.yml:5: experiments.tests must be a whole number from 1 to 500, not \"0\"\n"
	"a.d/npu.yml:5: experiments.per_head must be a whole number from 1 to 20, not \"21\"\n"},
    {"experiments: {share: [10%]}\n",
	"a.d/npu.yml:5: experiments.share must be a percentage from 0% to 100%, such as 10% or "
	"2.5%, not a list\n"},
    /* a key of another map: the message says where it belongs, and what is like it here */
    {"reruns: tests\n", "a.d/npu.yml:5: unknown key \"reruns\"; it belongs in runners; the nearest known key here "
			"is \"trust\"\n"},
    {"experiments: {reruns: tests}\n",
	"a.d/npu.yml:5: unknown key \"reruns\" in experiments; it belongs in runners; the nearest "
	"known key here is \"tests\"\n"},
    {"per_head: 1\n", "a.d/npu.yml:5: unknown key \"per_head\"; it belongs in experiments; the nearest known key "
		      "here is \"level\"\n"},
    {"experiments: {oncall: [a]}\n",
	"a.d/npu.yml:5: unknown key \"oncall\" in experiments; it belongs at the top of the file; "
	"the nearest known key here is \"share\"\n"},
    {"experiments: {start: 10%}\n", "a.d/npu.yml:5: unknown key \"start\" in experiments; it "
				    "belongs in deadlines; did you mean "
				    "\"share\"?\n"},
    {"platform: x\n", "a.d/npu.yml:5: platform must be a map, not \"x\"\n"},
    {"runners: []\n", "a.d/npu.yml:5: key \"runners\" is given twice; the first is in line 4\n"},
};

static void test_wrong(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(WRONG); i++) {
		char *text = xasprintf("%s%s%s", HEAD, RUNNER, WRONG[i].more);

		folder_write("a.d/npu.yml", text);
		free(text);
		folder_expect(WRONG[i].expected);
	}
	folder_write("a.d/npu.yml", "name: Ascend_NPU\nlevel: 3\n" RUNNER);
	folder_expect("a.d/npu.yml:1: name must be letters a-z, digits and - between them, not "
		      "\"Ascend_NPU\"\n"
		      "a.d/npu.yml:1: missing key \"title\"\n"
		      "a.d/npu.yml:2: level must be one of L1, L2, L3, L4, not \"3\"\n");
}

/* `runners:` in line 4, its elements from line 5. */
static const struct {
	const char *runner, *expected;
} WRONG_RUNNERS[] = {
    {"{name: ci}", "a.d/npu.yml:5: a runner has one of github, webhook and pull, not none\n"},
    {"{name: ci, pull: , github: {repository: a/b}}",
	"a.d/npu.yml:5: a runner has one of github, webhook and pull, not several\n"},
    {"{pull: }", "a.d/npu.yml:5: missing key \"runners.name\"\n"},
    {"ci", "a.d/npu.yml:5: runners must be a map, not text\n"},
    {"{name: ci, github: {repository: a/b, repository_id: 0}}",
	"a.d/npu.yml:5: runners.github.repository_id must be a whole number from 1, not \"0\"\n"},
    {"{name: ci, github: {repository: a/b, repository_owner_id: x}}",
	"a.d/npu.yml:5: runners.github.repository_owner_id must be a whole number from 1, not "
	"\"x\"\n"},
    {"{name: ci, github: {repository: r}}", "a.d/npu.yml:5: runners.github.repository must be owner/name, not \"r\"\n"},
    {"{name: ci, github: {repository: o/r, workflow: x.yml}}",
	"a.d/npu.yml:5: runners.github.workflow must be .github/workflows/NAME.yml, not "
	"\"x.yml\"\n"},
    {"{name: ci, github: {repository: o/r, workflow: .github/workflows/../x.yml}}",
	"a.d/npu.yml:5: runners.github.workflow must be .github/workflows/NAME.yml, not "
	"\".github/workflows/../x.yml\"\n"},
    {"{name: ci, reruns: true, pull: }",
	"a.d/npu.yml:5: runners.reruns must be one of none, tests, whole, not \"true\"\n"},
    {"{name: ci, reruns: tests, nightly_only: true, pull: }",
	"a.d/npu.yml:5: a runner with nightly_only gets no experiments: remove reruns\n"},
    {"{name: ci, pull: {max_parallel: 0}}",
	"a.d/npu.yml:5: runners.pull.max_parallel must be a whole number from 1 to 1000, not "
	"\"0\"\n"},
    {"{name: ci, webhook: {secret: none, url: https://x.example}}",
	"a.d/npu.yml:5: cannot read secrets/npu/none: No such file or directory\n"},
    {"{name: ci, pull: }\n- {name: ci, pull: }", "a.d/npu.yml:6: two runners are called \"ci\"\n"},
};

static void test_wrong_runners(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(WRONG_RUNNERS); i++) {
		char *text = xasprintf("%srunners:\n- %s\n", HEAD, WRONG_RUNNERS[i].runner);

		folder_write("a.d/npu.yml", text);
		free(text);
		folder_expect(WRONG_RUNNERS[i].expected);
	}
}

static void test_paths_stay_in_the_folder(void **state)
{
	static const char *const names[] = {"../webhook", "/etc/passwd", ".hidden", "..", "a/b", "a\\b"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char *text = xasprintf("%srunners:\n- {name: ci, webhook: {secret: '%s', url: "
				       "https://x.example}}\n",
		    HEAD, names[i]);
		char *expected = xasprintf("a.d/npu.yml:5: runners.webhook.secret must be the name "
					   "of a file below secrets/ACCELERATOR/, not \"%s\"\n",
		    names[i]);

		folder_write("a.d/npu.yml", text);
		folder_expect(expected);
		free(text);
		free(expected);
	}
	folder_write("a.d/npu.yml", HEAD "runners:\n- {name: ci, webhook: {secret: s, url: https://x.example}}\n");
	folder_write("secrets/other/s", "another vendor's");
	folder_expect("a.d/npu.yml:5: cannot read secrets/npu/s: No such file or directory\n");
	mkdir("secrets/npu", 0700);
	assert_int_equal(symlink("../other/s", "secrets/npu/s"), 0);
	folder_expect("a.d/npu.yml:5: cannot read secrets/npu/s: a link that leads out of its "
		      "folder\n");
	assert_int_equal(unlink("secrets/npu/s"), 0);
	folder_write("secrets/npu/..data/s", "own");
	assert_int_equal(symlink("..data/s", "secrets/npu/s"), 0);
	config_unref(folder_load());
}

static const struct {
	const char *url;
	bool is_right, is_right_on_loopback; /* without and with 127.0.0.0/8 and ::1 allowed */
} URLS[] = {
    {"https://ci.example.com/hook?a=b", true, true},
    {"https://ci.example.com:8443", true, true},
    {"https://8.8.8.8/", true, true},
    {"https://[2606:4700::1]/", true, true},
    {"http://ci.example.com/hook", false, false},
    {"http://8.8.8.8/", false, false},
    {"http://127.0.0.1:1/", false, true},
    {"https://127.0.0.1:1/", false, true},
    {"http://[::1]:1/", false, true},
    {"http://localhost:1/", false, true},
    {"https://LOCALHOST/", false, true},
    {"https://localhost./", false, true},
    {"https://a.localhost/", false, true},
    {"https://10.0.0.1/", false, false},
    {"https://192.168.1.1/", false, false},
    {"https://169.254.169.254/latest/meta-data/", false, false},
    {"https://[fe80::1]/", false, false},
    {"https://[fc00::1]/", false, false},
    {"https://[::ffff:10.0.0.1]/", false, false},
    {"https://[::ffff:127.0.0.1]/", false, true},
    {"https://[64:ff9b::a00:1]/", false, false},
    {"https://[2002:a00:1::]/", false, false},
    {"https://0.0.0.0/", false, false},
    {"https://[::]/", false, false},
    {"https://127.1/", false, false},
    {"https://127.0.0.1./", false, false},
    {"https://2130706433./", false, false},
    {"https://2130706433/", false, false},
    {"https://0x7f000001/", false, false},
    {"https://0177.0.0.1/", false, false},
    {"https://user@ci.example.com/", false, false},
    {"https://user:pw@ci.example.com/", false, false},
    {"https://ci.example.com\\@10.0.0.1/", false, false},
    {"https://ci.example.com/#x", false, false},
    {"https://ci.example.com:0/", false, false},
    {"https://ci.example.com:65536/", false, false},
    {"https://ci.example.com:123456789012345/", false, false},
    {"https://ci.example.com:/", false, false},
    {"https://ci..example.com/", false, false},
    {"https://ci.exam%70le.com/", false, false},
    {"https://[::1", false, false},
    {"https://::1/", false, false},
    {"https://[fe80::1%eth0]/", false, false},
    {"https:///x", false, false},
    {"ftp://ci.example.com/", false, false},
    {"file:///etc/passwd", false, false},
    {"//ci.example.com/", false, false},
    {"https://ci.example.com/a b", false, false},
    {"https://ci.example.com/ä", false, false},
};

static void check_url(const char *url, bool is_right)
{
	char *text = xasprintf("%srunners:\n- {name: ci, webhook: {secret: s, url: '%s'}}\n", HEAD, url);
	struct buf messages = BUF_INIT(4096);
	struct config *c;
	int rc;

	folder_write("a.d/npu.yml", text);
	free(text);
	rc = config_load("outpost.yml", &c, &messages);
	if ((rc == 0) != is_right)
		fail_msg("%s: %d %s", url, rc, buf_str(&messages));
	if (!is_right)
		assert_true(str_has_prefix(buf_str(&messages), "a.d/npu.yml:5: runners.webhook.url must "));
	buf_release(&messages);
	config_unref(c);
}

static void test_urls(void **state)
{
	(void)state;
	folder_write("secrets/npu/s", "x");
	for (size_t i = 0; i < ARRAY_LEN(URLS); i++)
		check_url(URLS[i].url, URLS[i].is_right);
	folder_write("outpost.yml", WITH_FOLDER "outgoing: {allow_networks: [127.0.0.0/8, '::1']}\n");
	for (size_t i = 0; i < ARRAY_LEN(URLS); i++)
		check_url(URLS[i].url, URLS[i].is_right_on_loopback);
}

static void test_several_files(void **state)
{
	struct config *c;

	(void)state;
	folder_write("a.d/z.yml", "name: b\ntitle: B\nlevel: L1\n" RUNNER);
	folder_write("a.d/y.yml", "name: c\ntitle: C\nlevel: L1\n" RUNNER);
	folder_write("a.d/x.yml", "name: a\ntitle: A\nlevel: L1\n" RUNNER);
	folder_write("a.d/README", "ignored");
	folder_write("a.d/.hidden.yml", "ignored");
	c = folder_load();
	assert_int_equal(c->n_accelerators, 3);
	assert_string_equal(c->accelerators[0].name, "a");
	assert_string_equal(c->accelerators[2].name, "c");
	assert_string_equal(config_accelerator(c, "b")->title, "B");
	config_unref(c);
	folder_write("a.d/q.yaml", HEAD RUNNER);
	folder_write("a.d/x.yml", "level: L1\nname: b\n" RUNNER);
	folder_write("a.d/y.yml", "titel: x");
	folder_expect("a.d/q.yaml:1: only *.yml is read: rename it\n"
		      "a.d/x.yml:1: missing key \"title\"\n"
		      "a.d/y.yml:1: unknown key \"titel\"; did you mean \"title\"?\n"
		      "a.d/y.yml:1: missing key \"name\"\n"
		      "a.d/y.yml:1: missing key \"level\"\n"
		      "a.d/y.yml:1: runners is missing, and outpost.yml has no infra.repository to run it\n"
		      "a.d/z.yml:1: the name \"b\" is taken by a.d/x.yml:2\n");
}

#define PINNED(name, repository, ids)                                                                                  \
	"name: " name "\ntitle: T\nlevel: L2\nrunners: [{name: ci, github: {repository: " repository ", " ids "}}]\n"

static void test_contradicting_pins(void **state)
{
	struct config *c;

	(void)state;
	folder_write(
	    "outpost.yml", WITH_FOLDER "infra: {repository: o/infra, repository_id: 7, repository_owner_id: 8}\n");
	folder_write("a.d/a.yml", PINNED("a", "o/r", "repository_id: 74"));
	folder_write("a.d/b.yml", PINNED("b", "O/r", "repository_id: 74, repository_owner_id: 65"));
	folder_write("a.d/c.yml", PINNED("c", "o/other", "repository_id: 99"));
	folder_write("a.d/d.yml", "name: d\ntitle: D\nlevel: L2\n");
	c = folder_load();
	assert_int_equal(config_accelerator(c, "d")->runners[0].repository_id, 7);
	assert_int_equal(config_accelerator(c, "d")->runners[0].repository_owner_id, 8);
	config_unref(c);
	folder_write("a.d/e.yml", PINNED("e", "o/R", "repository_id: 75"));
	folder_write("a.d/f.yml", PINNED("f", "o/r", "repository_owner_id: 66"));
	folder_write("a.d/g.yml", PINNED("g", "o/infra", "repository_id: 1"));
	folder_expect("a.d/e.yml:1: o/R is pinned to another id by a.d/a.yml:1\n"
		      "a.d/f.yml:1: o/r is pinned to another id by a.d/b.yml:1\n"
		      "a.d/g.yml:1: o/infra is pinned to another id by a.d/d.yml:1\n");
}

static void test_default_folder(void **state)
{
	struct config *c;

	(void)state;
	folder_write("outpost.yml", MINIMAL_YML);
	folder_write("accelerators.d/npu.yml", HEAD RUNNER);
	c = folder_load();
	assert_int_equal(c->n_accelerators, 1);
	config_unref(c);
	folder_write("l.yml", "");
	folder_write("outpost.yml", MINIMAL_YML "accelerators: {allowlist: l.yml}\n");
	c = folder_load();
	assert_int_equal(c->n_accelerators, 0);
	config_unref(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, folder_teardown)
	    T(test_defaults),
	    T(test_everything_written),
	    T(test_shares),
	    T(test_triggers_as_words),
	    T(test_hosted_in_infra),
	    T(test_notes),
	    T(test_wrong),
	    T(test_wrong_runners),
	    T(test_paths_stay_in_the_folder),
	    T(test_urls),
	    T(test_several_files),
	    T(test_contradicting_pins),
	    T(test_default_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
