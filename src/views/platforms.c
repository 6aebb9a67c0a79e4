#include "views/platforms.h"

#include "db/record_rows.h"
#include "history/standings.h"
#include "views/accelerator.h"
#include "views/record_json.h"

#define MINUTE INT64_C(60000)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)

enum { ROWS_MAX = 20000, SPAN_BYTES = 32, LINE_BYTES = 160 };

static const char NOTHING_REQUIRED[] = "no must-pass tests are named for it";

/* ---- the query ---- */

static int get_platform_tests_run(struct store_query *q, const struct view *d)
{
	struct get_platform_tests *g = CONTAINER_OF(q, struct get_platform_tests, q);
	struct upstream_branch u = upstream_branch_read(d);
	struct rows *r = db_rows(d,
	    RECORD_QUERY_BOTH(PLATFORM_TEST_RECORD, PLATFORM_MUST_PASS_RECORD,
		"FROM platform_test WHERE ?1 IS NULL OR accelerator = ?1 ORDER BY accelerator, "
		"at_ms DESC, torch, os LIMIT ?2"),
	    V_TEXT(g->only), V_INT(ROWS_MAX));

	while (rows_next(r)) {
		struct platform_test *t = ARRAY_PUSH(g->list, g->n);

		record_read(r, &platform_test_record, t);
		record_read(r, &platform_must_pass_record, t);
		t->build = platform_build_of(t->torch);
	}
	g->standings = xcalloc(g->n_names + 1, sizeof(*g->standings));
	DB_PIPELINE (d)
		for (size_t i = 0; i < g->n_names; i++)
			standing_read(d, g->names[i], &u, g->now_ms, &g->standings[i]);
	if (db_status(d))
		get_platform_tests_release(g);
	return 0;
}

STORE_QUERY(get_platform_tests)

void get_platform_tests_release(struct get_platform_tests *q)
{
	RECORDS_RELEASE(platform_test, q->list, q->n);
	for (size_t i = 0; q->standings && i < q->n_names; i++)
		standing_release(&q->standings[i]);
	FREE_AND_NULL(q->standings);
}

/* ---- the state of a platform, by its must-pass tests ---- */

/* In the order in which platforms are listed. */
enum platform_state { PLATFORM_TESTED, PLATFORM_IS_RED, PLATFORM_STALE, PLATFORM_UNTESTED };
struct platform_standing {
	enum platform_state state;
	char text[LINE_BYTES]; /* one line for people */
};

/* "3 days". A time in the future, after the clock was put back, is "less than a minute". */
static const char *span(int64_t ms, char out[SPAN_BYTES])
{
	const char *unit = ms < HOUR ? "minute" : ms < DAY ? "hour" : "day";
	int64_t n = ms / (ms < HOUR ? MINUTE : ms < DAY ? HOUR : DAY);

	if (ms < MINUTE)
		snprintf(out, SPAN_BYTES, "less than a minute");
	else
		snprintf(out, SPAN_BYTES, "%lld %s%s", (long long)n, unit, n == 1 ? "" : "s");
	return out;
}

static bool is_stale(const struct platform *p, const struct platform_test *t, int64_t now_ms)
{
	return now_ms - t->at_ms > p->max_age_ms;
}

/* Nightlies count, and of the releases those that `install` names (all, if it names none). */
static bool is_relevant(const struct platform *p, const struct platform_test *t)
{
	bool has_release = false;

	for (size_t i = 0; i < p->n_installs; i++) {
		if (p->installs[i].torch && platform_is_release(t->torch, p->installs[i].torch))
			return true;
		has_release |= p->installs[i].torch != NULL;
	}
	return !has_release || t->build == BUILD_NIGHTLY;
}

