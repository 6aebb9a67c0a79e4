/* The end of whatever was asked: one transaction, and whoever waits is told. */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "dispatch/asked.h"
#include "store/retest.h"

struct asked *asked_new(void)
{
	struct asked *a = xcalloc(1, sizeof(*a));

	uuid_new(a->guid);
	return a;
}

static void free_rerun(struct rerun_request *r)
{
	free(r->repository);
	free(r->run_id);
	free(r->dispatch_id);
	free(r->accelerator);
	free(r->runner);
}

void asked_free(struct asked *a)
{
	if (!a)
		return;
	for (size_t i = 0; i < a->n_retests; i++) {
		free(a->retests[i].accelerator);
		free(a->retests[i].runner);
	}
	for (size_t i = 0; i < a->n_reruns; i++)
		free_rerun(&a->reruns[i]);
	free(a->retests);
	free(a->reruns);
	find_tested_release(&a->tested);
	find_rerun_release(&a->found);
	free(a->sha);
	free(a->login);
	free(a->words);
	free(a->body);
	free(a);
}

void asked_add_retest(struct asked *a, const char *accelerator, const char *runner)
{
	a->retests = xrealloc(a->retests, (a->n_retests + 1) * sizeof(*a->retests));
	a->retests[a->n_retests++] = (struct retest){
	    .accelerator = xstrdup_or_null(accelerator),
	    .runner = xstrdup_or_null(runner),
	};
}

static bool wants_round(const struct asked *a)
{
	for (size_t i = 0; i < a->n; i++)
		if (a->list[i].command.kind == COMMAND_RETEST && a->list[i].result == COMMAND_DONE)
			return true;
	return a->n_retests > 0;
}

void planning_ask(struct planning *p)
{
	const struct asked *a = p->asked;

	/* What a stranger says is only refused, so GitHub need not be asked for it. */
	if (wants_round(a) && !(a->is_comment && a->spoken.speaker == SPEAKER_STRANGER))
		asked_gather(p);
	else
		asked_submit(p);
}

void asked_give_up(struct planning *p, int err, const char *why)
{
	struct retest_request *request = p->asked->request;

	if (request) {
		error_set(&request->why, err, "%s", why);
		planning_end(p, err);
	} else {
		planning_fail(p, why);
	}
}

static void log_done(const struct planning *p, const struct run_commands *op)
{
	const struct asked *a = p->asked;
	int64_t n_new = op->retest.n_new_dispatches;

	log_event(LOG_INFO, a->is_comment ? "commands_heard" : "retest_asked",
	    LOG_S("delivery", p->guid), LOG_I("pr", op->number), LOG_S("by", a->login),
	    LOG_S("words", a->words), LOG_S("ignored", op->ignored),
	    LOG_I("dispatches", n_new + op->n_released),
	    LOG_I("cancelled", op->n_cancelled + op->n_declined),
	    LOG_I("reruns", (int64_t)op->n_reruns));
}

static void on_done(struct store_op *op)
{
	struct planning *p = CONTAINER_OF(op, struct planning, op.commands.op);
	struct run_commands *o = &p->op.commands;
	struct asked *a = p->asked;
	struct retest_request *request = a->request;

	if (op->err) {
		retested_release(o->retest.retested, o->retest.n_retested);
		planning_went_well(p, &op->why, op->err, asked_submit);
		return;
	}
	log_done(p, o);
	if (p->delivery_id && o->ignored)
		p->d->counters.n_deliveries_ignored++;
	else
		p->d->counters.n_deliveries_planned += p->delivery_id != 0;
	p->d->counters.n_dispatches_made += o->retest.n_new_dispatches;
	if (request) {
		request->list = o->retest.retested;
		request->n = o->retest.n_retested;
		request->pull_number = a->number;
		snprintf(request->head_sha, sizeof(request->head_sha), "%s",
		    a->has_plan ? p->plan.head_sha : "");
	} else {
		retested_release(o->retest.retested, o->retest.n_retested);
	}
	planning_end(p, 0);
}

void asked_submit(struct planning *p)
{
	struct asked *a = p->asked;

	p->op.commands = (struct run_commands){
	    .op.done = on_done,
	    .delivery_id = p->delivery_id,
	    .repository = p->config->upstream_repository,
	    .number = a->number,
	    .spoken = a->is_comment ? &a->spoken : NULL,
	    .list = a->list,
	    .n = a->n,
	    .reruns = a->reruns,
	    .n_reruns = a->n_reruns,
	    .now_ms = clock_wall_ms(),
	};
	if (a->has_plan) {
		p->op.commands.retest.plan = &p->plan;
		p->op.commands.retest.guid = a->guid;
		p->op.commands.retest.body = a->body;
		p->op.commands.retest.body_bytes = strlen(a->body);
	}
	planning_submitted(p, store_run_commands(p->d->deps.store, &p->op.commands), asked_submit);
}
