#include "model/history.h"

WORDS_DEFINE(history_state, N_HISTORY_STATES, HISTORY_STATES(WORD_NAME))

void history_walk_add(struct history_walk *w, enum test_status status, int64_t tag)
{
	int run = w->n_runs++;
	bool is_red = status == TEST_FAIL || status == TEST_ERROR;

	w->is_there = true;
	if (run == 0)
		w->is_skipped = status == TEST_SKIP;
	if (status == TEST_MISS || status == TEST_SKIP)
		return;
	w->n_judged++;
	if (w->n_judged == 1) {
		w->is_red = is_red;
		w->first_run = run + 1;
	} else if (is_red != w->was_red && run < HISTORY_WINDOW) {
		w->n_changes++;
		w->changed_in = w->last_run;
	}
	w->last_run = run + 1;
	if (w->n_judged == 2)
		w->is_second_red = is_red;
	w->was_red = is_red;
	/* The newest red streak, and the green run before it. */
	if (is_red && !w->newest_red)
		w->newest_red = run + 1;
	if (is_red && !w->good_run) {
		w->bad_run = run + 1;
		w->bad_tag = tag;
	} else if (!is_red && w->bad_run && !w->good_run) {
		w->good_run = run + 1;
		w->good_tag = tag;
	} else if (!is_red && !w->bad_run) {
		w->green_since = run + 1;
	}
}

void history_walk_absent(struct history_walk *w)
{
	int run = w->n_runs++;

	if (!w->is_there)
		w->gone_since = run + 1;
}

void history_walk_unfinished(struct history_walk *w) { w->gone_since = 0; }

static bool is_unstable(const struct history_walk *w) { return w->n_changes >= HISTORY_CHANGES; }

/* Whether the verdict is about the red streak. */
static bool is_about_red(const struct history_walk *w)
{
	return w->is_red || (w->n_judged > 1 && w->is_second_red) || is_unstable(w);
}

bool history_walk_wants_more(const struct history_walk *w)
{
	if (w->is_skipped)
		return false;
	if (w->n_runs < HISTORY_WINDOW || w->n_judged < 2)
		return true;
	return is_about_red(w) && w->bad_run && !w->good_run;
}

static enum history_state judge_history(const struct history_walk *w)
{
	if (w->n_judged == 0)
		return w->is_there && !w->gone_since ? HISTORY_SKIPPED : HISTORY_NONE;
	if (w->gone_since)
		return w->gone_since < HISTORY_FORGET ? HISTORY_DISAPPEARED : HISTORY_NONE;
	if (w->is_skipped)
		return HISTORY_SKIPPED;
	if (is_unstable(w))
		return HISTORY_UNSTABLE;
	if (w->is_red)
		return w->good_run && w->bad_run == w->first_run ? HISTORY_REGRESSION : HISTORY_STILL_FAILING;
	return w->n_judged > 1 && w->is_second_red ? HISTORY_FIXED : HISTORY_PASSING;
}

static int since(const struct history_walk *w, enum history_state state)
{
	switch (state) {
	case HISTORY_REGRESSION:
	case HISTORY_STILL_FAILING:
		return w->bad_run - 1;
	case HISTORY_UNSTABLE:
		return w->changed_in - 1;
	case HISTORY_DISAPPEARED:
		return w->gone_since - 1;
	case HISTORY_FIXED:
		return w->first_run - 1;
	case HISTORY_PASSING: /* the walk did not look at older beginnings */
		return w->newest_red && w->newest_red <= HISTORY_WINDOW ? w->green_since - 1 : -1;
	case HISTORY_SKIPPED:
	case HISTORY_NONE:
	default:
		return -1;
	}
}

struct history_verdict history_walk_end(const struct history_walk *w)
{
	struct history_verdict v = {.state = judge_history(w), .first_bad = {.run = -1}, .last_good = {.run = -1}};
	bool has_streak =
	    v.state != HISTORY_PASSING && v.state != HISTORY_SKIPPED && v.state != HISTORY_NONE && is_about_red(w);

	v.since = since(w, v.state);
	if (has_streak && w->bad_run)
		v.first_bad = (struct history_mark){w->bad_run - 1, w->bad_tag};
	if (has_streak && w->good_run)
		v.last_good = (struct history_mark){w->good_run - 1, w->good_tag};
	return v;
}

/* ---- the page of periodic runs ---- */

RECORD_DEFINE(nightly_accelerator, NIGHTLY_ACCELERATOR_RECORD)
RECORD_DEFINE(nightly_mark, NIGHTLY_MARK_RECORD)
RECORD_DEFINE(nightly_commit, NIGHTLY_COMMIT_RECORD)
RECORD_DEFINE(nightly_test, NIGHTLY_TEST_RECORD)

void nightly_view_free(struct nightly_view *v)
{
	if (!v)
		return;
	for (size_t i = 0; i < v->n_accelerators; i++) {
		size_t n_runs = v->accelerators[i].runs ? v->n_days : 0;

		RECORDS_RELEASE(schedule_run_view, v->accelerators[i].runs, n_runs);
		record_release(&schedule_view_record, &v->accelerators[i].schedule);
	}
	RECORDS_RELEASE(nightly_accelerator, v->accelerators, v->n_accelerators);
	for (size_t i = 0; i < v->n_tests; i++)
		free(v->tests[i].cells);
	RECORDS_RELEASE(nightly_test, v->tests, v->n_tests);
	RECORDS_RELEASE(nightly_mark, v->marks, v->n_marks);
	for (size_t i = 0; i < v->n_commits; i++) {
		struct nightly_commits *c = &v->commits[i];

		RECORDS_RELEASE(nightly_commit, c->list, c->n_listed);
		FREE_ALL(c->repository, c->good_sha, c->bad_sha);
	}
	FREE_ALL(v->days, v->outcomes, v->commits, v->next.suite, v);
}
