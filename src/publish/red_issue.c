/* One claimed RED_ISSUE row: an episode is read, and what it calls for is done, step by step, until
 * nothing is to be done now. Each step is written down before the next one. */
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "publish/red_telling.h"

static void decide(struct telling *t);

static void release(struct claimed *c)
{
	struct telling *t = CONTAINER_OF(c, struct telling, claimed);

	red_episode_free(t->get.episode);
	list_commits_release(&t->commits);
	github_call_release(&t->search.call);
	github_comment_search_release(&t->comment_search);
	github_call_release(&t->call);
	free(t->notice_text);
	free(t);
}

static void log_step(const struct telling *t, enum log_level level, const char *ev)
{
	const struct red_episode *e = t->get.episode;

	log_event(level, ev, LOG_S("accelerator", e->accelerator), LOG_I("episode", e->id),
	    LOG_S("step", red_step_name(t->step)), LOG_S("first_bad", e->first_bad_sha),
	    LOG_S("repository", e->issue_repository), LOG_I("issue", e->issue_number));
}

/* ---- whom it is told to ---- */

const char *telling_repository(const struct telling *t)
{
	const struct accelerator *a = t->accelerator;

	if (t->get.episode->issue_number)
		return t->get.episode->issue_repository;
	for (size_t i = 0; i < a->n_runners; i++) {
		if (a->runners[i].kind == RUNNER_GITHUB)
			return a->runners[i].repository;
		if (a->runners[i].kind == RUNNER_INFRA)
			return t->claimed.config->infra_repository;
	}
	return NULL;
}

static const struct runner *webhook_of(const struct accelerator *a)
{
	for (size_t i = 0; i < a->n_runners; i++)
		if (a->runners[i].kind == RUNNER_WEBHOOK)
			return &a->runners[i];
	return NULL;
}

/* An episode that began without an issue goes on without one. */
static bool has_issue(const struct telling *t)
{
	if (t->is_refused)
		return false;
	return t->get.episode->issue_number ||
	       ((t->step == RED_TELL || t->step == RED_LOOK) && telling_repository(t));
}

/* ---- what was done is written down ---- */

static void on_noted(struct store_op *op)
{
	struct telling *t = CONTAINER_OF(op, struct telling, note.op);
	struct red_episode *e = t->get.episode;

	if (op->err) { /* what was done is found, or goes out once by its key, the next time */
		claimed_retry(&t->claimed, &op->why, 0);
		return;
	}
	if (t->note.issue_number) {
		e->issue_number = t->note.issue_number;
		free(e->issue_repository);
		e->issue_repository = xstrdup(t->note.issue_repository);
	}
	e->told_ms = t->note.told_ms ? t->note.told_ms : e->told_ms;
	e->reminded_ms = t->note.reminded_ms ? t->note.reminded_ms : e->reminded_ms;
	e->overdue_ms = t->note.overdue_ms ? t->note.overdue_ms : e->overdue_ms;
	e->closed_ms = t->note.closed_ms ? t->note.closed_ms : e->closed_ms;
	log_step(t, LOG_INFO, "red_episode_told");
	t->claimed.is_uncertain = false;
	decide(t);
}

void telling_note(struct telling *t, int64_t issue)
{
	int64_t now_ms = clock_wall_ms();

	t->note = (struct note_red_episode){.op = {.done = on_noted},
	    .id = t->get.episode->id,
	    .issue_number = issue,
	    .issue_repository = issue ? telling_repository(t) : NULL,
	    .now_ms = now_ms,
	    .notice = t->notice_text ? &t->notice : NULL};
	switch (t->step) {
	case RED_TELL:
	case RED_LOOK:
		t->note.told_ms = now_ms;
		break;
	case RED_REMIND:
		t->note.reminded_ms = now_ms;
		break;
	case RED_OVERDUE:
		t->note.overdue_ms = now_ms;
		break;
	case RED_CLOSE:
		t->note.closed_ms = now_ms;
		break;
	case RED_WAIT:
	case RED_OVER:
		break;
	}
	if (store_note_red_episode(t->claimed.p->deps.store, &t->note))
		claimed_give_back_soon(&t->claimed);
}

/* ---- without an issue ---- */

struct red_facts telling_facts(const struct telling *t, char **ret_github_url)
{
	struct comment_options options;

