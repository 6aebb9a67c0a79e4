/* Plans as one line of words each: the kind, "round" if it starts one, the action that is sent, then
 * accelerator/runner (! held, !! held for good, + only for a new head), then the dropped ones with a minus sign.
 * "/infra" is the infra repository itself. */
#include <setjmp.h>

#include <cmocka.h>

#include "dispatch/plan.h"

#define SHA "1111111111111111111111111111111111111111"

static char *text(const char *s) { return (char *)s; /* plain data that the planner only reads */ }

/* ---- the registry: one accelerator for each thing that can differ ---- */

static struct runner github_runner = {.kind = RUNNER_GITHUB};
static struct runner hook_runners[2] = {{.kind = RUNNER_WEBHOOK}, {.kind = RUNNER_PULL}};
static struct runner infra_runner = {.kind = RUNNER_INFRA};
static char *aten[2], *release[2], *main_only[2], *upstream_branches[3];
static struct accelerator registry[7];
static struct config config;

static void make_registry(enum trust infra_trust)
{
	static const struct accelerator like = {
	    .level = LEVEL_1,
	    .trust = TRUST_CONTRIBUTORS,
	    .triggers = {.has_pull_request = true, .drafts = true, .has_push = true},
	    .deadlines = {1, 2, 3},
	};

	github_runner.name = text("ci");
	github_runner.repository = text("vendor/ci");
	hook_runners[0].name = text("lab");
	hook_runners[0].url = text("https://ci.example.org/hook");
	hook_runners[1].name = text("farm");
	infra_runner.name = text("infra");
	aten[0] = text("aten/**");
	release[0] = text("release/1");
	upstream_branches[0] = main_only[0] = text("main");
	upstream_branches[1] = text("release/1");
	for (size_t i = 0; i < ARRAY_LEN(registry); i++) {
		registry[i] = like;
		registry[i].runners = &github_runner;
		registry[i].n_runners = 1;
	}
	registry[0].name = text("any");
	registry[0].trust = TRUST_ANYONE;
	registry[1].name = text("draftless");
	registry[1].triggers.drafts = false;
	registry[1].runners = hook_runners;
	registry[1].n_runners = 2;
	registry[2].name = text("hosted");
	registry[2].trust = TRUST_ANYONE;
	registry[2].runners = &infra_runner;
	registry[3].name = text("labelled");
	registry[3].triggers.label = LABEL_REQUIRED;
	registry[3].triggers.branches = release;
	registry[4].name = text("merged");
	registry[4].trust = TRUST_MERGED;
	registry[5].name = text("pathy");
	registry[5].triggers.paths = aten;
	registry[5].triggers.branches = main_only;
	registry[6].name = text("pushonly");
	registry[6].triggers.has_pull_request = false;
	config = (struct config){
	    .upstream_repository = text("pytorch/pytorch"),
	    .upstream_branches = upstream_branches,
	    .infra_repository = text("fdn/infra"),
	    .infra_trust = infra_trust,
	    .accelerators = registry,
	    .n_accelerators = ARRAY_LEN(registry),
	};
}

/* ---- one line of words ---- */

static void describe(const struct plan *p, struct buf *out)
{
	static const char *const kinds[] = {
	    [PLAN_IGNORE] = "ignore",
	    [PLAN_UPDATE] = "update",
	    [PLAN_START] = "start",
	    [PLAN_CLOSE] = "close",
	};

	buf_append_str(out, kinds[p->kind]);
	if (p->kind == PLAN_IGNORE)
		return;
	if (p->starts_round)
		buf_append_str(out, " round");
	buf_appendf(out, " %s", p->sent_action);
	for (size_t i = 0; i < p->n_wants; i++) {
		const struct plan_want *w = &p->wants[i];

		buf_appendf(out, " %s/%s%s%s%s", w->accelerator, w->runner, w->held_reason ? "!" : "",
		    w->is_held_for_good ? "!" : "", w->is_for_new_head ? "+" : "");
		assert_int_equal(w->finish_ms, *w->accelerator ? 3 : 0);
	}
	for (char **d = p->drops; d && *d; d++)
		buf_appendf(out, " -%s", *d);
}

static void expect(const struct event *ev, const char *const *files, const char *expected)
{
	struct buf out = BUF_INIT(4096);
	struct plan p;

	if (plan_make(ev, &config, files, &p) == PLAN_NEEDS_FILES) {
		buf_append_str(&out, "needs files");
	} else {
		describe(&p, &out);
		plan_release(&p);
	}
	assert_string_equal(buf_str(&out), expected);
	buf_release(&out);
}

static const char *const no_files[] = {NULL};
static const char *const aten_files[] = {"README.md", "aten/src/x.cpp", NULL};
static const char *const other_files[] = {"README.md", NULL};
static const char *const incomplete[] = {"README.md", "/", NULL};

