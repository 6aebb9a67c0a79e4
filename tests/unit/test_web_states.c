/* No false green: the test reports random histories to a real store behind a real server, and compares all surfaces
 * that show an accelerator's state with each other and with a naive oracle. The oracle remembers what it reported,
 * and decides from the cells that the API lists for each commit. OUTPOST_STATES_SEED=n plays one history,
 * OUTPOST_STATES_RUNS=n that number of them (by default a few). */
#include <stdatomic.h>
#include <sys/syscall.h>

#include "days_rig.h"
#include "parts_rig.h"

#include "model/accelerator_state.h"
#include "rendering.h"
#include "verdict/attribution.h"
#include "verdict/known_issues.h"
#include "views/change.h"
#include "web/web.h"

/* ---- a clock that shows the time of the history on every thread ---- */

static _Atomic int64_t wall_ms;

int clock_gettime(clockid_t id, struct timespec *t)
{
	int64_t now = wall_ms;

	if (!now || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE))
		return (int)syscall(SYS_clock_gettime, id, t);
	*t = (struct timespec){.tv_sec = now / 1000, .tv_nsec = now % 1000 * 1000000};
	return 0;
}

/* ---- the service ---- */

enum { N_ACCELERATORS = 5, COMMITS_MAX = 48, N_STEPS = 72, LOOK_EVERY = 24, DEFAULT_RUNS = 5 };

static const char *const ACCELERATORS[N_ACCELERATORS] = {"off", "good", "sick", "lazy", "late"};
static const int LEVELS[N_ACCELERATORS] = {1, 2, 3, 4, 2};

static struct parts parts;
static struct web *web;
static uint32_t first_seed;

static void no_metrics(struct buf *out, void *owner)
{
	(void)out;
	(void)owner;
}

static int set_up(void **state)
{
	struct web_deps deps = {.write_metrics = no_metrics};
	struct mirror_registry m;

	folder_setup(state);
	wall_ms = T0;
	folder_write("outpost.yml", MINIMAL_YML "upstream: {repository: " UPSTREAM ", branches: [main, release/2.9]}\n"
						"accelerators: {directory: a.d}\n");
	for (int i = 0; i < N_ACCELERATORS; i++) {
		char *path = xasprintf("a.d/%s.yml", ACCELERATORS[i]);
		char *text = xasprintf("name: %s\ntitle: The %s one\nlevel: L%d\n"
				       "runners: [{name: ci, github: {repository: %s/ci}}]\n"
				       "platform:\n  integration: in-tree\n  device: npu\n"
				       "  summary: A chip.\n  install:\n"
				       "  - {build: nightly, os: linux, package: pip, commands: [x]}\n",
		    ACCELERATORS[i], ACCELERATORS[i], LEVELS[i], ACCELERATORS[i]);

		folder_write(path, text);
		free(path);
		free(text);
	}
	parts = (struct parts){0};
	parts_open(&parts);
	rig_loop = parts.loop;
	rig_store = parts.store;
	m = (struct mirror_registry){.list = parts.config->accelerators,
	    .n = parts.config->n_accelerators,
	    .upstream_repository = UPSTREAM,
	    .upstream_branch = "main",
	    .now_ms = T0};
	DO_OK(store_mirror_registry, &m);
	deps.loop = parts.loop;
	deps.store = parts.store;
	deps.server = parts.server;
	web = web_new(&deps);
	web_configure(web, parts.config);
	return 0;
}

static int tear_down(void **state)
{
	web_stop(web);
	parts_close_server(&parts);
	parts_close_store(&parts);
	rig_store = NULL;
	web_free(web);
	parts_close(&parts);
	wall_ms = 0;
	return folder_teardown(state);
}

/* ---- the reported results ---- */

struct reported {
	bool has_pass;    /* a PASS was reported of it in any attempt */
	int n_attempts;   /* reported */
	int64_t last_ms;  /* when it was last reported, or its deadline passed; 0: not yet */
	int64_t first_ms; /* the same for the first report: another attempt may not move the time */
};

struct commit {
	char sha[41];
	const char *ref; /* NULL: a pull request's head */
	int64_t number, made_ms;
	struct reported reported[N_ACCELERATORS];
};

static struct commit commits[COMMITS_MAX];
static size_t n_commits;
static bool wants_known; /* one test fails, the others pass */
static int64_t n_pulls, known_id, last_report_ms[N_ACCELERATORS];
static char last_push[2][41];

