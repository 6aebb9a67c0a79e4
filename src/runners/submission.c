#include "runners/submission.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/strv.h"
#include "runners/answer.h"

static void submission_free(struct submission *s)
{
	access_release(&s->access);
	callback_request_release(&s->body);
	config_unref(s->config);
	free(s->caller);
	free(s->repository);
	free(s->accelerator);
	free(s->machine);
	free(s);
}

static void refuse(struct submission *s, int status, const char *detail)
{
	if (s->request)
		answer_refused(s->runners, s->request,
		    &(struct refusal){.status = status, .detail = detail, .caller = s->caller});
}

static void ignore(struct submission *s, const char *why)
{
	if (s->request)
		answer_ignored(s->runners, s->request, s->caller, why);
}

/* ---- what the store says ---- */

/* As found, not as the caller says: a log must not name somebody else's. */
static const char *accelerator_of(const struct submission *s)
{
	return s->is_self_report ? s->nightly.accelerator : s->job.found_accelerator;
}

static void record(struct submission *s, enum report_outcome outcome, int64_t job_id)
{
	const struct job_report *report = &s->body.report;
	struct runners_counters *c = &s->runners->counters;

	if (outcome == REPORT_RECORDED)
		c->n_recorded++;
	else
		c->n_unchanged++;
	log_event(LOG_INFO, outcome == REPORT_RECORDED ? "report_recorded" : "report_unchanged",
	    LOG_I("job", job_id), LOG_S("caller", s->caller),
	    LOG_S("accelerator", accelerator_of(s)), LOG_S("delivery", s->body.delivery_id),
	    LOG_S("dispatch", s->is_self_report ? "" : s->job.found_dispatch),
	    LOG_S("run", report->run_id), LOG_S("name", report->name),
	    LOG_S("status", job_status_name(report->status)),
	    LOG_S("conclusion", report->conclusion), LOG_I("tests", (int64_t)report->n_tests));
	if (s->request)
		answer_recorded(s->request, s->config, job_status_name(report->status), job_id);
}

static void answer_outcome(struct submission *s, enum report_outcome outcome, int64_t job_id)
{
	switch (outcome) {
	case REPORT_RECORDED:
	case REPORT_UNCHANGED:
		record(s, outcome, job_id);
		break;
	case REPORT_IGNORED_CLOSED:
		ignore(s, "it answers a forwarded closed");
		break;
	case REPORT_IGNORED_LEVEL:
		ignore(s, "the accelerator is at L1");
		break;
	case REPORT_CONFLICT:
		refuse(s, 409, "this attempt of the job is completed already, with other content");
		break;
	case REPORT_NO_DISPATCH:
		refuse(s, 400,
		    s->body.dispatch_id
			? "no such dispatch: neither outpost.dispatch_id nor delivery_id is this "
			  "caller's"
			: "no such dispatch: delivery_id names none that this repository got; a "
			  "run "
			  "of its own is reported with event_type nightly or periodic");
		break;
	case REPORT_WHICH_ACCELERATOR:
		refuse(s, 400, "workflow.accelerator is missing: several share this dispatch");
		break;
	case REPORT_WRONG_ACCELERATOR:
		if (s->body.report.accelerator)
			refuse(s, 400, "workflow.accelerator is not one of this dispatch");
		else
			refuse(s, 403, "this caller may not report for the dispatch's accelerator");
		break;
	case REPORT_NOT_ITS_LEASE:
		refuse(s, 403,
		    "a machine's token reports only the jobs of its own leases: workflow, job "
		    "name, run_id "
		    "and run_attempt must be those of a lease that this machine has or had");
		break;
	}
}

static void end(
    struct submission *s, const struct store_op *op, enum report_outcome outcome, int64_t job_id)
{
	struct runners *r = s->runners;

	if (!op->err)
		answer_outcome(s, outcome, job_id);
	else if (s->request)
		answer_busy(r, s->request, s->caller, op->err);
	submission_free(s);
	runners_let_go(r);
}

static void start_self_report(struct submission *s);

/* A nightly report that belongs to no dispatch is of a run that the vendor started itself. One that
 * names a dispatch claims to belong to it, so it is refused instead. */
static void on_job_written(struct store_op *op)
{
	struct submission *s = CONTAINER_OF(op, struct submission, job.op);

	if (!op->err && s->job.outcome == REPORT_NO_DISPATCH && s->request && s->body.is_nightly &&
	    !s->body.dispatch_id)
		start_self_report(s);
	else
		end(s, op, s->job.outcome, s->job.job_id);
}

static void on_nightly_written(struct store_op *op)
{
	struct submission *s = CONTAINER_OF(op, struct submission, nightly.op);

	end(s, op, s->nightly.outcome, s->nightly.job_id);
}

/* ---- into the store ---- */

static int put_job(struct submission *s)
{
	const struct callback_request *body = &s->body;

	s->job = (struct report_job){
	    .op = {.done = on_job_written},
	    .repository = s->repository,
	    .dispatch_id = body->dispatch_id,
	    .delivery_id = body->delivery_id,
	    .accelerator = s->accelerator ? s->accelerator : body->report.accelerator,
	    .machine = s->machine,
	    .allowed = s->access.allowed,
	    .silent = s->access.silent,
	    .report = &body->report,
	    .now_ms = clock_wall_ms(),
	};
	return store_report_job(s->runners->store, &s->job);
}

static int put_nightly(struct submission *s)
{
	const char *named = s->body.report.accelerator;

	s->is_self_report = true;
	s->nightly = (struct report_nightly){
	    .op = {.done = on_nightly_written},
	    .repository = s->config->upstream_repository,
	    .target = s->repository ? s->repository : s->accelerator,
	    .accelerator = named ? named : s->access.allowed[0],
	    .head_sha = s->body.tested_sha[0] ? s->body.tested_sha : NULL,
	    .report = &s->body.report,
	    .now_ms = clock_wall_ms(),
	};
	return store_report_nightly(s->runners->store, &s->nightly);
}

