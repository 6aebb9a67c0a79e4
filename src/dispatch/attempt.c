#include "dispatch/attempt.h"

#include "model/schedule.h"
#include "store/plans.h"

enum { RERUN_PAUSE_MS = 5000, ANSWER_MAX_BYTES = 64 * 1024 };

/* ---- requests to GitHub: repository_dispatch to a vendor's repository or the infra repository, and Re-run of a run at a
 * vendor's repository. If GitHub does not start a run again (it is too old, or the App may not write actions there), the
 * runner gets another round instead, like a runner without such runs ---- */

static bool is_registered(const struct config *c, const char *repository)
{
	if (c->infra_repository && strcasecmp(c->infra_repository, repository) == 0)
		return true;
	for (size_t i = 0; i < c->n_accelerators; i++)
		for (size_t j = 0; j < c->accelerators[i].n_runners; j++) {
			const struct runner *r = &c->accelerators[i].runners[j];

			if (r->kind == RUNNER_GITHUB && strcasecmp(r->repository, repository) == 0)
				return true;
		}
	return false;
}

const char *attempt_github_check(struct attempt *a)
{
	const struct outbox_row *row = &a->effect.row;

	if (!is_repository_name(row->target))
		return "its target is not a repository";
	/* `closed` also goes to a repository that is no longer registered: it ends the work there. */
	if (row->kind == OUTBOX_GITHUB_DISPATCH && !is_registered(a->config, row->target))
		return "no longer registered";
	if (row->kind != OUTBOX_RERUN)
		return NULL;
	if (json_parse(row->text, row->text ? strlen(row->text) : 0, &a->rerun, NULL))
		return "its text is not JSON";
	bool is_complete = json_get_str(a->rerun, "run_id") && json_get_str(a->rerun, "accelerator");
	return is_complete ? NULL : "it names no run";
}

/* Ends the attempt after a failure of GitHub: retry, put off, or dead. */
static void attempt_github_failed(struct attempt *a, const struct github_result *r)
{
	error_set(&a->effect.why, r->err, "%s", *r->why.text ? r->why.text : err_text(r->err));
	if (r->err == ERR_CANCELLED || (r->err == ERR_BUSY && !r->was_sent)) {
		/* The request was not sent, or Outpost cut it off: the attempt does not count. */
		int64_t wait_ms = r->err == ERR_CANCELLED ? 0 : BACKOFF_FIRST_MS;
		int64_t next_ms = clock_wall_ms() + (wait_ms > r->retry_after_ms ? wait_ms : r->retry_after_ms);

		if (effect_is_too_late(&a->effect, next_ms))
			effect_end(&a->effect, OUTBOX_DEAD, 0);
		else
			effect_end(&a->effect, r->was_sent ? OUTBOX_RETRY : OUTBOX_NOT_YET, next_ms);
	} else if (r->is_final) {
		effect_end(&a->effect, OUTBOX_DEAD, 0);
	} else {
		attempt_retry(a, r->retry_after_ms);
	}
}

static void on_github_answer(struct github_call *call)
{
	struct attempt *a = CONTAINER_OF(call, struct attempt, call.github);
	struct github_result r = call->result;

	a->is_on_wire = false;
	github_call_release(call);
	if (r.err)
		attempt_github_failed(a, &r);
	else
		effect_end(&a->effect, OUTBOX_OK, 0);
}

void attempt_github_send(struct attempt *a)
{
	a->is_on_wire = true;
	a->call.github =
	    (struct github_call){.done = on_github_answer, .may_go_out = effect_may_go_out, .going_owner = &a->effect};
	github_dispatch(a->d->deps.github, &a->call.github, a->effect.row.target, a->text, a->text_bytes);
}

static void on_retested(struct retest_request *r)
{
	struct attempt *a = r->owner;

	retested_release(r->list, r->n);
	if (r->err == ERR_CLOSING || r->err == ERR_BUSY || r->err == ERR_NETWORK || r->err == ERR_AWAY) {
		effect_put_off(&a->effect, RERUN_PAUSE_MS);
		return;
	}
	log_event(LOG_INFO, "rerun_replaced", LOG_S("dispatch", a->effect.row.dispatch_id),
	    LOG_I("pr", a->effect.row.number), LOG_I("rounds", (int64_t)r->n), LOG_S("because", a->effect.why.text),
	    LOG_S("error", r->why.text));
	a->effect.why = (struct error){0};
	effect_end(&a->effect, OUTBOX_OK, 0);
}

static void on_rerun_answer(struct github_call *call)
{
	struct attempt *a = CONTAINER_OF(call, struct attempt, call.github);
	struct github_result r = call->result;

	a->is_on_wire = false;
	github_call_release(call);
	if (r.err == 0 || (r.err == ERR_DENIED && strcasestr(r.why.text, "already running"))) {
		effect_end(&a->effect, OUTBOX_OK, 0);
	} else if (r.err == ERR_DENIED || (r.is_final && r.err != ERR_CANCELLED)) {
		error_set(&a->effect.why, r.err, "%s", *r.why.text ? r.why.text : err_text(r.err));
		a->retest = (struct retest_request){
		    .number = a->effect.row.number,
		    .accelerator = json_get_str(a->rerun, "accelerator"),
		    .runner = a->effect.row.runner,
		    .done = on_retested,
		    .owner = a,
		};
		if (dispatch_retest(a->d, &a->retest))
			effect_put_off(&a->effect, RERUN_PAUSE_MS);
	} else {
		attempt_github_failed(a, &r);
	}
}

