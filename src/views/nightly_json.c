#include "views/nightly.h"

#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"
#include "views/days.h"
#include "views/record_json.h"

enum { DAY_JSON_BYTES = 64 };

static json_t *day_json(int64_t day)
{
	char text[DAY_TEXT_BYTES];

	return day < 0 ? json_null() : json_string(day_text(day, text));
}

/* ---- accelerators ---- */

static json_t *accelerators_json(const struct nightly_view *v, const char *public_url)
{
	json_t *list = json_array();

	for (size_t i = 0; i < v->n_accelerators; i++) {
		const struct nightly_accelerator *a = &v->accelerators[i];
		json_t *obj = record_json(&nightly_accelerator_record, a), *runs = json_array();

		json_object_set_new(obj, "schedule",
		    a->schedule.is_there ? record_json(&schedule_view_record, &a->schedule)
					 : json_null());
		for (size_t k = 0; k < v->n_days; k++)
			json_array_append_new(
			    runs, schedule_run_json(&a->runs[k], a->name, public_url));
		json_object_set_new(obj, "runs", runs);
		json_array_append_new(list, obj);
	}
	return list;
}

/* ---- what is between two runs ---- */

/* One list for all cells that share it; the source differs by accelerator. */
static json_t *known_json(const struct nightly_commits *c)
{
	json_t *list = json_array();

	for (size_t i = 0; i < c->n_listed; i++) {
		const struct nightly_commit *one = &c->list[i];
		json_t *obj;
		char *url;

		if (!one->sha)
			continue;
		obj = record_json(&nightly_commit_record, one);
		url = xasprintf("https://github.com/%s/commit/%s", c->repository, one->sha);
		json_set_foreign_text(obj, "url", url);
		json_array_append_new(list, obj);
		free(url);
	}
	return list;
}

/* "https://github.com/o/r.git" as "o/r"; NULL: it is not on GitHub. free(). */
static char *github_repository(const char *git_url)
{
	static const char GITHUB[] = "https://github.com/";
	const char *name;
	char *copy;
	size_t n;

	if (!git_url || strncmp(git_url, GITHUB, sizeof(GITHUB) - 1) != 0)
		return NULL;
	name = git_url + sizeof(GITHUB) - 1;
	n = strlen(name);
	if (n > 4 && strcmp(name + n - 4, ".git") == 0)
		n -= 4;
	copy = xstrndup(name, n);
	if (is_repository_name(copy))
		return copy;
	free(copy);
	return NULL;
}

static void set_compare_url(
    json_t *obj, const char *key, const char *repository, const char *from, const char *to)
{
	bool is_there = repository && from && to && strcmp(from, to) != 0;
	char *url = is_there
			? xasprintf("https://github.com/%s/compare/%s...%s", repository, from, to)
			: NULL;

	json_set_foreign_text(obj, key, url);
	free(url);
}

static void set_source_url(json_t *obj, const struct nightly_cell *c)
{
	const char *git_url = c->first_bad.source_url;
	bool is_same = git_url && str_eq(git_url, c->last_good.source_url);
	char *repository = is_same ? github_repository(git_url) : NULL;

	set_compare_url(
	    obj, "source_url", repository, c->last_good.source_sha, c->first_bad.source_sha);
	free(repository);
}

static json_t *commits_json(
    const struct nightly_view *v, const struct nightly_cell *cell, json_t *const *known)
{
	const struct nightly_commits *c;
	json_t *obj;

	if (cell->commits < 0)
		return json_null();
	c = &v->commits[cell->commits];
	obj = json_object();
	set_compare_url(obj, "url", c->repository, c->good_sha, c->bad_sha);
	json_object_set_new(obj, "count", c->n < 0 ? json_null() : json_integer(c->n));
	json_object_set(obj, "known", known[cell->commits]);
	set_source_url(obj, cell);
	return obj;
}

/* ---- tests ---- */

static json_t *mark_json(const struct nightly_mark *m, const char *public_url)
{
	json_t *obj;

	if (m->day < 0)
		return json_null();
	obj = record_json(&nightly_mark_record, m);
	json_object_set_new(obj, "day", day_json(m->day));
	json_set_job_url(obj, "url", public_url, m->job);
	return obj;
}

/* The tests of a run have few different outcomes and jobs, so the text is mostly that of the test before. */
struct day_text {
	struct nightly_day day;
	size_t n; /* 0: not written yet */
	char text[DAY_JSON_BYTES];
};

