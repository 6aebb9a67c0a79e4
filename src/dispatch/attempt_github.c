/* Requests to GitHub: repository_dispatch to a vendor's repository or the infra repository, and Re-run of a run at a
 * vendor's repository. If GitHub does not start a run again (it is too old, or the App may not write actions there), the
 * runner gets another round instead, like a runner without such runs. */
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "dispatch/attempt.h"
#include "model/schedule.h"
#include "store/plans.h"

enum { RERUN_PAUSE_MS = 5000 };

/* ---- repository_dispatch ---- */

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
	/* `closed` goes out all the same: it ends what was started there. */
	if (row->kind == OUTBOX_GITHUB_DISPATCH && !is_registered(a->config, row->target))
		return "no longer registered";
	if (row->kind != OUTBOX_RERUN)
		return NULL;
	if (json_parse(row->text, row->text ? strlen(row->text) : 0, &a->rerun, NULL))
		return "its text is not JSON";
	if (!json_get_str(a->rerun, "run_id") || !json_get_str(a->rerun, "accelerator"))
		return "it names no run";
	return NULL;
}

/* Ends the attempt after a failure of GitHub: retry, put off, or dead. */
static void attempt_github_failed(struct attempt *a, const struct github_result *r)
{
	error_set(&a->effect.why, r->err, "%s", *r->why.text ? r->why.text : err_text(r->err));
	if (r->err == ERR_CANCELLED || (r->err == ERR_BUSY && !r->was_sent)) {
		/* Nothing was tried, or it was cut off here: the attempt does not count. */
		int64_t wait_ms = r->err == ERR_CANCELLED ? 0 : BACKOFF_FIRST_MS;
		int64_t next_ms =
		    clock_wall_ms() + (wait_ms > r->retry_after_ms ? wait_ms : r->retry_after_ms);

		if (effect_is_too_late(&a->effect, next_ms))
			effect_end(&a->effect, OUTBOX_DEAD, 0);
		else
			effect_end(
			    &a->effect, r->was_sent ? OUTBOX_RETRY : OUTBOX_NOT_YET, next_ms);
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
	a->call.github = (struct github_call){.done = on_github_answer};
	github_dispatch(
	    a->d->deps.github, &a->call.github, a->effect.row.target, a->text, a->text_bytes);
}

/* ---- Re-run ---- */

static void on_retested(struct retest_request *r)
{
	struct attempt *a = r->owner;

	retested_release(r->list, r->n);
	if (r->err == ERR_CLOSING || r->err == ERR_BUSY || r->err == ERR_NETWORK) {
		effect_put_off(&a->effect, RERUN_PAUSE_MS);
		return;
	}
	log_event(LOG_INFO, "rerun_replaced", LOG_S("dispatch", a->effect.row.dispatch_id),
	    LOG_I("pr", a->effect.row.number), LOG_I("rounds", (int64_t)r->n),
	    LOG_S("because", a->effect.why.text), LOG_S("error", r->why.text));
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
	a->call.github = (struct github_call){.done = on_rerun_answer};
	github_run_again(a->d->deps.github, &a->call.github, a->effect.row.target,
	    json_get_str(a->rerun, "run_id"),
	    json_get_bool(a->rerun, "is_whole", false) ? GITHUB_RERUN_ALL : GITHUB_RERUN_FAILED);
}
