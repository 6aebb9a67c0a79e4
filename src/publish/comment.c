/* One claimed row: reads what is known, renders it, and has it written when there is news and
 * its time has come. Every path ends in writing_give_back(). */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/str.h"
#include "model/backoff.h"
#include "publish/publish_internal.h"
#include "publish/writing.h"

enum { GIVE_BACK_RETRY_MS = 1000 };

static const char HOW_TO_RETEST[] =
    "To test again: push a commit, or close and reopen this pull request";

static void load_comment(struct writing *w);

/* ---- the end ---- */

static void end(struct writing *w)
{
	struct publisher *p = w->p;
	struct writing **at = &p->writings;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	p->counters.n_writing--;
	timer_close(w->timer);
	github_call_release(&w->call);
	github_comment_search_release(&w->search);
	change_view_free(w->change.view);
	comment_release(&w->text);
	outbox_row_release(&w->row);
	config_unref(w->config);
	free(w);
	publisher_pump(p);
}

static void on_given_back(struct store_op *op);

static void submit_done(struct writing *w)
{
	int rc = store_outbox_done(w->p->deps.store, &w->done);

	if (rc == ERR_BUSY)
		timer_start(w->timer, GIVE_BACK_RETRY_MS);
	else if (rc)
		end(w); /* the store is closing: the row is found again at the next start */
}

static void on_timer(struct timer *t)
{
	submit_done(timer_owner(t));
}

static void on_given_back(struct store_op *op)
{
	struct writing *w = CONTAINER_OF(op, struct writing, done.op);

	/* a row that stays `sending` is nobody's until the next start, so this is not given up,
	 * except when there is no such row any more */
	if (op->err && op->err != ERR_NOT_FOUND && !w->p->is_closing)
		timer_start(w->timer, GIVE_BACK_RETRY_MS);
	else
		end(w);
}

void writing_give_back(
    struct writing *w, enum outbox_result result, int64_t next_ms, const char *error)
{
	if (result == OUTBOX_OK && w->again_ms) {
		result = OUTBOX_AGAIN;
		next_ms = w->again_ms;
	}
	w->done = (struct outbox_done){.op = {.done = on_given_back},
	    .id = w->row.id,
	    .result = result,
	    .generation = w->row.generation,
	    .is_uncertain = w->is_uncertain,
	    .next_ms = next_ms,
	    .now_ms = clock_wall_ms(),
	    .error = error};
	submit_done(w);
}

static void note_failure(
    struct writing *w, enum log_level level, const char *ev, const struct error *why)
{
	struct publish_counters *counters = &w->p->counters;

	snprintf(counters->last_error, sizeof(counters->last_error), "%s", why->text);
	counters->last_error_wall_ms = clock_wall_ms();
	log_event(level, ev, LOG_S("repository", w->row.target), LOG_I("pr", w->row.number),
	    LOG_I("attempt", w->row.n_attempts + 1), LOG_S("error", why->text));
}

void writing_retry(struct writing *w, const struct error *why, int64_t retry_after_ms)
{
	int64_t now_ms = clock_wall_ms();
	uint32_t random;
	int64_t next_ms;

	random_bytes(&random, sizeof(random));
	next_ms = now_ms + backoff_delay_ms(w->row.n_attempts + 1, retry_after_ms,
			       (double)random / ((double)UINT32_MAX + 1));
	if (backoff_is_over(w->row.first_ms, next_ms)) {
		w->p->counters.n_dead++;
		note_failure(w, LOG_ERROR, "comment_given_up", why);
		writing_give_back(w, OUTBOX_DEAD, 0, why->text);
		return;
	}
	w->p->counters.n_retries++;
	note_failure(w, LOG_WARN, "comment_retry", why);
	writing_give_back(w, OUTBOX_RETRY, next_ms, why->text);
}

void writing_fail(struct writing *w, const struct github_result *result)
{
	if (!result->was_sent || result->is_final) /* it changed nothing */
		w->is_uncertain = w->row.is_uncertain;
	if (result->err == ERR_CANCELLED) {
		writing_give_back(w, OUTBOX_NOT_YET, clock_wall_ms(), NULL);
	} else if (result->is_final) {
		w->p->counters.n_dead++;
		note_failure(w, LOG_ERROR, "comment_refused", &result->why);
		writing_give_back(w, OUTBOX_DEAD, 0, result->why.text);
	} else if (result->err == ERR_BUSY && !result->was_sent && result->retry_after_ms > 0) {
		writing_give_back(
		    w, OUTBOX_NOT_YET, clock_wall_ms() + result->retry_after_ms, NULL);
	} else {
		writing_retry(w, &result->why, result->retry_after_ms);
	}
}

