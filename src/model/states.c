#include "model/states.h"

#include "model/record_states.h"

#define TEST_NAME(e) #e,
WORDS_DEFINE(dispatch_state, N_DISPATCH_STATES, DISPATCH_STATES(WORD_NAME))
WORDS_DEFINE(test_status, N_TEST_STATUSES, TEST_STATUSES(TEST_NAME))
WORDS_DEFINE(job_status, N_JOB_STATUSES, JOB_STATUSES(WORD_NAME))
WORDS_DEFINE(change_kind, N_CHANGE_KINDS, "pull_request", "push", "nightly", "experiment")
WORDS_DEFINE(change_state, N_CHANGE_STATES, "open", "superseded", "closed")

bool dispatch_is_unfinished(enum dispatch_state s)
{
#define IS_UNFINISHED(e, name, is_unfinished) is_unfinished,
	static const bool unfinished[] = {DISPATCH_STATES(IS_UNFINISHED)};

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

static const char *const ended_names[N_ENDED_HOWS] = {"", PERSON_ENDS(WORD_NAME)};
const struct words ended_how_words = {ended_names, N_ENDED_HOWS};

const char *ended_how_name(enum ended_how how) { return how == ENDED_OTHERWISE ? NULL : ended_names[how]; }

char *ended_how_text(enum ended_how how, const char *login)
{
#define ENDED_TEXT(e, name, text) text,
	static const char *const texts[N_ENDED_HOWS] = {NULL, PERSON_ENDS(ENDED_TEXT)};

	return how == ENDED_OTHERWISE ? NULL : xasprintf("%s%s", texts[how], login);
}

bool test_status_is_red(enum test_status s) { return s == TEST_FAIL || s == TEST_ERROR || s == TEST_MISS; }

enum test_status test_status_of_conclusion(const char *conclusion)
{
	static const struct {
		const char *conclusion;
		enum test_status status;
	} table[] = {{"success", TEST_PASS}, {"failure", TEST_FAIL}, {"skipped", TEST_SKIP}, {"neutral", TEST_DONE}};

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (str_eq(conclusion, table[i].conclusion))
			return table[i].status;
	return TEST_MISS;
}

/* ---- rows that are not dispatches: record_states.h ---- */

#define STATE_NEXT(e, name, next) next,
/* Of one kind of row: its words, and the legal steps from each state. */
#define DEFINE_STATES(row, x, N, STATES)                                                                               \
	WORDS_DEFINE(x, N, STATES(WORD_NAME))                                                                          \
	DEFINE_STEPS(row, x, STATES)
#define DEFINE_STEPS(row, x, STATES)                                                                                   \
	bool row##_may_enter(enum x from, enum x to)                                                                   \
	{                                                                                                              \
		static const unsigned next[] = {STATES(STATE_NEXT)};                                                   \
                                                                                                                       \
		return from == to || next[from] & 1u << to;                                                            \
	}

DEFINE_STATES(outbox, outbox_state, N_OUTBOX_STATES, OUTBOX_STATES)
DEFINE_STATES(delivery, delivery_state, N_DELIVERY_STATES, DELIVERY_STATES)
DEFINE_STATES(schedule_run, schedule_run_state, N_SCHEDULE_RUN_STATES, SCHEDULE_RUN_STATES)
DEFINE_STATES(lease, lease_state, N_LEASE_STATES, LEASE_STATES)
DEFINE_STATES(experiment, experiment_state, N_EXPERIMENT_STATES, EXPERIMENT_STATES)
DEFINE_STEPS(red_episode, red_episode_state, RED_EPISODE_STATES)
