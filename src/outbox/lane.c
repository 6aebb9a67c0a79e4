#include "outbox/lane.h"

enum {
	SHARE_OF_LANE = 16, /* a sixteenth */
	ANSWERS_MS = 500,   /* a target that answered so recently soon has a place again */
};

void lane_init(struct lane *l, struct lane_limits limits)
{
	*l = (struct lane){.limits = limits};
	TAILQ_INIT(&l->targets);
}

static bool target_answers(const struct lane_target *t)
{
	return t->answered_mono_ms && clock_mono_ms() - t->answered_mono_ms < ANSWERS_MS;
}

bool lane_target_may_answer(const struct lane_target *t)
{
	return target_answers(t) || clock_mono_ms() - t->since_mono_ms < ANSWERS_MS;
}

static int lane_share(const struct lane *l)
{
	int share = l->limits.claimed / SHARE_OF_LANE;

	return share > l->limits.begun_per_target ? share : l->limits.begun_per_target + 1;
}

/* A target that answers gets more of the lane: it gives the places back soon, and a row that is put off is written twice. A
 * quarter of the lane stays for the others. */
static int lane_filled(const struct lane *l, bool is_for_answering)
{
	return is_for_answering ? l->limits.claimed / 4 * 3 : l->limits.claimed / 2;
}

int lane_room(const struct lane *l, const char **ret_past)
{
	int n_taken = l->n_claimed + l->n_reserved;
	int room = l->limits.claimed - n_taken, more = lane_filled(l, true) - n_taken;
	const struct lane_target *t;

	*ret_past = NULL;
	if (room <= 0 || room < l->limits.claimed / 4)
		return 0;
	TAILQ_FOREACH (t, &l->targets, link)
		if (t->n_claimed > lane_share(l) && target_answers(t))
			break;
	if (!t)
		return room;
	if (more > 0 && more >= l->limits.claimed / 8)
		return more;
	if (clock_mono_ms() - l->looked_past_mono_ms < LANE_LOOK_PAST_MS)
		return 0;
	*ret_past = t->address;
	return room;
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
		t->address = xstrdup(e->row.target ? e->row.target : "");
		t->since_mono_ms = clock_mono_ms();
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
	FREE_ALL(t->name, t->address, t);
}

bool lane_park(struct lane *l, struct effect *e)
{
	struct lane_target *t = e->target;

	if (l->n_claimed > lane_filled(l, target_answers(t)) && t->n_claimed > lane_share(l) &&
	    (l->n_begun >= l->limits.begun || t->n_begun >= l->limits.begun_per_target || !TAILQ_EMPTY(&t->parked)))
		return false;
	TAILQ_INSERT_TAIL(&t->parked, e, parked_link);
	return true;
}

void lane_unpark(struct effect *e) { TAILQ_REMOVE(&e->target->parked, e, parked_link); }

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
	lane_unpark(e);
	TAILQ_REMOVE(&l->targets, t, link);
	TAILQ_INSERT_TAIL(&l->targets, t, link);
	l->n_begun++;
	t->n_begun++;
	return e;
}

void lane_end(struct lane *l, struct effect *e, bool is_good)
{
	l->n_begun--;
	e->target->n_begun--;
	if (is_good)
		e->target->answered_mono_ms = clock_mono_ms();
}
