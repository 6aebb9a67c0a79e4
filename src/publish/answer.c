/* One claimed row of kind REACTION or REPLY: the answer to a command.
 *
 * Never here: a second attempt at a reply without a look for the first one. A reaction needs no look, because GitHub
 * keeps one of each kind. */

#include "publish/publish_internal.h"

struct answering {
	struct claimed claimed;
	json_t *facts; /* the row's text */
	char *text;    /* a reply's Markdown */
	char *marker;
	struct github_comment_search search;
};

static void release_answer(struct effect *e)
{
	struct answering *a = CONTAINER_OF(e, struct answering, claimed.effect);

	json_decref(a->facts);
	FREE_ALL(a->text, a->marker);
	github_comment_search_release(&a->search);
	claimed_release(&a->claimed);
}

static void end_answered(struct answering *a)
{
	log_event(LOG_INFO, "command_answered", LOG_S("repository", a->claimed.repository),
	    LOG_I("pr", a->claimed.number), LOG_I("comment", json_get_int(a->facts, "comment", 0)),
	    LOG_S("kind", a->text ? "reply" : "reaction"));
	claimed_end_ok(&a->claimed);
}

static void on_answer_sent(struct claimed *c, struct github_call *call)
{
	/* 404, 410: the comment, or its pull request, was deleted, and needs no answer. */
	if (call->result.status == 404 || call->result.status == 410 || claimed_is_answered(c, &call->result))
		end_answered(CONTAINER_OF(c, struct answering, claimed));
}

static void send_answer(struct answering *a)
{
	struct claimed *c = &a->claimed;
	const char *content = json_get_str(a->facts, "content");

	if (!effect_may_write(&c->effect, WRITE_ANSWER) || !claimed_begin_call(c, &c->call, on_answer_sent))
		return;
	if (!a->text) {
		github_comment_react(c->github, &c->call, c->repository, json_get_int(a->facts, "comment", 0),
		    content ? content : "eyes");
		return;
	}
	c->effect.is_uncertain = true;
	github_comment_create(c->github, &c->call, c->repository, c->number, a->text);
}

/* ---- replies ---- */

static void on_reply_searched(struct claimed *c, struct github_call *call)
{
	struct answering *a = CONTAINER_OF(c, struct answering, claimed);

	if (!claimed_is_answered(c, &call->result))
		return;
	if (a->search.comment_id > 0)
		end_answered(a); /* an earlier attempt wrote it */
	else
		send_answer(a);
}

static void render_reply(struct claimed *c)
{
	struct answering *a = CONTAINER_OF(c, struct answering, claimed);
	struct comment_options options = claimed_comment_options(c);

	a->text = answer_text(a->facts, c->change.view, &options);
	claimed_drop_change(c);
	if (!c->effect.row.is_uncertain && c->effect.row.n_attempts == 0) {
		send_answer(a);
	} else if (claimed_begin_call(c, &a->search.call, on_reply_searched)) {
		a->marker = answer_marker(a->facts);
		github_comment_find(c->github, &a->search, c->repository, c->number, a->marker);
	}
}

/* The App's name is known, or the text says BOT instead. */
static void read_replied_change(struct claimed *c)
{
	struct answering *a = CONTAINER_OF(c, struct answering, claimed);

	if (answer_needs_view(a->facts))
		claimed_read_change(c, render_reply);
	else
		render_reply(c);
}

static void begin_answer(struct effect *e)
{
	struct answering *a = CONTAINER_OF(e, struct answering, claimed.effect);
	const char *text = e->row.text ? e->row.text : "";

	claimed_begin(&a->claimed, "answer");
	if (json_parse(text, strlen(text), &a->facts, NULL))
		claimed_end(&a->claimed, OUTBOX_DEAD, 0, "the text of the row is not JSON");
	else if (e->row.kind == OUTBOX_REACTION)
		send_answer(a);
	else
		claimed_learn_app(&a->claimed, read_replied_change);
}

const struct effect_kind reaction_kind =
    CLAIMED_KIND(OUTBOX_REACTION, REACTION_LANE, struct answering, begin_answer, release_answer);
const struct effect_kind reply_kind =
    CLAIMED_KIND(OUTBOX_REPLY, REPLY_LANE, struct answering, begin_answer, release_answer);
