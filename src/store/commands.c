#include "store/commands.h"

#include "db/key.h"
#include "experiments/stress.h"
#include "store/changes.h"
#include "store/closing.h"
#include "store/deliveries.h"
#include "store/outbox.h"

/* ---- answers ---- */

/* Adds a row of the outbox for the repository q.target, in a lane of its own, because no other row waits for it. Takes over
 * `key` and `text`. */
static void put_alone(struct txn *d, struct outbox_request q, char *key, json_t *text, int64_t now_ms)
{
	struct repository_key target_key = repository_key(q.target);
	char *dumped = json_text(text);

	q.key = q.lane = key;
	q.target_key = target_key.text;
	q.text = dumped;
	outbox_insert(d, &q, now_ms);
	json_decref(text);
	free(dumped);
	free(key);
}

/* The text is {"comment": ID, name: value}. Takes `value` over. */
static void put_answer(struct txn *d, const struct answer_place *at, enum outbox_kind kind, const char *key_prefix,
    const char *name, json_t *value, int64_t now_ms)
{
	struct outbox_request q = {
	    .kind = kind, .target = at->repository, .number = at->number, .change_id = at->change_id};
	json_t *text = json_object();

	json_set_int(text, "comment", at->comment_id);
	json_object_set_new(text, name, value);
	put_alone(d, q, xasprintf("%s:%lld", key_prefix, (long long)at->comment_id), text, now_ms);
}

/* content: one of GitHub's ("eyes", "rocket", "confused", …). */
static void put_reaction(struct txn *d, const struct answer_place *at, const char *content, int64_t now_ms)
{
	put_answer(d, at, OUTBOX_REACTION, "reaction", "content", json_string(content), now_ms);
}

void stress_reply_put(struct txn *d, const struct answer_place *at, json_t *facts, int64_t now_ms)
{
	put_answer(d, at, OUTBOX_REPLY, "stress", "stress", facts, now_ms);
}

static void put_rerun(struct txn *d, const struct rerun_request *r, int64_t number, int64_t change_id, int64_t now_ms)
{
	struct outbox_request q = {
	    .kind = OUTBOX_RERUN,
	    .target = r->repository,
	    .number = number,
	    .change_id = change_id,
	    .dispatch_id = r->dispatch_id,
	    .runner = r->runner,
	    .accelerator = r->accelerator,
	};
	json_t *text = json_object();

	json_set_str(text, "run_id", r->run_id);
	json_set_str(text, "accelerator", r->accelerator);
	json_object_set_new(text, "is_whole", json_boolean(r->is_whole));
	put_alone(d, q,
	    xasprintf("rerun:%s:%s:%lld:%s", repository_key(r->repository).text, r->run_id, (long long)r->run_attempt,
		r->is_whole ? "all" : "failed"),
	    text, now_ms);
}

bool commands_drop(struct txn *d, int64_t before_ms, int limit)
{
	/* Most answers are deleted with their change. These are answers on pull requests that are not known. */
	db_exec(d,
	    "DELETE FROM outbox WHERE state IN ('sent', 'dead') AND key IN"
	    " (SELECT kind || ':' || comment_id FROM"
	    "  (SELECT 'reaction' AS kind UNION SELECT 'reply' UNION SELECT 'stress') kinds,"
	    "  (SELECT comment_id FROM command WHERE at_ms < ?1 ORDER BY at_ms LIMIT ?2) old)",
	    V_INT(before_ms), V_INT(limit));
	return db_exec_count(d,
		   "DELETE FROM command WHERE comment_id IN"
		   " (SELECT comment_id FROM command WHERE at_ms < ?1 ORDER BY at_ms LIMIT ?2)",
		   V_INT(before_ms), V_INT(limit)) == limit;
}

#define HOUR_MS (INT64_C(3600) * 1000)

struct running {
	struct txn *d;
	struct run_commands *op;
	struct stored_pull pull;
	struct comment_place at;
	struct answer_place answer;
};

