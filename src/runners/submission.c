#include "runners/submission.h"

enum {
	DELIVERY_ID_MAX = 128,
	/* A report of so many bytes takes less time to read than a walk through the pool. */
	READ_AT_ONCE_MAX_BYTES = 32 << 10,
	/* Of all reports that are being read; one more is answered 503. */
	READ_MAX_BYTES = 64 << 20,
	READ_AT_ONCE = 2,
};

static void read_dispatch_id(const json_t *root, struct callback_request *ret)
{
	const json_t *const places[] = {
	    json_at(root, "outpost", "dispatch_id", NULL),
	    json_at(root, "client_payload", "outpost", "dispatch_id", NULL),
	    json_at(root, "payload", "outpost", "dispatch_id", NULL),
	};

	for (size_t i = 0; i < ARRAY_LEN(places) && !ret->dispatch_id; i++) {
		const char *id = json_string_value(places[i]);

		/* the form of id_new(): 26 characters of base32 */
		if (id && strlen(id) == ID_BYTES - 1 && strspn(id, "abcdefghijklmnopqrstuvwxyz234567") == ID_BYTES - 1)
			ret->dispatch_id = xstrdup(id);
	}
}

/* In the order of CRCR: a vendor whose delivery ids are not commits names the commit in another place. */
static void read_nightly(const json_t *root, struct callback_request *ret)
{
	const char *type = json_get_str(root, "event_type");
	const json_t *const places[] = {
	    json_object_get(root, "delivery_id"),
	    json_object_get(root, "pytorch_head_sha"),
	    json_at(root, "payload", "head_sha", NULL),
	    json_at(root, "payload", "after", NULL),
	    json_at(root, "payload", "pull_request", "head", "sha", NULL),
	};

	ret->is_nightly = str_eq(type, "nightly") || str_eq(type, "periodic");
	for (size_t i = 0; ret->is_nightly && i < ARRAY_LEN(places); i++) {
		const char *text = json_string_value(places[i]);
		char sha[sizeof(ret->tested_sha)] = "";

		if (!text || strlen(text) != sizeof(sha) - 1)
			continue;
		for (size_t k = 0; k < sizeof(sha); k++)
			sha[k] = (char)tolower((unsigned char)text[k]);
		if (!is_sha1(sha))
			continue;
		memcpy(ret->tested_sha, sha, sizeof(sha));
		return;
	}
}

bool callback_request_is_self_report(const struct callback_request *r)
{
	return r->is_nightly && strcasecmp(r->delivery_id, r->tested_sha) == 0;
}

static int parse_callback(
    const char *body, size_t n, struct test_array *read, struct callback_request *ret, struct error *e)
{
	const json_t *id, *workflow;
	json_t *root = NULL;

	*ret = (struct callback_request){0};
	int err = body_object(body, n, &root, e);
	workflow = json_object_get(root, "workflow");
	id = json_object_get(root, "delivery_id");
	size_t n_id = json_string_length(id);
	for (size_t i = 0; i < n_id; i++)
		if (!isgraph((unsigned char)json_string_value(id)[i]))
			n_id = 0;
	if (!err && (!id || json_is_null(id)))
		err = error_set(e, ERR_INVALID, "delivery_id is missing");
	else if (!err && (n_id == 0 || n_id > DELIVERY_ID_MAX))
		err = error_set(e, ERR_INVALID, "delivery_id is not 1 to %d printable characters", DELIVERY_ID_MAX);
	else if (!err)
		ret->delivery_id = xstrdup(json_string_value(id));
	if (!err && (!workflow || json_is_null(workflow)))
		err = error_set(e, ERR_INVALID, "workflow is missing");
	else if (!err && !json_is_object(workflow))
		err = error_set(e, ERR_INVALID, "workflow is not an object");
	else if (!err)
		err = job_report_parse(workflow, read, &ret->report, e);
	if (!err) {
		read_dispatch_id(root, ret);
		read_nightly(root, ret);
	}
	json_decref(root);
	return err;
}

static int parse_workflow(
    const char *body, size_t n, struct test_array *read, struct callback_request *ret, struct error *e)
{
	json_t *root = NULL;

	*ret = (struct callback_request){0};
	int err = body_object(body, n, &root, e);
	if (!err)
		err = job_report_parse(root, read, &ret->report, e);
	json_decref(root);
	return err;
}

