/* Commands in a comment on a pull request: reads them and marks those with an obvious mistake. The store decides about
 * the others. The first half runs the requests of comments, buttons and operators in one transaction. */

#include "dispatch/planning.h"
#include "model/schedule.h"

struct user_request *user_request_new(void)
{
	struct user_request *a = xcalloc(1, sizeof(*a));

	uuid_new(a->guid);
	return a;
}

void user_request_free(struct user_request *a)
{
	if (!a)
		return;
	free(a->retests);
	free(a->reruns);
	find_tested_release(&a->tested);
	find_rerun_release(&a->found);
	arena_release(&a->texts);
	free(a->body);
	free(a);
}

void user_request_add_retest(struct user_request *a, const char *accelerator, const char *runner)
{
	*ARRAY_PUSH(a->retests, a->n_retests) = (struct retest){
	    .accelerator = arena_strdup(&a->texts, accelerator),
	    .runner = arena_strdup(&a->texts, runner),
	};
}

void planning_run_request(struct planning *p)
{
	const struct user_request *a = p->user_request;
	bool wants_round = a->n_retests > 0;

	for (size_t i = 0; i < a->n; i++)
		wants_round |= a->list[i].command.kind == COMMAND_RETEST && a->list[i].result == COMMAND_DONE;
	/* The store refuses a stranger's commands, so do not read the change from GitHub for them. */
	if (wants_round && !(a->is_comment && a->spoken.speaker == SPEAKER_STRANGER))
		user_request_gather(p);
	else
		user_request_submit(p);
}

const char *user_request_retry_event(const struct user_request *a) { return a->request ? NULL : "delivery_unplanned"; }

void user_request_give_up(struct planning *p, int err, const char *why)
{
	struct retest_request *request = p->user_request->request;

	if (request) {
		error_set(&request->why, err, "%s", why);
		planning_end(p, err);
	} else {
		planning_mark(p, DELIVERY_MARK_FAILED, why);
	}
}

static void on_commands_run(struct store_op *op)
{
	struct planning *p = CONTAINER_OF(op, struct planning, op.commands.op);
	struct run_commands *o = &p->op.commands;
	struct user_request *a = p->user_request;
	struct retest_request *request = a->request;

	if (op->err) {
		retested_release(o->retest.retested, o->retest.n_retested);
		planning_went_well(p, &op->why, op->err);
		return;
	}
	log_event(LOG_INFO, a->is_comment ? "commands_heard" : "retest_asked", LOG_S("delivery", p->guid),
	    LOG_I("pr", o->number), LOG_S("by", a->login), LOG_S("words", a->words), LOG_S("ignored", o->ignored),
	    LOG_I("dispatches", (int64_t)o->retest.n_new_dispatches + o->n_released),
	    LOG_I("cancelled", o->n_cancelled + o->n_declined), LOG_I("reruns", (int64_t)o->n_reruns));
	if (p->delivery_id && o->ignored)
		p->d->counters.n_deliveries_ignored++;
	else
		p->d->counters.n_deliveries_planned += p->delivery_id != 0;
	p->d->counters.n_dispatches_made += o->retest.n_new_dispatches;
	if (request) {
		request->list = o->retest.retested;
		request->n = o->retest.n_retested;
		request->pull_number = a->number;
		snprintf(request->head_sha, sizeof(request->head_sha), "%s", a->has_plan ? p->plan.head_sha : "");
	} else {
		retested_release(o->retest.retested, o->retest.n_retested);
	}
	planning_end(p, 0);
}

void user_request_submit(struct planning *p)
{
	struct user_request *a = p->user_request;

	p->op.commands = (struct run_commands){
	    .op = {.done = on_commands_run,
		.retry = {.event = user_request_retry_event(a), .now_ms = &p->op.commands.now_ms}},
	    .delivery_id = p->delivery_id,
	    .repository = p->config->upstream_repository,
	    .number = a->number,
	    .spoken = a->is_comment ? &a->spoken : NULL,
	    .list = a->list,
	    .n = a->n,
	    .reruns = a->reruns,
	    .n_reruns = a->n_reruns,
	    .now_ms = clock_wall_ms(),
	};
	if (a->has_plan) {
		p->op.commands.retest.plan = &p->plan;
		p->op.commands.retest.guid = a->guid;
		p->op.commands.retest.body = a->body;
		p->op.commands.retest.body_bytes = strlen(a->body);
	}
	planning_submitted(p, store_run_commands(p->d->deps.store, &p->op.commands));
}

enum { TRIES_MAX = 10, WORDS_MAX_BYTES = 8192 };

/* ---- the commands ---- */

static void look_up_accelerator(const struct config *c, struct asked_command *cmd)
{
	const char **names, *near;

	if (config_accelerator(c, cmd->command.word))
		return;
	names = xcalloc(c->n_accelerators + 1, sizeof(*names));
	for (size_t i = 0; i < c->n_accelerators; i++)
		names[i] = c->accelerators[i].name;
	near = str_nearest(cmd->command.word, names);
	cmd->result = COMMAND_NO_ACCELERATOR;
	snprintf(cmd->hint, sizeof(cmd->hint), "%s", near ? near : "");
	free(names);
}

