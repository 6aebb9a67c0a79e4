/* A retest's way from "test it again" to a plan: which change, its body in a webhook's shape, and
 * who wants it. The webhook that once told of the change is long gone, so the PR is asked of
 * GitHub as it is now; when GitHub does not answer within a few seconds, what was sent last is
 * sent again. */
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "dispatch/asked.h"
#include "dispatch/plan.h"
#include "dispatch/synthetic.h"

enum { TRIES_MAX = 3, TRY_AGAIN_MS = 1000, WAIT_MAX_MS = 5000 };

/* ---- the plan ---- */

static bool is_wanted(const struct plan *p, const char *accelerator)
{
	for (size_t i = 0; i < p->n_wants; i++)
		if (p->wants[i].accelerator[0] && strcmp(p->wants[i].accelerator, accelerator) == 0)
			return true;
	return false;
}

/* What was asked for becomes the plan's, as far as anybody there wants the change. */
static void add_retests(struct planning *p)
{
	struct asked *a = p->asked;

	for (size_t i = 0; i < a->n; i++) {
		struct asked_command *c = &a->list[i];

		if (c->command.kind != COMMAND_RETEST || c->result != COMMAND_DONE)
			continue;
		if (c->command.word[0] && !is_wanted(&p->plan, c->command.word))
			c->result = COMMAND_NOT_WANTED;
		else
			plan_add_retest(&p->plan, c->command.word, NULL, c->command.suite);
	}
	for (size_t i = 0; i < a->n_retests; i++)
		plan_add_retest(&p->plan, a->retests[i].accelerator, a->retests[i].runner, NULL);
	a->has_plan = p->plan.n_retests > 0;
}

/* Every retest of a comment comes to this. */
static void all_come_to(struct asked *a, enum command_result result)
{
	for (size_t i = 0; i < a->n; i++)
		if (a->list[i].command.kind == COMMAND_RETEST && a->list[i].result == COMMAND_DONE)
			a->list[i].result = result;
}

static void refuse_plan(struct planning *p)
{
	struct asked *a = p->asked;

	if (a->is_comment) {
		all_come_to(a, COMMAND_CLOSED);
		asked_submit(p);
	} else {
		asked_give_up(p, ERR_CONFLICT, p->plan.reason);
	}
}

static void make_plan(struct planning *p)
{
	struct asked *a = p->asked;
	enum plan_verdict verdict =
	    plan_make(&p->event, p->config, (const char *const *)p->files, &p->plan);
	const struct retest_request *request = a->request;

	if (verdict == PLAN_NEEDS_FILES) {
		planning_get_files(p, make_plan);
		return;
	}
	if (p->plan.kind == PLAN_IGNORE) {
		refuse_plan(p);
		return;
	}
	p->plan.starts_round = true;
	p->plan.event_ms = a->event_ms;
	free(p->plan.original_action);
	p->plan.original_action = xstrdup("retest");
	add_retests(p);
	if (request && request->accelerator && !is_wanted(&p->plan, request->accelerator)) {
		asked_give_up(p, ERR_CONFLICT,
		    "that accelerator does not test this change: its triggers do not want it");
		return;
	}
	asked_submit(p);
}

/* ---- the body ---- */

/* Takes the body. Whatever the webhook was about, the head is to be tested as it is. */
static void use_body(struct planning *p, const char *event_name, char *body)
{
	struct asked *a = p->asked;
	struct error why = {0};
	int rc;

	free(a->body);
	a->body = body;
	event_release(&p->event);
	rc = p->d->deps.parse_event(event_name, body, strlen(body), &p->event, &why);
	if (rc) {
		asked_give_up(p, rc, why.text);
		return;
	}
	p->event.pull_action = PULL_SYNCHRONIZE;
	make_plan(p);
}

/* A no of GitHub's is not its silence: whoever waits mends another thing then. */
static void give_up_without_body(struct planning *p)
{
	struct asked *a = p->asked;
	struct error why = {0};

	switch (a->github_err) {
	case ERR_NOT_FOUND:
		asked_give_up(p, a->github_err, "GitHub shows the App no such pull request");
		break;
	case ERR_AUTH:
	case ERR_DENIED:
		error_set(&why, a->github_err, "GitHub refuses the App: %s", a->github_why.text);
		asked_give_up(p, a->github_err, why.text);
		break;
	default:
		asked_give_up(p, ERR_NETWORK,
		    "GitHub does not answer, and no webhook of this change is kept");
	}
}

static void do_without_body(struct planning *p)
{
	struct asked *a = p->asked;

	if (a->is_comment || a->n_reruns) {
		all_come_to(a, COMMAND_NO_GITHUB);
		asked_submit(p);
	} else {
		give_up_without_body(p);
	}
}

