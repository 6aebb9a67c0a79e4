#include "model/states.h"

#include <stddef.h>

#include "base/alloc.h"
#include "base/str.h"

static int find_name(const char *const *names, int n, const char *name)
{
	for (int i = 0; i < n; i++)
		if (name && str_eq(names[i], name))
			return i;
	return n;
}

static const char *const dispatch_names[] = {
#define X(e, name, unfinished) name,
    DISPATCH_STATES(X)
#undef X
};
const struct words dispatch_state_words = {dispatch_names, N_DISPATCH_STATES};

const char *dispatch_state_name(enum dispatch_state s)
{
	return dispatch_names[s];
}

enum dispatch_state dispatch_state_parse(const char *name)
{
	return (enum dispatch_state)find_name(dispatch_names, N_DISPATCH_STATES, name);
}

bool dispatch_is_unfinished(enum dispatch_state s)
{
	static const bool unfinished[] = {
#define X(e, name, is_unfinished) is_unfinished,
	    DISPATCH_STATES(X)
#undef X
	};

	return unfinished[s];
}

bool dispatch_is_called_off(enum dispatch_state s)
{
	return s == DISPATCH_SUPERSEDED || s == DISPATCH_CANCELLED;
}

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

const char *ended_how_name(enum ended_how how)
{
	return how == ENDED_OTHERWISE ? NULL : ended_names[how];
}

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

const struct words test_status_words = {test_names, N_TEST_STATUSES};

const char *test_status_name(enum test_status s)
{
	return test_names[s];
}

enum test_status test_status_parse(const char *name)
{
	return (enum test_status)find_name(test_names, N_TEST_STATUSES, name);
}

bool test_status_is_red(enum test_status s)
{
	return s == TEST_FAIL || s == TEST_ERROR || s == TEST_MISS;
}

enum test_status test_status_of_conclusion(const char *conclusion)
{
	static const struct {
		const char *conclusion;
		enum test_status status;
	} table[] = {{"success", TEST_PASS}, {"failure", TEST_FAIL}, {"skipped", TEST_SKIP},
	    {"neutral", TEST_DONE}};

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
const struct words job_status_words = {job_names, N_JOB_STATUSES};

const char *job_status_name(enum job_status s)
{
	return job_names[s];
}

enum job_status job_status_parse(const char *name)
{
	return (enum job_status)find_name(job_names, N_JOB_STATUSES, name);
}

static const char *const change_kind_names[] = {"pull_request", "push", "nightly", "experiment"};
const struct words change_kind_words = {change_kind_names, N_CHANGE_KINDS};

const char *change_kind_name(enum change_kind k)
{
	return change_kind_names[k];
}

enum change_kind change_kind_parse(const char *name)
{
	return (enum change_kind)find_name(change_kind_names, N_CHANGE_KINDS, name);
}

static const char *const change_state_names[] = {"open", "superseded", "closed"};

const struct words change_state_words = {change_state_names, N_CHANGE_STATES};

const char *change_state_name(enum change_state s)
{
	return change_state_names[s];
}

enum change_state change_state_parse(const char *name)
{
	return (enum change_state)find_name(change_state_names, N_CHANGE_STATES, name);
}