/* ---- limits on commands ----
 *
 * They count the last hour, and not later times, which are on record when the clock was put back. */

static void note_command(struct running *r, int64_t n)
{
	const struct spoken_comment *c = r->op->spoken;

	db_exec(r->d,
	    "INSERT INTO command (comment_id, repository_key, number, words, login, n, at_ms, is_member)"
	    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
	    V_INT(c->id), V_TEXT(repository_key(r->op->repository).text), V_INT(r->op->number), V_TEXT(c->words),
	    V_TEXT(c->login), V_INT(n), V_INT(r->op->now_ms), V_INT(c->speaker == SPEAKER_MEMBER));
}

/* Comments of strangers have a limit of their own, so that strangers cannot use up the limit of others. */
static void refuse_stranger(struct running *r)
{
	int64_t n = db_int(r->d, 0,
	    "SELECT COUNT(*) FROM command WHERE repository_key = ?1 AND number = ?2"
	    " AND at_ms > ?3 AND at_ms <= ?4 AND n = 0",
	    V_TEXT(repository_key(r->op->repository).text), V_INT(r->op->number), V_INT(r->op->now_ms - HOUR_MS),
	    V_INT(r->op->now_ms));

	r->op->outcome = COMMANDS_REFUSED;
	if (n >= COMMANDS_AN_HOUR)
		return;
	note_command(r, 0);
	put_reaction(r->d, &r->answer, "confused", r->op->now_ms);
}

/* The first comment over the limit gets a reaction; the next ones get no answer. */
static bool refuse_over_limit(struct running *r)
{
	const struct spoken_comment *c = r->op->spoken;
	struct repository_key key = repository_key(r->op->repository);
	int64_t after_ms = r->op->now_ms - HOUR_MS, on_pull, on_change, n;

	/* The author's commands do not count against members, because an author must not be able to keep members from
	 * cancelling runs. */
	on_pull = db_int(r->d, 0,
	    "SELECT COALESCE(SUM(n), 0) FROM command WHERE repository_key = ?1 AND number = ?2"
	    " AND at_ms > ?3 AND at_ms <= ?4 AND (?5 = 0 OR is_member = 1 OR lower(login) = lower(?6))",
	    V_TEXT(key.text), V_INT(r->op->number), V_INT(after_ms), V_INT(r->op->now_ms),
	    V_INT(c->speaker == SPEAKER_MEMBER), V_TEXT(c->login));
	/* The commands of this person on all pull requests that have or had this head: more pull requests do not allow
	 * more commands. */
	on_change = db_int(r->d, 0,
	    "SELECT COALESCE(SUM(n), 0) FROM command WHERE repository_key = ?1 AND number IN"
	    "  (SELECT number FROM pull_head WHERE change_id = ?2)"
	    " AND lower(login) = lower(?3) AND at_ms > ?4 AND at_ms <= ?5",
	    V_TEXT(key.text), V_INT(r->pull.change_id), V_TEXT(c->login), V_INT(after_ms), V_INT(r->op->now_ms));
	n = on_pull > on_change ? on_pull : on_change;
	if (n + (int64_t)r->op->n <= COMMANDS_AN_HOUR)
		return false;
	r->op->outcome = COMMANDS_TOO_MANY;
	if (n <= COMMANDS_AN_HOUR) {
		note_command(r, COMMANDS_AN_HOUR + 1 - n);
		put_reaction(r->d, &r->answer, "confused", r->op->now_ms);
	}
	return true;
}

/* ---- effects ---- */