/* The tests, which are nearly all of the body, need no tree. With any mistake the whole body becomes one, which explains it. */
static int parse_request(
    int (*parse)(const char *body, size_t n, struct test_array *read, struct callback_request *ret, struct error *e),
    const char *const *path, const char *body, size_t n, struct callback_request *ret, struct error *e)
{
	struct test_array read;

	if (test_array_read(body, n, path, true, &read)) {
		int err = parse(read.rest.data, read.rest.len, &read, ret, NULL);

		test_array_release(&read);
		if (!err)
			return 0;
		callback_request_release(ret);
	}
	return parse(body, n, NULL, ret, e);
}

int callback_request_parse(const char *body, size_t n, struct callback_request *ret, struct error *e)
{
	static const char *const path[] = {"workflow", "tests", NULL};

	return parse_request(parse_callback, path, body, n, ret, e);
}

int callback_request_parse_workflow(const char *body, size_t n, struct callback_request *ret, struct error *e)
{
	static const char *const path[] = {"tests", NULL};

	return parse_request(parse_workflow, path, body, n, ret, e);
}

void callback_request_release(struct callback_request *r)
{
	free(r->delivery_id);
	free(r->dispatch_id);
	job_report_release(&r->report);
	*r = (struct callback_request){0};
}

static void submission_free(struct submission *s)
{
	struct runners *r = s->runners;

	access_release(&s->access);
	callback_request_release(&s->body);
	packed_tests_release(&s->packed);
	http_recycle_body(s->bytes);
	config_unref(s->config);
	FREE_ALL(s->caller, s->repository, s->accelerator, s->machine, s->dispatch_id, s);
	runners_let_go(r);
}

/* Each of these answers the request, unless the client left, and frees the submission. */

static void refuse_submission(struct submission *s, int status, const char *detail)
{
	refuse_request(s->runners, s->request, status, detail, s->caller);
	submission_free(s);
}

static void answer_submission_busy(struct submission *s, int err)
{
	answer_busy(s->runners, s->request, s->caller, err);
	submission_free(s);
}

static void ignore_submission(struct submission *s, const char *why)
{
	answer_ignored(s->runners, s->request, s->caller, why);
	submission_free(s);
}

/* ---- the store's answer ---- */

static void end_submission(struct submission *s, const struct store_op *op, enum report_outcome outcome, int64_t job_id)
{
	static const struct {
		int status; /* 200: ignored */
		const char *text;
	} refusals[] = {
	    [REPORT_IGNORED_CLOSED] = {200, "it answers a forwarded closed"},
	    [REPORT_IGNORED_LEVEL] = {200, "the accelerator is at L1"},
	    [REPORT_CONFLICT] = {409, "this attempt of the job is completed already, with other content"},
	    [REPORT_NO_DISPATCH] = {400,
		"no such dispatch: delivery_id names none that this repository got; a run of its own is reported with "
		"event_type nightly or periodic"},
	    [REPORT_WHICH_ACCELERATOR] = {400, "workflow.accelerator is missing: several share this dispatch"},
	    [REPORT_WRONG_ACCELERATOR] = {403, "this caller may not report for the dispatch's accelerator"},
	    [REPORT_NOT_ITS_LEASE] = {403, "a machine's token reports only the jobs of its own leases: workflow, job "
					   "name, run_id and run_attempt must "
					   "be those of a lease that this machine has or had"},
	    [REPORT_TOO_MANY_JOBS] = {413, TOO_MANY_JOBS_TEXT},
	    [REPORT_TOO_MANY_RESULTS] = {413, TOO_MANY_RESULTS_TEXT},
	};
	struct runners_counters *counters = &s->runners->counters;
	const struct job_report *report = &s->body.report;
	bool is_new = outcome == REPORT_RECORDED;
	/* Log the store's accelerator and not the body's, because a log must not name another caller's accelerator. */
	const char *accelerator = s->is_self_report ? s->nightly.accelerator : s->job.found_accelerator;

	if (op->err) {
		answer_submission_busy(s, op->err);
	} else if (is_new || outcome == REPORT_UNCHANGED) {
		counters->n_recorded += is_new;
		counters->n_unchanged += !is_new;
		log_event(LOG_INFO, is_new ? "report_recorded" : "report_unchanged", LOG_I("job", job_id),
		    LOG_S("caller", s->caller), LOG_S("accelerator", accelerator),
		    LOG_S("delivery", s->body.delivery_id),
		    LOG_S("dispatch", s->is_self_report ? "" : s->job.found_dispatch), LOG_S("run", report->run_id),
		    LOG_S("name", report->name), LOG_S("status", job_status_name(report->status)),
		    LOG_S("conclusion", report->conclusion), LOG_I("tests", (int64_t)report->n_tests));
		answer_recorded(s->request, s->config, job_status_name(report->status), job_id);
		submission_free(s);
	} else if (refusals[outcome].status == 200) {
		ignore_submission(s, refusals[outcome].text);
	} else if (outcome == REPORT_NO_DISPATCH && s->body.dispatch_id) {
		refuse_submission(
		    s, 400, "no such dispatch: neither outpost.dispatch_id nor delivery_id is this caller's");
	} else if (outcome == REPORT_WRONG_ACCELERATOR && report->accelerator) {
		refuse_submission(s, 400, "workflow.accelerator is not one of this dispatch");
	} else {
		refuse_submission(s, refusals[outcome].status, refusals[outcome].text);
	}
}

