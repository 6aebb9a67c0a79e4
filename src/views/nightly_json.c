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

static json_t *compare_url_json(const char *repository, const char *from, const char *to)
{
	return repository && from && to && strcmp(from, to) != 0
		   ? json_sprintf("https://github.com/%s/compare/%s...%s", repository, from, to)
		   : json_null();
}

static json_t *commits_json(
    const struct nightly_view *v, const struct nightly_cell *cell, json_t *const *known)
{
	const struct nightly_mark *good = &cell->last_good, *bad = &cell->first_bad;
	const struct nightly_commits *c;
	char *source = NULL;
	json_t *obj;

	if (cell->commits < 0)
		return json_null();
	c = &v->commits[cell->commits];
	if (bad->source_url && str_eq(bad->source_url, good->source_url))
		source = github_repository(bad->source_url);
	obj = json_pack("{s:o, s:o, s:O, s:o}", "url",
	    compare_url_json(c->repository, c->good_sha, c->bad_sha), "count",
	    c->n < 0 ? json_null() : json_integer(c->n), "known", known[cell->commits],
	    "source_url", compare_url_json(source, good->source_sha, bad->source_sha));
	free(source);
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
	json_object_set_new(obj, "url", job_url_json(public_url, m->job));
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
	json_t *obj = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "accelerator",
	    w->v->accelerators[c->accelerator].name, "state", history_state_name(c->state), "since",
	    day_json(c->since_day), "first_bad", mark_json(&c->first_bad, w->public_url),
	    "last_good", mark_json(&c->last_good, w->public_url), "commits",
	    commits_json(w->v, c, w->known));
	char *rest = json_text(obj);

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

static void append_tests(struct writing *w)
{
	const struct nightly_view *v = w->v;

	w->known = xcalloc(v->n_commits + 1, sizeof(*w->known));
	w->texts = xcalloc(v->n_accelerators * v->n_days + 1, sizeof(*w->texts));
	/* One list for all cells that share it; the source differs by accelerator. */
	for (size_t i = 0; i < v->n_commits; i++) {
		const struct nightly_commits *c = &v->commits[i];

		w->known[i] = json_array();
		for (size_t k = 0; k < c->n_listed; k++) {
			json_t *obj;

			if (!c->list[k].sha)
				continue;
			obj = record_json(&nightly_commit_record, &c->list[k]);
			json_object_set_new(obj, "url",
			    json_sprintf(
				"https://github.com/%s/commit/%s", c->repository, c->list[k].sha));
			json_array_append_new(w->known[i], obj);
		}
	}
	for (size_t i = 0; i < v->n_tests; i++) {
		const struct nightly_test *t = &v->tests[i];

		if (i)
			buf_append_char(&w->out, ',');
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
	for (size_t i = 0; i < v->n_commits; i++)
		json_decref(w->known[i]);
	free(w->known);
	free(w->texts);
}

char *nightly_json(const struct nightly_view *v, const char *public_url)
{
	struct writing w = {.v = v, .public_url = public_url, .out = BUF_INIT(SIZE_MAX / 2)};
	json_t *days = json_array(), *counts = json_object(), *next = json_null();
	char *place;

	for (size_t i = 0; i < v->n_days; i++)
		json_array_append_new(days, day_json(v->first_day + (int64_t)i));
	for (int s = 0; s < N_HISTORY_STATES; s++)
		json_set_int(counts, history_state_name((enum history_state)s), v->counts[s]);
	if (v->next.suite) {
		place = xasprintf(
		    "%d %lld %s", (int)v->next.state, (long long)v->next.test_id, v->next.suite);
		next = cursor_json(place, strlen(place));
		free(place);
	}
	append_json(&w.out, json_pack("{s:o, s:o, s:o, s:o}", "days", days, "accelerators",
				accelerators_json(v, public_url), "counts", counts, "next", next));
	w.out.len--; /* without its brace */
	buf_append_str(&w.out, ",\"tests\":[");
	append_tests(&w);
	buf_append_str(&w.out, "]}");
	return buf_take(&w.out);
}