/* One red test that is not stale makes the platform red, else one green test makes it tested. tests: newest first. */
static struct platform_standing platform_stand(
    const struct platform *p, const struct platform_test *tests, size_t n, int64_t now_ms)
{
	struct platform_standing s = {.state = PLATFORM_UNTESTED};
	int64_t green_ms = 0, red_since_ms = 0, any_ms = 0; /* 0: there is none */
	bool is_red = false, is_unjudged = false;
	char ago[SPAN_BYTES];

	for (size_t i = 0; i < n; i++) {
		const struct platform_test *t = &tests[i];
		enum platform_result result = platform_test_result(t);

		if (!is_relevant(p, t))
			continue;
		if (result == PLATFORM_UNJUDGED) {
			is_unjudged = true;
			continue;
		}
		if (t->at_ms > any_ms)
			any_ms = t->at_ms;
		if (is_stale(p, t, now_ms))
			continue;
		if (result == PLATFORM_GREEN && t->at_ms > green_ms)
			green_ms = t->at_ms;
		if (result == PLATFORM_RED && (!is_red || t->red_since_ms < red_since_ms))
			red_since_ms = t->red_since_ms;
		is_red |= result == PLATFORM_RED;
	}
	if (is_red) {
		s.state = PLATFORM_IS_RED;
		snprintf(
		    s.text, sizeof(s.text), "must-pass tests have been red for %s", span(now_ms - red_since_ms, ago));
	} else if (green_ms) {
		s.state = PLATFORM_TESTED;
		snprintf(s.text, sizeof(s.text), "must-pass tests passed %s ago", span(now_ms - green_ms, ago));
	} else if (any_ms) {
		s.state = PLATFORM_STALE;
		snprintf(s.text, sizeof(s.text), "last tested %s ago", span(now_ms - any_ms, ago));
	} else {
		snprintf(s.text, sizeof(s.text), "%s", is_unjudged ? NOTHING_REQUIRED : "not tested yet");
	}
	return s;
}

/* ---- one way to install ---- */

/* A release is offered for a system if some test of it there is green and not stale, a nightly if the newest one is. Else
 * `why` has the reason. tests: newest first. */
static bool platform_is_offered(const struct platform *p, const struct platform_install *i,
    const struct platform_test *tests, size_t n, int64_t now_ms, char why[LINE_BYTES])
{
	static const char *const OS_TITLES[] = {[OS_LINUX] = "Linux", [OS_MACOS] = "macOS", [OS_WINDOWS] = "Windows"};
	const struct platform_test *newest = NULL;
	bool is_tested = false, has_no_os = false;
	char what[48], ago[SPAN_BYTES];

	if (i->torch)
		snprintf(what, sizeof(what), "PyTorch %s", i->torch);
	else
		snprintf(what, sizeof(what), "the nightly");
	for (size_t k = 0; k < n; k++) {
		const struct platform_test *t = &tests[k];

		if (i->build != t->build || (i->torch && !platform_is_release(t->torch, i->torch)))
			continue;
		is_tested = true;
		has_no_os |= !*t->os;
		if (platform_os_of(t->os) != i->os || (newest && i->build == BUILD_NIGHTLY))
			continue;
		if (!newest)
			newest = t;
		if (platform_test_result(t) == PLATFORM_GREEN && !is_stale(p, t, now_ms))
			return true;
	}
	if (newest && platform_test_result(newest) == PLATFORM_UNJUDGED)
		snprintf(why, LINE_BYTES, "%s", NOTHING_REQUIRED);
	else if (newest && is_stale(p, newest, now_ms))
		snprintf(why, LINE_BYTES, "%s was last tested %s ago", what, span(now_ms - newest->at_ms, ago));
	else if (newest)
		snprintf(why, LINE_BYTES, "must-pass tests with %s have been red for %s", what,
		    span(now_ms - newest->red_since_ms, ago));
	else if (has_no_os)
		snprintf(why, LINE_BYTES, "%s was tested, but its report names no operating system", what);
	else
		snprintf(why, LINE_BYTES, "%s was not tested%s%s", what, is_tested ? " on " : "",
		    is_tested ? OS_TITLES[i->os] : "");
	return false;
}