static struct event pull_event(enum pull_action action, const char *association)
{
	static char *none[1];

	return (struct event){
	    .kind = EVENT_PULL_REQUEST,
	    .action = text(pull_action_name(action)),
	    .repository = text("pytorch/pytorch"),
	    .pull_action = action,
	    .pull = {.number = 7,
		.head_sha = text(SHA),
		.is_open = true,
		.labels = none,
		.author_association = text(association),
		.updated_ms = 1000},
	};
}

#define TRUSTED " /infra any/ci draftless/lab draftless/farm hosted/infra merged/ci!! pathy/ci"

static void each_action_starts_its_runners(void **state)
{
	(void)state;
	make_registry(TRUST_CONTRIBUTORS);
	for (int a = 0; a < N_PULL_ACTIONS; a++) {
		static const char *const words[N_PULL_ACTIONS] = {
		    [PULL_OPENED] = "start opened",
		    [PULL_REOPENED] = "start round reopened",
		    [PULL_SYNCHRONIZE] = "start synchronize",
		    [PULL_READY_FOR_REVIEW] = "start synchronize",
		    [PULL_BASE_CHANGED] = "start round synchronize",
		};
		struct event ev = pull_event((enum pull_action)a, "CONTRIBUTOR");
		char *expected;

		if (!words[a])
			continue;
		expect(&ev, NULL, "needs files");
		expected = xasprintf("%s%s", words[a], TRUSTED);
		expect(&ev, aten_files, expected);
		expect(&ev, incomplete, expected);
		*strstr(expected, " pathy/ci") = '\0';
		expect(&ev, other_files, expected);
		expect(&ev, no_files, expected);
		free(expected);
		ev.pull.is_open = false;
		expect(&ev, aten_files, "ignore");
	}
}

static void untrusted_authors_are_held(void **state)
{
	struct event ev = pull_event(PULL_OPENED, "NONE");

	(void)state;
	make_registry(TRUST_CONTRIBUTORS);
	expect(&ev, aten_files,
	    "start opened /infra! any/ci draftless/lab! draftless/farm! hosted/infra! merged/ci!!"
	    " pathy/ci!");
	make_registry(TRUST_MERGED);
	expect(&ev, aten_files,
	    "start opened /infra!! any/ci draftless/lab! draftless/farm! hosted/infra!! merged/ci!!"
	    " pathy/ci!");
	make_registry(TRUST_ANYONE);
	registry[2].trust = TRUST_MEMBERS; /* infra's trust does not apply to the accelerators that it hosts */
	expect(&ev, other_files, "start opened /infra any/ci draftless/lab! draftless/farm! hosted/infra! merged/ci!!");
	config.infra_repository = NULL;
	expect(&ev, other_files, "start opened any/ci draftless/lab! draftless/farm! merged/ci!!");
}

static void drafts_start_only_runners_that_test_drafts(void **state)
{
	struct event ev = pull_event(PULL_OPENED, "MEMBER");

	(void)state;
	make_registry(TRUST_CONTRIBUTORS);
	ev.pull.is_draft = true;
	expect(&ev, other_files, "start opened /infra any/ci hosted/infra merged/ci!!");
	ev = pull_event(PULL_CONVERTED_TO_DRAFT, "MEMBER");
	ev.pull.is_draft = true;
	expect(&ev, other_files, "update closed /infra+ any/ci+ hosted/infra+ merged/ci!!+ -draftless");
}

static void required_labels_start_and_stop_runners(void **state)
{
	char *list[2] = {text("ciflow/crcr/labelled"), NULL};
	struct event ev = pull_event(PULL_LABELED, "MEMBER");

	(void)state;
	make_registry(TRUST_CONTRIBUTORS);
	ev.pull.labels = list;
	ev.label = list[0];
	expect(&ev, other_files,
	    "start synchronize /infra+ any/ci+ draftless/lab+ draftless/farm+ hosted/infra+"
	    " labelled/ci merged/ci!!+");
	ev.label = text("CIFLOW/other");
	expect(&ev, other_files,
	    "update synchronize /infra+ any/ci+ draftless/lab+ draftless/farm+ hosted/infra+"
	    " labelled/ci+ merged/ci!!+");
	ev.label = text("ciflow/crcr/any"); /* optional for that accelerator: only recorded */
	expect(&ev, NULL, "needs files");
	ev.pull.is_open = false;
	expect(&ev, NULL, "update synchronize");
	ev = pull_event(PULL_OPENED, "MEMBER");
	ev.pull.labels = list;
	expect(&ev, other_files,
	    "start opened /infra any/ci draftless/lab draftless/farm hosted/infra labelled/ci"
	    " merged/ci!!");
	ev = pull_event(PULL_UNLABELED, "MEMBER");
	ev.label = list[0];
	expect(&ev, other_files,
	    "update closed /infra+ any/ci+ draftless/lab+ draftless/farm+ hosted/infra+"
	    " merged/ci!!+ -labelled");
	ev.label = text("ciflow/crcr/any");
	ev.pull.is_open = false;
	expect(&ev, NULL, "update closed");
}

