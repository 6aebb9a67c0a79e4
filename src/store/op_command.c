/* Commands: what they do, who may say them and how often, and what is answered, all at once. */
#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "store/answers.h"
#include "store/delivery_row.h"
#include "store/key.h"
#include "store/plan_apply.h"
#include "store/requests.h"
#include "store/retest.h"
#include "store/stored_change.h"
#include "store/stress_command.h"

#define HOUR_MS (INT64_C(3600) * 1000)

struct running {
	struct db *d;
	struct run_commands *op;
	struct stored_pull pull;
	struct comment_place at;
	struct answer_place answer;
};

/* ---- who may say how much ----
 *
 * Of the last hour, and not of hours that come again because the clock was put back. */

static void note(struct running *r, int64_t n)
{
	const struct spoken_comment *c = r->op->spoken;

	db_exec(r->d,
	    "INSERT INTO command (comment_id, repository_key, number, words, login, n, at_ms)"
	    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
	    V_INT(c->id), V_TEXT(repository_key(r->op->repository).text), V_INT(r->op->number),
	    V_TEXT(c->words), V_TEXT(c->login), V_INT(n), V_INT(r->op->now_ms));
}

static bool is_heard_before(struct running *r)
{
	return db_has(
	    r->d, "SELECT 1 FROM command WHERE comment_id = ?1", V_INT(r->op->spoken->id));
}

/* What strangers say counts apart, so that they cannot use up what others may say. */
static void refuse_stranger(struct running *r)
{
	int64_t n = db_int(r->d, 0,
	    "SELECT COUNT(*) FROM command WHERE repository_key = ?1 AND number = ?2"
	    " AND at_ms > ?3 AND at_ms <= ?4 AND n = 0",
	    V_TEXT(repository_key(r->op->repository).text), V_INT(r->op->number),
	    V_INT(r->op->now_ms - HOUR_MS), V_INT(r->op->now_ms));

	r->op->outcome = COMMANDS_REFUSED;
	if (n >= COMMANDS_AN_HOUR)
		return;
	note(r, 0);
	reaction_put(r->d, &r->answer, "confused", r->op->now_ms);
}

/* What the PR's author says does not count against members: an author who uses all of it up must
 * not keep them from ending what runs. */
static int64_t said_on_pull(struct running *r)
{
	const struct spoken_comment *c = r->op->spoken;

	return db_int(r->d, 0,
	    "SELECT COALESCE(SUM(n), 0) FROM command WHERE repository_key = ?1 AND number = ?2"
	    " AND at_ms > ?3 AND at_ms <= ?4 AND (?5 = 0 OR lower(login) = lower(?6)"
	    "  OR lower(login) <> (SELECT lower(COALESCE(author, '')) FROM pull"
	    "   WHERE repository_key = ?1 AND number = ?2))",
	    V_TEXT(repository_key(r->op->repository).text), V_INT(r->op->number),
	    V_INT(r->op->now_ms - HOUR_MS), V_INT(r->op->now_ms),
	    V_INT(c->speaker == SPEAKER_MEMBER && r->pull.is_known), V_TEXT(c->login));
}

/* By this speaker on any PR that has, or had, this head: more PRs allow no more commands. */
static int64_t said_on_change(struct running *r)
{
	return db_int(r->d, 0,
	    "SELECT COALESCE(SUM(n), 0) FROM command WHERE repository_key = ?1 AND number IN"
	    "  (SELECT number FROM pull_head WHERE change_id = ?2)"
	    " AND lower(login) = lower(?3) AND at_ms > ?4 AND at_ms <= ?5",
	    V_TEXT(repository_key(r->op->repository).text), V_INT(r->pull.change_id),
	    V_TEXT(r->op->spoken->login), V_INT(r->op->now_ms - HOUR_MS), V_INT(r->op->now_ms));
}

/* The first comment that is too many is told so, by a reaction; those behind it are not. */
static bool is_one_too_many(struct running *r)
{
	int64_t on_pull = said_on_pull(r), on_change = said_on_change(r);
	int64_t n = on_pull > on_change ? on_pull : on_change;

	if (n + (int64_t)r->op->n <= COMMANDS_AN_HOUR)
		return false;
	r->op->outcome = COMMANDS_TOO_MANY;
	if (n <= COMMANDS_AN_HOUR) {
		note(r, COMMANDS_AN_HOUR + 1 - n);
		reaction_put(r->d, &r->answer, "confused", r->op->now_ms);
	}
	return true;
}

/* ---- what they do ---- */

