/* Re-run at a vendor's repository. What GitHub does not start again (the run is too old, the App
 * may not write actions there) gets another round instead, as runners have that know no Re-run. */
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/log.h"
#include "dispatch/attempt.h"
#include "store/retest.h"

enum { RERUN_AGAIN_MS = 5000 };

const char *attempt_rerun_check(struct attempt *a)
{
	const json_t *o;

	if (json_parse(a->row.text, a->row.text ? strlen(a->row.text) : 0, &a->rerun, NULL))
		return "its text is no JSON";
	o = a->rerun;
	return json_get_str(o, "run_id") && json_get_str(o, "accelerator") ? NULL
									   : "it names no run";
}

static void on_retested(struct retest_request *r)
{
	struct attempt *a = r->owner;

	retested_release(r->list, r->n);
	if (r->err == ERR_CLOSING || r->err == ERR_BUSY || r->err == ERR_NETWORK) {
		attempt_put_back(a, RERUN_AGAIN_MS);
		return;
	}
	log_event(LOG_INFO, "rerun_replaced", LOG_S("dispatch", a->row.dispatch_id),
	    LOG_I("pr", a->row.number), LOG_I("rounds", (int64_t)r->n),
	    LOG_S("because", a->why.text), LOG_S("error", r->why.text));
	a->why = (struct error){0};
	attempt_over(a, OUTBOX_OK);
}

static void start_round(struct attempt *a)
{
	int rc;

	a->retest = (struct retest_request){
	    .number = a->row.number,
	    .accelerator = json_get_str(a->rerun, "accelerator"),
	    .runner = a->row.runner,
	    .done = on_retested,
	    .owner = a,
	};
	rc = dispatch_retest(a->d, &a->retest);
	if (rc)
		attempt_put_back(a, RERUN_AGAIN_MS);
}

static void on_answer(struct github_call *call)
{
	struct attempt *a = CONTAINER_OF(call, struct attempt, call.github);
	struct github_result r = call->result;

	a->is_on_wire = false;
	github_call_release(call);
	if (r.err == 0 || (r.err == ERR_DENIED && strcasestr(r.why.text, "already running"))) {
		attempt_over(a, OUTBOX_OK);
		return;
	}
	if (r.err == ERR_DENIED || (r.is_final && r.err != ERR_CANCELLED)) {
		error_set(&a->why, r.err, "%s", *r.why.text ? r.why.text : err_text(r.err));
		start_round(a);
		return;
	}
	attempt_github_failed(a, &r);
}

void attempt_rerun_send(struct attempt *a)
{
	a->is_on_wire = true;
	a->call.github = (struct github_call){.done = on_answer};
	github_run_again(a->d->deps.github, &a->call.github, a->row.target,
	    json_get_str(a->rerun, "run_id"),
	    json_get_bool(a->rerun, "is_whole", false) ? GITHUB_RERUN_ALL : GITHUB_RERUN_FAILED);
}
