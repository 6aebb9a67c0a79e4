/* One claimed RED_ISSUE row: reads the episode and does the step that it calls for, until nothing is to be done now. Each step is
 * recorded before the next one begins.
 *
 * An issue or a comment is always looked for before it is created: a process that died between GitHub's answer and the record
 * finds its work when it comes back.
 *
 * Thread: loop. */

#include "publish/publish_internal.h"

struct telling {
	struct claimed claimed;
	const struct accelerator *accelerator; /* borrowed from the config */
	struct get_red_episode get;
	struct list_commits commits;
	struct github_issue_search search;
	struct github_comment_search comment_search;
	struct github_call call;
	struct note_red_episode note;
	struct notice_request notice;
	char *notice_text;
	enum red_step step;
	bool is_refused; /* the repository takes no issue */
};

static void decide_red_step(struct telling *t);

static void release_red_issue(struct effect *e)
{
	struct telling *t = CONTAINER_OF(e, struct telling, claimed.effect);

	red_episode_free(t->get.episode);
	list_commits_release(&t->commits);
	github_call_release(&t->search.call);
	github_comment_search_release(&t->comment_search);
	github_call_release(&t->call);
	free(t->notice_text);
	claimed_release(&t->claimed);
}

static void log_step(const struct telling *t, enum log_level level, const char *ev)
{
	const struct red_episode *e = t->get.episode;

	log_event(level, ev, LOG_S("accelerator", e->accelerator), LOG_I("episode", e->id),
	    LOG_S("step", red_step_name(t->step)), LOG_S("first_bad", e->first_bad_sha),
	    LOG_S("repository", e->issue_repository), LOG_I("issue", e->issue_number));
}

/* ---- whom it is told to ---- */

static const char *telling_repository(const struct telling *t)
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

/* An episode that began without an issue goes on without one. */
static bool has_issue(const struct telling *t)
{
	if (t->is_refused)
		return false;
	return t->get.episode->issue_number || ((t->step == RED_TELL || t->step == RED_LOOK) && telling_repository(t));
}

/* ---- what was done is written down ---- */

static void on_issue_noted(struct store_op *op)
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
	t->claimed.effect.is_uncertain = false;
	decide_red_step(t);
}

static void telling_note(struct telling *t, int64_t issue)
{
	int64_t now_ms = clock_wall_ms();

	t->note = (struct note_red_episode){.op = {.done = on_issue_noted},
	    .id = t->get.episode->id,
	    .issue_number = issue,
	    .issue_repository = issue ? telling_repository(t) : NULL,
	    .told_ms = t->step == RED_TELL || t->step == RED_LOOK ? now_ms : 0,
	    .reminded_ms = t->step == RED_REMIND ? now_ms : 0,
	    .overdue_ms = t->step == RED_OVERDUE ? now_ms : 0,
	    .closed_ms = t->step == RED_CLOSE ? now_ms : 0,
	    .now_ms = now_ms,
	    .notice = t->notice_text ? &t->notice : NULL};
	if (store_note_red_episode(t->claimed.p->deps.store, &t->note))
		claimed_end_busy(&t->claimed);
}

/* ---- without an issue ---- */

static struct red_facts telling_facts(const struct telling *t, char **ret_github_url)
{
	struct comment_options options;

	publisher_comment_options(t->claimed.p, t->claimed.config, &options, ret_github_url);
	return (struct red_facts){.episode = t->get.episode,
	    .accelerator = t->accelerator,
	    .commits = &t->commits,
	    .public_url = options.public_url,
	    .github_url = options.github_url};
}

/* The sender sends the notice, signs it and retries it. */
static void telling_by_notice(struct telling *t)
{
	const struct accelerator *a = t->accelerator;
	size_t i = 0;

	FREE_AND_NULL(t->notice_text);
	while (i < a->n_runners && a->runners[i].kind != RUNNER_WEBHOOK)
		i++;
	if (i < a->n_runners) {
		char *github_url;
		struct red_facts facts = telling_facts(t, &github_url);

		t->notice_text = red_notice_text(&facts, t->step);
		free(github_url);
		t->notice = (struct notice_request){.episode = t->get.episode->id,
		    .event = red_step_name(t->step),
		    .accelerator = a->name,
		    .runner = a->runners[i].name,
		    .url = a->runners[i].url,
		    .text = t->notice_text};
	} else if (t->step == RED_TELL) {
		log_step(t, LOG_WARN, "red_episode_untold");
	}
	telling_note(t, 0);
}

