#include "store/answers.h"

#include <jansson.h>

#include "base/alloc.h"
#include "base/json.h"
#include "store/key.h"
#include "store/outbox.h"

struct effect {
	enum outbox_kind kind;
	const char *key, *target;
	int64_t number, change_id;
	const char *dispatch_id, *runner, *accelerator;
	json_t *text; /* taken over */
};

/* Each has a lane of its own: nothing waits for an answer. */
static void put(struct db *d, const struct effect *e, int64_t now_ms)
{
	char *text = json_text(e->text);

	db_exec(d,
	    "INSERT INTO outbox (kind, key, lane, target, target_key, number, change_id,"
	    " dispatch_id, runner, delivery_guid, event_type, sent_action, original_action, state,"
	    " n_attempts, first_ms, next_ms, generation, is_uncertain, is_dropped, text,"
	    " accelerator) VALUES (?1, ?2, ?2, ?3, ?4, ?5, ?6, ?7, ?8, '', '', '', '', 'due', 0,"
	    " ?9, ?9, 1, 0, 0, ?10, ?11) ON CONFLICT (key) DO NOTHING",
	    V_TEXT(outbox_kind_name(e->kind)), V_TEXT(e->key), V_TEXT(e->target),
	    V_TEXT(repository_key(e->target).text), V_INT(e->number), V_INT_OR_NULL(e->change_id),
	    V_TEXT(e->dispatch_id ? e->dispatch_id : ""), V_TEXT(e->runner ? e->runner : ""),
	    V_INT(now_ms), V_TEXT(text), V_TEXT(e->accelerator));
	db_tell(d, STORE_OUTBOX);
	json_decref(e->text);
	free(text);
}

void reaction_put(struct db *d, const struct answer_place *at, const char *content, int64_t now_ms)
{
	char *key = xasprintf("reaction:%lld", (long long)at->comment_id);
	json_t *text = json_object();

	json_set_int(text, "comment", at->comment_id);
	json_set_str(text, "content", content);
	put(d,
	    &(struct effect){.kind = OUTBOX_REACTION,
		.key = key,
		.target = at->repository,
		.number = at->number,
		.change_id = at->change_id,
		.text = text},
	    now_ms);
	free(key);
}

static json_t *command_json(const struct asked_command *c)
{
	json_t *o = json_object();

	json_set_str(o, "kind", command_kind_name(c->command.kind));
	json_set_str(o, "word", c->command.word);
	json_set_str(o, "suite", c->command.suite);
	json_set_str(o, "test", c->command.test);
	json_set_str(o, "result", command_result_name(c->result));
	json_set_str(o, "hint", c->hint);
	return o;
}

void reply_put(struct db *d, const struct answer_place *at, const struct asked_command *list,
    size_t n, int64_t now_ms)
{
	char *key = xasprintf("reply:%lld", (long long)at->comment_id);
	json_t *text = json_object(), *commands = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(commands, command_json(&list[i]));
	json_set_int(text, "comment", at->comment_id);
	json_object_set_new(text, "commands", commands);
	put(d,
	    &(struct effect){.kind = OUTBOX_REPLY,
		.key = key,
		.target = at->repository,
		.number = at->number,
		.change_id = at->change_id,
		.text = text},
	    now_ms);
	free(key);
}

void stress_reply_put(struct db *d, const struct answer_place *at, json_t *facts, int64_t now_ms)
{
	char *key = xasprintf("stress:%lld", (long long)at->comment_id);
	json_t *text = json_object();

	json_set_int(text, "comment", at->comment_id);
	json_object_set_new(text, "stress", facts);
	put(d,
	    &(struct effect){.kind = OUTBOX_REPLY,
		.key = key,
		.target = at->repository,
		.number = at->number,
		.change_id = at->change_id,
		.text = text},
	    now_ms);
	free(key);
}

void rerun_put(
    struct db *d, const struct rerun_request *r, int64_t number, int64_t change_id, int64_t now_ms)
{
	char *key = xasprintf("rerun:%s:%s:%lld:%s", repository_key(r->repository).text, r->run_id,
	    (long long)r->run_attempt, r->is_whole ? "all" : "failed");
	json_t *text = json_object();

	json_set_str(text, "run_id", r->run_id);
	json_set_str(text, "accelerator", r->accelerator);
	json_object_set_new(text, "is_whole", json_boolean(r->is_whole));
	put(d,
	    &(struct effect){.kind = OUTBOX_RERUN,
		.key = key,
		.target = r->repository,
		.number = number,
		.change_id = change_id,
		.dispatch_id = r->dispatch_id,
		.runner = r->runner,
		.accelerator = r->accelerator,
		.text = text},
	    now_ms);
	free(key);
}

bool commands_drop(struct db *d, int64_t before_ms, int limit)
{
	/* Most answers go with their change; of what was said on an unknown PR nothing else is left. */
	db_exec(d,
	    "DELETE FROM outbox WHERE state IN ('sent', 'dead') AND key IN"
	    " (SELECT kind || ':' || comment_id FROM (SELECT 'reaction' AS kind UNION SELECT "
	    "'reply' UNION SELECT 'stress'),"
	    "  (SELECT comment_id FROM command WHERE at_ms < ?1 ORDER BY at_ms LIMIT ?2))",
	    V_INT(before_ms), V_INT(limit));
	return db_exec(d,
		   "DELETE FROM command WHERE comment_id IN"
		   " (SELECT comment_id FROM command WHERE at_ms < ?1 ORDER BY at_ms LIMIT ?2)",
		   V_INT(before_ms), V_INT(limit)) == limit;
}