static struct commit *add_commit(const char *ref, int64_t now)
{
	struct commit *c = &commits[n_commits++];

	*c = (struct commit){.ref = ref, .made_ms = now};
	snprintf(c->sha, sizeof(c->sha), "%08x%032zx", (unsigned)first_seed, n_commits);
	return c;
}

static void apply(struct plan *p, int64_t now)
{
	struct plan_want wants[N_ACCELERATORS];
	char target[N_ACCELERATORS][16], guid[64];
	struct apply_plan op = {.guid = guid, .body = "{}", .body_bytes = 2, .plan = p, .now_ms = now};

	for (int i = 0; i < N_ACCELERATORS; i++) {
		snprintf(target[i], sizeof(target[i]), "%s/ci", ACCELERATORS[i]);
		wants[i] = (struct plan_want)GITHUB_WANT(ACCELERATORS[i], target[i]);
	}
	p->wants = wants;
	p->n_wants = N_ACCELERATORS;
	snprintf(guid, sizeof(guid), "g-%d", ++rig_n_guids);
	DO_OK(store_apply_plan, &op);
}

static void push_to(int branch, int64_t now)
{
	static const char *const refs[] = {"refs/heads/main", "refs/heads/release/2.9"};
	struct commit *c = add_commit(refs[branch], now);
	struct push_commit commit = {
	    .sha = c->sha, .author = (char *)"merger", .title = (char *)"A commit", .at_ms = now};

	apply(&(struct plan){.kind = PLAN_START,
		  .change_kind = CHANGE_PUSH,
		  .repository = (char *)UPSTREAM,
		  .head_sha = c->sha,
		  .before = last_push[branch][0] ? last_push[branch] : NULL,
		  .ref = (char *)c->ref,
		  .commits = &commit,
		  .n_commits = 1,
		  .event_type = "push"},
	    now);
	memcpy(last_push[branch], c->sha, sizeof(c->sha));
}

static void open_pull(int64_t now)
{
	static char *labels[] = {NULL};
	struct commit *c = add_commit(NULL, now);
	struct get_change g = {.now_ms = clock_wall_ms(), .repository = UPSTREAM};
	char author[32];

	c->number = ++n_pulls;
	snprintf(author, sizeof(author), "author-%d", (int)n_pulls);
	apply(&(struct plan){.kind = PLAN_START,
		  .change_kind = CHANGE_PULL_REQUEST,
		  .repository = (char *)UPSTREAM,
		  .pull = {.number = c->number,
		      .head_sha = c->sha,
		      .base_sha = (char *)HEAD_C,
		      .base_ref = (char *)"main",
		      .title = (char *)"A change",
		      .author = author,
		      .labels = labels,
		      .is_open = true,
		      .updated_ms = now},
		  .head_sha = c->sha,
		  .event_ms = now,
		  .event_type = "pull_request",
		  .original_action = (char *)"opened",
		  .sent_action = (char *)"opened"},
	    now);
	if (last_push[0][0] && chance(4)) {
		struct put_merge_base m = {.sha = last_push[0], .now_ms = now};

		g.head_sha = c->sha;
		ASK_OK(store_get_change, &g);
		m.change_id = g.view->change_id;
		change_view_free(g.view);
		DO_OK(store_put_merge_base, &m);
	}
}

/* The results that a machine of this kind reports. */
static void fill_as(int accelerator, const struct commit *c, struct content *content)
{
	bool skips_all = accelerator == 3 && c->ref && chance(3);

	fill(content);
	while (wants_known && (content->n < 2 || !strcmp(content->names[0], content->names[1])))
		fill(content);
	content->is_red = false;
	for (size_t i = 0; i < content->n; i++) {
		struct test_result *t = &content->tests[i];

		if (accelerator == 1 && chance(20))
			t->status = TEST_PASS;
		if (accelerator == 2 && c->number)
			t->status = TEST_FAIL;
		if (skips_all)
			t->status = TEST_SKIP;
		if (wants_known)
			t->status = i == 0 ? TEST_FAIL : TEST_PASS;
		content->is_red |= test_status_is_red(t->status);
	}
}