/* A push whose webhook is gone, from what is known of the commit. */
static char *known_push(const struct planning *p)
{
	const struct find_tested *t = &p->asked->tested;
	static const char HEADS[] = "refs/heads/";
	const char *name = t->ref && str_has_prefix(t->ref, HEADS) ? t->ref + strlen(HEADS) : "";
	json_t *branch = json_object(), *commit = json_object(), *detail = json_object(),
	       *author = json_object();
	char *body;

	json_set_str(detail, "message", t->title ? t->title : "");
	json_set_str(author, "login", t->author);
	json_object_set_new(commit, "commit", detail);
	json_object_set_new(commit, "author", author);
	json_object_set_new(branch, "commit", commit);
	body = synthetic_push(branch, name, t->head_sha, p->config->upstream_repository, NULL);
	json_decref(branch);
	return body;
}

static void on_body(struct store_query *q)
{
	struct planning *p = CONTAINER_OF(q, struct planning, op.body.q);
	char *body = q->err ? NULL : p->op.body.delivery.body;

	p->op.body.delivery.body = NULL;
	delivery_release(&p->op.body.delivery);
	if (!p->asked->tested.is_pull)
		use_body(p, "push", body ? body : known_push(p));
	else if (body)
		use_body(p, "pull_request", body);
	else
		do_without_body(p);
}

static void load_body(struct planning *p)
{
	const struct find_tested *t = &p->asked->tested;

	p->op.body = (struct get_delivery){.q.done = on_body, .guid = t->delivery_guid};
	if (t->delivery_guid && store_get_delivery(p->d->deps.store, &p->op.body) == 0)
		return;
	if (t->head_sha[0] && !t->is_pull)
		use_body(p, "push", known_push(p));
	else
		do_without_body(p);
}

/* ---- the pull request, as GitHub has it ---- */

static void ask_github(struct planning *p);

static void on_pull(struct github_call *call)
{
	struct planning *p = CONTAINER_OF(call, struct planning, op.call);
	struct asked *a = p->asked;
	const struct github_result *r = &call->result;
	bool is_hopeless =
	    r->is_final || ++a->n_tries >= TRIES_MAX || r->retry_after_ms > WAIT_MAX_MS;
	bool is_known = r->err == 0;
	int64_t pause_ms = TRY_AGAIN_MS * a->n_tries;
	char *body = NULL;

	p->is_on_github = false;
	a->github_err = r->err;
	a->github_why = r->why;
	if (pause_ms < r->retry_after_ms)
		pause_ms = r->retry_after_ms;
	if (is_known)
		body = synthetic_pull(
		    "synchronize", call->answer, p->config->upstream_repository, NULL);
	github_call_release(call);
	if (body)
		use_body(p, "pull_request", body);
	else if (is_hopeless && !p->d->is_closing)
		load_body(p);
	else
		planning_again(p, ask_github, pause_ms);
}

static void ask_github(struct planning *p)
{
	if (p->d->is_closing) { /* nobody would cancel it any more */
		planning_end(p, ERR_CLOSING);
		return;
	}
	p->is_on_github = true;
	p->op.call = (struct github_call){.done = on_pull};
	github_pull_get(
	    p->d->deps.github, &p->op.call, p->config->upstream_repository, p->asked->number);
}

/* ---- which change ---- */

static void on_tested(struct store_query *q)
{
	struct find_tested *t = CONTAINER_OF(q, struct find_tested, q);
	struct planning *p = t->owner;
	struct asked *a = p->asked;

	if (q->err == ERR_CONFLICT) {
		asked_give_up(p, q->err, "that beginning fits several commits: give more of it");
		return;
	}
	if (q->err == ERR_NOT_FOUND && a->sha) {
		asked_give_up(p, q->err, "nothing is known of that commit");
		return;
	}
	if (q->err && q->err != ERR_NOT_FOUND) {
		planning_went_well(p, &q->why, q->err, asked_gather);
		return;
	}
	if (a->sha && t->is_pull && !t->is_open) {
		asked_give_up(p, ERR_CONFLICT, "it is no longer the head of an open pull request");
		return;
	}
	if (a->sha)
		a->number = t->pull_number;
	if (a->number) {
		t->is_pull = true;
		ask_github(p);
	} else {
		load_body(p);
	}
}

void asked_gather(struct planning *p)
{
	struct asked *a = p->asked;

	find_tested_release(&a->tested);
	a->tested = (struct find_tested){
	    .q.done = on_tested,
	    .owner = p,
	    .repository = p->config->upstream_repository,
	    .number = a->sha ? 0 : a->number,
	    .sha = a->sha,
	};
	planning_submitted(p, store_find_tested(p->d->deps.store, &a->tested), asked_gather);
}