void attempt_rerun_send(struct attempt *a)
{
	a->is_on_wire = true;
	a->call.github =
	    (struct github_call){.done = on_rerun_answer, .may_go_out = effect_may_go_out, .going_owner = &a->effect};
	github_run_again(a->d->deps.github, &a->call.github, a->effect.row.target, json_get_str(a->rerun, "run_id"),
	    json_get_bool(a->rerun, "is_whole", false) ? GITHUB_RERUN_ALL : GITHUB_RERUN_FAILED);
}

/* ---- the signed POST to a vendor's own CI.
 *
 * Rules guarded here: it goes only to addresses that the operator allows, whatever the name resolves to at that moment;
 * the vendor's secret signs and is never shown ---- */

const char *attempt_webhook_check(struct attempt *a)
{
	const char *name = a->effect.row.accelerators ? a->effect.row.accelerators[0] : NULL;
	const struct accelerator *accelerator = name ? config_accelerator(a->config, name) : NULL;

	if (accelerator)
		a->runner = accelerator_runner(accelerator, a->effect.row.runner);
	return a->runner && a->runner->kind == RUNNER_WEBHOOK ? NULL : "no longer registered";
}

static bool allow_address(const uint8_t address[16], void *owner)
{
	const struct attempt *a = owner;
	const struct config *c = a->config;

	return network_permits(c->allow_networks, c->n_allow_networks, a->runner->url, address);
}

/* RFC 9110, 10.2.3: seconds, or a date. 0: absent or neither. */
static int64_t retry_after_ms(const struct http_call *call)
{
	char text[64];
	struct tm tm = {0};
	int64_t seconds, ms;

	if (!http_call_header(call, "Retry-After", text, sizeof(text)))
		return 0;
	if (parse_int64(text, &seconds) == 0)
		return seconds > 0 && seconds < INT32_MAX ? seconds * 1000 : 0;
	const char *end = strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &tm);
	if (!end || *end)
		return 0;
	ms = (int64_t)timegm(&tm) * 1000 - clock_wall_ms();
	return ms > 0 ? ms : 0;
}

static void on_webhook_answer(struct http_call *call)
{
	struct attempt *a = CONTAINER_OF(call, struct attempt, call.http);
	struct error why = call->why, *ret_why = &a->effect.why;
	int err = call->err, status = call->status;
	int64_t wait_ms = retry_after_ms(call);
	bool was_sent = call->was_sent;
	/* The vendor accepted the request, so an endless answer does not matter. */
	bool has_answer = err == 0 || (err == ERR_TOO_BIG && status > 0);

	a->is_on_wire = false;
	http_call_release(call);
	if (err == ERR_CANCELLED) { /* Outpost itself cut it off */
		error_set(ret_why, err, "%s", why.text[0] ? why.text : "the service was stopped");
		effect_end(&a->effect, was_sent ? OUTBOX_RETRY : OUTBOX_NOT_YET, clock_wall_ms());
	} else if (!has_answer) {
		if (err == ERR_DENIED) {
			/* The row is public, so it does not contain the address that the name has inside the
			 * operator's network. */
			log_event(LOG_WARN, "webhook_address_refused", LOG_S("dispatch", a->effect.row.dispatch_id),
			    LOG_S("why", why.text));
			error_set(ret_why, err, "its host's address may not be reached");
		}
		error_set(ret_why, err, "%s", *why.text ? why.text : err_text(err));
		if (err == ERR_INVALID)
			effect_end(&a->effect, OUTBOX_DEAD, 0);
		else
			attempt_retry(a, 0);
	} else if (status >= 200 && status < 300) {
		effect_end(&a->effect, OUTBOX_OK, 0);
	} else {
		error_set(ret_why, ERR_PROTOCOL, "the vendor's server answered %d%s", status,
		    status >= 300 && status < 400 ? ", and redirects are not followed" : "");
		if (status >= 300 && status < 500 && status != 403 && status != 408 && status != 429)
			effect_end(&a->effect, OUTBOX_DEAD, 0);
		else
			attempt_retry(a, wait_ms);
	}
}

void attempt_webhook_send(struct attempt *a)
{
	const struct runner *r = a->runner;
	bool is_cancel = a->effect.row.kind == OUTBOX_WEBHOOK_CANCEL;
	uint8_t mac[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];
	char *event = xasprintf("X-Outpost-Event: %s", is_cancel ? "cancel" : a->effect.row.event_type);
	char *delivery = xasprintf("X-Outpost-Delivery: %s", a->effect.row.dispatch_id);

	a->is_on_wire = true;
	hmac_sha256(secret_text(r->secret), secret_bytes(r->secret), a->text, a->text_bytes, mac);
	char *signature = xasprintf("X-Hub-Signature-256: sha256=%s", hex_encode(mac, sizeof(mac), hex));

	a->call.http = (struct http_call){
	    .method = "POST",
	    .url = r->url,
	    .headers = (const char *const[]){"Content-Type: application/json", "Accept: application/json, */*", event,
		delivery, signature, NULL},
	    .body = a->text,
	    .body_bytes = a->text_bytes,
	    .max_answer_bytes = ANSWER_MAX_BYTES,
	    .allow_address = allow_address,
	    .allow_owner = a,
	    .allow_plain_http = strncasecmp(r->url, "http:", 5) == 0,
	    .may_go_out = effect_may_go_out,
	    .going_owner = &a->effect,
	    .done = on_webhook_answer,
	};
	http_call_start(a->d->deps.http_client, &a->call.http);
	FREE_ALL(event, delivery, signature);
}
