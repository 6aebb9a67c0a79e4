/* Testing a change again: by the button Re-run on a check, by a command in a comment, or by an operator.
 *
 * Re-run on a check starts the vendor's run again. A runner without such runs gets another round. On the suite, and
 * on the check that contains the verdict, Re-run applies to all of them.
 *
 * A retest needs the change, its body in the form of a webhook, and the runners that test it. Outpost no longer has the
 * webhook of the change, so it reads the pull request from GitHub. If GitHub does not answer within a few seconds,
 * Outpost sends again the body that it sent last. */

#include "dispatch/plan.h"
#include "dispatch/planning.h"

/* The check that summarizes all accelerators. */
static const char VERDICT_CHECK[] = "outpost";

static void on_rerun_found(struct store_query *q)
{
	struct find_rerun *f = CONTAINER_OF(q, struct find_rerun, q);
	struct planning *p = f->owner;
	struct user_request *a = p->user_request;

	if (q->err) {
		planning_went_well(p, &q->why, q->err);
		return;
	}
	if (!f->pull_number || !f->n) {
		planning_mark(p, DELIVERY_MARK_IGNORED,
		    f->pull_number ? "nothing to run again" : "not the head of an open pull request");
		return;
	}
	a->number = f->pull_number;
	for (size_t i = 0; i < f->n; i++) {
		const struct rerun_target *t = &f->list[i];

		if (t->is_github && t->run_id && is_repository_name(t->repository)) {
			*ARRAY_PUSH(a->reruns, a->n_reruns) = (struct rerun_request){
			    .repository = arena_strdup(&a->texts, t->repository),
			    .run_id = arena_strdup(&a->texts, t->run_id),
			    .dispatch_id = arena_strdup(&a->texts, t->dispatch_id),
			    .accelerator = arena_strdup(&a->texts, t->accelerator),
			    .runner = arena_strdup(&a->texts, t->runner),
			    .run_attempt = t->run_attempt,
			    .is_whole = !f->check_name,
			};
		} else {
			user_request_add_retest(a, t->accelerator, t->runner);
		}
	}
	planning_run_request(p);
}

void planning_rerun(struct planning *p)
{
	const struct event *ev = &p->event;
	const char *reason = NULL, *id = ev->check_external_id ? ev->check_external_id : "";
	bool is_all = ev->kind == EVENT_CHECK_SUITE || str_eq(ev->check_name, VERDICT_CHECK);

	if (strcasecmp(ev->repository, p->config->upstream_repository) != 0)
		reason = "another repository than upstream's";
	else if (!str_eq(ev->action, "rerequested"))
		reason = "the action is not used";
	else if (ev->check_app_id != p->config->github_app_id)
		reason = "another App's check";
	if (reason) {
		planning_mark(p, DELIVERY_MARK_IGNORED, reason);
		return;
	}
	struct user_request *a = p->user_request = user_request_new();
	a->login = arena_strdup(&a->texts, ev->sender ? ev->sender : "");
	/* "{run_id}:{pr}" */
	a->words = arena_strdup(&a->texts, id);
	a->words[strcspn(id, ":")] = '\0';
	a->found = (struct find_rerun){
	    .q = {.done = on_rerun_found, .retry.event = "delivery_unplanned"},
	    .owner = p,
	    .repository = p->config->upstream_repository,
	    .head_sha = ev->check_head_sha,
	    .check_name = is_all ? NULL : ev->check_name,
	    .run_id = a->words,
	};
	planning_submitted(p, store_find_rerun(p->d->deps.store, &a->found));
}

/* ---- the plan ---- */

static bool is_accelerator_planned(const struct plan *p, const char *accelerator)
{
	for (size_t i = 0; i < p->n_wants; i++)
		if (p->wants[i].accelerator[0] && strcmp(p->wants[i].accelerator, accelerator) == 0)
			return true;
	return false;
}

/* Gives this result to every retest of a comment. */
static void set_retest_results(struct user_request *a, enum command_result result)
{
	for (size_t i = 0; i < a->n; i++)
		if (a->list[i].command.kind == COMMAND_RETEST && a->list[i].result == COMMAND_DONE)
			a->list[i].result = result;
}