	publisher_comment_options(t->claimed.p, t->claimed.config, &options, ret_github_url);
	return (struct red_facts){.episode = t->get.episode,
	    .accelerator = t->accelerator,
	    .commits = &t->commits,
	    .public_url = options.public_url,
	    .github_url = options.github_url};
}

/* The notice goes out by the sender's way, with its signature and its tries. */
void telling_by_notice(struct telling *t)
{
	const struct runner *webhook = webhook_of(t->accelerator);
	char *github_url;
	struct red_facts facts;

	free(t->notice_text);
	t->notice_text = NULL;
	if (!webhook) {
		if (t->step == RED_TELL)
			log_step(t, LOG_WARN, "red_episode_untold");
		telling_note(t, 0);
		return;
	}
	facts = telling_facts(t, &github_url);
	t->notice_text = red_notice_text(&facts, t->step);
	free(github_url);
	t->notice = (struct notice_request){.episode = t->get.episode->id,
	    .event = red_step_name(t->step),
	    .accelerator = t->accelerator->name,
	    .runner = webhook->name,
	    .url = webhook->url,
	    .text = t->notice_text};
	telling_note(t, 0);
}

/* ---- what is to be done now ---- */

void telling_over(struct telling *t)
{
	t->claimed.is_uncertain = false;
	claimed_give_back(&t->claimed, OUTBOX_OK, 0, NULL);
}

static void act(struct telling *t)
{
	if (!has_issue(t) && t->step == RED_LOOK) /* it can have none any more */
		telling_over(t);
	else if (!has_issue(t))
		telling_by_notice(t);
	else if (t->step == RED_TELL || t->step == RED_LOOK)
		telling_find_issue(t);
	else
		telling_find_comment(t);
}

static void on_commits(struct store_query *q)
{
	/* a list that could not be read is left out */
	act(CONTAINER_OF(q, struct telling, commits.q));
}

static void list_commits(struct telling *t)
{
	const struct red_episode *e = t->get.episode;

	list_commits_release(&t->commits);
	t->commits = (struct list_commits){.q = {.done = on_commits},
	    .repository = e->repository,
	    .ref = e->ref,
	    .after = e->last_good_sha,
	    .until = e->first_bad_sha,
	    .limit = RED_COMMITS_MAX};
	if (store_list_commits(t->claimed.p->deps.store, &t->commits))
		claimed_give_back_soon(&t->claimed);
}

static void decide(struct telling *t)
{
	int64_t next_ms;

	t->step = red_step_next(t->get.episode, t->claimed.is_uncertain, clock_wall_ms(), &next_ms);
	switch (t->step) {
	case RED_TELL:
	case RED_LOOK:
	case RED_REMIND:
	case RED_OVERDUE:
	case RED_CLOSE:
		if (t->get.episode->last_good_sha)
			list_commits(t);
		else
			act(t);
		break;
	case RED_WAIT:
		t->claimed.again_ms = next_ms;
		claimed_give_back(&t->claimed, OUTBOX_OK, 0, NULL);
		break;
	case RED_OVER:
		telling_over(t);
		break;
	}
}

/* Who left the registry, or went to L1, is told nothing more. A wish comes with its next red push. */
static bool is_to_be_told(struct telling *t)
{
	t->accelerator = config_accelerator(t->claimed.config, t->get.episode->accelerator);
	return t->accelerator && t->accelerator->level > LEVEL_1 && t->get.episode->repository &&
	       t->get.episode->first_bad_sha;
}

static void on_episode(struct store_query *q)
{
	struct telling *t = CONTAINER_OF(q, struct telling, get.q);

	if (q->err == ERR_NOT_FOUND)
		claimed_give_back(&t->claimed, OUTBOX_OK, 0, NULL);
	else if (q->err)
		claimed_retry(&t->claimed, &q->why, 0);
	else if (!is_to_be_told(t))
		claimed_give_back(&t->claimed, OUTBOX_OK, 0, NULL);
	else
		decide(t);
}

void red_issue_start(struct publisher *p, struct outbox_row *row)
{
	struct telling *t = xcalloc(1, sizeof(*t));

	if (!claimed_start(&t->claimed, p, row, "red_issue", release))
		return;
	t->get = (struct get_red_episode){.q = {.done = on_episode}, .id = t->claimed.row.number};
	if (store_get_red_episode(p->deps.store, &t->get))
		claimed_give_back_soon(&t->claimed);
}
