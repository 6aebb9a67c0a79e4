/* The JSON of the page of periodic runs. */
#include "views/days.h"
#include "views/nightly.h"
#include "views/record_json.h"

static void day_out(struct buf *out, const char *key, int64_t day)
{
	char text[DAY_TEXT_BYTES];

	json_out_text(out, key, day < 0 ? NULL : day_text(day, text));
}

/* ---- accelerators ---- */

static void accelerators_out(struct buf *out, const struct nightly_view *v, const char *public_url)
{
	json_out_open(out, "accelerators", '[');
	for (size_t i = 0; i < v->n_accelerators; i++) {
		const struct nightly_accelerator *a = &v->accelerators[i];

		json_out_open(out, NULL, '{');
		record_out(out, &nightly_accelerator_record, a);
		if (a->schedule.is_there)
			record_object_out(out, "schedule", &schedule_view_record, &a->schedule);
		else
			json_out_raw(out, "schedule", "null");
		schedule_runs_out(out, "runs", a->runs, v->n_days, a->name, public_url);
		json_out_close(out, '}');
	}
	json_out_close(out, ']');
}

/* ---- the commits between two runs ---- */

/* "https://github.com/o/r.git" as "o/r"; NULL: it is not on GitHub. free(). */
static char *github_repository(const char *git_url)
{
	static const char GITHUB[] = "https://github.com/";

	if (!git_url || !str_has_prefix(git_url, GITHUB))
		return NULL;
	char *name = xstrdup(git_url + strlen(GITHUB));
	if (str_has_suffix(name, ".git"))
		name[strlen(name) - strlen(".git")] = '\0';
	if (!is_repository_name(name))
		FREE_AND_NULL(name);
	return name;
}

static void compare_url_out(struct buf *out, const char *key, const char *repository, const char *from, const char *to)
{
	if (repository && from && to && strcmp(from, to) != 0)
		json_out_texts(out, key, "https://github.com/", repository, "/compare/", from, "...", to, NULL);
	else
		json_out_raw(out, key, "null");
}

/* ---- texts that many cells share ---- */

/* Texts one after the other. */
struct shared_texts {
	struct buf all;
	size_t *ends, n;
};

/* The text behind the one before is complete. */
static void shared_text_end(struct shared_texts *t) { *ARRAY_PUSH(t->ends, t->n) = t->all.len; }

static void shared_text_out(struct buf *out, const char *key, const struct shared_texts *t, size_t i)
{
	size_t from = i ? t->ends[i - 1] + 1 : 0; /* behind the comma between them */

	json_out_part(out, key, t->all.data + from, t->ends[i] - from);
}

static void shared_texts_release(struct shared_texts *t)
{
	buf_release(&t->all);
	free(t->ends);
}

/* A day of a cell; the longest has 44 bytes. */
struct day_text {
	char text[47];
	uint8_t n;
};

struct writing {
	const struct nightly_view *v;
	const char *public_url;
	struct shared_texts marks, commits; /* of the view's lists; of the latter the known commits */
	struct day_text *days;              /* null, and the view's outcomes */
	struct buf out;
};

static void commits_out(struct writing *w, const struct nightly_cell *cell)
{
	const struct nightly_mark *good, *bad;
	const struct nightly_commits *c;
	struct buf *out = &w->out;
	char *source = NULL;

	if (cell->commits < 0) {
		json_out_raw(out, "commits", "null");
		return;
	}
	good = &w->v->marks[cell->last_good.mark];
	bad = &w->v->marks[cell->first_bad.mark];
	c = &w->v->commits[cell->commits];
	if (bad->source_url && str_eq(bad->source_url, good->source_url))
		source = github_repository(bad->source_url);
	json_out_open(out, "commits", '{');
	compare_url_out(out, "url", c->repository, c->good_sha, c->bad_sha);
	if (c->n < 0)
		json_out_raw(out, "count", "null");
	else
		json_out_int(out, "count", c->n);
	shared_text_out(out, "known", &w->commits, (size_t)cell->commits);
	compare_url_out(out, "source_url", source, good->source_sha, bad->source_sha);
	json_out_close(out, '}');
	free(source);
}

/* ---- tests ---- */

static void mark_write(struct buf *out, const struct nightly_mark *m, const char *public_url)
{
	json_out_open(out, NULL, '{');
	record_out(out, &nightly_mark_record, m);
	day_out(out, "day", m->day);
	job_url_out(out, "url", public_url, m->job);
	json_out_close(out, '}');
}

static void mark_out(struct writing *w, const char *key, const struct nightly_end *end)
{
	if (end->day < 0)
		json_out_raw(&w->out, key, "null");
	else
		shared_text_out(&w->out, key, &w->marks, end->mark);
}

