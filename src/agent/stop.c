/* SIGTERM takes no more work and lets the job in hand finish within `drain`; then, or at a second
 * one, it is handed back; a third ends at once. Whatever is not sent by then the journal keeps. */
#include "agent/agent_internal.h"
#include "steps/steps.h"

enum {
	HAND_BACK_WITHIN_MS = STEPS_KILL_AFTER_MS + 10 * 1000,
	RETURN_TRIES = 3,
};

static void hand_back(struct agent *a, const char *why)
{
	struct job *next;

	a->stopping = HANDING_BACK;
	timer_start(a->stop_timer, HAND_BACK_WITHIN_MS);
	for (struct job *j = a->jobs; j; j = next) {
		next = j->next;
		job_hand_back(j, why);
	}
}

void stop_on_signal(struct agent *a)
{
	const struct job *busy = agent_busy(a);

	switch (a->stopping) {
	case NOT_STOPPING:
		log_event(LOG_INFO, "stopping",
		    LOG_S("dispatch", busy ? busy->offer.dispatch_id : ""),
		    LOG_I("within_s", a->c->drain_ms / 1000));
		a->stopping = DRAINING;
		timer_start(a->stop_timer, a->c->drain_ms);
		claim_stop(a);
		break;
	case DRAINING:
		hand_back(a, "stopped a second time");
		break;
	case HANDING_BACK:
	case ENDING:
	default:
		a->stopping = ENDING;
	}
	agent_next(a);
}

void stop_on_timer(struct timer *t)
{
	struct agent *a = timer_owner(t);

	if (a->stopping == DRAINING)
		hand_back(a, "not finished within `drain`");
	else
		a->stopping = ENDING;
	agent_next(a);
}

bool stop_is_ready(const struct agent *a)
{
	if (a->stopping == ENDING)
		return true;
	if (a->stopping == NOT_STOPPING || !claim_is_idle(a) || agent_busy(a))
		return false;
	for (const struct job *j = a->jobs; j; j = j->next)
		if (j->upload.call.is_active ||
		    (j->is_returning && j->upload.n_failures < RETURN_TRIES))
			return false;
	return true;
}