static void closing_a_pull_request_closes_its_runs(void **state)
{
	struct event ev = pull_event(PULL_CLOSED, "NONE");

	(void)state;
	make_registry(TRUST_CONTRIBUTORS);
	ev.pull.is_open = false;
	expect(&ev, NULL, "close closed");
	ev.repository = text("someone/else");
	expect(&ev, NULL, "ignore");
	ev.repository = text("PyTorch/PyTorch");
	expect(&ev, NULL, "close closed");
}

static struct event push_event(const char *ref)
{
	return (struct event){
	    .kind = EVENT_PUSH,
	    .action = text(""),
	    .repository = text("pytorch/pytorch"),
	    .ref = text(ref),
	    .after = text(SHA),
	    .head_message = text("Land it"),
	    .pushed_ms = 5,
	};
}

/* Merged code: every policy admits it. */
static void pushes_start_the_runners_of_their_branch(void **state)
{
	struct event ev = push_event("refs/heads/main");
	struct plan p;

	(void)state;
	make_registry(TRUST_MERGED);
	expect(&ev, NULL,
	    "start  /infra any/ci draftless/lab draftless/farm hosted/infra merged/ci pathy/ci"
	    " pushonly/ci");
	ev = push_event("refs/heads/release/1");
	expect(&ev, NULL,
	    "start  /infra any/ci draftless/lab draftless/farm hosted/infra labelled/ci merged/ci"
	    " pushonly/ci");
	assert_int_equal(plan_make(&ev, &config, NULL, &p), PLAN_READY);
	assert_int_equal(p.change_kind, CHANGE_PUSH);
	assert_string_equal(p.event_type, "push");
	assert_string_equal(p.head_sha, SHA);
	assert_string_equal(p.ref, "refs/heads/release/1");
	assert_string_equal(p.title, "Land it");
	assert_null(p.author);
	plan_release(&p);
	ev.is_deleted = true;
	expect(&ev, NULL, "ignore");
	ev = push_event("refs/heads/feature");
	expect(&ev, NULL, "ignore");
	ev = push_event("refs/tags/main");
	expect(&ev, NULL, "ignore");
	ev = push_event("main");
	expect(&ev, NULL, "ignore");
}

/* The branch history in a push is recorded even if no accelerator wants the push. */
static void a_push_records_the_history_of_its_branch(void **state)
{
	static const char NONE[] = "0000000000000000000000000000000000000000";
	struct event ev = push_event("refs/heads/main");
	struct push_commit commits[] = {
	    {text("2222222222222222222222222222222222222222"), text("bob"), text("One"), 3, NULL},
	    {text(SHA), text("alice"), text("Two"), 4, NULL},
	};
	struct plan p;

	(void)state;
	make_registry(TRUST_MERGED);
	config.n_accelerators = 0;
	config.infra_repository = NULL;
	ev.before = text("3333333333333333333333333333333333333333");
	assert_int_equal(plan_make(&ev, &config, NULL, &p), PLAN_READY);
	assert_int_equal(p.n_wants, 0);
	assert_null(p.before); /* the commits in between are unknown */
	assert_int_equal(p.n_commits, 1);
	assert_string_equal(p.commits[0].sha, SHA);
	assert_string_equal(p.commits[0].title, "Land it");
	assert_true(p.commits[0].at_ms == 5);
	plan_release(&p);

	ev.commits = commits;
	ev.n_commits = ARRAY_LEN(commits);
	assert_int_equal(plan_make(&ev, &config, NULL, &p), PLAN_READY);
	assert_string_equal(p.before, ev.before);
	assert_int_equal(p.n_commits, 2);
	assert_string_equal(p.commits[0].author, "bob");
	assert_string_equal(p.commits[1].sha, SHA);
	plan_release(&p);

	ev.is_forced = true;
	assert_int_equal(plan_make(&ev, &config, NULL, &p), PLAN_READY);
	assert_null(p.before);
	plan_release(&p);
	ev.is_forced = false;
	ev.before = text(NONE);
	assert_int_equal(plan_make(&ev, &config, NULL, &p), PLAN_READY);
	assert_null(p.before);
	assert_int_equal(p.n_commits, 2);
	plan_release(&p);
}