/* Combines the results of several runners into the result of one retest command. */
static enum command_result sum_up_retests(const struct asked_command *c, const struct apply_plan *o)
{
	static const enum command_result meaning[N_RETEST_RESULTS] = {
	    [RETEST_STARTED] = COMMAND_DONE,
	    [RETEST_NOT_MEANT] = COMMAND_NOT_TESTED,
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
	/* No runner tests this change, so nothing is red either. */
	if (best == RETEST_NOT_MEANT && !c->command.word[0])
		return COMMAND_NOTHING_RED;
	return meaning[best];
}

static void run_retest(struct running *r)
{
	struct run_commands *o = r->op;

	if (!o->retest.plan)
		return;
	plan_apply(r->d, &o->retest);
	for (size_t i = 0; i < o->n; i++)
		if (o->list[i].command.kind == COMMAND_RETEST && o->list[i].result == COMMAND_DONE)
			o->list[i].result = sum_up_retests(&o->list[i], &o->retest);
}

/* Runs the commands in their order, with all retests at the place of the first one. */
static void run_all_commands(struct running *r)
{
	struct run_commands *o = r->op;
	bool has_retested = false;

	for (size_t i = 0; i < o->n; i++) {
		struct asked_command *c = &o->list[i];
		enum command_kind kind = c->command.kind;
		int n;

		if (c->result != COMMAND_DONE)
			continue;
		if (kind == COMMAND_RETEST && !has_retested) {
			has_retested = true;
			run_retest(r);
		} else if (kind == COMMAND_OK_TO_TEST) {
			n = change_release(r->d, &r->at, c->command.sha[0] ? c->command.sha : NULL);
			o->n_released += n;
			c->result = n ? COMMAND_DONE : COMMAND_NOTHING_HELD;
		} else if (kind == COMMAND_DECLINE) {
			if (!change_decline(r->d, &r->at, o->spoken->login, &n))
				c->result = COMMAND_NOTHING_DECLINED;
			o->n_declined += n;
		} else if (kind == COMMAND_CANCEL) {
			n = change_call_off(r->d, &r->at, o->spoken->login);
			o->n_cancelled += n;
			c->result = n ? COMMAND_DONE : COMMAND_NOTHING_RUNS;
		} else if (kind == COMMAND_STRESS) {
			stress_command(r->d, &r->answer, c, o->now_ms);
		}
	}
	if (!o->spoken)
		run_retest(r); /* a Re-run, or outpostctl: there is no comment */
}

/* ---- answers to comments ---- */

/* A reaction, and one reply with the results of the commands that a reaction does not express. The reply's words are chosen
 * when it is sent: the row's text is JSON, {"comment": ID, "commands": [{"kind", "word", "suite", "test", "result", "hint"},
 * …]}. */
static void answer_comment(struct running *r)
{
	const struct run_commands *o = r->op;
	const char *reaction = "eyes";
	bool is_reply = false, has_error = false;
	json_t *commands = json_array();

	for (size_t i = 0; i < o->n; i++) {
		const struct asked_command *c = &o->list[i];
		bool is_error = command_result_is_error(c->result);
		json_t *one = json_object();

		has_error |= is_error;
		if (c->command.kind == COMMAND_OK_TO_TEST)
			reaction = "rocket";
		if (c->result != COMMAND_FOR_MEMBERS && c->result != COMMAND_CLOSED)
			is_reply |= is_error || c->command.kind == COMMAND_STATUS || c->command.kind == COMMAND_HELP;
		json_set_str(one, "kind", command_kind_name(c->command.kind));
		json_set_str(one, "word", c->command.word);
		json_set_str(one, "suite", c->command.suite);
		json_set_str(one, "test", c->command.test);
		json_set_str(one, "result", command_result_name(c->result));
		json_set_str(one, "hint", c->hint);
		json_array_append_new(commands, one);
	}
	put_reaction(r->d, &r->answer, has_error ? "confused" : reaction, o->now_ms);
	if (is_reply)
		put_answer(r->d, &r->answer, OUTBOX_REPLY, "reply", "commands", commands, o->now_ms);
	else
		json_decref(commands);
}

/* A delivery whose commands had no effect is `ignored`, with the reason. */
static void mark_delivery_done(struct running *r)
{
	static const char *const why[] = {
	    [COMMANDS_HEARD] = NULL,
	    [COMMANDS_REPEATED] = "this comment was handled before",
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
	if (o->delivery_id)
		delivery_enter(r->d, o->delivery_id, o->ignored ? DELIVERY_IS_IGNORED : DELIVERY_IS_PLANNED, o->ignored,
		    o->now_ms);
}

/* ---- the operation ---- */

/* An author may start and cancel only their own runs. A head that another open pull request shares (the head on record, or
 * the one that GitHub has just reported) is not their own: otherwise a second pull request with the same head would give
 * power over the first. */
static void refuse_for_author(struct running *r)
{
	struct run_commands *o = r->op;
	const struct plan *p = o->retest.plan;
	int64_t other = change_other_pull(r->d->view, r->pull.change_id, o->number);

	if (!other && p)
		other = change_other_pull(
		    r->d->view, change_find(r->d->view, p->change_kind, o->repository, p->head_sha), o->number);
	for (size_t i = 0; i < o->n; i++) {
		struct asked_command *c = &o->list[i];
		enum command_kind kind = c->command.kind;

		if (c->result != COMMAND_DONE)
			continue;
		if (kind == COMMAND_OK_TO_TEST || kind == COMMAND_DECLINE || kind == COMMAND_STRESS) {
			c->result = COMMAND_FOR_MEMBERS;
		} else if (other && (kind == COMMAND_RETEST || kind == COMMAND_CANCEL)) {
			c->result = COMMAND_SHARED;
			snprintf(c->hint, sizeof(c->hint), "%lld", (long long)other);
		}
	}
}

static void run_comment(struct running *r)
{
	struct run_commands *o = r->op;

	if (db_has(r->d, "SELECT 1 FROM command WHERE comment_id = ?1", V_INT(o->spoken->id))) {
		o->outcome = COMMANDS_REPEATED;
		return;
	}
	if (o->spoken->speaker == SPEAKER_STRANGER) {
		refuse_stranger(r);
		return;
	}
	if (refuse_over_limit(r))
		return;
	note_command(r, (int64_t)o->n);
	if (o->spoken->speaker != SPEAKER_MEMBER)
		refuse_for_author(r);
	for (size_t i = 0; i < o->n; i++)
		if (r->pull.is_known && !r->pull.is_open)
			o->list[i].result = COMMAND_CLOSED;
	run_all_commands(r);
	answer_comment(r);
}

static int commands_run(struct store_op *op, struct txn *d)
{
	struct run_commands *o = CONTAINER_OF(op, struct run_commands, op);
	struct running r = {.d = d, .op = o};

	o->retest.now_ms = o->now_ms;
	o->outcome = COMMANDS_HEARD;
	o->n_released = o->n_declined = o->n_cancelled = 0;
	for (size_t i = 0; i < o->n; i++)
		o->list[i].result = o->given[i];
	retested_release(o->retest.retested, o->retest.n_retested);
	o->retest.retested = NULL;
	o->retest.n_retested = 0;
	o->ignored = NULL;
	if (o->delivery_id && delivery_find(d->view, o->delivery_id).state == DELIVERY_IS_PLANNED) {
		o->outcome = COMMANDS_REPEATED;
		return 0;
	}
	if (o->number)
		r.pull = pull_find(d->view, o->repository, o->number);
	if (o->spoken) {
		r.at = (struct comment_place){o->repository, o->number, o->spoken->created_ms, o->now_ms};
		r.answer = (struct answer_place){o->repository, o->number, r.pull.change_id, o->spoken->id};
		run_comment(&r);
	} else {
		for (size_t i = 0; i < o->n_reruns; i++)
			put_rerun(d, &o->reruns[i], o->number, r.pull.change_id, o->now_ms);
		run_all_commands(&r);
	}
	mark_delivery_done(&r);
	return 0;
}

int store_run_commands(struct store *s, struct run_commands *op)
{
	op->retest.retested = NULL;
	op->retest.n_retested = 0;
	assert(op->n <= COMMANDS_MAX);
	for (size_t i = 0; i < op->n; i++)
		op->given[i] = op->list[i].result;
	op->op.run = commands_run;
	op->op.bytes = sizeof(*op) + op->retest.body_bytes;
	return store_submit(s, &op->op);
}
