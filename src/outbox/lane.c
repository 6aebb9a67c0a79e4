#include "outbox/lane.h"

enum { SHARE_OF_LANE = 16 }; /* a sixteenth */

void lane_init(struct lane *l) { TAILQ_INIT(&l->targets); }

int lane_room(const struct lane *l)
{
	int room = l->limits.claimed - l->n_claimed;

	return room > 0 && room >= l->limits.claimed / 4 ? room : 0;
}

void lane_add(struct lane *l, struct effect *e, char *target_name)
{
	struct lane_target *t;

	TAILQ_FOREACH (t, &l->targets, link)
		if (str_eq(t->name, target_name))
			break;
	if (t) {
		free(target_name);
	} else {
		t = xcalloc(1, sizeof(*t));
		t->name = target_name;
		TAILQ_INIT(&t->parked);
		TAILQ_INSERT_TAIL(&l->targets, t, link);
	}
	e->target = t;
	t->n_claimed++;
	l->n_claimed++;
}

void lane_remove(struct lane *l, struct effect *e)
{
	struct lane_target *t = e->target;

	l->n_claimed--;
	if (--t->n_claimed > 0)
		return;
	TAILQ_REMOVE(&l->targets, t, link);
	FREE_ALL(t->name, t);
}

bool lane_park(struct lane *l, struct effect *e)
{
	int share = l->limits.claimed / SHARE_OF_LANE;
	struct lane_target *t = e->target;

	if (share < l->limits.begun_per_target + 1)
		share = l->limits.begun_per_target + 1;
	if (l->n_claimed > l->limits.claimed / 2 && t->n_claimed > share &&
	    (l->n_begun >= l->limits.begun || t->n_begun >= l->limits.begun_per_target || !TAILQ_EMPTY(&t->parked)))
		return false;
	TAILQ_INSERT_TAIL(&t->parked, e, parked_link);
	return true;
}

struct effect *lane_next(struct lane *l)
{
	struct lane_target *t;

	if (l->n_begun >= l->limits.begun)
		return NULL;
	TAILQ_FOREACH (t, &l->targets, link)
		if (!TAILQ_EMPTY(&t->parked) && t->n_begun < l->limits.begun_per_target)
			break;
	if (!t)
		return NULL;
	struct effect *e = TAILQ_FIRST(&t->parked);
	TAILQ_REMOVE(&t->parked, e, parked_link);
	TAILQ_REMOVE(&l->targets, t, link);
	TAILQ_INSERT_TAIL(&l->targets, t, link);
	l->n_begun++;
	t->n_begun++;
	return e;
}

struct effect *lane_unpark_any(struct lane *l)
{
	struct lane_target *t;
	struct effect *e;

	TAILQ_FOREACH (t, &l->targets, link) {
		e = TAILQ_FIRST(&t->parked);
		if (!e)
			continue;
		TAILQ_REMOVE(&t->parked, e, parked_link);
		return e;
	}
	return NULL;
}

void lane_leave(struct lane *l, struct effect *e)
{
	l->n_begun--;
	e->target->n_begun--;
}
