#include "text/check_output.h"

#include "text/summary.h"

enum { WORD_CHARS = 40, TITLE_MAX_BYTES = 1024, LABEL_CHARS = 40 };

/* The cells of one job. */
struct tally {
	size_t n[N_TEST_STATUSES], n_cells;
	size_t n_counting, n_new, n_excused; /* of those that are FAIL or ERROR */
	size_t n_rerunning;                  /* how many of them an experiment runs again */
	bool has_own_cells;                  /* or may have, in a view that was cut */
};

void check_output_release(struct check_output *c)
{
	for (size_t i = 0; i < c->n_annotations; i++)
		FREE_ALL(c->annotations[i].path, c->annotations[i].title, c->annotations[i].message);
	FREE_ALL(c->annotations, c->title, c->summary, c->text);
	*c = (struct check_output){.conclusion = NULL};
}

/* ---- how a job ended ---- */

static const struct dispatch_view *find_dispatch_of(const struct accelerator_view *a, const struct job_view *job)
{
	for (size_t i = 0; i < a->n_dispatches; i++)
		if (str_eq(a->dispatches[i].id, job->dispatch_id) && str_eq(a->dispatches[i].runner, job->runner))
			return &a->dispatches[i];
	return NULL;
}

bool check_verdict_counts(const struct verdict_view *w)
{
	return attribution_counts_against_change(w->attribution) || w->attribution == N_ATTRIBUTIONS;
}

/* The cells of one job (0: of all jobs of the accelerator). */
static void count_cells(const struct change_view *v, size_t accelerator, int64_t job, struct tally *t)
{
	for (size_t i = 0; i < v->n_verdicts; i++) {
		const struct verdict_view *w = &v->verdicts[i];

		if (w->accelerator != accelerator || !w->job || (job && w->job != job))
			continue;
		t->n[w->status]++;
		t->n_cells++;
		if (w->status != TEST_FAIL && w->status != TEST_ERROR)
			continue;
		t->n_counting += check_verdict_counts(w);
		t->n_new += w->attribution == ATTRIBUTION_NEW;
		t->n_excused += !check_verdict_counts(w);
		t->n_rerunning += w->rerun == RERUN_PENDING;
	}
}

static enum job_end job_end_of(const struct accelerator_view *a, const struct job_view *job, const struct tally *t)
{
	enum test_status said = test_status_of_conclusion(job->conclusion);
	const struct dispatch_view *d = find_dispatch_of(a, job);
	bool is_called_off = d && dispatch_is_called_off(d->state);

	/* Results that came after the cancellation are not cells, so the result of the tests is unknown here. */
	if (is_called_off && !t->has_own_cells)
		return END_CANCELLED;
	if (job->status == JOB_IN_PROGRESS) {
		if (!d || dispatch_is_unfinished(d->state) || d->state == DISPATCH_DONE)
			return END_RUNNING;
		return is_called_off ? END_CANCELLED : END_MISSED;
	}
	if (t->n_counting)
		return a->is_unhealthy ? END_UNHEALTHY : END_FAILED;
	if (t->n_excused)
		return END_EXCUSED;
	if (said == TEST_MISS || t->n[TEST_MISS])
		return END_MISSED;
	if (!t->n_cells)
		return said == TEST_PASS ? END_PASSED : said == TEST_SKIP ? END_SKIPPED : END_DONE;
	return t->n[TEST_PASS] ? END_PASSED : t->n[TEST_DONE] ? END_DONE : END_SKIPPED;
}

static const char *conclusion_of(enum job_end end, const struct accelerator_view *a, const struct check_options *o)
{
	static const char *const conclusions[] = {[END_RUNNING] = NULL,
	    [END_FAILED] = "failure",
	    [END_UNHEALTHY] = "neutral",
	    [END_EXCUSED] = "neutral",
	    [END_CANCELLED] = "neutral",
	    [END_MISSED] = "neutral",
	    [END_PASSED] = "success",
	    [END_DONE] = "neutral",
	    [END_SKIPPED] = "skipped"};
	bool may_fail = a->level == LEVEL_4 || (a->level == LEVEL_3 && o->l3_may_fail);

	return end == END_FAILED && !may_fail ? "neutral" : conclusions[end];
}

/* ---- titles ---- */

static void append_n(struct buf *out, size_t n, const char *what)
{
	buf_appendf(out, "%zu %s%s", n, what, n == 1 ? "" : "s");
}

static void append_failed(struct buf *out, const struct tally *t)
{
	size_t n_other = t->n_counting - t->n_new;

	if (t->n_new)
		append_n(out, t->n_new, "new failure");
	if (t->n_new && n_other) {
		buf_appendf(out, ", %zu not classified", n_other);
	} else if (n_other) {
		append_n(out, n_other, "failure");
		buf_append_str(out, ", not classified");
	}
}