static void plan_retest(struct planning *p)
{
	struct user_request *a = p->user_request;
	enum plan_verdict verdict = plan_make(&p->event, p->config, (const char *const *)p->files, &p->plan);
	const struct retest_request *request = a->request;

	if (verdict == PLAN_NEEDS_FILES) {
		planning_get_files(p, plan_retest);
		return;
	}
	if (p->plan.kind == PLAN_IGNORE) {
		if (a->is_comment) {
			set_retest_results(a, COMMAND_CLOSED);
			user_request_submit(p);
		} else {
			user_request_give_up(p, ERR_CONFLICT, p->plan.reason);
		}
		return;
	}
	p->plan.starts_round = true;
	p->plan.event_ms = a->event_ms;
	free(p->plan.original_action);
	p->plan.original_action = xstrdup("retest");
	/* Adds the requested retests to the plan, except those of accelerators that do not test this change. */
	for (size_t i = 0; i < a->n; i++) {
		struct asked_command *c = &a->list[i];

		if (c->command.kind != COMMAND_RETEST || c->result != COMMAND_DONE)
			continue;
		if (c->command.word[0] && !is_accelerator_planned(&p->plan, c->command.word))
			c->result = COMMAND_NOT_TESTED;
		else
			plan_add_retest(&p->plan, c->command.word, NULL, c->command.suite);
	}
	for (size_t i = 0; i < a->n_retests; i++)
		plan_add_retest(&p->plan, a->retests[i].accelerator, a->retests[i].runner, NULL);
	a->has_plan = p->plan.n_retests > 0;
	if (request && request->accelerator && !is_accelerator_planned(&p->plan, request->accelerator)) {
		user_request_give_up(
		    p, ERR_CONFLICT, "that accelerator does not test this change: its triggers do not select it");
		return;
	}
	user_request_submit(p);
}

/* ---- the body ---- */

/* Takes over the body. A retest tests the head in its present state, so the action of the webhook does not count. */
static void use_body(struct planning *p, const char *event_name, char *body)
{
	struct user_request *a = p->user_request;
	struct error why = {0};

	free(a->body);
	a->body = body;
	event_release(&p->event);
	int rc = p->d->deps.parse_event(event_name, body, strlen(body), &p->event, &why);
	if (rc) {
		user_request_give_up(p, rc, why.text);
		return;
	}
	p->event.pull_action = PULL_SYNCHRONIZE;
	plan_retest(p);
}

/* The body of a push whose webhook is no longer stored, from the recorded data of the commit. */
static char *known_push(const struct planning *p)
{
	const struct find_tested *t = &p->user_request->tested;
	static const char HEADS[] = "refs/heads/";
	json_t *commit = json_pack("{s:s, s:{s:s}, s:{s:s?}}", "sha", t->head_sha, "commit", "message",
	    t->title ? t->title : "", "author", "login", t->author);
	json_t *branch = json_pack("{s:O}", "commit", commit), *list = json_pack("[o]", commit);
	const struct missed_push m = {
	    .branch = branch,
	    .name = t->ref && str_has_prefix(t->ref, HEADS) ? t->ref + strlen(HEADS) : "",
	    .after = t->head_sha,
	    .repository = p->config->upstream_repository,
	    .between = list,
	};
	char *body = synthetic_push(&m);

	json_decref(branch);
	json_decref(list);
	return body;
}

/* body: the stored webhook, which it takes over; NULL: it is no longer stored. */
static void use_stored_body(struct planning *p, char *body)
{
	struct user_request *a = p->user_request;
	struct error why = {0};

	if (!a->tested.is_pull && (body || a->tested.head_sha)) {
		use_body(p, "push", body ? body : known_push(p));
	} else if (body) {
		use_body(p, "pull_request", body);
	} else if (a->is_comment || a->n_reruns) {
		set_retest_results(a, COMMAND_NO_GITHUB);
		user_request_submit(p);
	} else {
		/* A refusal by GitHub and a missing answer need different repairs, so the texts differ. */
		if (a->github_err == ERR_NOT_FOUND)
			error_set(&why, ERR_NOT_FOUND, "GitHub does not show this pull request to the App");
		else if (a->github_err == ERR_AUTH || a->github_err == ERR_DENIED)
			error_set(&why, a->github_err, "GitHub refuses the App: %s", a->github_why.text);
		else
			error_set(&why, ERR_NETWORK,
			    "GitHub does not answer, and the webhook of this change is no longer stored");
		user_request_give_up(p, why.code, why.text);
	}
}

