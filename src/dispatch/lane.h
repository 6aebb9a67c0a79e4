/* One lane of the sender: its room, and who may use how much of it. Pure bookkeeping.
 * Private to the sender. Thread: loop. */
#ifndef DISPATCH_LANE_H
#define DISPATCH_LANE_H

#include <stdbool.h>

struct attempt;

/* Who is at the other end of some attempts in hand. */
struct target {
	struct target *next;
	char *name;
	int n_in_hand, n_on_wire;
	struct attempt *parked, **parked_end; /* wait for a place on the wire, in order */
};

struct lane_limits {
	int in_hand;     /* claimed rows */
	int wire;        /* of them begun */
	int target_wire; /* of them begun to one target */
};

struct lane {
	struct lane_limits limits;
	int n_in_hand, n_on_wire;
	struct attempt *first;  /* all in hand */
	struct target *targets; /* those with something in hand; who was served goes last */
};

/* An attempt comes in hand, of the target of that name (taken, free()). */
void lane_add(struct lane *l, struct attempt *a, char *target_name);
void lane_remove(struct lane *l, struct attempt *a);
/* There is a place on the wire for it; takes the place. */
bool lane_enter_wire(struct lane *l, struct attempt *a);
void lane_leave_wire(struct lane *l, struct attempt *a);
/* Lets it wait in hand for a place; false when its target has its share of the room. While
 * more than half of the room is free a target may use what it likes. */
bool lane_park(struct lane *l, struct attempt *a);
/* The next parked one that has a place on the wire now (taken), or NULL. Targets take turns. */
struct attempt *lane_next(struct lane *l);
/* Any parked one, taken off its queue, or NULL. */
struct attempt *lane_unpark_any(struct lane *l);

#endif