static void telling_over(struct telling *t)
{
	t->claimed.effect.is_uncertain = false;
	claimed_end(&t->claimed, OUTBOX_OK, 0, NULL);
}

/* ---- the step at GitHub ---- */

/* GitHub's clock may differ from ours. */
static const int64_t LOOK_BACK_MS = INT64_C(3600) * 1000;

static void on_issue_refused(struct telling *t, const struct github_result *result)
{
	log_event(LOG_WARN, "red_issue_refused", LOG_S("accelerator", t->accelerator->name),
	    LOG_S("repository", telling_repository(t)), LOG_S("error", result->why.text));
	if (t->step == RED_LOOK) {
		telling_over(t);
		return;
	}
	if (t->step != RED_TELL) { /* a person closed the issue, and knows of it */
		telling_note(t, 0);
		return;
	}
	t->is_refused = true;
	telling_by_notice(t);
}

/* False when the call failed; the row, or the step, is taken care of then. */
static bool end_issue_call(struct telling *t, const struct github_call *call)
{
	const struct github_result *result = &call->result;

	t->claimed.on_wire = NULL;
	if (!result->err)
		return true;
	/* The repository refuses, and will refuse again: its issues are disabled, the App is not installed or lacks the
	 * permission, or the issue was deleted or locked. */
	if (result->is_final || result->err == ERR_DENIED)
		on_issue_refused(t, result);
	else
		claimed_fail(&t->claimed, result);
	return false;
}

static void on_created(struct github_call *call)
{
	struct telling *t = call->owner;

	if (!end_issue_call(t, call))
		return;
	if (json_get_int(call->answer, "number", 0) > 0) {
		telling_note(t, json_get_int(call->answer, "number", 0));
	} else { /* it is found by the marker next time */
		error_set(&call->result.why, ERR_PROTOCOL, "GitHub's new issue has no number");
		claimed_retry(&t->claimed, &call->result.why, 0);
	}
}

static void create_issue(struct telling *t)
{
	char *github_url, *title, *text;

	if (!effect_may_write(&t->claimed.effect, WRITE_ISSUE) ||
	    !claimed_begin_call(&t->claimed, &t->call, on_created, t))
		return;
	t->claimed.effect.is_uncertain = true; /* the episode may end before anybody knows what came of it */
	struct red_facts facts = telling_facts(t, &github_url);
	title = red_issue_title(&facts);
	text = red_issue_text(&facts);
	github_issue_create(t->claimed.p->deps.github, &t->call, telling_repository(t), title, text);
	FREE_ALL(title, text, github_url);
}

static void on_issue_searched(struct github_call *call)
{
	struct telling *t = call->owner;

	if (!end_issue_call(t, call))
		return;
	if (t->search.number > 0)
		telling_note(t, t->search.number);
	else if (t->step == RED_TELL)
		create_issue(t);
	else
		telling_over(t);
}

static void on_closed(struct github_call *call)
{
	struct telling *t = call->owner;

	if (end_issue_call(t, call))
		telling_note(t, 0);
}

/* The comment stands there. */
static void issue_is_commented(struct telling *t)
{
	if (t->step != RED_CLOSE)
		telling_note(t, 0);
	else if (effect_may_write(&t->claimed.effect, WRITE_ISSUE) &&
		 claimed_begin_call(&t->claimed, &t->call, on_closed, t))
		github_issue_close(
		    t->claimed.p->deps.github, &t->call, telling_repository(t), t->get.episode->issue_number);
}

static void on_commented(struct github_call *call)
{
	struct telling *t = call->owner;

	if (end_issue_call(t, call))
		issue_is_commented(t);
}