struct writing {
	const struct nightly_view *v;
	const char *public_url;
	json_t **known;         /* of each of the view's commits */
	struct day_text *texts; /* of each accelerator's days */
	struct buf out;
};

static void append_day(struct writing *w, const struct nightly_cell *c, size_t i)
{
	struct day_text *t = &w->texts[c->accelerator * w->v->n_days + i];
	const struct nightly_day *d = &c->days[i];
	char job[24] = "null";

	if (d->status < 0) {
		buf_append_str(&w->out, "null");
		return;
	}
	if (!t->n || t->day.status != d->status || t->day.job != d->job) {
		if (d->job)
			snprintf(job, sizeof(job), "%lld", (long long)d->job);
		t->n = (size_t)snprintf(t->text, sizeof(t->text), "{\"status\":\"%s\",\"job\":%s}",
		    test_status_name((enum test_status)d->status), job);
		t->day = *d;
	}
	buf_append(&w->out, t->text, t->n);
}

static void append_json(struct buf *out, json_t *v)
{
	char *text = json_text(v);

	buf_append_str(out, text);
	free(text);
	json_decref(v);
}

/* Its days as text: a page has tens of thousands of them, and one jansson value for each would take longer than the rest
 * of the answer. */
static void append_cell(struct writing *w, const struct nightly_cell *c)
{
	json_t *obj = json_object();
	char *rest;

	json_set_str(obj, "accelerator", w->v->accelerators[c->accelerator].name);
	json_set_str(obj, "state", history_state_name(c->state));
	json_object_set_new(obj, "since", day_json(c->since_day));
	json_object_set_new(obj, "first_bad", mark_json(&c->first_bad, w->public_url));
	json_object_set_new(obj, "last_good", mark_json(&c->last_good, w->public_url));
	json_object_set_new(obj, "commits", commits_json(w->v, c, w->known));
	rest = json_text(obj);
	json_decref(obj);
	buf_append_str(&w->out, "{\"days\":[");
	for (size_t i = 0; i < w->v->n_days; i++) {
		if (i)
			buf_append_char(&w->out, ',');
		append_day(w, c, i);
	}
	buf_append_str(&w->out, "],");
	buf_append_str(&w->out, rest + 1);
	free(rest);
}

static void append_test(struct writing *w, const struct nightly_test *t)
{
	append_json(&w->out, record_json(&nightly_test_record, t));
	w->out.len--; /* without its brace */
	buf_append_str(&w->out, ",\"cells\":[");
	for (size_t k = 0; k < t->n_cells; k++) {
		if (k)
			buf_append_char(&w->out, ',');
		append_cell(w, &t->cells[k]);
	}
	buf_append_str(&w->out, "]}");
}

static void append_tests(struct writing *w)
{
	const struct nightly_view *v = w->v;

	w->known = xcalloc(v->n_commits + 1, sizeof(*w->known));
	w->texts = xcalloc(v->n_accelerators * v->n_days + 1, sizeof(*w->texts));
	for (size_t i = 0; i < v->n_commits; i++)
		w->known[i] = known_json(&v->commits[i]);
	for (size_t i = 0; i < v->n_tests; i++) {
		if (i)
			buf_append_char(&w->out, ',');
		append_test(w, &v->tests[i]);
	}
	for (size_t i = 0; i < v->n_commits; i++)
		json_decref(w->known[i]);
	free(w->known);
	free(w->texts);
}

char *nightly_json(const struct nightly_view *v, const char *next, const char *public_url)
{
	struct writing w = {.v = v, .public_url = public_url, .out = BUF_INIT(SIZE_MAX / 2)};
	json_t *obj = json_object(), *days = json_array(), *counts = json_object();

	for (size_t i = 0; i < v->n_days; i++)
		json_array_append_new(days, day_json(v->first_day + (int64_t)i));
	for (int s = 0; s < N_HISTORY_STATES; s++)
		json_set_int(counts, history_state_name((enum history_state)s), v->counts[s]);
	json_object_set_new(obj, "days", days);
	json_object_set_new(obj, "accelerators", accelerators_json(v, public_url));
	json_object_set_new(obj, "counts", counts);
	json_set_str(obj, "next", next);
	append_json(&w.out, obj);
	w.out.len--; /* without its brace */
	buf_append_str(&w.out, ",\"tests\":[");
	append_tests(&w);
	buf_append_str(&w.out, "]}");
	return buf_take(&w.out);
}
