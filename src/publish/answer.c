/* One claimed row of kind REACTION or REPLY: the answer to a command.
 *
 * Never here: a reply posted again without a look whether the first one arrived. A reaction needs
 * no look, GitHub keeps one of a kind. */

#include "publish/publish_internal.h"
#include "views/change.h"

struct answering {
	struct claimed claimed;
	json_t *facts; /* the row's text */
	char *text;    /* a reply's Markdown */
	char *marker;
	struct get_change change;
	struct github_call call;
	struct github_comment_search search;
};

static void release_answer(struct effect *e)
{
	struct answering *a = CONTAINER_OF(e, struct answering, claimed.effect);

	json_decref(a->facts);
	FREE_ALL(a->text, a->marker);
	change_view_free(a->change.view);
	github_call_release(&a->call);
	github_comment_search_release(&a->search);
	claimed_release(&a->claimed);
}

static void answered(struct answering *a)
{
	log_event(LOG_INFO, "command_answered", LOG_S("repository", a->claimed.effect.row.target),
	    LOG_I("pr", a->claimed.effect.row.number), LOG_I("comment", json_get_int(a->facts, "comment", 0)),
	    LOG_S("kind", a->text ? "reply" : "reaction"));
	claimed_end(&a->claimed, OUTBOX_OK, 0, NULL);
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

static void send_answer(struct answering *a)
{
	const char *content = json_get_str(a->facts, "content");

	if (!effect_may_write(&a->claimed.effect, WRITE_ANSWER) ||
	    !claimed_begin_call(&a->claimed, &a->call, on_sent, a))
		return;
	if (!a->text) {
		github_comment_react(a->claimed.p->deps.github, &a->call, a->claimed.effect.row.target,
		    json_get_int(a->facts, "comment", 0), content ? content : "eyes");
		return;
	}
	a->claimed.effect.is_uncertain = true;
	github_comment_create(
	    a->claimed.p->deps.github, &a->call, a->claimed.effect.row.target, a->claimed.effect.row.number, a->text);
}

/* ---- replies ---- */

static void on_looked(struct github_call *call)
{
	struct answering *a = call->owner;

	a->claimed.on_wire = NULL;
	if (call->result.err)
		claimed_fail(&a->claimed, &call->result);
	else if (a->search.comment_id > 0)
		answered(a); /* it had arrived */
	else
		send_answer(a);
}

static void render_answer(struct answering *a)
{
	struct comment_options options;
	char *github_url;

	publisher_comment_options(a->claimed.p, a->claimed.config, &options, &github_url);
	a->text = answer_text(a->facts, a->change.view, &options);
	free(github_url);
	change_view_free(a->change.view);
	a->change.view = NULL;
	const struct outbox_row *row = &a->claimed.effect.row;

	if (!row->is_uncertain && row->n_attempts == 0) {
		send_answer(a);
		return;
	}
	if (!claimed_begin_call(&a->claimed, &a->search.call, on_looked, a))
		return;
	a->marker = answer_marker(a->facts);
	github_comment_find(a->claimed.p->deps.github, &a->search, row->target, row->number, a->marker);
}

static void on_answered_change(struct store_query *q)
{
	struct answering *a = CONTAINER_OF(q, struct answering, change.q);

	if (q->err && q->err != ERR_NOT_FOUND)
		claimed_retry(&a->claimed, &q->why, 0);
	else
		render_answer(a);
}

static void reply(struct answering *a)
{
	if (!answer_needs_view(a->facts)) {
		render_answer(a);
		return;
	}
	a->change = (struct get_change){.q = {.done = on_answered_change},
	    .now_ms = clock_wall_ms(),
	    .repository = a->claimed.effect.row.target,
	    .number = a->claimed.effect.row.number,
	    .max_verdicts = VERDICTS_MAX};
	if (store_get_change(a->claimed.p->deps.store, &a->change))
		claimed_end_busy(&a->claimed);
}

static void on_answer_app(struct github_call *call)
{
	struct answering *a = call->owner;

	a->claimed.on_wire = NULL;
	github_call_release(call);
	reply(a); /* without its name it says BOT */
}

static void begin_answer(struct effect *e)
{
	struct answering *a = CONTAINER_OF(e, struct answering, claimed.effect);
	struct github *github;

	claimed_begin(&a->claimed, "answer");
	github = a->claimed.p->deps.github;
	const char *text = a->claimed.effect.row.text ? a->claimed.effect.row.text : "";
	if (json_parse(text, strlen(text), &a->facts, NULL)) {
		claimed_end(&a->claimed, OUTBOX_DEAD, 0, "its text is no JSON");
		return;
	}
	if (e->row.kind == OUTBOX_REACTION)
		send_answer(a);
	else if (github_app_slug(github))
		reply(a);
	else if (claimed_begin_call(&a->claimed, &a->call, on_answer_app, a))
		github_app_get(github, &a->call);
}

#define KIND(its_kind, its_lane)                                                                                       \
	{                                                                                                              \
		.kind = its_kind, .lane = its_lane, .bytes = sizeof(struct answering), .begin = begin_answer,          \
		.cancel = claimed_cancel, .release = release_answer                                                    \
	}
const struct effect_kind reaction_kind = KIND(OUTBOX_REACTION, REACTION_LANE);
const struct effect_kind reply_kind = KIND(OUTBOX_REPLY, REPLY_LANE);
#undef KIND