static char *title_of(enum job_end end, const struct job_view *job, const struct tally *t)
{
	struct buf out = BUF_INIT(TITLE_MAX_BYTES);

	switch (end) {
	case END_RUNNING:
		buf_append_str(&out, "Running");
		break;
	case END_FAILED:
		append_failed(&out, t);
		if (t->n_rerunning)
			buf_appendf(&out, ", re-running %zu", t->n_rerunning);
		break;
	case END_UNHEALTHY:
		append_n(&out, t->n_counting + t->n_excused, "failure");
		buf_append_str(&out, ", not counted: the accelerator is unhealthy");
		break;
	case END_EXCUSED:
		append_n(&out, t->n_excused, "failure");
		buf_append_str(&out, ", known, flaky or on the base as well");
		break;
	case END_CANCELLED:
		buf_append_str(&out, "Cancelled");
		break;
	case END_MISSED:
		if (t->n[TEST_MISS] && test_status_of_conclusion(job->conclusion) != TEST_MISS) {
			append_n(&out, t->n[TEST_MISS], "test");
			buf_append_str(&out, " without a result");
			break;
		}
		buf_append_str(&out, "No result");
		if (job->conclusion) {
			buf_append_str(&out, ": ");
			escape_line(&out, job->conclusion, WORD_CHARS);
		}
		break;
	case END_PASSED:
		if (t->n[TEST_PASS])
			append_n(&out, t->n[TEST_PASS], "test");
		buf_append_str(&out, t->n[TEST_PASS] ? " passed" : "Passed");
		break;
	case END_DONE:
		buf_append_str(&out, "Measured only");
		break;
	case END_SKIPPED:
		buf_append_str(&out, "Skipped");
		break;
	}
	return buf_detach(&out);
}

void check_output_of_job(const struct change_view *v, size_t accelerator, size_t job, const struct check_options *o,
    struct check_output *ret)
{
	const struct accelerator_view *a = &v->accelerators[accelerator];
	const struct job_view *j = &a->jobs[job];
	struct tally t = {.n_cells = 0};

	count_cells(v, accelerator, j->id, &t);
	t.has_own_cells = t.n_cells > 0 || v->is_cut;
	/* A cell belongs to the job that reported it worst. So a failed job without a red cell has the same
	 * failures as other jobs, and counts like the worst of them. */
	if (test_status_of_conclusion(j->conclusion) == TEST_FAIL && t.n_counting + t.n_excused == 0) {
		count_cells(v, accelerator, 0, &t);
		if (t.n_counting + t.n_excused == 0)
			t.n_counting = 1;
	}
	if (t.n_excused > 0 && t.n_counting == 0 && table_has_unread_red(v))
		t.n_counting = 1;
	if (v->is_cut) { /* the other counts are incomplete: use the job's own conclusion */
		t.n[TEST_PASS] = t.n[TEST_DONE] = t.n[TEST_SKIP] = 0;
		t.n_cells = 0;
	}
	enum job_end end = job_end_of(a, j, &t);
	*ret = (struct check_output){.conclusion = conclusion_of(end, a, o)};
	ret->title = title_of(end, j, &t);
	check_describe_job(v, accelerator, j, end, o, ret);
}

/* ---- the verdict on the change ---- */

static void append_plain_title(struct buf *out, const char *title)
{
	escape_line(out, title ? title : "", LABEL_CHARS);
}

static void append_marked_title(struct buf *out, const char *title)
{
	escape_markdown_label(out, title ? title : "", LABEL_CHARS, MARKDOWN_TEXT);
}

void check_output_of_verdict(const struct table *t, const struct check_options *o, struct check_output *ret)
{
	static const struct summary_style plain = {.bold_on = "", .bold_off = "", .append_title = append_plain_title};
	static const struct summary_style markdown = {
	    .bold_on = "**", .bold_off = "**", .append_title = append_marked_title};
	struct buf title = BUF_INIT(CHECK_TEXT_MAX_BYTES), line = BUF_INIT(CHECK_TEXT_MAX_BYTES);
	struct buf summary = BUF_INIT(CHECK_TEXT_MAX_BYTES), url = BUF_INIT(CHECK_TEXT_MAX_BYTES);
	json_t *verdict = verdict_json(t);
	char *json = json_text(verdict);

	summary_append(t, &plain, &line);
	escape_line(&title, buf_str(&line), CHECK_TITLE_MAX_CHARS);
	summary_append(t, &markdown, &summary);
	if (own_url_append(&url, o->public_url, "pulls", t->view->number))
		buf_appendf(&summary, "\n\n[All results](%s)\n", buf_str(&url));
	*ret = (struct check_output){.conclusion = "neutral",
	    .title = xstrdup(buf_str(&title)),
	    .summary = xstrdup(buf_str(&summary)),
	    .text = xasprintf("```json\n%s\n```\n", json)};
	json_decref(verdict);
	free(json);
	buf_release(&title);
	buf_release(&line);
	buf_release(&summary);
	buf_release(&url);
}

void check_output_of_closed(const char *conclusion, const char *title, const char *summary, struct check_output *ret)
{
	*ret = (struct check_output){.conclusion = conclusion, .title = xstrdup(title), .summary = xstrdup(summary)};
}