/* True when the body's claim to an accelerator can stand; else it is answered. */
static bool check_accelerator(struct submission *s)
{
	const char *named = s->body.report.accelerator;

	if (named && access_refuses(&s->access, named)) {
		refuse(
		    s, 403, "workflow.accelerator is bound to another workflow than the token's");
		return false;
	}
	if (named && !strv_contains(s->access.allowed, named)) {
		refuse(s, 400, "workflow.accelerator is not one that this caller may report for");
		return false;
	}
	return true;
}

/* What a self-report needs besides, because no dispatch says it; else it is answered. */
static bool check_self_report(struct submission *s)
{
	const char *named = s->body.report.accelerator;

	if (s->body.report.status != JOB_COMPLETED) {
		refuse(s, 400, "workflow.status must be completed in a self-report");
		return false;
	}
	if (!named && s->access.n_allowed > 1) {
		refuse(s, 400, "workflow.accelerator is missing: several share this repository");
		return false;
	}
	if (strv_contains(s->access.silent, named ? named : s->access.allowed[0])) {
		ignore(s, "the accelerator is at L1");
		return false;
	}
	return true;
}

/* The client is there. Answers now, or when the store has it. */
static void start_self_report(struct submission *s)
{
	struct runners *r = s->runners;

	if (check_self_report(s)) {
		int err = put_nightly(s);

		if (!err)
			return;
		answer_busy(r, s->request, s->caller, err);
	}
	submission_free(s);
	runners_let_go(r);
}

static void on_gone(struct http_request *q)
{
	struct submission *s = http_user(q);

	s->request = NULL;
}

void submission_start(struct submission *s, int err, const struct error *e)
{
	struct runners *r = s->runners;

	if (err) {
		refuse(s, 400, e->text);
		submission_free(s);
		return;
	}
	if (!check_accelerator(s)) {
		submission_free(s);
		return;
	}
	runners_hold(r);
	http_set_user(s->request, s);
	http_on_gone(s->request, on_gone);
	if (callback_request_is_self_report(&s->body)) {
		start_self_report(s);
		return;
	}
	err = put_job(s);
	if (err) {
		answer_busy(r, s->request, s->caller, err);
		submission_free(s);
		runners_let_go(r);
	}
}

/* ---- is it that repository? ---- */

static void on_identified(struct identity_check *c)
{
	struct submission *s = CONTAINER_OF(c, struct submission, identity);
	struct runners *r = s->runners;

	if (s->request)
		http_on_gone(s->request, NULL);
	if (s->request && !c->err) {
		s->then(s);
	} else {
		if (c->err == ERR_DENIED)
			refuse(s, 403, c->why.text);
		else if (s->request)
			answer_busy(r, s->request, s->caller, c->err);
		submission_free(s);
	}
	runners_let_go(r);
}

void submission_identify(
    struct submission *s, const struct oidc_caller *caller, void (*then)(struct submission *s))
{
	int err;

	if (!identity_is_checked(caller)) {
		then(s);
		return;
	}
	s->then = then;
	s->identity = (struct identity_check){.runners = s->runners, .done = on_identified};
	identity_check_init(&s->identity, caller->issuer, s->repository, caller->ids, &s->access);
	err = identity_check_start(&s->identity);
	if (err) {
		answer_busy(s->runners, s->request, s->caller, err);
		submission_free(s);
		return;
	}
	runners_hold(s->runners);
	http_set_user(s->request, s);
	http_on_gone(s->request, on_gone);
}

/* ---- who may ---- */

/* True when the caller is within its rate and may report for something that is shown. */
static bool admit(struct submission *s)
{
	struct runners *r = s->runners;
	bool is_registered = access_is_registered(&s->access);
	int retry_after_s;

	if (!rate_limit_take(is_registered ? r->registered : r->strangers, s->caller,
		loop_now_ms(r->loop), &retry_after_s)) {
		answer_refused(r, s->request,
		    &(struct refusal){
			.status = 429,
			.detail = "more than 100 reports a minute",
			.caller = s->caller,
			.retry_after_s = retry_after_s,
		    });
		return false;
	}
	if (!is_registered) {
		ignore(s, "not registered");
		return false;
	}
	/* A dispatch that is named ends all the same: a lease must not run out over it. */
	if (access_is_silent(&s->access) && s->repository) {
		ignore(s, "the accelerator is at L1");
		return false;
	}
	if (s->access.n_allowed == 0) {
		refuse(s, 403, "the accelerator is bound to another workflow than the token's");
		return false;
	}
	http_note_authenticated(s->request);
	return true;
}

/* A machine has a rate of its own, so that it cannot use up the other machines'. */
static char *caller_of(const struct submission *s)
{
	if (s->machine)
		return xasprintf("%s/%s", s->accelerator, s->machine);
	return xstrdup(s->repository ? s->repository : s->accelerator);
}

struct submission *submission_new(
    struct runners *r, struct http_request *q, const struct reporter *by, struct access *access)
{
	const char *repository = access->repository ? access->repository : by->repository;
	struct submission *s = xcalloc(1, sizeof *s);

	s->runners = r;
	s->request = q;
	s->config = config_ref(r->config);
	s->repository = xstrdup_or_null(repository);
	s->accelerator = xstrdup_or_null(by->accelerator);
	s->machine = xstrdup_or_null(by->machine);
	s->caller = caller_of(s);
	s->access = *access;
	*access = (struct access){0};
	if (admit(s))
		return s;
	submission_free(s);
	return NULL;
}
