/* One claimed row of kind REACTION or REPLY: the answer to a command.
 *
 * Never here: a reply posted again without a look whether the first one arrived. A reaction needs
 * no look, GitHub keeps one of a kind. */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "publish/answer_text.h"
#include "publish/publish_internal.h"

struct answering {
	struct claimed claimed;
	json_t *facts; /* the row's text */
	char *text;    /* a reply's Markdown */
	char *marker;
	struct get_change change;
	struct github_call call;
	struct github_comment_search search;
};

static void release(struct claimed *c)
{
	struct answering *a = CONTAINER_OF(c, struct answering, claimed);

	json_decref(a->facts);
	free(a->text);
	free(a->marker);
	change_view_free(a->change.view);
	github_call_release(&a->call);
	github_comment_search_release(&a->search);
	free(a);
}

static void answered(struct answering *a)
{
	log_event(LOG_INFO, "command_answered", LOG_S("repository", a->claimed.row.target),
	    LOG_I("pr", a->claimed.row.number),
	    LOG_I("comment", json_get_int(a->facts, "comment", 0)),
	    LOG_S("kind", a->text ? "reply" : "reaction"));
	claimed_give_back(&a->claimed, OUTBOX_OK, 0, NULL);
}

static void on_sent(struct github_call *call)
{
	struct answering *a = call->owner;
	const struct github_result *r = &call->result;

	a->claimed.on_wire = NULL;
	/* The comment was deleted, or the PR with it: there is nobody to answer. */
	if (r->err && r->status != 404 && r->status != 410) {
		claimed_fail(&a->claimed, r);
		return;
	}
	answered(a);
}

/* ---- reactions ---- */

static void react(struct answering *a)
{
	const char *content = json_get_str(a->facts, "content");

	if (!claimed_may_write(&a->claimed, WRITE_ANSWER) ||
	    !claimed_begin_call(&a->claimed, &a->call, on_sent, a))
		return;
	github_comment_react(a->claimed.p->deps.github, &a->call, a->claimed.row.target,
	    json_get_int(a->facts, "comment", 0), content ? content : "eyes");
}

/* ---- replies ---- */

static void post(struct answering *a)
{
	if (!claimed_may_write(&a->claimed, WRITE_ANSWER) ||
	    !claimed_begin_call(&a->claimed, &a->call, on_sent, a))
		return;
	a->claimed.is_uncertain = true;
	github_comment_create(a->claimed.p->deps.github, &a->call, a->claimed.row.target,
	    a->claimed.row.number, a->text);
}

static void on_looked(struct github_call *call)
{
	struct answering *a = call->owner;

	a->claimed.on_wire = NULL;
	if (call->result.err)
		claimed_fail(&a->claimed, &call->result);
	else if (a->search.comment_id > 0)
		answered(a); /* it had arrived */
	else
		post(a);
}

static void post_or_look(struct answering *a)
{
	const struct outbox_row *row = &a->claimed.row;

	if (!row->is_uncertain && row->n_attempts == 0) {
		post(a);
		return;
	}
	if (!claimed_begin_call(&a->claimed, &a->search.call, on_looked, a))
		return;
	a->marker = answer_marker(a->facts);
	github_comment_find(
	    a->claimed.p->deps.github, &a->search, row->target, row->number, a->marker);
}

static void render(struct answering *a)
{
	struct comment_options options;
	char *github_url;

	publisher_comment_options(a->claimed.p, a->claimed.config, &options, &github_url);
	a->text = answer_text(a->facts, a->change.view, &options);
	free(github_url);
	change_view_free(a->change.view);
	a->change.view = NULL;
	post_or_look(a);
}

static void on_change(struct store_query *q)
{
	struct answering *a = CONTAINER_OF(q, struct answering, change.q);

	if (q->err && q->err != ERR_NOT_FOUND)
		claimed_retry(&a->claimed, &q->why, 0);
	else
		render(a);
}

static void reply(struct answering *a)
{
	if (!answer_needs_view(a->facts)) {
		render(a);
		return;
	}
	a->change = (struct get_change){.q = {.done = on_change},
	    .repository = a->claimed.row.target,
	    .number = a->claimed.row.number,
	    .max_verdicts = VERDICTS_MAX};
	if (store_get_change(a->claimed.p->deps.store, &a->change))
		claimed_give_back_soon(&a->claimed);
}

static void on_app(struct github_call *call)
{
	struct answering *a = call->owner;

	a->claimed.on_wire = NULL;
	github_call_release(call);
	reply(a); /* without its name it says BOT */
}

/* ---- both ---- */

void answer_start(struct publisher *p, struct outbox_row *row)
{
	struct answering *a = xcalloc(1, sizeof(*a));
	bool is_reaction = row->kind == OUTBOX_REACTION;
	const char *text;

	if (!claimed_start(&a->claimed, p, row, "answer", release))
		return;
	text = a->claimed.row.text ? a->claimed.row.text : "";
	if (json_parse(text, strlen(text), &a->facts, NULL)) {
		claimed_give_back(&a->claimed, OUTBOX_DEAD, 0, "its text is no JSON");
		return;
	}
	if (is_reaction)
		react(a);
	else if (github_app_slug(p->deps.github))
		reply(a);
	else if (claimed_begin_call(&a->claimed, &a->call, on_app, a))
		github_app_get(p->deps.github, &a->call);
}
