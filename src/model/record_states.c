#include "model/record_states.h"

#define NAME(e, name, next) name,
#define NEXT(e, name, next) next,
/* Of one kind of row: its names, the steps from each state, and the functions of the header. */
#define DEFINE_STATES(row, x, N, STATES)                                                           \
	static const char *const x##_names[] = {STATES(NAME)};                                     \
	const struct words x##_words = {x##_names, N};                                             \
	const char *x##_name(enum x s)                                                             \
	{                                                                                          \
		return x##_names[s];                                                               \
	}                                                                                          \
	DEFINE_STEPS(row, x, STATES)
#define DEFINE_STEPS(row, x, STATES)                                                               \
	bool row##_may_enter(enum x from, enum x to)                                               \
	{                                                                                          \
		static const unsigned next[] = {STATES(NEXT)};                                     \
                                                                                                   \
		return from == to || next[from] & 1u << to;                                        \
	}

DEFINE_STATES(outbox, outbox_state, N_OUTBOX_STATES, OUTBOX_STATES)
DEFINE_STATES(delivery, delivery_state, N_DELIVERY_STATES, DELIVERY_STATES)
DEFINE_STATES(schedule_run, schedule_run_state, N_SCHEDULE_RUN_STATES, SCHEDULE_RUN_STATES)
DEFINE_STATES(lease, lease_state, N_LEASE_STATES, LEASE_STATES)
DEFINE_STATES(experiment, experiment_state, N_EXPERIMENT_STATES, EXPERIMENT_STATES)
DEFINE_STEPS(red_episode, red_episode_state, RED_EPISODE_STATES)

enum experiment_state experiment_state_parse(const char *name)
{
	return (enum experiment_state)words_find(&experiment_state_words, name);
}
