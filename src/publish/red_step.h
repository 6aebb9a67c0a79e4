/* What an episode calls for now: told once, reminded once after 48 h, marked overdue after 72 h,
 * closed when it is green. Pure. Private to publish/. */
#ifndef PUBLISH_RED_STEP_H
#define PUBLISH_RED_STEP_H

#include "store/red_episodes.h"

enum red_step {
	RED_WAIT, /* until *ret_next_ms */
	RED_TELL,
	RED_LOOK, /* for an issue that may have been made, of one that has ended since */
	RED_REMIND,
	RED_OVERDUE,
	RED_CLOSE,
	RED_OVER, /* nothing is left to do */
};

/* What was missed is not made up for: told after 48 h it needs no reminder as well.
 * may_be_told: an issue was asked for, and nobody wrote down what came of it. */
enum red_step red_step_next(
    const struct red_episode *e, bool may_be_told, int64_t now_ms, int64_t *ret_next_ms);
/* "red", "reminder", "overdue", "green": as notices and markers call it; NULL: none. */
const char *red_step_name(enum red_step step);

#endif