/* ---- the JSON ---- */

static json_t *test_json(
    const struct platform *p, const struct platform_test *t, int64_t now_ms, const char *public_url)
{
	static const char *const results[] = {
	    [PLATFORM_UNJUDGED] = NULL, [PLATFORM_GREEN] = "green", [PLATFORM_RED] = "red"};
	json_t *v = record_json(&platform_test_record, t);
	json_t *must_pass = record_json(&platform_must_pass_record, t);

	json_set_int(must_pass, "total", t->n_passed + t->n_failed + t->n_missing);
	json_object_update_new(
	    v, json_pack("{s:s, s:o, s:s?, s:o, s:b, s:o}", "build", platform_build_name(t->build), "os",
		   json_foreign_text(*t->os ? t->os : NULL), "result", results[platform_test_result(t)], "must_pass",
		   must_pass, "is_stale", is_stale(p, t, now_ms), "url",
		   t->job_id ? json_sprintf("%s/jobs/%lld", public_url, (long long)t->job_id) : json_null()));
	return v;
}

json_t *platform_json(const struct platform_entry *e, int64_t now_ms, const char *public_url)
{
	static const char *const states[] = {
	    [PLATFORM_TESTED] = "tested",
	    [PLATFORM_IS_RED] = "red",
	    [PLATFORM_STALE] = "stale",
	    [PLATFORM_UNTESTED] = "untested",
	};
	const struct platform *p = e->a->platform;
	const struct accelerator_facts *facts = &e->at.facts;
	struct platform_standing s = platform_stand(p, e->tests, e->n_tests, now_ms);
	json_t *tested = json_array(), *installs = json_array(), *steps = json_array();
	json_t *help = json_array(), *extension = json_null(), *start = json_null();
	char why[LINE_BYTES];

	for (size_t i = 0; i < e->n_tests; i++)
		json_array_append_new(tested, test_json(p, &e->tests[i], now_ms, public_url));
	for (size_t k = 0; k < p->n_installs; k++) {
		const struct platform_install *i = &p->installs[k];
		bool is_offered = platform_is_offered(p, i, e->tests, e->n_tests, now_ms, why);

		json_array_append_new(
		    installs, json_pack("{s:s, s:s?, s:s, s:s, s:s?, s:s, s:o, s:s?, s:b, s:s?}", "build",
				  platform_build_name(i->build), "torch", i->torch, "os", platform_os_name(i->os),
				  "package", platform_package_name(i->package), "platform", i->version, "language",
				  platform_language_name(i->language), "commands", json_foreign_texts(i->commands),
				  "note", i->note, "offered", is_offered, "why_not", is_offered ? NULL : why));
	}
	for (size_t i = 0; i < p->n_steps; i++)
		json_array_append_new(
		    steps, json_pack("{s:s?, s:s?, s:o, s:s?}", "title", p->steps[i].title, "text", p->steps[i].text,
			       "commands", json_foreign_texts(p->steps[i].commands), "url", p->steps[i].url));
	for (size_t i = 0; i < p->n_help; i++)
		json_array_append_new(
		    help, json_pack("{s:s?, s:s?}", "title", p->help[i].title, "url", p->help[i].url));
	if (p->extension_package)
		extension = json_pack("{s:s, s:s?, s:b, s:s?}", "package", p->extension_package, "import",
		    p->extension_import, "autoload", p->is_autoloaded, "url", p->extension_url);
	if (p->start_text || p->start_code)
		start = json_pack("{s:s?, s:s?}", "text", p->start_text, "code", p->start_code);
	return json_pack("{s:s, s:s?, s:s?, s:s, s:s?, s:s?, s:b, s:o, s:o, s:o, s:o, s:s, s:s, "
			 "s:o, s:o, s:s?, s:I, s:o, s:o, s:o, s:o, s:o}",
	    "name", e->a->name, "title", e->a->title, "vendor", e->a->vendor, "integration",
	    platform_integration_name(p->integration), "device", p->device, "summary", p->summary, "is_example",
	    p->is_example, "links", links_json(e->a->docs_url, e->a->help_url), "url",
	    json_sprintf("%s/platforms/%s", public_url, e->a->name), "extension", extension, "versions",
	    json_foreign_texts(p->versions), "state", states[s.state], "state_text", s.text, "branch_state",
	    accelerator_state_json(&e->at.state), "red_since", json_time(facts->red_since_ms), "red_by",
	    red_by_name(facts->red_since_ms, facts->is_red_in_silence), "max_age", (json_int_t)(p->max_age_ms / 1000),
	    "tested", tested, "install", installs, "prepare", steps, "get_started", start, "help", help);
}