static void on_nightly_written(struct store_op *op)
{
	struct submission *s = CONTAINER_OF(op, struct submission, nightly.op);

	end_submission(s, op, s->nightly.outcome, s->nightly.job_id);
}

/* ---- into the store ---- */

/* Checks a self-report, which has no dispatch to compare it with, and passes it to the store. Answers now, or when the
 * store has written it. */
static void start_self_report(struct submission *s)
{
	const char *named = s->body.report.accelerator;

	if (s->body.report.status != JOB_COMPLETED) {
		refuse_submission(s, 400, "workflow.status must be completed in a self-report");
	} else if (!named && s->access.n_allowed > 1) {
		refuse_submission(s, 400, "workflow.accelerator is missing: several share this repository");
	} else if (strv_contains(s->access.silent, named ? named : s->access.allowed[0])) {
		ignore_submission(s, "the accelerator is at L1");
	} else {
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
		int err = store_report_nightly(s->runners->store, &s->nightly);
		if (err)
			answer_submission_busy(s, err);
	}
}

/* A nightly report without a dispatch is about a run that the vendor started itself. If it names a dispatch that does
 * not exist, it is refused instead. */
static void on_job_written(struct store_op *op)
{
	struct submission *s = CONTAINER_OF(op, struct submission, job.op);

	if (!op->err && s->job.outcome == REPORT_NO_DISPATCH && s->request && s->body.is_nightly &&
	    !s->body.dispatch_id)
		start_self_report(s);
	else
		end_submission(s, op, s->job.outcome, s->job.job_id);
}

/* The body was read with the result `err`. */
static void start_submission(struct submission *s, int err, const struct error *e)
{
	const struct callback_request *body = &s->body;
	const char *named = body->report.accelerator;
	const char *mistake = NULL;
	int status = 400;

	if (err) {
		mistake = e->text;
	} else if (named && strv_contains(s->access.refused, named)) {
		status = 403;
		mistake = "workflow.accelerator is bound to another workflow than the token's";
	} else if (named && !strv_contains(s->access.allowed, named)) {
		mistake = "workflow.accelerator is not one that this caller may report for";
	}
	if (mistake) {
		refuse_submission(s, status, mistake);
		return;
	}
	if (callback_request_is_self_report(body)) {
		start_self_report(s);
		return;
	}
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
	err = store_report_job(s->runners->store, &s->job);
	if (err)
		answer_submission_busy(s, err);
}

/* ---- the body ---- */

static void read_body(struct pool_work *w)
{
	struct submission *s = CONTAINER_OF(w, struct submission, work);
	struct job_report *report = &s->body.report;

	if (s->dispatch_id)
		s->err = callback_request_parse_workflow(s->bytes, s->n_bytes, &s->body, &s->why);
	else
		s->err = callback_request_parse(s->bytes, s->n_bytes, &s->body, &s->why);
	if (s->err || report->status != JOB_COMPLETED)
		return;
	packed_tests_make(&s->packed, report->tests, report->n_tests);
	report->packed = &s->packed;
}

static void start_read(struct submission *s)
{
	struct error *e = &s->why;
	int err = s->err;

	http_recycle_body(s->bytes);
	s->bytes = NULL;
	if (s->dispatch_id) {
		s->body.dispatch_id = s->dispatch_id;
		s->dispatch_id = NULL;
	} else if (!err && s->accelerator && (!s->body.is_nightly || s->body.dispatch_id)) {
		/* a token of ours; a report of a dispatch comes on the other route, whose path names the dispatch */
		err = error_set(e, ERR_INVALID,
		    "a vendor's own token reports periodic runs here: event_type must be nightly or periodic; "
		    "jobs of a dispatch go to /api/v1/dispatches/ID/jobs");
	}
	start_submission(s, err, e);
}