static void on_comment_searched(struct github_call *call)
{
	struct telling *t = call->owner;

	if (!end_issue_call(t, call))
		return;
	if (t->comment_search.comment_id > 0)
		issue_is_commented(t);
	else {
		char *github_url, *text;
		struct red_facts facts;

		if (!effect_may_write(&t->claimed.effect, WRITE_ISSUE) ||
		    !claimed_begin_call(&t->claimed, &t->call, on_commented, t))
			return;
		facts = telling_facts(t, &github_url);
		text = red_comment_text(&facts, t->step);
		github_issue_comment(
		    t->claimed.p->deps.github, &t->call, telling_repository(t), t->get.episode->issue_number, text);
		FREE_ALL(text, github_url);
	}
}

static void telling_find_comment(struct telling *t)
{
	char *marker = red_marker(t->get.episode->id, t->step);

	if (claimed_begin_call(&t->claimed, &t->comment_search.call, on_comment_searched, t)) {
		t->comment_search.is_on_issue = true;
		github_comment_find(t->claimed.p->deps.github, &t->comment_search, telling_repository(t),
		    t->get.episode->issue_number, marker);
	}
	free(marker);
}

/* ---- what is to be done now ---- */

static void do_red_step(struct telling *t)
{
	if (!has_issue(t) && t->step == RED_LOOK) /* it can have none any more */
		telling_over(t);
	else if (!has_issue(t))
		telling_by_notice(t);
	else if (t->step == RED_TELL || t->step == RED_LOOK) {
		char *marker = red_marker(t->get.episode->id, RED_TELL);

		if (claimed_begin_call(&t->claimed, &t->search.call, on_issue_searched, t)) {
			t->search.since_wall_ms = t->get.episode->first_bad_ms - LOOK_BACK_MS;
			github_issue_find(t->claimed.p->deps.github, &t->search, telling_repository(t), marker);
		}
		free(marker);
	} else
		telling_find_comment(t);
}

static void on_commits(struct store_query *q)
{
	/* a list that could not be read is left out */
	do_red_step(CONTAINER_OF(q, struct telling, commits.q));
}

static void decide_red_step(struct telling *t)
{
	const struct red_episode *e = t->get.episode;
	int64_t next_ms;

	t->step = red_step_next(e, t->claimed.effect.is_uncertain, clock_wall_ms(), &next_ms);
	if (t->step == RED_OVER) {
		telling_over(t);
	} else if (t->step == RED_WAIT) {
		t->claimed.again_ms = next_ms;
		claimed_end(&t->claimed, OUTBOX_OK, 0, NULL);
	} else if (!e->last_good_sha) {
		do_red_step(t);
	} else {
		list_commits_release(&t->commits);
		t->commits = (struct list_commits){.q = {.done = on_commits},
		    .repository = e->repository,
		    .ref = e->ref,
		    .after = e->last_good_sha,
		    .until = e->first_bad_sha,
		    .limit = RED_COMMITS_MAX};
		if (store_list_commits(t->claimed.p->deps.store, &t->commits))
			claimed_end_busy(&t->claimed);
	}
}

static void on_episode(struct store_query *q)
{
	struct telling *t = CONTAINER_OF(q, struct telling, get.q);
	const struct red_episode *e = t->get.episode;

	if (q->err && q->err != ERR_NOT_FOUND) {
		claimed_retry(&t->claimed, &q->why, 0);
		return;
	}
	/* An accelerator that left the registry or went to L1 gets no more messages. Its next red push starts anew. */
	const struct accelerator *a = q->err ? NULL : config_accelerator(t->claimed.config, e->accelerator);
	t->accelerator = a;
	if (!a || a->level <= LEVEL_1 || !e->repository || !e->first_bad_sha)
		claimed_end(&t->claimed, OUTBOX_OK, 0, NULL);
	else
		decide_red_step(t);
}

static void begin_red_issue(struct effect *e)
{
	struct telling *t = CONTAINER_OF(e, struct telling, claimed.effect);

	claimed_begin(&t->claimed, "red_issue");
	t->get = (struct get_red_episode){.q = {.done = on_episode}, .id = t->claimed.effect.row.number};
	if (store_get_red_episode(t->claimed.p->deps.store, &t->get))
		claimed_end_busy(&t->claimed);
}

const struct effect_kind red_issue_kind = {.kind = OUTBOX_RED_ISSUE,
    .lane = RED_ISSUE_LANE,
    .bytes = sizeof(struct telling),
    .begin = begin_red_issue,
    .cancel = claimed_cancel,
    .release = release_red_issue};