static void days_out(struct writing *w, const struct nightly_cell *c)
{
	struct buf *out = &w->out;
	char *at;

	json_out_open(out, "days", '[');
	if (buf_reserve(out, w->v->n_days * sizeof(struct day_text)))
		return;
	at = out->data + out->len;
	for (size_t i = 0; i < w->v->n_days; i++) {
		const struct day_text *t = &w->days[c->days[i]];

		if (i)
			*at++ = ',';
		memcpy(at, t->text, sizeof(t->text)); /* of a fixed size, which is faster */
		at += t->n;
	}
	*at = '\0';
	out->len = (size_t)(at - out->data);
	json_out_close(out, ']');
}

static void cell_out(struct writing *w, const struct nightly_cell *c)
{
	struct buf *out = &w->out;

	json_out_open(out, NULL, '{');
	json_out_text(out, "accelerator", w->v->accelerators[c->accelerator].name);
	json_out_text(out, "state", history_state_name(c->state));
	day_out(out, "since", c->since_day);
	mark_out(w, "first_bad", &c->first_bad);
	mark_out(w, "last_good", &c->last_good);
	commits_out(w, c);
	days_out(w, c);
	json_out_close(out, '}');
}

/* The source of commits differs by accelerator, but not the list. */
static void known_write(struct buf *out, const struct nightly_commits *c)
{
	json_out_open(out, NULL, '[');
	for (size_t k = 0; k < c->n_listed; k++) {
		if (!c->list[k].sha)
			continue;
		json_out_open(out, NULL, '{');
		record_out(out, &nightly_commit_record, &c->list[k]);
		json_out_texts(out, "url", "https://github.com/", c->repository, "/commit/", c->list[k].sha, NULL);
		json_out_close(out, '}');
	}
	json_out_close(out, ']');
}

/* Writes the texts that many cells share. */
static void write_shared(struct writing *w)
{
	const struct nightly_view *v = w->v;
	struct buf day = BUF_INIT(sizeof(w->days->text));

	for (size_t i = 0; i < v->n_marks; i++) {
		mark_write(&w->marks.all, &v->marks[i], w->public_url);
		shared_text_end(&w->marks);
	}
	for (size_t i = 0; i < v->n_commits; i++) {
		known_write(&w->commits.all, &v->commits[i]);
		shared_text_end(&w->commits);
	}
	w->days = xcalloc(v->n_outcomes + 1, sizeof(*w->days));
	w->days[0] = (struct day_text){"null", 4};
	for (size_t i = 0; i < v->n_outcomes; i++) {
		buf_clear(&day);
		json_out_open(&day, NULL, '{');
		json_out_text(&day, "status", test_status_name(v->outcomes[i].status));
		json_out_id(&day, "job", v->outcomes[i].job);
		json_out_close(&day, '}');
		memcpy(w->days[i + 1].text, day.data, day.len);
		w->days[i + 1].n = (uint8_t)day.len;
	}
	buf_release(&day);
}

static void tests_out(struct writing *w)
{
	const struct nightly_view *v = w->v;
	struct buf *out = &w->out;

	write_shared(w);
	json_out_open(out, "tests", '[');
	for (size_t i = 0; i < v->n_tests; i++) {
		const struct nightly_test *t = &v->tests[i];

		json_out_open(out, NULL, '{');
		record_out(out, &nightly_test_record, t);
		json_out_open(out, "cells", '[');
		for (size_t k = 0; k < t->n_cells; k++)
			cell_out(w, &t->cells[k]);
		json_out_close(out, ']');
		json_out_close(out, '}');
	}
	json_out_close(out, ']');
	shared_texts_release(&w->marks);
	shared_texts_release(&w->commits);
	free(w->days);
}

char *nightly_json(const struct nightly_view *v, const char *public_url)
{
	struct writing w = {.v = v,
	    .public_url = public_url,
	    .out = BUF_INIT(SIZE_MAX / 2),
	    .marks.all = BUF_INIT(SIZE_MAX / 2),
	    .commits.all = BUF_INIT(SIZE_MAX / 2)};
	json_t *counts = json_object(), *next = json_null();
	char *place;

	for (int s = 0; s < N_HISTORY_STATES; s++)
		json_set_int(counts, history_state_name((enum history_state)s), v->counts[s]);
	if (v->next.suite) {
		place = xasprintf("%d %lld %s", (int)v->next.state, (long long)v->next.test_id, v->next.suite);
		next = cursor_json(place, strlen(place));
		free(place);
	}
	json_out_open(&w.out, NULL, '{');
	json_out_members(&w.out, json_pack("{s:o, s:o}", "counts", counts, "next", next));
	json_out_open(&w.out, "days", '[');
	for (size_t i = 0; i < v->n_days; i++)
		day_out(&w.out, NULL, v->first_day + (int64_t)i);
	json_out_close(&w.out, ']');
	accelerators_out(&w.out, v, public_url);
	tests_out(&w);
	json_out_close(&w.out, '}');
	return buf_detach(&w.out);
}
