/* The 72-hour rule: an accelerator is red on upstream's branch from its first red push to the next
 * green one. */
#ifndef STORE_RED_EPISODES_H
#define STORE_RED_EPISODES_H

#include "model/accelerator_state.h"
#include "store/db.h"
#include "store/requests.h"
#include "store/store.h"

/* A run of a push has been written (store/run_note.h): opens its accelerator's episode, goes on with
 * it or ends it. What counts is the branch's order, whatever order results come in: an episode is
 * open while the newest run that says anything is red, and begins with the oldest red one behind the
 * newest green one. Inside a writer's transaction. */
void red_episode_note(struct db *d, int64_t change_id, const char *accelerator, int64_t now_ms);

#define RED_REMIND_MS (INT64_C(48) * 3600 * 1000)

enum { RED_TESTS_MAX = 20 };

struct red_episode {
	int64_t id;
	char *accelerator, *repository, *ref;
	char *first_bad_sha, *last_good_sha; /* last_good NULL: never green on record */
	int64_t first_bad_ms, first_bad_change;
	char *issue_repository; /* NULL: told otherwise, or not yet */
	int64_t issue_number;   /* 0: none yet */
	int64_t told_ms, reminded_ms, overdue_ms, ended_ms, closed_ms; /* 0: not */
	char *ended_sha;      /* NULL: no test passed, or the commit is not on record any more */
	bool has_green_again; /* it ended because a newer run, or the same one again, is green */
	/* What was red at first_bad, "SUITE/TEST"; NULL-terminated, the first RED_TESTS_MAX. */
	char **tests;
	size_t n_tests; /* all of them */
	/* They are all deadlines that passed without a report, and so is what is red now. */
	bool is_silence;
};
struct get_red_episode {
	struct store_query q;
	int64_t id;
	struct red_episode *episode; /* out; red_episode_free(); NULL with ERR_NOT_FOUND */
};
int store_get_red_episode(struct store *s, struct get_red_episode *q) MUST_CHECK;
void red_episode_free(struct red_episode *e);

/* What was done about it. Members that are 0 stay as they are. */
struct note_red_episode {
	struct store_op op;
	int64_t id, issue_number, told_ms, reminded_ms, overdue_ms, closed_ms, now_ms;
	const char *issue_repository;
	const struct notice_request *notice; /* goes out with it, in one transaction; NULL: none */
};
int store_note_red_episode(struct store *s, struct note_red_episode *op) MUST_CHECK;

/* What was red there, "SUITE/TEST", the first RED_TESTS_MAX. strv_free(). Also for readers. */
char **red_tests(struct db *d, int64_t change_id, const char *accelerator);
/* Whether none of them is a test, but all are deadlines that passed without a report. Also for readers. */
bool red_tests_are_silence(struct db *d, int64_t change_id, const char *accelerator);
/* Since when it has been red on any branch; 0: it is not. Also for readers. */
int64_t red_since_ms(struct db *d, const char *accelerator);
/* Whether, of what is red now, nothing is but deadlines that passed without a report. Also for readers. */
bool red_is_silence(struct db *d, const char *accelerator);
/* Ended ones go, a piece at a time. True when there may be more. */
bool red_episodes_drop(struct db *d, int64_t before_ms, int limit);

#endif
