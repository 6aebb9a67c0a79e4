#include "model/record_states.h"

#define NAME(e, name, next) name,
#define NEXT(e, name, next) next,
/* Of one kind of row: its names, the steps from each state, and the functions of the header. */
#define DEFINE_STATES(x, N, STATES)                                                                \
	static const char *const x##_names[] = {STATES(NAME)};                                     \
	static const unsigned x##_next[] = {STATES(NEXT)};                                         \
	const struct words x##_words = {x##_names, N};                                             \
	const char *x##_name(enum x s)                                                             \
	{                                                                                          \
		return x##_names[s];                                                               \
	}

DEFINE_STATES(outbox_state, N_OUTBOX_STATES, OUTBOX_STATES)
DEFINE_STATES(delivery_state, N_DELIVERY_STATES, DELIVERY_STATES)
DEFINE_STATES(schedule_run_state, N_SCHEDULE_RUN_STATES, SCHEDULE_RUN_STATES)
DEFINE_STATES(lease_state, N_LEASE_STATES, LEASE_STATES)
DEFINE_STATES(experiment_state, N_EXPERIMENT_STATES, EXPERIMENT_STATES)
static const unsigned red_episode_next[] = {RED_EPISODE_STATES(NEXT)};

static bool state_may_enter(const unsigned *next, int from, int to)
{
	return from == to || next[from] & 1u << to;
}

bool outbox_may_enter(enum outbox_state from, enum outbox_state to)
{
	return state_may_enter(outbox_state_next, from, to);
}

bool delivery_may_enter(enum delivery_state from, enum delivery_state to)
{
	return state_may_enter(delivery_state_next, from, to);
}

bool schedule_run_may_enter(enum schedule_run_state from, enum schedule_run_state to)
{
	return state_may_enter(schedule_run_state_next, from, to);
}

bool lease_may_enter(enum lease_state from, enum lease_state to)
{
	return state_may_enter(lease_state_next, from, to);
}

bool experiment_may_enter(enum experiment_state from, enum experiment_state to)
{
	return state_may_enter(experiment_state_next, from, to);
}

bool red_episode_may_enter(enum red_episode_state from, enum red_episode_state to)
{
	return state_may_enter(red_episode_next, from, to);
}

enum experiment_state experiment_state_parse(const char *name)
{
	return (enum experiment_state)words_find(&experiment_state_words, name);
}
