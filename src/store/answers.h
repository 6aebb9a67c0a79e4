/* Outgoing answers to commands as outbox rows: each once. Inside a writer's transaction. */
#ifndef STORE_ANSWERS_H
#define STORE_ANSWERS_H

#include <jansson.h>

#include "store/commands.h"
#include "store/db.h"

struct answer_place {
	const char *repository;
	int64_t number, change_id; /* change 0: nothing is known of the PR */
	int64_t comment_id;
};
/* content: one of GitHub's ("eyes", "rocket", "confused", …). */
void reaction_put(struct db *d, const struct answer_place *at, const char *content, int64_t now_ms);
/* One reply that tells what came of the commands, as far as a reaction does not. Its text is
 * made when it is sent: the row's text is JSON, {"comment": ID, "commands": [{"kind", "word",
 * "suite", "test", "result", "hint"}, …]}. The reply that stress_answer() queues later (store/stress_command.h) has
 * "stress" instead of "commands". */
void reply_put(struct db *d, const struct answer_place *at, const struct asked_command *list,
    size_t n, int64_t now_ms);
/* One reply with what came of a `stress`: the row's text is JSON, {"comment": ID, "stress": facts}
 * (store/experiments.h). Takes facts over. */
void stress_reply_put(struct db *d, const struct answer_place *at, json_t *facts, int64_t now_ms);
/* Re-run of one attempt of a run, once. The row's text is JSON, {"run_id",
 * "accelerator", "is_whole"}. */
void rerun_put(
    struct db *d, const struct rerun_request *r, int64_t number, int64_t change_id, int64_t now_ms);

/* Forgets comments that were answered before before_ms, at most `limit`. True: there may be more. */
bool commands_drop(struct db *d, int64_t before_ms, int limit);

#endif
