#include "publish/red_step.h"

enum red_step red_step_next(
    const struct red_episode *e, bool may_be_told, int64_t now_ms, int64_t *ret_next_ms)
{
	int64_t remind_ms = e->first_bad_ms + RED_REMIND_MS;
	int64_t overdue_ms = e->first_bad_ms + RED_OVERDUE_MS;

	*ret_next_ms = 0;
	if (e->closed_ms)
		return RED_OVER;
	if (e->ended_ms && !e->told_ms)
		return may_be_told ? RED_LOOK : RED_OVER;
	if (e->ended_ms)
		return RED_CLOSE;
	if (!e->told_ms)
		return RED_TELL;
	if (e->overdue_ms) {
		/* its end wakes it */
		return RED_OVER;
	}
	if (now_ms >= overdue_ms)
		return RED_OVERDUE;
	if (!e->reminded_ms && e->told_ms < remind_ms) {
		if (now_ms >= remind_ms)
			return RED_REMIND;
		*ret_next_ms = remind_ms;
	} else {
		*ret_next_ms = overdue_ms;
	}
	return RED_WAIT;
}

const char *red_step_name(enum red_step step)
{
	switch (step) {
	case RED_TELL:
	case RED_LOOK:
		return "red";
	case RED_REMIND:
		return "reminder";
	case RED_OVERDUE:
		return "overdue";
	case RED_CLOSE:
		return "green";
	case RED_WAIT:
	case RED_OVER:
		break;
	}
	return NULL;
}