static void read_next(struct runners *r);

static void after_read(struct pool_work *w)
{
	struct submission *s = CONTAINER_OF(w, struct submission, work);
	struct runners *r = s->runners;

	r->n_read_bytes -= s->n_bytes;
	r->n_reading--;
	read_next(r);
	start_read(s);
}

static void read_next(struct runners *r)
{
	struct submission *s = STAILQ_FIRST(&r->to_be_read);

	if (!s || r->n_reading == READ_AT_ONCE)
		return;
	STAILQ_REMOVE_HEAD(&r->to_be_read, at);
	r->n_reading++;
	s->work = (struct pool_work){.work = read_body, .after = after_read};
	pool_submit(r->loop, &s->work);
}

void submission_read(struct submission *s, const char *dispatch_id)
{
	struct runners *r = s->runners;
	size_t n;

	(void)http_body(s->request, &n);
	if (r->n_read_bytes + n > READ_MAX_BYTES) {
		answer_submission_busy(s, ERR_BUSY);
		return;
	}
	s->dispatch_id = xstrdup_or_null(dispatch_id);
	s->bytes = http_detach_body(s->request, &s->n_bytes);
	forget_gone_client(&s->request);
	if (s->n_bytes <= READ_AT_ONCE_MAX_BYTES) {
		read_body(&s->work);
		start_read(s);
		return;
	}
	r->n_read_bytes += s->n_bytes;
	STAILQ_INSERT_TAIL(&r->to_be_read, s, at);
	read_next(r);
}

/* ---- the repository's ids ---- */

static void on_identified(struct identity_check *c)
{
	struct submission *s = CONTAINER_OF(c, struct submission, identity);

	if (s->request)
		http_on_gone(s->request, NULL);
	if (s->request && !c->err)
		submission_read(s, NULL);
	else if (c->err == ERR_DENIED)
		refuse_submission(s, 403, c->why.text);
	else
		answer_submission_busy(s, c->err);
}

void submission_identify(struct submission *s, const struct oidc_caller *caller)
{
	if (caller->issuer->n_mappings > 0) {
		submission_read(s, NULL);
		return;
	}
	s->identity = (struct identity_check){.runners = s->runners, .done = on_identified};
	int err = identity_check_start(&s->identity, caller->issuer->issuer, s->repository, caller->ids, &s->access);
	if (err)
		answer_submission_busy(s, err);
	else
		forget_gone_client(&s->request);
}

/* ---- the caller ---- */

struct submission *submission_new(
    struct runners *r, struct http_request *q, const struct reporter *by, struct access *access)
{
	const char *repository = access->repository ? access->repository : by->repository;
	struct submission *s = xcalloc(1, sizeof *s);
	int retry_after_s;

	runners_hold(r);
	s->runners = r;
	s->request = q;
	s->config = config_ref(r->config);
	s->repository = xstrdup_or_null(repository);
	s->accelerator = xstrdup_or_null(by->accelerator);
	s->machine = xstrdup_or_null(by->machine);
	/* A machine has a rate of its own, so that it cannot use up the other machines'. */
	s->caller = s->machine ? xasprintf("%s/%s", s->accelerator, s->machine)
			       : xstrdup(s->repository ? s->repository : s->accelerator);
	s->access = *access;
	*access = (struct access){0};
	bool is_registered = access_is_registered(&s->access);
	if (!rate_limit_admit(
		is_registered ? r->registered : r->strangers, s->caller, loop_now_ms(r->loop), &retry_after_s)) {
		refuse_over_rate(r, q, "more than 100 reports a minute", s->caller, retry_after_s);
		submission_free(s);
	} else if (!is_registered) {
		ignore_submission(s, "not registered");
	} else if (access_is_silent(&s->access) && s->repository) {
		/* With a token of ours, a report ends its dispatch, so that its lease does not expire. Accept that. */
		ignore_submission(s, "the accelerator is at L1");
	} else if (s->access.n_allowed == 0) {
		refuse_submission(s, 403, "the accelerator is bound to another workflow than the token's");
	} else {
		http_note_authenticated(q);
		return s;
	}
	return NULL;
}