/* What a retest of several runners came to, for the one command that asked for it. */
static enum command_result sum_up(const struct asked_command *c, const struct apply_plan *o)
{
	static const enum command_result meaning[N_RETEST_RESULTS] = {
	    [RETEST_STARTED] = COMMAND_DONE,
	    [RETEST_NOT_MEANT] = COMMAND_NOT_WANTED,
	    [RETEST_RUNNING] = COMMAND_STILL_RUNNING,
	    [RETEST_HELD] = COMMAND_HELD,
	    [RETEST_CLEAN] = COMMAND_NOTHING_RED,
	    [RETEST_NO_SUITE] = COMMAND_NO_SUITE,
	};
	enum retest_result best = RETEST_NOT_MEANT;

	for (size_t i = 0; i < o->n_retested; i++) {
		const struct retested *one = &o->retested[i];

		if (c->command.word[0] && strcmp(c->command.word, one->accelerator) != 0)
			continue;
		if (best == RETEST_NOT_MEANT || one->result < best)
			best = one->result;
	}
	/* Nobody at all wants this change: nothing is red either. */
	if (best == RETEST_NOT_MEANT && !c->command.word[0])
		return COMMAND_NOTHING_RED;
	return meaning[best];
}

static void retest(struct running *r)
{
	struct run_commands *o = r->op;

	if (!o->retest.plan)
		return;
	plan_apply(r->d, &o->retest);
	for (size_t i = 0; i < o->n; i++)
		if (o->list[i].command.kind == COMMAND_RETEST && o->list[i].result == COMMAND_DONE)
			o->list[i].result = sum_up(&o->list[i], &o->retest);
}

static void run_one(struct running *r, struct asked_command *c)
{
	struct run_commands *o = r->op;
	int n;

	switch (c->command.kind) {
	case COMMAND_OK_TO_TEST:
		n = change_release(r->d, &r->at, c->command.sha[0] ? c->command.sha : NULL);
		o->n_released += n;
		c->result = n ? COMMAND_DONE : COMMAND_NOTHING_HELD;
		break;
	case COMMAND_DECLINE:
		if (!change_decline(r->d, &r->at, o->spoken->login, &n))
			c->result = COMMAND_NOTHING_DECLINED;
		o->n_declined += n;
		break;
	case COMMAND_CANCEL:
		n = change_call_off(r->d, &r->at, o->spoken->login);
		o->n_cancelled += n;
		c->result = n ? COMMAND_DONE : COMMAND_NOTHING_RUNS;
		break;
	case COMMAND_STRESS:
		stress_command(r->d, &r->answer, c, o->now_ms);
		break;
	case COMMAND_RETEST: /* all of a comment's at once: retest() */
	case COMMAND_STATUS:
	case COMMAND_HELP:
	case COMMAND_UNKNOWN:
	case N_COMMAND_KINDS:
		break;
	}
}

/* In their order, but all retests where the first of them stands. */
static void run_all(struct running *r)
{
	bool has_retested = false;

	for (size_t i = 0; i < r->op->n; i++) {
		struct asked_command *c = &r->op->list[i];

		if (c->result != COMMAND_DONE)
			continue;
		if (c->command.kind == COMMAND_RETEST && !has_retested) {
			has_retested = true;
			retest(r);
		}
		run_one(r, c);
	}
	if (!r->op->spoken)
		retest(r); /* Re-run, and outpostctl: no word was said */
}

/* ---- what is answered ---- */

static const char *reaction_to(const struct run_commands *o)
{
	const char *content = "eyes";

	for (size_t i = 0; i < o->n; i++) {
		if (command_result_is_error(o->list[i].result))
			return "confused";
		if (o->list[i].command.kind == COMMAND_OK_TO_TEST)
			content = "rocket";
	}
	return content;
}

/* Whether there is more to say than a reaction does. */
static bool needs_words(const struct asked_command *c)
{
	if (c->result == COMMAND_FOR_MEMBERS || c->result == COMMAND_CLOSED)
		return false;
	return command_result_is_error(c->result) || c->command.kind == COMMAND_STATUS ||
	       c->command.kind == COMMAND_HELP;
}

static void answer(struct running *r)
{
	const struct run_commands *o = r->op;
	bool is_reply = false;

	for (size_t i = 0; i < o->n; i++)
		is_reply |= needs_words(&o->list[i]);
	reaction_put(r->d, &r->answer, reaction_to(o), o->now_ms);
	if (is_reply)
		reply_put(r->d, &r->answer, o->list, o->n, o->now_ms);
}

