/* Commands on a PR of store_rig.h's upstream, one comment each. */
#pragma once

#include "store/commands.h"
#include "store/plans.h"
#include "store/published.h"
#include "store_rig.h"

struct rig_comment {
	enum command_kind kind;
	const char *word, *suite, *sha; /* NULL: none */
	int64_t number;                 /* 0: 1 */
	int64_t at_ms;
	int64_t id; /* 0: a new one */
	enum speaker speaker;
	const char *login;       /* NULL: alice */
	const struct plan *plan; /* retest */
	int64_t delivery_id;
};
struct rig_answer {
	enum commands_outcome outcome;
	enum command_result result;
	int n_released, n_declined, n_cancelled, n_started;
	const char *ignored;
};

static int64_t rig_comment_id = 1000;

static inline struct rig_answer rig_say(const struct rig_comment *c)
{
	struct asked_command list[1] = {{.command.kind = c->kind, .result = COMMAND_DONE}};
	struct spoken_comment spoken = {.id = c->id ? c->id : ++rig_comment_id,
	    .created_ms = c->at_ms,
	    .login = c->login ? c->login : "alice",
	    .words = command_kind_name(c->kind),
	    .speaker = c->speaker};
	struct run_commands op = {.repository = UPSTREAM,
	    .number = c->number ? c->number : 1,
	    .delivery_id = c->delivery_id,
	    .spoken = &spoken,
	    .list = list,
	    .n = 1,
	    .now_ms = c->at_ms};

	snprintf(list[0].command.word, COMMAND_WORD_BYTES, "%s", c->word ? c->word : "");
	snprintf(list[0].command.suite, COMMAND_WORD_BYTES, "%s", c->suite ? c->suite : "");
	snprintf(list[0].command.sha, sizeof(list[0].command.sha), "%s", c->sha ? c->sha : "");
	op.retest.plan = c->plan;
	op.retest.guid = "7f3c1c1e-0000-4000-8000-000000000001";
	op.retest.body = "{\"action\":\"synchronize\"}";
	op.retest.body_bytes = strlen(op.retest.body);
	DO_OK(store_run_commands, &op);
	retested_release(op.retest.retested, op.retest.n_retested);
	return (struct rig_answer){op.outcome, list[0].result, op.n_released, op.n_declined, op.n_cancelled,
	    op.retest.n_new_dispatches, op.ignored};
}

/* A command of a member; ERR_NOT_FOUND if there was nothing to do. */
static inline int rig_release(const char *sha, int64_t at_ms, int *ret_n)
{
	struct rig_answer a = rig_say(
	    &(struct rig_comment){.kind = COMMAND_OK_TO_TEST, .sha = sha, .at_ms = at_ms, .speaker = SPEAKER_MEMBER});

	*ret_n = a.n_released;
	return command_result_is_error(a.result) ? ERR_NOT_FOUND : 0;
}
