#include "report/platform_json.h"

#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/json.h"
#include "report/accelerator_state_json.h"
#include "report/json_field.h"
#include "report/platform_state.h"

static json_t *texts_json(char *const *v)
{
	json_t *list = json_array();

	for (; v && *v; v++)
		json_array_append_new(list, json_string(*v));
	return list;
}

/* ---- what was tested ---- */

static json_t *test_json(
    const struct platform *p, const struct platform_test *t, int64_t now_ms, const char *public_url)
{
	static const char *const results[] = {
	    [PLATFORM_UNJUDGED] = NULL, [PLATFORM_GREEN] = "green", [PLATFORM_RED] = "red"};
	json_t *v = json_object(), *must_pass = json_object();
	char *url = t->job_id ? xasprintf("%s/jobs/%lld", public_url, (long long)t->job_id) : NULL;

	json_set_str(v, "build", platform_build_name(t->build));
	json_set_foreign_text(v, "torch", t->torch);
	json_set_foreign_text(v, "os", *t->os ? t->os : NULL);
	json_set_str(v, "result", results[platform_test_result(t)]);
	json_set_int(must_pass, "passed", t->n_passed);
	json_set_int(must_pass, "failed", t->n_failed);
	json_set_int(must_pass, "missing", t->n_missing);
	json_set_int(must_pass, "total", t->n_passed + t->n_failed + t->n_missing);
	json_object_set_new(v, "must_pass", must_pass);
	json_set_time(v, "at", t->at_ms);
	json_set_time(v, "red_since", t->red_since_ms);
	json_object_set_new(v, "is_stale", json_boolean(platform_test_is_stale(p, t, now_ms)));
	json_object_set_new(v, "job", t->job_id ? json_integer(t->job_id) : json_null());
	json_set_str(v, "url", url);
	json_set_str(v, "head_sha", t->head_sha);
	json_set_foreign_text(v, "extension_version", t->extension_version);
	free(url);
	return v;
}

/* ---- what the vendor says ---- */

static json_t *install_json(
    const struct platform_entry *e, const struct platform_install *i, int64_t now_ms)
{
	json_t *v = json_object();
	char why[PLATFORM_LINE_BYTES];
	bool is_offered = platform_is_offered(e->a->platform, i, e->tests, e->n_tests, now_ms, why);

	json_set_str(v, "build", platform_build_name(i->build));
	json_set_str(v, "torch", i->torch);
	json_set_str(v, "os", platform_os_name(i->os));
	json_set_str(v, "package", platform_package_name(i->package));
	json_set_str(v, "platform", i->version);
	json_set_str(v, "language", platform_language_name(i->language));
	json_object_set_new(v, "commands", texts_json(i->commands));
	json_set_str(v, "note", i->note);
	json_object_set_new(v, "offered", json_boolean(is_offered));
	json_set_str(v, "why_not", is_offered ? NULL : why);
	return v;
}

static json_t *extension_json(const struct platform *p)
{
	json_t *v;

	if (!p->extension_package)
		return json_null();
	v = json_object();
	json_set_str(v, "package", p->extension_package);
	json_set_str(v, "import", p->extension_import);
	json_object_set_new(v, "autoload", json_boolean(p->is_autoloaded));
	json_set_str(v, "url", p->extension_url);
	return v;
}

static json_t *steps_json(const struct platform *p)
{
	json_t *list = json_array();

	for (size_t i = 0; i < p->n_steps; i++) {
		json_t *v = json_object();

		json_set_str(v, "title", p->steps[i].title);
		json_set_str(v, "text", p->steps[i].text);
		json_object_set_new(v, "commands", texts_json(p->steps[i].commands));
		json_set_str(v, "url", p->steps[i].url);
		json_array_append_new(list, v);
	}
	return list;
}

static json_t *start_json(const struct platform *p)
{
	json_t *v;

	if (!p->start_text && !p->start_code)
		return json_null();
	v = json_object();
	json_set_str(v, "text", p->start_text);
	json_set_str(v, "code", p->start_code);
	return v;
}

static json_t *help_json(const struct platform *p)
{
	json_t *list = json_array();

	for (size_t i = 0; i < p->n_help; i++) {
		json_t *v = json_object();

		json_set_str(v, "title", p->help[i].title);
		json_set_str(v, "url", p->help[i].url);
		json_array_append_new(list, v);
	}
	return list;
}

static void set_words(json_t *v, const struct accelerator *a, const char *public_url)
{
	const struct platform *p = a->platform;
	json_t *links = json_object();
	char *url = xasprintf("%s/platforms/%s", public_url, a->name);

	json_set_str(v, "name", a->name);
	json_set_str(v, "title", a->title);
	json_set_str(v, "vendor", a->vendor);
	json_set_str(v, "integration", platform_integration_name(p->integration));
	json_set_str(v, "device", p->device);
	json_set_str(v, "summary", p->summary);
	json_object_set_new(v, "is_example", json_boolean(p->is_example));
	json_set_str(links, "docs", a->docs_url);
	json_set_str(links, "help", a->help_url);
	json_object_set_new(v, "links", links);
	json_set_str(v, "url", url);
	json_object_set_new(v, "extension", extension_json(p));
	json_object_set_new(v, "versions", texts_json(p->versions));
	free(url);
}

