#include "model/states.h"

#include "model/record_states.h"

/* The words of an enum, and the functions of the header that convert them. */
#define DEFINE_WORDS(x, names, n)                                                                                      \
	const struct words x##_words = {names, n};                                                                     \
	const char *x##_name(enum x value) { return names[value]; }                                                    \
	enum x x##_parse(const char *name) { return (enum x)words_find(&x##_words, name); }

static const char *const dispatch_names[] = {
#define X(e, name, unfinished) name,
    DISPATCH_STATES(X)
#undef X
};
DEFINE_WORDS(dispatch_state, dispatch_names, N_DISPATCH_STATES)

bool dispatch_is_unfinished(enum dispatch_state s)
{
	static const bool unfinished[] = {
#define X(e, name, is_unfinished) is_unfinished,
	    DISPATCH_STATES(X)
#undef X
	};

	return unfinished[s];
}

bool dispatch_is_called_off(enum dispatch_state s) { return s == DISPATCH_SUPERSEDED || s == DISPATCH_CANCELLED; }

bool dispatch_may_enter(enum dispatch_state from, enum dispatch_state to)
{
	if (from == to)
		return true;
	if (to == DISPATCH_QUEUED && (from == DISPATCH_ACKNOWLEDGED || from == DISPATCH_RUNNING))
		return true;
	if (dispatch_is_unfinished(from))
		return !dispatch_is_unfinished(to) || to > from;
	if (from == DISPATCH_DONE || from == DISPATCH_EXPIRED || from == DISPATCH_FAILED)
		return to == DISPATCH_RUNNING || to == DISPATCH_DONE;
	return false;
}

static const char *const ended_names[N_ENDED_HOWS] = {[ENDED_OTHERWISE] = "",
#define X(e, name, text) [ENDED_##e] = (name),
    PERSON_ENDS(X)
#undef X
};
const struct words ended_how_words = {ended_names, N_ENDED_HOWS};

const char *ended_how_name(enum ended_how how) { return how == ENDED_OTHERWISE ? NULL : ended_names[how]; }

enum ended_how ended_how_parse(const char *name)
{
	for (int i = ENDED_OTHERWISE + 1; name && i < N_ENDED_HOWS; i++)
		if (str_eq(ended_how_name((enum ended_how)i), name))
			return (enum ended_how)i;
	return ENDED_OTHERWISE;
}

char *ended_how_text(enum ended_how how, const char *login)
{
	static const char *const texts[N_ENDED_HOWS] = {
#define X(e, name, text) [ENDED_##e] = (text),
	    PERSON_ENDS(X)
#undef X
	};

	return how == ENDED_OTHERWISE ? NULL : xasprintf("%s%s", texts[how], login);
}

static const char *const test_names[] = {
#define X(e) #e,
    TEST_STATUSES(X)
#undef X
};

DEFINE_WORDS(test_status, test_names, N_TEST_STATUSES)

bool test_status_is_red(enum test_status s) { return s == TEST_FAIL || s == TEST_ERROR || s == TEST_MISS; }

enum test_status test_status_of_conclusion(const char *conclusion)
{
	static const struct {
		const char *conclusion;
		enum test_status status;
	} table[] = {{"success", TEST_PASS}, {"failure", TEST_FAIL}, {"skipped", TEST_SKIP}, {"neutral", TEST_DONE}};

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (conclusion && str_eq(conclusion, table[i].conclusion))
			return table[i].status;
	return TEST_MISS;
}

static const char *const job_names[] = {
#define X(e, name) name,
    JOB_STATUSES(X)
#undef X
};
DEFINE_WORDS(job_status, job_names, N_JOB_STATUSES)

static const char *const change_kind_names[] = {"pull_request", "push", "nightly", "experiment"};
DEFINE_WORDS(change_kind, change_kind_names, N_CHANGE_KINDS)

static const char *const change_state_names[] = {"open", "superseded", "closed"};

DEFINE_WORDS(change_state, change_state_names, N_CHANGE_STATES)

/* ---- rows that are not dispatches: record_states.h ---- */

#define NAME(e, name, next) name,
#define NEXT(e, name, next) next,
/* Of one kind of row: its names, the steps from each state, and the functions of the header. */
#define DEFINE_STATES(row, x, N, STATES)                                                                               \
	static const char *const x##_names[] = {STATES(NAME)};                                                         \
	const struct words x##_words = {x##_names, N};                                                                 \
	const char *x##_name(enum x s) { return x##_names[s]; }                                                        \
	DEFINE_STEPS(row, x, STATES)
#define DEFINE_STEPS(row, x, STATES)                                                                                   \
	bool row##_may_enter(enum x from, enum x to)                                                                   \
	{                                                                                                              \
		static const unsigned next[] = {STATES(NEXT)};                                                         \
                                                                                                                       \
		return from == to || next[from] & 1u << to;                                                            \
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
