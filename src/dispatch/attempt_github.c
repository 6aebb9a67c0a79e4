/* repository_dispatch: to a vendor's repository or the infra repository. */
#include <strings.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "dispatch/attempt.h"
#include "model/backoff.h"

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
	if (!is_repository_name(a->row.target))
		return "its target is no repository";
	/* `closed` goes out all the same: it ends what was started there. */
	if (a->row.kind == OUTBOX_GITHUB_DISPATCH && !is_registered(a->config, a->row.target))
		return "no longer registered";
	return NULL;
}

int attempt_github_text(struct attempt *a, struct payload *p)
{
	char *callback_url = xasprintf("%s/github/callback", a->config->public_url);
	char *change_url = attempt_change_url(a);
	struct outpost_block block = {
	    .dispatch_id = a->row.dispatch_id,
	    .action = a->row.original_action,
	    .accelerators = (const char *const *)a->row.accelerators,
	    .callback_url = callback_url,
	    .change_url = change_url,
	    .sources = a->row.sources,
	    .n_sources = a->row.n_sources,
	    .experiment = a->row.experiment,
	};
	char *payload;
	size_t n;
	int rc = client_payload_text(payload_content(p), &block, true, &payload, &n);

	free(callback_url);
	free(change_url);
	if (rc)
		return rc;
	/* event_type is one of a few words of this program's own. */
	a->text =
	    xasprintf("{\"event_type\":\"%s\",\"client_payload\":%s}", a->row.event_type, payload);
	a->text_bytes = strlen(a->text);
	free(payload);
	return 0;
}

void attempt_github_failed(struct attempt *a, const struct github_result *r)
{
	error_set(&a->why, r->err, "%s", *r->why.text ? r->why.text : err_text(r->err));
	if (r->err == ERR_CANCELLED || (r->err == ERR_BUSY && !r->was_sent)) {
		/* Nothing was tried, or we ourselves cut it off: no reason to count it. */
		int64_t wait_ms = r->err == ERR_CANCELLED ? 0 : BACKOFF_FIRST_MS;

		a->next_ms =
		    clock_wall_ms() + (wait_ms > r->retry_after_ms ? wait_ms : r->retry_after_ms);
		if (attempt_is_given_up(a))
			attempt_over(a, OUTBOX_DEAD);
		else
			attempt_over(a, r->was_sent ? OUTBOX_RETRY : OUTBOX_NOT_YET);
	} else if (r->is_final) {
		attempt_over(a, OUTBOX_DEAD);
	} else {
		attempt_retry(a, r->retry_after_ms);
	}
}

static void on_answer(struct github_call *call)
{
	struct attempt *a = CONTAINER_OF(call, struct attempt, call.github);
	struct github_result r = call->result;

	a->is_on_wire = false;
	github_call_release(call);
	if (r.err)
		attempt_github_failed(a, &r);
	else
		attempt_over(a, OUTBOX_OK);
}

void attempt_github_send(struct attempt *a)
{
	a->call.github = (struct github_call){.done = on_answer};
	github_dispatch(a->d->deps.github, &a->call.github, a->row.target, a->text, a->text_bytes);
}