/* ---- reading ---- */

static void on_change(struct store_query *q)
{
	struct writing *w = CONTAINER_OF(q, struct writing, change.q);

	if (q->err == ERR_NOT_FOUND)
		writing_give_back(w, OUTBOX_OK, 0, NULL);
	else if (q->err)
		writing_retry(w, &q->why, 0);
	else
		load_comment(w);
}

static void on_known(struct store_query *q)
{
	struct writing *w = CONTAINER_OF(q, struct writing, known.q);
	bool is_written;

	if (q->err) {
		writing_retry(w, &q->why, 0);
		return;
	}
	w->comment_id = w->known.comment_id;
	is_written = w->known.is_known || w->is_uncertain;
	if (!w->config->comment_enabled || (!is_written && !comment_has_news(w->change.view)))
		writing_give_back(w, OUTBOX_OK, 0, NULL);
	else
		writing_learn(w);
}

static void load_comment(struct writing *w)
{
	w->known = (struct get_comment){
	    .q = {.done = on_known}, .repository = w->row.target, .number = w->row.number};
	if (store_get_comment(w->p->deps.store, &w->known))
		writing_give_back(w, OUTBOX_NOT_YET, clock_wall_ms() + GIVE_BACK_RETRY_MS, NULL);
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
	    .how_to_retest = HOW_TO_RETEST,
	    .now_wall_ms = clock_wall_ms()};
}

static void render(struct writing *w)
{
	struct comment_options options;
	char *github_url;

	publisher_comment_options(w->p, w->config, &options, &github_url);
	comment_render(w->change.view, &options, &w->text);
	free(github_url);
}

void writing_decide(struct writing *w)
{
	const struct change_view *v = w->change.view;
	struct publish_counters *counters = &w->p->counters;
	int64_t now_ms = clock_wall_ms(), due_ms;
	bool is_complete;

	render(w);
	if (w->known.is_known && w->comment_id > 0 && !w->is_uncertain &&
	    memcmp(w->known.body_hash, w->text.hash, SHA256_BYTES) == 0) {
		counters->n_unchanged++;
		writing_give_back(w, OUTBOX_OK, 0, NULL);
		return;
	}
	w->has_red = comment_has_red(v);
	is_complete = comment_is_complete(v);
	/* nobody knows when an uncertain row was written, or what */
	due_ms = debounce_due_ms(
	    &w->p->debounce, &(struct debounce_question){.number = w->row.number,
				 .now_wall_ms = now_ms,
				 .written_wall_ms = w->is_uncertain ? 0 : w->known.written_ms,
				 .min_interval_ms = w->config->comment_min_interval_ms,
				 .has_red = w->has_red,
				 .had_red = w->known.has_red_written,
				 .is_complete = is_complete});
	if (due_ms > now_ms) {
		counters->n_put_off++;
		writing_give_back(w, OUTBOX_NOT_YET, due_ms, NULL);
		return;
	}
	/* a view may be large, and GitHub slow */
	change_view_free(w->change.view);
	w->change.view = NULL;
	writing_write(w);
}

void writing_start(struct publisher *p, struct outbox_row *row)
{
	struct writing *w = xcalloc(1, sizeof(*w));

	w->p = p;
	w->row = *row;
	w->is_uncertain = row->is_uncertain;
	*row = (struct outbox_row){.id = 0};
	w->config = config_ref(p->config);
	w->timer = timer_new(p->deps.loop, on_timer, w);
	w->next = p->writings;
	p->writings = w;
	p->counters.n_writing++;
	if (p->is_closing) {
		writing_give_back(w, OUTBOX_NOT_YET, clock_wall_ms(), NULL);
		return;
	}
	w->change = (struct get_change){.q = {.done = on_change},
	    .repository = w->row.target,
	    .number = w->row.number,
	    .max_verdicts = VERDICTS_MAX};
	if (store_get_change(p->deps.store, &w->change))
		writing_give_back(w, OUTBOX_NOT_YET, clock_wall_ms() + GIVE_BACK_RETRY_MS, NULL);
}

bool writing_begin_call(
    struct writing *w, struct github_call *call, void (*done)(struct github_call *call))
{
	if (w->p->is_cancelling) {
		writing_give_back(w, OUTBOX_NOT_YET, clock_wall_ms(), NULL);
		return false;
	}
	github_call_release(call);
	*call = (struct github_call){.done = done, .owner = w};
	w->on_wire = call;
	return true;
}

void writings_cancel(struct publisher *p)
{
	p->is_cancelling = true;
	for (struct writing *w = p->writings; w; w = w->next)
		if (w->on_wire)
			github_cancel(p->deps.github, w->on_wire);
}