static void carries_the_pull_request(void **state)
{
	struct event ev = pull_event(PULL_SYNCHRONIZE, "MEMBER");
	char *list[2] = {text("bug"), NULL};
	struct plan p;

	(void)state;
	make_registry(TRUST_ANYONE);
	ev.pull.labels = list;
	ev.pull.title = text("Title");
	assert_int_equal(plan_make(&ev, &config, aten_files, &p), PLAN_READY);
	assert_int_equal(p.pull.number, 7);
	assert_string_equal(p.pull.title, "Title");
	assert_string_equal(p.pull.labels[0], "bug");
	assert_ptr_not_equal(p.pull.labels[0], list[0]);
	assert_string_equal(p.head_sha, SHA);
	assert_string_equal(p.original_action, "synchronize");
	assert_string_equal(p.event_type, "pull_request");
	assert_int_equal(p.event_ms, 1000);
	assert_string_equal(p.wants[0].target, "fdn/infra");
	assert_string_equal(p.wants[1].target, "vendor/ci");
	assert_string_equal(p.wants[2].target, "https://ci.example.org/hook");
	assert_string_equal(p.wants[3].target, "");
	plan_release(&p);
}

static void only_webhooks_have_to_acknowledge_by_default(void **state)
{
	struct event ev = pull_event(PULL_SYNCHRONIZE, "MEMBER");
	struct plan p;

	(void)state;
	make_registry(TRUST_ANYONE);
	registry[1].triggers.drafts = true;
	registry[1].deadlines.acknowledge_ms = 0;
	assert_int_equal(plan_make(&ev, &config, aten_files, &p), PLAN_READY);
	assert_int_equal(p.wants[1].acknowledge_ms, 1); /* the value of its file */
	assert_int_equal(p.wants[2].kind, RUNNER_WEBHOOK);
	assert_int_equal(p.wants[2].acknowledge_ms, 10 * 60 * 1000);
	assert_int_equal(p.wants[3].kind, RUNNER_PULL);
	assert_int_equal(p.wants[3].acknowledge_ms, 0);
	plan_release(&p);
}

/* One L3 device of CRCR's allowlist is one accelerator with several repositories, and `events` holds for one
 * repository: the others' pull requests and pushes must not reach a repository that takes nightly runs only. */
static void a_nightly_only_runner_gets_periodic_runs_alone(void **state)
{
	static struct runner both[2] = {{.kind = RUNNER_GITHUB}, {.kind = RUNNER_GITHUB}};
	static struct accelerator device = {.level = LEVEL_3,
	    .trust = TRUST_ANYONE,
	    .triggers = {.has_pull_request = true, .drafts = true, .has_push = true},
	    .deadlines = {1, 2, 3}};
	struct event ev = pull_event(PULL_OPENED, "NONE");
	struct nightly_head head = {.sha = SHA, .branch = "main"};
	struct buf out = BUF_INIT(4096);
	struct plan p;

	(void)state;
	make_registry(TRUST_ANYONE);
	both[0].name = text("pulls");
	both[1].name = text("nights");
	both[0].repository = both[1].repository = text("vendor/ci");
	both[1].is_nightly_only = true;
	device.name = text("npu");
	device.runners = both;
	device.n_runners = 2;
	config.accelerators = &device;
	config.n_accelerators = 1;
	expect(&ev, NULL, "start opened /infra npu/pulls");
	ev = pull_event(PULL_LABELED, "NONE");
	expect(&ev, NULL, "update synchronize /infra+ npu/pulls+");
	ev = (struct event){.kind = EVENT_PUSH,
	    .action = text(""),
	    .repository = text("pytorch/pytorch"),
	    .ref = text("refs/heads/main"),
	    .before = text(SHA),
	    .after = text(SHA)};
	expect(&ev, NULL, "start  /infra npu/pulls");
	plan_nightly(&head, &device, &config, &p);
	describe(&p, &out);
	assert_string_equal(buf_str(&out), "start round  npu/pulls npu/nights");
	plan_release(&p);
	both[0].is_nightly_only = true;
	expect(&ev, NULL, "start  /infra");
	buf_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_nightly_only_runner_gets_periodic_runs_alone),
	    cmocka_unit_test(only_webhooks_have_to_acknowledge_by_default),
	    cmocka_unit_test(each_action_starts_its_runners),
	    cmocka_unit_test(untrusted_authors_are_held),
	    cmocka_unit_test(drafts_start_only_runners_that_test_drafts),
	    cmocka_unit_test(required_labels_start_and_stop_runners),
	    cmocka_unit_test(closing_a_pull_request_closes_its_runs),
	    cmocka_unit_test(pushes_start_the_runners_of_their_branch),
	    cmocka_unit_test(a_push_records_the_history_of_its_branch),
	    cmocka_unit_test(carries_the_pull_request),
	};

	return cmocka_run_group_tests_name("dispatch_plan", tests, NULL, NULL);
}
