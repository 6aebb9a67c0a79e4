/* The 72-hour rule: an accelerator is red on upstream's branch from its first red push to the next green one.
 *
 * Thread: functions with a connection run on its thread (db/db.h); store_*() functions run on the loop. */
#pragma once

#include "db/db.h"
#include "db/store.h"
#include "model/accelerator_state.h"
#include "model/record.h"
#include "model/record_states.h"
#include "store/requests.h"

/* A run of a push was written (history/run_note.h). Opens, continues or ends its accelerator's episode. An episode is open
 * while the newest run with a result is red, and begins with the oldest red run after the newest green one. The order is
 * that of the branch and not that of the results. */
void red_episode_note(struct txn *d, int64_t change_id, const char *accelerator, int64_t now_ms);

/* The only function that changes the state: `ended` is written as ended_ms, `closed` as closed_ms. False: the episode is in
 * that state already, or may not enter it; nothing changes then. */
bool red_episode_enter(struct txn *d, int64_t id, enum red_episode_state to, int64_t at_ms);

#define RED_REMIND_MS (INT64_C(48) * 3600 * 1000)

enum { RED_TESTS_MAX = 20 };

#define RED_EPISODE_RECORD(F, S)                                                                                       \
	F(S, INT, id, NULL, "e.id", "")                                                                                \
	F(S, TEXT, accelerator, NULL, "e.accelerator", "")                                                             \
	F(S, TEXT, repository, NULL, "c.repository", "")                                                               \
	F(S, TEXT, ref, NULL, "e.ref", "")                                                                             \
	F(S, TEXT, first_bad_sha, NULL, "c.head_sha", "")                                                              \
	F(S, TEXT, last_good_sha, NULL, "e.last_good_sha", "NULL: never green on record.")                             \
	F(S, TIME, first_bad_ms, NULL, "e.first_bad_ms", "")                                                           \
	F(S, INT, first_bad_change, NULL, "e.first_bad_change", "")                                                    \
	F(S, TEXT, issue_repository, NULL, "e.issue_repository", "NULL: the vendor got another notice, or none yet.")  \
	F(S, ID, issue_number, NULL, "e.issue_number", "0: none yet.")                                                 \
	F(S, TIME, notified_ms, NULL, "e.told_ms", "")                                                                 \
	F(S, TIME, reminded_ms, NULL, "e.reminded_ms", "")                                                             \
	F(S, TIME, overdue_ms, NULL, "e.overdue_ms", "")                                                               \
	F(S, TIME, ended_ms, NULL, "e.ended_ms", "")                                                                   \
	F(S, TIME, closed_ms, NULL, "e.closed_ms", "")                                                                 \
	F(S, TEXT, ended_sha, NULL, "g.head_sha", "NULL: no test passed, or the commit is not on record any more.")    \
	F(S, BOOL, has_green_again, NULL, "e.ended_change IS NOT NULL",                                                \
	    "It ended because a newer run, or the same one again, is green.")
struct red_episode {
	RECORD_MEMBERS(RED_EPISODE_RECORD)
	/* The tests that were red in the first bad run, as "SUITE/TEST": NULL-terminated, the first RED_TESTS_MAX. */
	char **tests;
	size_t n_tests; /* all of them */
	/* All of them, and all that is red now, are deadlines that passed without a report. */
	bool is_silence;
};
struct get_red_episode {
	struct store_query q;
	int64_t id;
	struct red_episode *episode; /* out; red_episode_free(); NULL with ERR_NOT_FOUND */
};
int store_get_red_episode(struct store *s, struct get_red_episode *q) MUST_CHECK;
void red_episode_free(struct red_episode *e);

/* Records what was done about an episode. Members that are 0 stay as they are. */
struct note_red_episode {
	struct store_op op;
	int64_t id, issue_number, notified_ms, reminded_ms, overdue_ms, closed_ms, now_ms;
	const char *issue_repository;
	const struct notice_request *notice; /* sent with it, in one transaction; NULL: none */
};
int store_note_red_episode(struct store *s, struct note_red_episode *op) MUST_CHECK;

/* The red tests of a run, as "SUITE/TEST", the first RED_TESTS_MAX. strv_free(). Reader. */
char **red_tests(const struct view *d, int64_t change_id, const char *accelerator);
/* Whether none of them is a test, but all are deadlines that passed without a report. Reader. */
bool red_tests_are_silence(const struct view *d, int64_t change_id, const char *accelerator);
/* Since when the accelerator has been red on any branch; 0: it is not red. Reader. */
int64_t red_since_ms(const struct view *d, const char *accelerator);
/* Whether it is red now only because deadlines passed without a report. Reader. */
bool red_is_silence(const struct view *d, const char *accelerator);
/* Deletes episodes that ended before before_ms, at most `limit`. True: there may be more. */
bool red_episodes_drop(struct txn *d, int64_t before_ms, int limit);