static void request_commands(struct planning *p, const struct command *list, size_t n)
{
	const struct event *ev = &p->event;
	struct user_request *a = user_request_new();
	struct buf out = BUF_INIT(WORDS_MAX_BYTES);

	p->user_request = a;
	a->is_comment = true;
	a->number = ev->pull.number;
	a->event_ms = ev->comment_created_ms;
	for (size_t i = 0; i < n; i++) {
		struct asked_command *cmd = &a->list[i];

		cmd->command = list[i];
		cmd->result = COMMAND_DONE;
		if (cmd->command.kind == COMMAND_UNKNOWN)
			cmd->result = COMMAND_NOT_KNOWN;
		else if (cmd->command.kind == COMMAND_STRESS &&
			 (cmd->command.n_rounds < 1 || cmd->command.n_rounds > STRESS_ROUNDS_MAX))
			cmd->result = COMMAND_ROUNDS;
		else if (cmd->command.word[0])
			look_up_accelerator(p->config, cmd);
	}
	a->n = n;
	a->login = arena_strdup(&a->texts, ev->comment_author[0] ? ev->comment_author : "somebody");
	/* "retest npu/model, stress model/llama3 on npu ×10, status" */
	for (size_t i = 0; i < a->n; i++) {
		const struct command *c = &a->list[i].command;

		if (c->kind == COMMAND_STRESS) {
			buf_appendf(&out, "%sstress %s%s%s ×%d", i ? ", " : "", c->test, c->word[0] ? " on " : "",
			    c->word, c->n_rounds);
			continue;
		}
		buf_appendf(&out, "%s%s%s%s%s%s%s", i ? ", " : "", command_kind_name(c->kind),
		    c->word[0] || c->sha[0] ? " " : "", c->word, c->sha, c->suite[0] ? "/" : "", c->suite);
	}
	a->words = arena_strdup(&a->texts, buf_str(&out));
	buf_release(&out);
	a->spoken = (struct spoken_comment){
	    .id = ev->comment_id,
	    .created_ms = ev->comment_created_ms,
	    .login = a->login,
	    .words = a->words,
	    .speaker = SPEAKER_STRANGER,
	};
	if (association_is_member(ev->comment_association))
		a->spoken.speaker = SPEAKER_MEMBER;
	else if (ev->comment_author[0] && strcasecmp(ev->comment_author, ev->pull_author) == 0)
		a->spoken.speaker = SPEAKER_AUTHOR;
	planning_run_request(p);
}

/* ---- the App's name ---- */

static void read_commands(struct planning *p);

static void on_comment_app(struct github_call *call)
{
	struct planning *p = CONTAINER_OF(call, struct planning, op.call);
	struct github_result r = call->result;
	struct command list[COMMANDS_MAX];
	size_t n = commands_find(p->event.comment_body, NULL, list);
	bool is_likely_ours = false; /* the comment contains a known command for some name */

	for (size_t i = 0; i < n; i++)
		is_likely_ours |= list[i].kind != COMMAND_UNKNOWN;
	p->is_on_github = false;
	github_call_release(call);
	if (r.err == 0 && github_app_slug(p->d->deps.github))
		read_commands(p);
	else if (p->d->is_closing)
		planning_end(p, ERR_CLOSING);
	else if (!is_likely_ours) /* a retry would make the later events of the PR wait */
		planning_mark(p, DELIVERY_MARK_IGNORED, "probably no command: the App's name is not known yet");
	else if (++p->n_tries < TRIES_MAX)
		planning_again(p, read_commands, backoff_delay_ms(p->n_tries, r.retry_after_ms, random_fraction()));
	else
		planning_mark(p, DELIVERY_MARK_FAILED,
		    "GitHub did not return the App's name, so Outpost cannot recognize its commands");
}

/* While the App's name is unknown, each command may be for it. */
static void read_commands(struct planning *p)
{
	const char *slug = github_app_slug(p->d->deps.github);
	struct command list[COMMANDS_MAX];
	size_t n = commands_find(p->event.comment_body, slug, list);

	if (n == 0) {
		planning_mark(p, DELIVERY_MARK_IGNORED, "no command");
	} else if (slug) {
		request_commands(p, list, n);
	} else {
		p->is_on_github = true;
		p->op.call = (struct github_call){.done = on_comment_app};
		github_app_get(p->d->deps.github, &p->op.call);
	}
}

void planning_comment(struct planning *p)
{
	const struct event *ev = &p->event;
	const char *reason = NULL;

	if (!ev->is_pull_comment)
		reason = "a comment on an issue";
	else if (strcasecmp(ev->repository, p->config->upstream_repository) != 0)
		reason = "another repository than upstream's";
	else if (!str_eq(ev->action, "created"))
		reason = "edited and deleted comments are not read as commands";
	else if (str_eq(ev->comment_author_type, "Bot"))
		reason = "comments of bots are not read";
	else if (!ev->comment_body || !strchr(ev->comment_body, '@'))
		reason = "no command";
	if (reason)
		planning_mark(p, DELIVERY_MARK_IGNORED, reason);
	else
		read_commands(p);
}