static void report_one(struct commit *c, int a, int64_t now)
{
	const char *const silent[] = {ACCELERATORS[0], NULL};
	struct content content;
	struct job_report j = {.status = JOB_COMPLETED,
	    .workflow = (char *)"CI",
	    .name = (char *)"test",
	    .run_id = (char *)"1",
	    .run_attempt = ++c->reported[a].n_attempts};
	char *id = rig_dispatch_id(c->sha, ACCELERATORS[a]);
	struct report_job op = {
	    .dispatch_id = id, .report = &j, .accelerator = ACCELERATORS[a], .silent = silent, .now_ms = now};

	fill_as(a, c, &content);
	j.tests = content.tests;
	j.n_tests = content.n;
	j.conclusion = (char *)(content.is_red || chance(12) == 0 ? "failure" : "success");
	j.digest[0] = (uint8_t)j.run_attempt;
	DO_OK(store_report_job, &op);
	assert_int_equal(op.outcome, a == 0 ? REPORT_IGNORED_LEVEL : REPORT_RECORDED);
	free(id);
	if (a == 0)
		return;
	for (size_t i = 0; i < content.n; i++)
		c->reported[a].has_pass |= content.tests[i].status == TEST_PASS;
	c->reported[a].has_pass |= content.n == 0 && strcmp(j.conclusion, "success") == 0;
	c->reported[a].last_ms = now;
	if (!c->reported[a].first_ms)
		c->reported[a].first_ms = now;
	last_report_ms[a] = now;
}

static void expire(int64_t now)
{
	struct expire_dispatches e = {.now_ms = now};

	DO_OK(store_expire_dispatches, &e);
	for (size_t i = 0; i < n_commits; i++)
		for (int a = 1; a < N_ACCELERATORS; a++)
			if (!commits[i].reported[a].last_ms && commits[i].made_ms + 2 * HOUR <= now)
				commits[i].reported[a].last_ms = now;
}

static void settle(int64_t now)
{
	for (int round = 0; round < 50; round++) {
		struct claim_due_changes c = {.now_ms = now, .limit = 20};
		size_t n;

		ASK_OK(store_claim_due_changes, &c);
		n = c.n;
		for (size_t i = 0; i < n; i++) {
			struct attribute_change a = {
			    .change_id = c.list[i].change_id, .generation = c.list[i].generation, .now_ms = now};

			DO_OK(store_attribute_change, &a);
		}
		claim_due_changes_release(&c);
		if (!n)
			return;
	}
}

static void step(int64_t now)
{
	uint32_t what = chance(20);

	if (what < 3 && n_commits < COMMITS_MAX - 2)
		push_to(0, now);
	else if (what < 4 && n_commits < COMMITS_MAX - 2)
		push_to(1, now);
	else if (what < 7 && n_commits < COMMITS_MAX - 2)
		open_pull(now);
	else if (what < 8) {
		struct add_known k = {.pattern = "unit/t*", .url = "https://issue.example/1", .now_ms = now};
		struct remove_known gone = {.id = known_id, .now_ms = now};

		if (known_id) {
			DO_OK(store_remove_known, &gone);
			known_id = 0;
		} else {
			DO_OK(store_add_known, &k);
			known_id = k.id;
		}
	} else if (n_commits) {
		/* the newest commits, by accelerators that are not lazy today; sometimes an old one again */
		for (uint32_t n = 1 + chance(5); n > 0; n--) {
			uint32_t back = chance(6) ? chance(5) : chance(COMMITS_MAX);
			struct commit *c = &commits[n_commits - 1 - (back < n_commits ? back : 0)];
			int a = (int)chance(N_ACCELERATORS);

			if (a == 4 && c->ref) /* it never tests a branch */
				continue;
			if (c->reported[a].n_attempts < 3)
				report_one(c, a, now);
		}
	}
	if (chance(2))
		expire(now);
	settle(now);
}

/* ---- the shown states ---- */

static char *get(const char *path, int *ret_status)
{
	struct ask a = {.url = xasprintf("%s%s", parts.url, path)};
	char *body;

	a.call = (struct http_call){.method = "GET", .url = a.url, .allow_plain_http = true, .done = ask_on_done};
	http_call_start(parts.client, &a.call);
	*ret_status = ask_wait(&parts, &a);
	body = xstrndup(buf_str(&a.call.answer), a.call.answer.len);
	ask_release(&a);
	return body;
}