/* A delivery that did nothing but be answered is `ignored`, with the reason. */
static void mark(struct running *r)
{
	static const char *const why[] = {
	    [COMMANDS_HEARD] = NULL,
	    [COMMANDS_REPEATED] = "this was heard before",
	    [COMMANDS_REFUSED] = "commands are for the author and members",
	    [COMMANDS_TOO_MANY] = "more than 20 commands an hour",
	};
	struct run_commands *o = r->op;
	bool has_done = o->n == 0;

	o->ignored = why[o->outcome];
	for (size_t i = 0; i < o->n; i++) {
		has_done |= !command_result_is_error(o->list[i].result);
		if (!o->ignored && command_result_is_error(o->list[i].result))
			o->ignored = command_result_why(o->list[i].result);
	}
	if (o->outcome == COMMANDS_HEARD && has_done)
		o->ignored = NULL;
	if (o->delivery_id && delivery_find(r->d, o->delivery_id).state[0])
		delivery_enter(r->d, o->delivery_id, o->ignored ? "ignored" : "planned", o->ignored,
		    o->now_ms);
}

/* ---- all of it ---- */

/* An open PR other than this one that has its head, as it is known or as GitHub has just said; 0:
 * there is none. */
static int64_t sharer_of_head(struct running *r)
{
	const struct run_commands *o = r->op;
	const struct plan *p = o->retest.plan;
	int64_t other = change_other_pull(r->d, r->pull.change_id, o->number);

	if (!other && p)
		other = change_other_pull(
		    r->d, change_find(r->d, p->change_kind, o->repository, p->head_sha), o->number);
	return other;
}

/* An author may end and begin what is their own. What another open PR shares is not, or opening a
 * second PR with the same head would give power over the first. */
static void refuse_for_author(struct running *r)
{
	struct run_commands *o = r->op;
	int64_t other = sharer_of_head(r);

	for (size_t i = 0; i < o->n; i++) {
		struct asked_command *c = &o->list[i];

		if (c->result != COMMAND_DONE)
			continue;
		switch (c->command.kind) {
		case COMMAND_OK_TO_TEST:
		case COMMAND_DECLINE:
		case COMMAND_STRESS:
			c->result = COMMAND_FOR_MEMBERS;
			break;
		case COMMAND_RETEST:
		case COMMAND_CANCEL:
			if (!other)
				break;
			c->result = COMMAND_SHARED;
			snprintf(c->hint, sizeof(c->hint), "%lld", (long long)other);
			break;
		case COMMAND_STATUS:
		case COMMAND_HELP:
		case COMMAND_UNKNOWN:
		case N_COMMAND_KINDS:
			break;
		}
	}
}

static void hear(struct running *r)
{
	struct run_commands *o = r->op;

	if (is_heard_before(r)) {
		o->outcome = COMMANDS_REPEATED;
		return;
	}
	if (o->spoken->speaker == SPEAKER_STRANGER) {
		refuse_stranger(r);
		return;
	}
	if (is_one_too_many(r))
		return;
	note(r, (int64_t)o->n);
	if (o->spoken->speaker != SPEAKER_MEMBER)
		refuse_for_author(r);
	for (size_t i = 0; i < o->n; i++)
		if (r->pull.is_known && !r->pull.is_open)
			o->list[i].result = COMMAND_CLOSED;
	run_all(r);
	answer(r);
}

static bool is_delivery_done(struct running *r)
{
	return r->op->delivery_id &&
	       strcmp(delivery_find(r->d, r->op->delivery_id).state, "planned") == 0;
}

static int commands_run(struct store_op *op, struct db *d)
{
	struct run_commands *o = CONTAINER_OF(op, struct run_commands, op);
	struct running r = {.d = d, .op = o};

	o->outcome = COMMANDS_HEARD;
	o->n_released = o->n_declined = o->n_cancelled = 0;
	for (size_t i = 0; i < o->n; i++)
		o->list[i].result = o->given[i];
	retested_release(o->retest.retested, o->retest.n_retested);
	o->retest.retested = NULL;
	o->retest.n_retested = 0;
	o->ignored = NULL;
	if (is_delivery_done(&r)) {
		o->outcome = COMMANDS_REPEATED;
		return 0;
	}
	if (o->number)
		r.pull = pull_find(d, o->repository, o->number);
	if (o->spoken) {
		r.at = (struct comment_place){
		    o->repository, o->number, o->spoken->created_ms, o->now_ms};
		r.answer = (struct answer_place){
		    o->repository, o->number, r.pull.change_id, o->spoken->id};
		hear(&r);
	} else {
		for (size_t i = 0; i < o->n_reruns; i++)
			rerun_put(d, &o->reruns[i], o->number, r.pull.change_id, o->now_ms);
		run_all(&r);
	}
	mark(&r);
	return 0;
}

int store_run_commands(struct store *s, struct run_commands *op)
{
	op->retest.retested = NULL;
	op->retest.n_retested = 0;
	op->retest.now_ms = op->now_ms;
	assert(op->n <= COMMANDS_MAX);
	for (size_t i = 0; i < op->n; i++)
		op->given[i] = op->list[i].result;
	op->op.run = commands_run;
	op->op.bytes = sizeof(*op) + op->retest.body_bytes;
	return store_submit(s, &op->op);
}