/* ---- all of them ---- */

struct ranked {
	struct platform_entry entry;
	bool is_example;
	enum platform_state state;
};

static int by_rank(const void *x, const void *y)
{
	const struct ranked *a = x, *b = y;

	if (a->is_example != b->is_example)
		return a->is_example - b->is_example;
	if (a->state != b->state)
		return a->state < b->state ? -1 : 1;
	int by_title = strcasecmp(a->entry.a->title, b->entry.a->title);
	return by_title ? by_title : strcmp(a->entry.a->name, b->entry.a->name);
}

/* Each choice lists the values that occur, in the order of their enum. */
static json_t *choices_json(const struct platform_entry *list, size_t n)
{
	unsigned builds = 0, oses = 0, packages = 0, languages = 0; /* a bit for each value */
	json_t *build = json_array(), *os = json_array(), *package = json_array();
	json_t *language = json_array(), *platforms = json_array();

	for (size_t i = 0; i < n; i++) {
		const struct accelerator *a = list[i].a;

		for (size_t k = 0; k < a->platform->n_installs; k++) {
			builds |= 1U << a->platform->installs[k].build;
			oses |= 1U << a->platform->installs[k].os;
			packages |= 1U << a->platform->installs[k].package;
			languages |= 1U << a->platform->installs[k].language;
		}
		json_array_append_new(platforms, json_pack("{s:s, s:s?, s:o}", "name", a->name, "title", a->title,
						     "versions", json_foreign_texts(a->platform->versions)));
	}
	for (int i = 0; i < 32; i++) {
		if (builds >> i & 1)
			json_array_append_new(build, json_string(platform_build_name((enum platform_build)i)));
		if (oses >> i & 1)
			json_array_append_new(os, json_string(platform_os_name((enum platform_os)i)));
		if (packages >> i & 1)
			json_array_append_new(package, json_string(platform_package_name((enum platform_package)i)));
		if (languages >> i & 1)
			json_array_append_new(language, json_string(platform_language_name((enum platform_language)i)));
	}
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "build", build, "os", os, "package", package, "platform",
	    platforms, "language", language);
}

json_t *platforms_json(struct platform_entry *list, size_t n, int64_t now_ms, const char *public_url)
{
	struct ranked *ranked = xcalloc(n + 1, sizeof(*ranked));
	json_t *platforms = json_array();

	for (size_t i = 0; i < n; i++) {
		const struct platform *p = list[i].a->platform;

		ranked[i] = (struct ranked){.entry = list[i],
		    .is_example = p->is_example,
		    .state = platform_stand(p, list[i].tests, list[i].n_tests, now_ms).state};
	}
	qsort(ranked, n, sizeof(*ranked), by_rank);
	for (size_t i = 0; i < n; i++) {
		list[i] = ranked[i].entry;
		json_array_append_new(platforms, platform_json(&list[i], now_ms, public_url));
	}
	free(ranked);
	return json_pack("{s:o, s:o}", "choices", choices_json(list, n), "platforms", platforms);
}