static json_t *get_json(const char *path)
{
	int status;
	char *body = get(path, &status);
	json_t *v = json_loads(body, 0, NULL);

	if (status != 200 || !v)
		fail_msg("%s: %d %s", path, status, body);
	free(body);
	return v;
}

static json_t *get_jsonf(const char *format, ...) PRINTF(1, 2);
static json_t *get_jsonf(const char *format, ...)
{
	char path[200];
	va_list args;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	return get_json(path);
}

static json_t *named(json_t *list, const char *name)
{
	size_t i;
	json_t *v;

	json_array_foreach(list, i, v)
	{
		if (strcmp(json_get_str(v, "name"), name) == 0)
			return v;
	}
	return NULL;
}

static const char *say(json_t *v)
{
	static char text[4][2000];
	static int next;
	char *s = text[next++ % 4], *dump = v ? json_dumps(v, JSON_ENCODE_ANY) : NULL;

	snprintf(s, sizeof(text[0]), "%s", dump ? dump : "nothing");
	free(dump);
	return s;
}

#define CHECK(what, ...)                                                                                               \
	do {                                                                                                           \
		if (!(what)) {                                                                                         \
			print_error(__VA_ARGS__);                                                                      \
			fail_msg(" seed %u, line %d: %s", (unsigned)first_seed, __LINE__, #what);                      \
		}                                                                                                      \
	} while (0)

/* ---- the oracle ---- */

/* The result of a naive reader for the cells of one accelerator at one commit. */
struct reading {
	bool has_ended;
	int n_cells, n_pass, n_red, n_unexplained, n_unexplained_tests;
};

static struct reading read_cells(json_t *change, const char *name)
{
	json_t *a = named(json_object_get(change, "accelerators"), name), *v;
	struct reading r = {.has_ended = a != NULL};
	size_t i;

	json_array_foreach(json_object_get(a, "dispatches"), i, v)
	{
		const char *s = json_get_str(v, "state");

		r.has_ended =
		    r.has_ended && (strcmp(s, "done") == 0 || strcmp(s, "failed") == 0 || strcmp(s, "expired") == 0);
	}
	json_array_foreach(json_object_get(change, "verdicts"), i, v)
	{
		const char *status = json_get_str(v, "status");
		const char *why = json_get_str(v, "attribution");
		bool is_red =
		    strcmp(status, "FAIL") == 0 || strcmp(status, "ERROR") == 0 || strcmp(status, "MISS") == 0;
		bool is_excused = why && (strcmp(why, "FLAKY") == 0 || strcmp(why, "KNOWN") == 0);

		if (strcmp(json_get_str(v, "accelerator"), name) != 0)
			continue;
		r.n_cells++;
		r.n_pass += strcmp(status, "PASS") == 0;
		r.n_red += is_red;
		r.n_unexplained += is_red && !is_excused;
		r.n_unexplained_tests += is_red && !is_excused && !json_is_null(json_object_get(v, "job"));
	}
	return r;
}

static int n_seen[N_ACCELERATOR_STATUSES]; /* how often each state was shown */
static json_t *changes[COMMITS_MAX];       /* the API's answer for each commit */

/* The name of the state that the oracle expects (NULL: stale or not), and its commit. */
static const char *expect(int a, bool is_unhealthy, int64_t now, const struct commit **ret_tested)
{
	const struct commit *tested = NULL;
	struct reading newest = {0};
	bool is_red = false, has_red_tests = false, is_silent_after = false;

	for (int branch = 0; branch < 2; branch++) {
		bool is_over = false;

		for (size_t i = n_commits; i-- > 0 && !(is_over && tested);) {
			const struct commit *c = &commits[i];
			struct reading r;

			if (!c->ref || (strcmp(c->ref, "refs/heads/main") == 0) != (branch == 0))
				continue;
			r = read_cells(changes[i], ACCELERATORS[a]);
			if (!r.has_ended)
				continue;
			if (branch == 0 && !tested) {
				if (r.n_cells && r.n_cells == r.n_unexplained && !r.n_unexplained_tests) {
					is_silent_after = true;
				} else {
					tested = c;
					newest = r;
				}
			}
			if (!is_over && r.n_unexplained) {
				is_red = true;
				has_red_tests |= r.n_unexplained_tests > 0;
			}
			is_over |= !r.n_unexplained && r.n_pass;
			if (branch == 1 && is_over)
				break;
		}
	}
	*ret_tested = tested;
	if ((is_red && has_red_tests) || newest.n_unexplained_tests)
		return "red";
	if (is_unhealthy)
		return "not_counted";
	if (last_report_ms[a] && now - last_report_ms[a] > 7 * DAY)
		return "silent";
	if (is_red || is_silent_after || newest.n_unexplained)
		return "no_report";
	if (!tested)
		return "untested";
	if (!newest.n_pass)
		return "no_pass";
	if (now - tested->reported[a].first_ms > 7 * DAY)
		return now - tested->reported[a].last_ms > 7 * DAY ? "stale" : NULL;
	return newest.n_red ? "explained" : "green";
}

/* ---- comparing them ---- */

static void check_badge(const char *name, json_t *state, json_t *rate)
{
	const char *is = json_get_str(state, "name");
	bool is_passing = strcmp(is, "green") == 0 || strcmp(is, "explained") == 0;
	double share = json_is_null(rate) ? -1 : json_number_value(rate);
	char *path = xasprintf("/badge/%s.svg", name), *svg, figure[40];
	const char *color = strcmp(is, "red") == 0 || strcmp(is, "overdue") == 0        ? "#cf222e"
			    : strcmp(is, "untested") == 0 || strcmp(is, "no_pass") == 0 ? "#57606a"
											: "#8a5a00";
	int status;

	svg = get(path, &status);
	assert_int_equal(status, 200);
	if (is_passing) {
		CHECK(share >= 0, "%s is %s without a figure", name, is);
		color = share >= 0.9 ? "#1a7f37" : share >= 0.5 ? "#8a5a00" : "#cf222e";
		snprintf(figure, sizeof(figure), ": passing %d %%<", (int)(share * 100 + 1e-9));
		CHECK(strstr(svg, figure), "%s: no \"%s\" in %s", name, figure, svg);
	}
	CHECK(!strstr(svg, ": passing") == !is_passing, "%s is %s: %s", name, is, svg);
	CHECK(strstr(svg, color), "%s is %s: no %s in %s", name, is, color, svg);
	CHECK(!strstr(svg, "#1a7f37") || (is_passing && share >= 0.9), "%s: false green", name);
	free(svg);
	free(path);
}

static void check_metrics(json_t *list)
{
	int status, n_red = 0, n_unhealthy = 0;
	char *text = get("/metrics", &status), line[200];
	size_t i;
	json_t *a;

	json_array_foreach(list, i, a)
	{
		const char *name = json_get_str(a, "name");
		const char *is = json_get_str(json_object_get(a, "state"), "name");
		json_t *rate = json_object_get(a, "pass_rate");

		snprintf(
		    line, sizeof(line), "outpost_accelerator_state{accelerator=\"%s\",state=\"%s\"} 1\n", name, is);
		CHECK(!strstr(text, line) == (strcmp(is, "off") == 0), "%s in metrics", line);
		n_red += strcmp(is, "red") == 0 || strcmp(is, "overdue") == 0;
		n_unhealthy += str_eq(json_get_str(a, "health"), "unhealthy");
		snprintf(line, sizeof(line), "outpost_accelerator_pass_ratio{accelerator=\"%s\"} ", name);
		CHECK(!strstr(text, line) == json_is_null(rate), "%s in metrics", line);
		if (strstr(text, line))
			CHECK(strtod(strstr(text, line) + strlen(line), NULL) - json_number_value(rate) < 1e-9, "%s",
			    line);
	}
	snprintf(line, sizeof(line), "\noutpost_accelerators_red %d\n", n_red);
	CHECK(strstr(text, line), "not %s", line);
	snprintf(line, sizeof(line), "\noutpost_accelerators_unhealthy %d\n", n_unhealthy);
	CHECK(strstr(text, line), "not %s", line);
	free(text);
}

/* Attributions, evidence, groups and their sums: of each cell, of each change. */
static void check_change(json_t *change, json_t *accelerators)
{
	static const char *const groups[] = {"new", "unclassified", "known", "base", "flaky", "missing", "not_counted"};
	json_t *summary = json_object_get(change, "summary"), *v, *a;
	int64_t n[ARRAY_LEN(groups)] = {0}, n_counted_pass = 0;
	size_t i;

	json_array_foreach(json_object_get(change, "accelerators"), i, a)
	{
		json_t *one = named(accelerators, json_get_str(a, "name"));

		CHECK(json_equal(json_object_get(a, "branch_state"), json_object_get(one, "state")), "%s", say(a));
		CHECK(json_is_true(json_object_get(a, "unhealthy")) == str_eq(json_get_str(one, "health"), "unhealthy"),
		    "%s", say(a));
	}
	json_array_foreach(json_object_get(change, "verdicts"), i, v)
	{
		const char *status = json_get_str(v, "status"), *why = json_get_str(v, "attribution");
		const char *group = json_get_str(v, "group"), *url = json_get_str(v, "evidence_url");
		json_t *one = named(accelerators, json_get_str(v, "accelerator"));
		bool is_uncounted = str_eq(json_get_str(one, "health"), "unhealthy");
		bool is_failure = strcmp(status, "FAIL") == 0 || strcmp(status, "ERROR") == 0;
		bool is_missing = strcmp(status, "MISS") == 0;
		char own[64];

		snprintf(own, sizeof(own), "/jobs/%d", (int)json_get_int(v, "job", 0));
		CHECK(!url || (!str_has_suffix(url, own) && !strstr(url, "/accelerators/")), "%s", say(v));
		CHECK((why != NULL) == (is_failure || is_missing), "%s", say(v));
		CHECK((group != NULL) == (is_failure || is_missing), "%s", say(v));
		if (is_missing)
			CHECK(strcmp(why, "UNCLASSIFIED") == 0 && !url, "%s", say(v));
		if (is_failure && strcmp(why, "UNCLASSIFIED") != 0)
			CHECK(url, "no evidence: %s", say(v));
		if (group)
			CHECK(is_uncounted == (strcmp(group, "not_counted") == 0), "%s", say(v));
		for (size_t g = 0; group && g < ARRAY_LEN(groups); g++)
			n[g] += strcmp(groups[g], group) == 0;
		n_counted_pass += !is_uncounted && strcmp(status, "PASS") == 0;
	}
	for (size_t g = 0; g < ARRAY_LEN(groups); g++)
		CHECK(json_get_int(summary, groups[g], -1) == n[g], "%s: %d, %s", groups[g], (int)n[g], say(summary));
	CHECK(strcmp(json_get_str(summary, "verdict"), "pass") != 0 || n_counted_pass, "a pass without a PASS: %s",
	    say(summary));
}

static void check_comment(const struct commit *c, json_t *change, json_t *accelerators, int64_t now)
{
	struct comment_options o = {
	    .public_url = "https://outpost.example.org", .github_url = "https://github.com", .now_wall_ms = now};
	json_t *summary = json_object_get(change, "summary"), *a;
	struct change_view *v = rig_view_of(c->number, NULL);
	bool is_pass = strcmp(json_get_str(summary, "verdict"), "pass") == 0;
	struct comment comment;
	size_t i, n_uncounted = 0;

	view_comment(v, &o, &comment);
	CHECK(str_has_prefix(comment.markdown, COMMENT_MARKER "\n✓ ") == is_pass, "%s", comment.markdown);
	json_array_foreach(json_object_get(change, "verdicts"), i, a)
	{
		n_uncounted +=
		    str_eq(json_get_str(a, "group"), "not_counted") && !json_is_null(json_object_get(a, "job"));
	}
	CHECK(!strstr(comment.markdown, " not counted](") == !n_uncounted, "%s", comment.markdown);
	json_array_foreach(json_object_get(change, "accelerators"), i, a)
	{
		const char *name = json_get_str(a, "name");
		json_t *one = named(accelerators, name);
		char *heading = xasprintf(" The %s one (unhealthy, not counted) |", name);
		char *plain = xasprintf(" The %s one |", name);

		if (str_eq(json_get_str(one, "health"), "unhealthy"))
			CHECK(!strstr(comment.markdown, plain), "%s", comment.markdown);
		else
			CHECK(!strstr(comment.markdown, heading), "%s", comment.markdown);
		free(heading);
		free(plain);
	}
	comment_release(&comment);
	change_view_free(v);
}

/* "is green again" names a commit on which that accelerator passed a test. */
static void check_feed(json_t *accelerators)
{
	int status;
	char *text = get("/feed.xml", &status), *at = text;
	bool is_seen[N_ACCELERATORS][2] = {{false}};

	while ((at = strstr(at, "<entry>")) != NULL) { /* newest first */
		char *end = strstr(at, "</entry>"), *title = strstr(at, "<title");

		*end = '\0';
		for (int a = 0; a < N_ACCELERATORS; a++) {
			char who[40];
			bool is_main = strstr(title, " on main</title>") != NULL;
			json_t *one = named(accelerators, ACCELERATORS[a]);

			snprintf(who, sizeof(who), ">The %s one", ACCELERATORS[a]);
			if (!strstr(title, who))
				continue;
			CHECK(a != 0, "L1 in the feed: %s", at);
			for (size_t i = 0; strstr(title, "green again") && i < n_commits; i++)
				if (strstr(at, commits[i].sha))
					CHECK(commits[i].reported[a].has_pass, "false green: %s", at);
			if (!is_seen[a][is_main] && (strstr(title, "is red") || strstr(title, "no report")))
				CHECK(!json_is_null(json_object_get(one, "red_since")), "%s", at);
			is_seen[a][is_main] = true;
		}
		at = end + 1;
	}
	free(text);
}

static void check_dashboard(json_t *dashboard, json_t *accelerators)
{
	json_t *rows = json_object_get(dashboard, "accelerators"), *row, *s;
	const char *text = json_get_str(json_object_get(dashboard, "headline"), "text");
	size_t i, n_green = 0, n_red = 0, n_counted = 0;
	char red[80];

	CHECK(json_array_size(rows) == N_ACCELERATORS - 1, "%s", say(rows));
	json_array_foreach(rows, i, row)
	{
		json_t *one = named(accelerators, json_get_str(row, "name"));
		const char *is = json_get_str(json_object_get(row, "state"), "name");

		CHECK(json_equal(json_object_get(row, "state"), json_object_get(one, "state")), "%s", say(row));
		CHECK(json_equal(json_object_get(row, "pass_rate"), json_object_get(one, "pass_rate")), "%s", say(row));
		n_green += strcmp(is, "green") == 0;
		n_red += strcmp(is, "red") == 0 || strcmp(is, "overdue") == 0;
	}
	json_array_foreach(json_object_get(dashboard, "states"), i, s)
	{
		n_counted += (size_t)json_get_int(s, "accelerators", 0);
	}
	CHECK(n_counted == json_array_size(rows), "%s", say(json_object_get(dashboard, "states")));
	CHECK((strncmp(text, "All ", 4) == 0) == (n_green == json_array_size(rows)), "%s", text);
	snprintf(red, sizeof(red), "%zu of %zu accelerators ", n_red, json_array_size(rows));
	CHECK(!str_has_prefix(text, red) == !n_red, "%s", text);
}

static void check_accelerator(int a, json_t *one, json_t *dashboard, int64_t now)
{
	const char *name = ACCELERATORS[a];
	json_t *state = json_object_get(one, "state"), *page, *row;
	const char *is = json_get_str(state, "name"), *sha, *expected;
	const struct commit *tested;

	for (int s = 0; s < N_ACCELERATOR_STATUSES; s++)
		n_seen[s] += strcmp(accelerator_words((enum accelerator_status)s)->name, is) == 0;
	page = get_jsonf("/api/v1/accelerators/%s", name);
	CHECK(json_equal(json_object_get(page, "state"), state), "%s", say(state));
	CHECK(json_equal(json_object_get(page, "pass_rate"), json_object_get(one, "pass_rate")), "%s", name);
	json_decref(page);
	row = named(json_object_get(dashboard, "accelerators"), name);
	if (a == 0) {
		int status;
		char *svg = get("/badge/off.svg", &status);

		CHECK(strcmp(is, "off") == 0 && !row && status == 404, "%s", say(one));
		free(svg);
		return;
	}
	expected = expect(a, str_eq(json_get_str(one, "health"), "unhealthy"), now, &tested);
	if (expected)
		CHECK(strcmp(is, expected) == 0 || (strcmp(is, "overdue") == 0 && strcmp(expected, "red") == 0),
		    "%s is %s, and should be %s: %s", name, is, expected, say(row));
	sha = json_get_str(json_object_get(row, "commit"), "sha");
	CHECK(str_eq(sha, tested ? tested->sha : NULL), "%s tested %s: %s", name, tested ? tested->sha : "nothing",
	    say(row));
	if (strcmp(json_get_str(state, "tone"), "pass") == 0)
		CHECK(tested && tested->reported[a].has_pass, "false green: %s", say(row));
	check_badge(name, state, json_object_get(one, "pass_rate"));
}

static void look(int64_t now)
{
	json_t *answer, *list, *dashboard, *platforms, *p;
	size_t i;

	wall_ms = now;
	answer = get_json("/api/v1/accelerators");
	list = json_object_get(answer, "accelerators");
	dashboard = get_json("/api/v1/dashboard");
	platforms = get_json("/api/v1/platforms");
	for (i = 0; i < n_commits; i++)
		changes[i] = commits[i].number ? get_jsonf("/api/v1/pulls/%d", (int)commits[i].number)
					       : get_jsonf("/api/v1/commits/%s", commits[i].sha);
	for (i = 0; i < n_commits; i++) {
		check_change(changes[i], list);
		if (commits[i].number)
			check_comment(&commits[i], changes[i], list, now);
	}
	for (int a = 0; a < N_ACCELERATORS; a++)
		check_accelerator(a, named(list, ACCELERATORS[a]), dashboard, now);
	json_array_foreach(json_object_get(platforms, "platforms"), i, p)
	{
		json_t *one = named(list, json_get_str(p, "name"));

		CHECK(json_equal(json_object_get(p, "branch_state"), json_object_get(one, "state")), "%s", say(p));
	}
	CHECK(i == N_ACCELERATORS - 1, "%d platforms", (int)i);
	check_dashboard(dashboard, list);
	check_metrics(list);
	check_feed(list);
	for (i = 0; i < n_commits; i++)
		json_decref(changes[i]);
	json_decref(answer);
	json_decref(dashboard);
	json_decref(platforms);
}

/* The branch is tested once more; all red tests are known; a week later there was only a pull request. */
static void end_quietly(int64_t now)
{
	struct add_known all = {.pattern = "*/*", .url = "https://issue.example/2", .now_ms = now};

	for (size_t i = 0; i < n_commits; i++)
		if (commits[i].ref && commits[i].reported[1].n_attempts < 4)
			report_one(&commits[i], 1, now);
	settle(now);
	look(now);
	DO_OK(store_add_known, &all);
	push_to(0, now);
	wants_known = true;
	report_one(&commits[n_commits - 1], 1, now);
	wants_known = false;
	settle(now);
	look(now);
	now += 8 * DAY;
	expire(now);
	open_pull(now);
	report_one(&commits[n_commits - 1], 1, now);
	settle(now);
	look(now);
}

static void play(uint32_t from)
{
	int64_t now = T0;

	first_seed = seed = from;
	n_commits = 0;
	n_pulls = known_id = 0;
	memset(last_report_ms, 0, sizeof(last_report_ms));
	memset(last_push, 0, sizeof(last_push));
	set_up(NULL);
	look(now); /* nothing has been reported yet */
	for (int i = 1; i <= N_STEPS; i++) {
		now += chance(10) ? chance(5 * 3600) * 1000 : (int64_t)chance(4) * DAY;
		wall_ms = now;
		step(now);
		if (i % LOOK_EVERY == 0) {
			expire(now);
			settle(now);
			look(now);
			now += chance(2) * 8 * DAY; /* and the effect of time alone */
			look(now);
		}
	}
	end_quietly(now);
	tear_down(NULL);
}

static void everything_that_shows_a_state_agrees(void **state)
{
	const char *one = getenv("OUTPOST_STATES_SEED"), *runs = getenv("OUTPOST_STATES_RUNS");
	uint32_t n = runs ? (uint32_t)strtoul(runs, NULL, 10) : DEFAULT_RUNS;

	(void)state;
	if (one)
		play((uint32_t)strtoul(one, NULL, 10));
	for (uint32_t i = 1; !one && i <= n; i++)
		play(i);
	/* histories without such states would prove nothing */
	for (int s = 0; !one && n >= DEFAULT_RUNS && s < N_ACCELERATOR_STATUSES; s++)
		CHECK(n_seen[s] > 0, "no accelerator was ever \"%s\"",
		    accelerator_words((enum accelerator_status)s)->word);
	if (getenv("OUTPOST_STATES_VERBOSE"))
		for (int s = 0; s < N_ACCELERATOR_STATUSES; s++)
			print_message("%6d %s\n", n_seen[s], accelerator_words((enum accelerator_status)s)->name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(everything_that_shows_a_state_agrees),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