static void on_body_loaded(struct store_query *q)
{
	struct planning *p = CONTAINER_OF(q, struct planning, op.body.q);
	char *body = q->err ? NULL : p->op.body.delivery.body;
	int err = q->err == ERR_NOT_FOUND ? 0 : q->err;
	struct error why = q->why;

	p->op.body.delivery.body = NULL;
	delivery_release(&p->op.body.delivery);
	/* A Re-run is put off while the database is away. A command goes on without the stored body. */
	if (!p->user_request->request || planning_went_well(p, &why, err))
		use_stored_body(p, body);
}

static void load_body(struct planning *p)
{
	const char *guid = p->user_request->tested.delivery_guid;

	p->op.body = (struct get_delivery){.q.done = on_body_loaded, .guid = guid};
	if (!guid || store_get_delivery(p->d->deps.store, &p->op.body))
		use_stored_body(p, NULL);
}

/* ---- the pull request at GitHub ---- */

static void request_pull(struct planning *p);

static void on_pull(struct github_call *call)
{
	struct planning *p = CONTAINER_OF(call, struct planning, op.call);
	struct user_request *a = p->user_request;
	struct github_result r = call->result;
	char *body = NULL;

	p->is_on_github = false;
	a->github_err = r.err;
	a->github_why = r.why;
	if (!r.err)
		body = synthetic_pull("synchronize", call->answer, p->config->upstream_repository, NULL);
	github_call_release(call);
	if (body)
		use_body(p, "pull_request", body);
	else if (!planning_retries_github(p, &r, &a->n_tries, request_pull))
		load_body(p);
}

static void request_pull(struct planning *p)
{
	if (p->d->is_closing) { /* nothing would cancel it any more */
		planning_end(p, ERR_CLOSING);
		return;
	}
	p->is_on_github = true;
	p->op.call = (struct github_call){.done = on_pull};
	github_pull_get(p->d->deps.github, &p->op.call, p->config->upstream_repository, p->user_request->number);
}

/* ---- the change ---- */

static void on_tested(struct store_query *q)
{
	struct find_tested *t = CONTAINER_OF(q, struct find_tested, q);
	struct planning *p = t->owner;
	struct user_request *a = p->user_request;

	if (q->err == ERR_CONFLICT) {
		user_request_give_up(p, q->err, "several commits begin with these digits: give more of them");
	} else if (q->err == ERR_NOT_FOUND && a->sha) {
		user_request_give_up(p, q->err, "that commit is not known");
	} else if (q->err && q->err != ERR_NOT_FOUND) {
		planning_went_well(p, &q->why, q->err);
	} else if (a->sha && t->is_pull && !t->is_open) {
		user_request_give_up(p, ERR_CONFLICT, "it is no longer the head of an open pull request");
	} else {
		if (a->sha)
			a->number = t->pull_number;
		t->is_pull |= a->number != 0;
		if (a->number)
			request_pull(p);
		else
			load_body(p);
	}
}

void user_request_gather(struct planning *p)
{
	struct user_request *a = p->user_request;

	find_tested_release(&a->tested);
	a->tested = (struct find_tested){
	    .q = {.done = on_tested, .retry.event = user_request_retry_event(a)},
	    .owner = p,
	    .repository = p->config->upstream_repository,
	    .number = a->sha ? 0 : a->number,
	    .sha = a->sha,
	};
	planning_submitted(p, store_find_tested(p->d->deps.store, &a->tested));
}

static void on_retest_done(void *owner, int err)
{
	struct retest_request *r = owner;

	r->err = err;
	r->done(r);
}

int dispatch_retest(struct dispatch *d, struct retest_request *r)
{
	if (d->is_closing)
		return ERR_CLOSING;
	if (!config_is_registry_loaded(d->config))
		return ERR_BUSY;
	r->err = 0;
	r->why = (struct error){0};
	r->list = NULL;
	r->n = 0;

	struct user_request *a = user_request_new();
	a->number = r->number;
	a->sha = r->number ? NULL : arena_strdup(&a->texts, r->sha);
	a->request = r;
	user_request_add_retest(a, r->accelerator, r->runner);
	planner_start(d->planner, planning_new_request(d, a), on_retest_done, r);
	return 0;
}
