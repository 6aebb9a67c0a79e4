/* A comment on a pull request that says something to the bot: read, and what is plainly wrong with
 * it noted; the rest the store knows. */
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/str.h"
#include "dispatch/asked.h"
#include "dispatch/command.h"
#include "model/backoff.h"
#include "model/trigger.h"

enum { TRIES_MAX = 10, WORDS_MAX_BYTES = 8192 };

/* ---- what it says ---- */

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

static void resolve(const struct config *c, struct asked_command *cmd)
{
	cmd->result = COMMAND_DONE;
	if (cmd->command.kind == COMMAND_UNKNOWN)
		cmd->result = COMMAND_NOT_KNOWN;
	else if (cmd->command.kind == COMMAND_STRESS &&
		 (cmd->command.n_rounds < 1 || cmd->command.n_rounds > STRESS_ROUNDS_MAX))
		cmd->result = COMMAND_ROUNDS;
	else if (cmd->command.word[0])
		look_up_accelerator(c, cmd);
}

/* "retest npu/model, stress model/llama3 on npu ×10, status" */
static char *words_of(const struct asked *a)
{
	struct buf out = BUF_INIT(WORDS_MAX_BYTES);

	for (size_t i = 0; i < a->n; i++) {
		const struct command *c = &a->list[i].command;

		if (c->kind == COMMAND_STRESS) {
			buf_appendf(&out, "%sstress %s%s%s ×%d", i ? ", " : "", c->test,
			    c->word[0] ? " on " : "", c->word, c->n_rounds);
			continue;
		}
		buf_appendf(&out, "%s%s%s%s%s%s%s", i ? ", " : "", command_kind_name(c->kind),
		    c->word[0] || c->sha[0] ? " " : "", c->word, c->sha, c->suite[0] ? "/" : "",
		    c->suite);
	}
	return out.data ? buf_take(&out) : xstrdup("");
}

static enum speaker speaker_of(const struct event *ev)
{
	if (association_is_member(ev->comment_association))
		return SPEAKER_MEMBER;
	if (ev->comment_author[0] && strcasecmp(ev->comment_author, ev->pull_author) == 0)
		return SPEAKER_AUTHOR;
	return SPEAKER_STRANGER;
}

static void hear(struct planning *p, const struct command *list, size_t n)
{
	const struct event *ev = &p->event;
	struct asked *a = asked_new();

	p->asked = a;
	a->is_comment = true;
	a->number = ev->pull.number;
	a->event_ms = ev->comment_created_ms;
	for (size_t i = 0; i < n; i++) {
		a->list[i].command = list[i];
		resolve(p->config, &a->list[i]);
	}
	a->n = n;
	a->login = xstrdup(ev->comment_author[0] ? ev->comment_author : "somebody");
	a->words = words_of(a);
	a->spoken = (struct spoken_comment){
	    .id = ev->comment_id,
	    .created_ms = ev->comment_created_ms,
	    .login = a->login,
	    .words = a->words,
	    .speaker = speaker_of(ev),
	};
	planning_ask(p);
}

/* ---- to whom ---- */

static void ask_slug(struct planning *p);

static void read_commands(struct planning *p)
{
	const char *slug = github_app_slug(p->d->deps.github);
	struct command list[COMMANDS_MAX];
	size_t n;

	if (!slug) {
		ask_slug(p);
		return;
	}
	n = commands_find(p->event.comment_body, slug, list);
	if (n)
		hear(p, list, n);
	else
		planning_ignore(p, "no command");
}

/* Whether it would be one of ours if it addressed us: while GitHub does not tell our name, the
 * PR's own events are not to wait for what was said to others. */
static bool is_likely_ours(const char *text)
{
	struct command list[COMMANDS_MAX];
	size_t n = commands_find(text, NULL, list);

	for (size_t i = 0; i < n; i++)
		if (list[i].kind != COMMAND_UNKNOWN)
			return true;
	return false;
}

static void on_app(struct github_call *call)
{
	struct planning *p = CONTAINER_OF(call, struct planning, op.call);
	struct github_result r = call->result;

	p->is_on_github = false;
	github_call_release(call);
	if (r.err == 0 && github_app_slug(p->d->deps.github))
		read_commands(p);
	else if (p->d->is_closing)
		planning_end(p, ERR_CLOSING);
	else if (!is_likely_ours(p->event.comment_body))
		planning_ignore(p, "no command, as far as is known without the App's name");
	else if (++p->n_tries < TRIES_MAX)
		planning_again(p, read_commands,
		    backoff_delay_ms(p->n_tries, r.retry_after_ms, dispatch_random01()));
	else
		planning_fail(
		    p, "GitHub does not say what the App is called, so its commands are not known");
}

static void ask_slug(struct planning *p)
{
	struct command list[COMMANDS_MAX];

	if (commands_find(p->event.comment_body, NULL, list) == 0) {
		planning_ignore(p, "no command");
		return;
	}
	p->is_on_github = true;
	p->op.call = (struct github_call){.done = on_app};
	github_app_get(p->d->deps.github, &p->op.call);
}

void planning_comment(struct planning *p)
{
	const struct event *ev = &p->event;

	if (!ev->is_pull_comment)
		planning_ignore(p, "a comment on an issue");
	else if (strcasecmp(ev->repository, p->config->upstream_repository) != 0)
		planning_ignore(p, "another repository than upstream's");
	else if (!str_eq(ev->action, "created"))
		planning_ignore(p, "edited and deleted comments are no commands");
	else if (str_eq(ev->comment_author_type, "Bot"))
		planning_ignore(p, "bots are not heard");
	else if (!ev->comment_body || !strchr(ev->comment_body, '@'))
		planning_ignore(p, "no command");
	else
		read_commands(p);
}
