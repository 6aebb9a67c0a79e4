/* The comment command `stress`: one test many times, on the head and on its merge base, and the reply with the results.
 *
 * Thread: the writer, inside a transaction. Ownership: all arguments are borrowed. */
#pragma once

#include "db/db.h"
#include "model/event.h"
#include "store/commands.h"

/* The most stress commands at a time: of one change, and of all. */
enum { STRESS_OF_A_CHANGE_MAX = 2, STRESS_MAX = 10 };

/* Plans the runs of c->command for the change at `at`, or sets c->result and c->hint to the reason why not. The author of
 * the command is a member, and the pull request is open. */
void stress_command(struct txn *d, const struct answer_place *at, struct asked_command *c, int64_t now_ms);

struct stress {
	int64_t command_id; /* the comment with the command */
	int64_t change_id;  /* of a pull request, open */
	const char *accelerator;
	const int64_t *tests; /* of one name: one for each dtype */
	size_t n_tests;
	int n_rounds; /* 1…STRESS_ROUNDS_MAX */
	int64_t now_ms;
};
/* Plans the rounds. Each begins when the one before it has ended. False: no runner of the accelerator accepts experiments for
 * this change, because it has `reruns: none`, or because its dispatch is held, was cancelled or has not ended.
 *
 * When no experiment of the comment is open any more, it queues one reply: an outbox row of kind REPLY whose text is JSON,
 * {"comment": ID, "stress": {"test": "suite/test", "rounds": N, "accelerators": [{"accelerator": NAME, "head": {"sha",
 * "passed", "failed", "lost"}, "base": {the same} (absent: the merge base is not known)}, …]}}. "lost" counts the runs
 * without a result of the test, and those that did not end. */
bool stress_plan(struct txn *d, const struct stress *s);