json_t *platform_json(const struct platform_entry *e, int64_t now_ms, const char *public_url)
{
	const struct platform *p = e->a->platform;
	struct platform_standing s = platform_stand(p, e->tests, e->n_tests, now_ms);
	json_t *v = json_object(), *tested = json_array(), *installs = json_array();

	set_words(v, e->a, public_url);
	json_set_str(v, "state", platform_state_name(s.state));
	json_set_str(v, "state_text", s.text);
	json_object_set_new(v, "branch_state", accelerator_state_json(&e->at.state));
	json_set_time(v, "red_since", e->at.facts.red_since_ms);
	json_set_str(
	    v, "red_by", red_by_name(e->at.facts.red_since_ms, e->at.facts.is_red_in_silence));
	json_object_set_new(v, "max_age", json_integer(p->max_age_ms / 1000));
	for (size_t i = 0; i < e->n_tests; i++)
		json_array_append_new(tested, test_json(p, &e->tests[i], now_ms, public_url));
	json_object_set_new(v, "tested", tested);
	for (size_t i = 0; i < p->n_installs; i++)
		json_array_append_new(installs, install_json(e, &p->installs[i], now_ms));
	json_object_set_new(v, "install", installs);
	json_object_set_new(v, "prepare", steps_json(p));
	json_object_set_new(v, "get_started", start_json(p));
	json_object_set_new(v, "help", help_json(p));
	return v;
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
	int by_title;

	if (a->is_example != b->is_example)
		return a->is_example - b->is_example;
	if (a->state != b->state)
		return a->state < b->state ? -1 : 1;
	by_title = strcasecmp(a->entry.a->title, b->entry.a->title);
	return by_title ? by_title : strcmp(a->entry.a->name, b->entry.a->name);
}

static void sort(struct platform_entry *list, size_t n, int64_t now_ms)
{
	struct ranked *ranked = xcalloc(n + 1, sizeof(*ranked));

	for (size_t i = 0; i < n; i++) {
		const struct platform *p = list[i].a->platform;

		ranked[i] = (struct ranked){
		    .entry = list[i],
		    .is_example = p->is_example,
		    .state = platform_stand(p, list[i].tests, list[i].n_tests, now_ms).state,
		};
	}
	qsort(ranked, n, sizeof(*ranked), by_rank);
	for (size_t i = 0; i < n; i++)
		list[i] = ranked[i].entry;
	free(ranked);
}

/* What occurs at all, each kind as bits. */
struct occurring {
	unsigned builds, oses, packages, languages;
};

static struct occurring see(const struct platform_entry *list, size_t n)
{
	struct occurring seen = {0};

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < list[i].a->platform->n_installs; k++) {
			const struct platform_install *one = &list[i].a->platform->installs[k];

			seen.builds |= 1U << one->build;
			seen.oses |= 1U << one->os;
			seen.packages |= 1U << one->package;
			seen.languages |= 1U << one->language;
		}
	return seen;
}

static json_t *platform_choice_json(const struct accelerator *a)
{
	json_t *v = json_object();

	json_set_str(v, "name", a->name);
	json_set_str(v, "title", a->title);
	json_object_set_new(v, "versions", texts_json(a->platform->versions));
	return v;
}

static json_t *choices_json(const struct platform_entry *list, size_t n)
{
	struct occurring seen = see(list, n);
	json_t *builds = json_array(), *oses = json_array(), *packages = json_array();
	json_t *platforms = json_array(), *languages = json_array();

	for (int i = 0; i < N_PLATFORM_BUILDS; i++)
		if (seen.builds & 1U << i)
			json_array_append_new(
			    builds, json_string(platform_build_name((enum platform_build)i)));
	for (int i = 0; i < N_PLATFORM_OSES; i++)
		if (seen.oses & 1U << i)
			json_array_append_new(
			    oses, json_string(platform_os_name((enum platform_os)i)));
	for (int i = 0; i < N_PLATFORM_PACKAGES; i++)
		if (seen.packages & 1U << i)
			json_array_append_new(
			    packages, json_string(platform_package_name((enum platform_package)i)));
	for (int i = 0; i < N_PLATFORM_LANGUAGES; i++)
		if (seen.languages & 1U << i)
			json_array_append_new(languages,
			    json_string(platform_language_name((enum platform_language)i)));
	for (size_t i = 0; i < n; i++)
		json_array_append_new(platforms, platform_choice_json(list[i].a));
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "build", builds, "os", oses, "package",
	    packages, "platform", platforms, "language", languages);
}

json_t *platforms_json(
    struct platform_entry *list, size_t n, int64_t now_ms, const char *public_url)
{
	json_t *platforms = json_array();

	sort(list, n, now_ms);
	for (size_t i = 0; i < n; i++)
		json_array_append_new(platforms, platform_json(&list[i], now_ms, public_url));
	return json_pack("{s:o, s:o}", "choices", choices_json(list, n), "platforms", platforms);
}
