#include "dispatch/lane.h"

#include "base/alloc.h"
#include "base/str.h"
#include "dispatch/attempt.h"

enum { SHARE_OF_ROOM = 16 }; /* a sixteenth, when room is short */

void lane_add(struct lane *l, struct attempt *a, char *target_name)
{
	struct target **link = &l->targets;

	while (*link && !str_eq((*link)->name, target_name))
		link = &(*link)->next;
	if (*link) {
		free(target_name);
	} else {
		*link = xcalloc(1, sizeof(**link));
		(*link)->name = target_name;
		(*link)->parked_end = &(*link)->parked;
	}
	a->target = *link;
	a->target->n_in_hand++;
	a->next = l->first;
	l->first = a;
	l->n_in_hand++;
}

void lane_remove(struct lane *l, struct attempt *a)
{
	struct attempt **link = &l->first;
	struct target **of = &l->targets, *t = a->target;

	while (*link != a)
		link = &(*link)->next;
	*link = a->next;
	l->n_in_hand--;
	if (--t->n_in_hand > 0)
		return;
	while (*of != t)
		of = &(*of)->next;
	*of = t->next;
	free(t->name);
	free(t);
}

static bool has_place(const struct lane *l, const struct target *t)
{
	return l->n_on_wire < l->limits.wire && t->n_on_wire < l->limits.target_wire;
}

bool lane_enter_wire(struct lane *l, struct attempt *a)
{
	if (a->target->parked || !has_place(l, a->target))
		return false;
	l->n_on_wire++;
	a->target->n_on_wire++;
	return true;
}

void lane_leave_wire(struct lane *l, struct attempt *a)
{
	l->n_on_wire--;
	a->target->n_on_wire--;
}

bool lane_park(struct lane *l, struct attempt *a)
{
	int share = l->limits.in_hand / SHARE_OF_ROOM;

	if (share < l->limits.target_wire + 1)
		share = l->limits.target_wire + 1;
	if (l->n_in_hand > l->limits.in_hand / 2 && a->target->n_in_hand > share)
		return false;
	a->next_parked = NULL;
	*a->target->parked_end = a;
	a->target->parked_end = &a->next_parked;
	return true;
}

static struct attempt *unpark(struct target *t)
{
	struct attempt *a = t->parked;

	t->parked = a->next_parked;
	if (!t->parked)
		t->parked_end = &t->parked;
	return a;
}

static void put_last(struct target **link)
{
	struct target *t = *link, **end = link;

	*link = t->next;
	t->next = NULL;
	while (*end)
		end = &(*end)->next;
	*end = t;
}

struct attempt *lane_next(struct lane *l)
{
	for (struct target **link = &l->targets; *link; link = &(*link)->next) {
		struct target *t = *link;
		struct attempt *a;

		if (!t->parked || !has_place(l, t))
			continue;
		a = unpark(t);
		l->n_on_wire++;
		t->n_on_wire++;
		put_last(link);
		return a;
	}
	return NULL;
}

struct attempt *lane_unpark_any(struct lane *l)
{
	for (struct target *t = l->targets; t; t = t->next)
		if (t->parked)
			return unpark(t);
	return NULL;
}
