/* One claimed row: reads what is known, renders it, and has it written when there is news and
 * its time has come. Every path ends in publish/claimed.h. */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/str.h"
#include "model/backoff.h"
#include "publish/publish_internal.h"
#include "publish/writing.h"

enum {
	EVIDENCE_WAIT_MS = 15 * 1000,
	EVIDENCE_LOOK_MS = 1000, /* mostly the evidence itself makes the row due */
};

static void load_comment(struct writing *w);

/* ---- reading ---- */

static void on_change(struct store_query *q)
{
	struct writing *w = CONTAINER_OF(q, struct writing, change.q);

	if (q->err == ERR_NOT_FOUND)
		claimed_give_back(&w->claimed, OUTBOX_OK, 0, NULL);
	else if (q->err)
		claimed_retry(&w->claimed, &q->why, 0);
	else
		load_comment(w);
}

/* Where the change branched off and whose a failure is are mostly known within a second or two; a
 * comment that says so afterwards would cost its reader a second look. */
static bool waits_for_evidence(const struct writing *w)
{
	int64_t age_ms = clock_wall_ms() - w->claimed.row.first_ms;

	return w->change.view->is_being_attributed && age_ms >= 0 && age_ms < EVIDENCE_WAIT_MS;
}

static void on_known(struct store_query *q)
{
	struct writing *w = CONTAINER_OF(q, struct writing, known.q);
	bool is_written;

	if (q->err) {
		claimed_retry(&w->claimed, &q->why, 0);
		return;
	}
	w->comment_id = w->known.comment_id;
	is_written = w->known.is_known || w->claimed.is_uncertain;
	if (!w->claimed.config->comment_enabled ||
	    (!is_written && !comment_has_news(w->change.view)))
		claimed_give_back(&w->claimed, OUTBOX_OK, 0, NULL);
	else if (waits_for_evidence(w))
		claimed_give_back(
		    &w->claimed, OUTBOX_NOT_YET, clock_wall_ms() + EVIDENCE_LOOK_MS, NULL);
	else
		writing_learn(w);
}

static void load_comment(struct writing *w)
{
	w->known = (struct get_comment){.q = {.done = on_known},
	    .repository = w->claimed.row.target,
	    .number = w->claimed.row.number};
	if (store_get_comment(w->claimed.p->deps.store, &w->known))
		claimed_give_back_soon(&w->claimed);
}

/* ---- what to say ---- */

/* Where commits are shown: the API's host without "api." or "/api/v3". */
static char *github_url_of(const char *api_url)
{
	if (str_has_suffix(api_url, "/api/v3"))
		return xstrndup(api_url, strlen(api_url) - strlen("/api/v3"));
	if (str_has_prefix(api_url, "https://api.") && str_has_suffix(api_url, ".ghe.com"))
		return xasprintf("https://%s", api_url + strlen("https://api."));
	return xstrdup("https://github.com");
}

void publisher_comment_options(const struct publisher *p, const struct config *c,
    struct comment_options *ret, char **ret_github_url)
{
	*ret_github_url = github_url_of(c->github_api_url);
	*ret = (struct comment_options){.public_url = c->public_url,
	    .github_url = *ret_github_url,
	    .bot = github_app_slug(p->deps.github),
	    .now_wall_ms = clock_wall_ms()};
}

static void render(struct writing *w)
{
	struct comment_options options;
	char *github_url;

	publisher_comment_options(w->claimed.p, w->claimed.config, &options, &github_url);
	comment_render(w->change.view, &options, &w->text);
	free(github_url);
}

/* What was told at an earlier head is no news about this one. */
static bool had_red(const struct writing *w)
{
	return w->known.has_red_written && w->known.change_id == w->change_id;
}

static enum write_class class_of(const struct writing *w, bool is_complete)
{
	if (w->has_red && !had_red(w))
		return WRITE_FIRST_FAILURE;
	if (!w->known.is_known)
		return WRITE_FIRST_COMMENT;
	return is_complete ? WRITE_LAST_RESULT : WRITE_EDIT;
}

void writing_decide(struct writing *w)
{
	const struct change_view *v = w->change.view;
	struct publish_counters *counters = &w->claimed.p->counters;
	int64_t now_ms = clock_wall_ms(), due_ms;
	bool is_complete;

	render(w);
	/* What is said to be under way is said anew when it is over, whether or not it moved anything. */
	if (v->is_being_attributed)
		w->claimed.again_ms = now_ms + EVIDENCE_WAIT_MS;
	if (w->known.is_known && w->comment_id > 0 && !w->claimed.is_uncertain &&
	    memcmp(w->known.body_hash, w->text.hash, SHA256_BYTES) == 0) {
		counters->n_unchanged++;
		claimed_give_back(&w->claimed, OUTBOX_OK, 0, NULL);
		return;
	}
	w->has_red = comment_has_red(v);
	w->change_id = v->change_id;
	is_complete = comment_is_complete(v);
	/* nobody knows when an uncertain row was written, or what */
	due_ms = debounce_due_ms(&w->claimed.p->debounce,
	    &(struct debounce_question){.number = w->claimed.row.number,
		.now_wall_ms = now_ms,
		.written_wall_ms = w->claimed.is_uncertain ? 0 : w->known.written_ms,
		.min_interval_ms = w->claimed.config->comment_min_interval_ms,
		.has_red = w->has_red,
		.had_red = had_red(w),
		.is_complete = is_complete});
	if (due_ms > now_ms) {
		counters->n_put_off++;
		claimed_give_back(&w->claimed, OUTBOX_NOT_YET, due_ms, NULL);
		return;
	}
	if (!claimed_may_write(&w->claimed, class_of(w, is_complete)))
		return;
	/* a view may be large, and GitHub slow */
	change_view_free(w->change.view);
	w->change.view = NULL;
	writing_write(w);
}

static void release(struct claimed *c)
{
	struct writing *w = CONTAINER_OF(c, struct writing, claimed);

	github_call_release(&w->call);
	github_comment_search_release(&w->search);
	change_view_free(w->change.view);
	comment_release(&w->text);
	free(w);
}

void writing_start(struct publisher *p, struct outbox_row *row)
{
	struct writing *w = xcalloc(1, sizeof(*w));

	if (!claimed_start(&w->claimed, p, row, "comment", release))
		return;
	w->change = (struct get_change){.q = {.done = on_change},
	    .repository = w->claimed.row.target,
	    .number = w->claimed.row.number,
	    .max_verdicts = VERDICTS_MAX};
	if (store_get_change(p->deps.store, &w->change))
		claimed_give_back_soon(&w->claimed);
}
