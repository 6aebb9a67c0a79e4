/* One claimed RED_ISSUE row: reads the episode and does its next step, until nothing is left to do now. Each step is recorded
 * before the next one begins.
 *
 * A search comes before each new issue or comment. So a process that died between GitHub's answer and the record finds its
 * work after the restart.
 *
 * Thread: loop. */

#include "publish/publish_internal.h"

struct red_issue {
	struct claimed claimed;
	const struct accelerator *accelerator; /* borrowed from the config */
	struct get_red_episode get;
	struct list_commits commits;
	struct github_issue_search search;
	struct github_comment_search comment_search;
	struct note_red_episode note;
	struct notice_request notice;
	char *notice_text;
	enum red_step step;
	bool is_refused; /* the repository takes no issue */
};

static void decide_red_step(struct red_issue *r);

static void release_red_issue(struct effect *e)
{
	struct red_issue *r = CONTAINER_OF(e, struct red_issue, claimed.effect);

	red_episode_free(r->get.episode);
	list_commits_release(&r->commits);
	github_call_release(&r->search.call);
	github_comment_search_release(&r->comment_search);
	free(r->notice_text);
	claimed_release(&r->claimed);
}

static void log_red_step(const struct red_issue *r, enum log_level level, const char *ev)
{
	const struct red_episode *e = r->get.episode;

	log_event(level, ev, LOG_S("accelerator", e->accelerator), LOG_I("episode", e->id),
	    LOG_S("step", red_step_name(r->step)), LOG_S("first_bad", e->first_bad_sha),
	    LOG_S("repository", e->issue_repository), LOG_I("issue", e->issue_number));
}

/* ---- the repository of the issue ---- */

static const char *red_issue_repository(const struct red_issue *r)
{
	const struct accelerator *a = r->accelerator;

	if (r->get.episode->issue_number)
		return r->get.episode->issue_repository;
	for (size_t i = 0; i < a->n_runners; i++) {
		if (a->runners[i].kind == RUNNER_GITHUB)
			return a->runners[i].repository;
		if (a->runners[i].kind == RUNNER_INFRA)
			return r->claimed.config->infra_repository;
	}
	return NULL;
}

static bool is_about_issue(enum red_step step) { return step == RED_OPEN || step == RED_FIND; }

/* An episode that began without an issue goes on without one. */
static bool has_issue(const struct red_issue *r)
{
	return !r->is_refused && (r->get.episode->issue_number || (is_about_issue(r->step) && red_issue_repository(r)));
}

/* ---- recording a step ---- */

static void on_red_step_recorded(struct store_op *op)
{
	struct red_issue *r = CONTAINER_OF(op, struct red_issue, note.op);
	struct red_episode *e = r->get.episode;

	/* After a failure the next attempt finds the issue or the comment; a notice goes out once, by its key. */
	if (!claimed_is_stored(&r->claimed, op->err, &op->why))
		return;
	if (r->note.issue_number) {
		e->issue_number = r->note.issue_number;
		free(e->issue_repository);
		e->issue_repository = xstrdup(r->note.issue_repository);
	}
	e->notified_ms = r->note.notified_ms ? r->note.notified_ms : e->notified_ms;
	e->reminded_ms = r->note.reminded_ms ? r->note.reminded_ms : e->reminded_ms;
	e->overdue_ms = r->note.overdue_ms ? r->note.overdue_ms : e->overdue_ms;
	e->closed_ms = r->note.closed_ms ? r->note.closed_ms : e->closed_ms;
	log_red_step(r, LOG_INFO, "red_episode_notified");
	r->claimed.effect.is_uncertain = false;
	decide_red_step(r);
}

static void record_red_step(struct red_issue *r, int64_t issue)
{
	int64_t now_ms = clock_wall_ms();

	r->note = (struct note_red_episode){.op = {.done = on_red_step_recorded},
	    .id = r->get.episode->id,
	    .issue_number = issue,
	    .issue_repository = issue ? red_issue_repository(r) : NULL,
	    .notified_ms = is_about_issue(r->step) ? now_ms : 0,
	    .reminded_ms = r->step == RED_REMIND ? now_ms : 0,
	    .overdue_ms = r->step == RED_OVERDUE ? now_ms : 0,
	    .closed_ms = r->step == RED_CLOSE ? now_ms : 0,
	    .now_ms = now_ms,
	    .notice = r->notice_text ? &r->notice : NULL};
	if (store_note_red_episode(r->claimed.store, &r->note))
		claimed_end_busy(&r->claimed);
}

/* ---- without an issue ---- */

static struct red_facts red_issue_facts(const struct red_issue *r)
{
	return (struct red_facts){.episode = r->get.episode,
	    .accelerator = r->accelerator,
	    .commits = &r->commits,
	    .public_url = r->claimed.config->public_url,
	    .github_url = r->claimed.github_url};
}

/* The sender sends the notice, signs it and retries it. */
static void record_red_notice(struct red_issue *r)
{
	const struct accelerator *a = r->accelerator;
	size_t i = 0;

	FREE_AND_NULL(r->notice_text);
	while (i < a->n_runners && a->runners[i].kind != RUNNER_WEBHOOK)
		i++;
	if (i < a->n_runners) {
		struct red_facts facts = red_issue_facts(r);

		r->notice_text = red_notice_text(&facts, r->step);
		r->notice = (struct notice_request){.episode = r->get.episode->id,
		    .event = red_step_name(r->step),
		    .accelerator = a->name,
		    .runner = a->runners[i].name,
		    .url = a->runners[i].url,
		    .text = r->notice_text};
	} else if (r->step == RED_OPEN) {
		log_red_step(r, LOG_WARN, "red_episode_not_notified");
	}
	record_red_step(r, 0);
}

static void end_red_issue(struct red_issue *r)
{
	r->claimed.effect.is_uncertain = false;
	claimed_end_ok(&r->claimed);
}

/* ---- the step at GitHub ---- */

/* GitHub's clock may differ from ours. */
static const int64_t LOOK_BACK_MS = INT64_C(3600) * 1000;

/* False: the call failed, and the row has ended or the step goes on without an issue. */
static bool is_issue_call_good(struct red_issue *r, const struct github_result *result)
{
	/* The repository refuses, and will refuse again: its issues are disabled, the App is not installed or lacks the
	 * permission, or the issue was deleted or locked. */
	if (!result->err || (!result->is_final && result->err != ERR_DENIED))
		return claimed_is_answered(&r->claimed, result);
	log_event(LOG_WARN, "red_issue_refused", LOG_S("accelerator", r->accelerator->name),
	    LOG_S("repository", red_issue_repository(r)), LOG_S("error", result->why.text));
	if (r->step == RED_FIND) {
		end_red_issue(r);
	} else if (r->step == RED_OPEN) {
		r->is_refused = true;
		record_red_notice(r);
	} else { /* a person closed the issue, and knows of it */
		record_red_step(r, 0);
	}
	return false;
}

static void on_issue_created(struct claimed *c, struct github_call *call)
{
	struct red_issue *r = CONTAINER_OF(c, struct red_issue, claimed);
	int64_t number = json_get_int(call->answer, "number", 0);

	if (!is_issue_call_good(r, &call->result))
		return;
	if (number > 0) {
		record_red_step(r, number);
	} else { /* the next attempt finds it by its marker */
		error_set(&call->result.why, ERR_PROTOCOL, "GitHub's new issue has no number");
		claimed_retry(c, &call->result.why, 0);
	}
}

static void create_issue(struct red_issue *r)
{
	struct claimed *c = &r->claimed;

	if (!effect_may_write(&c->effect, WRITE_ISSUE) || !claimed_begin_call(c, &c->call, on_issue_created))
		return;
	c->effect.is_uncertain = true; /* the episode may end before GitHub's answer comes */
	struct red_facts facts = red_issue_facts(r);
	char *title = red_issue_title(&facts), *text = red_issue_text(&facts);

	github_issue_create(c->github, &c->call, red_issue_repository(r), title, text);
	FREE_ALL(title, text);
}

static void on_issue_searched(struct claimed *c, struct github_call *call)
{
	struct red_issue *r = CONTAINER_OF(c, struct red_issue, claimed);

	if (!is_issue_call_good(r, &call->result))
		return;
	if (r->search.number > 0)
		record_red_step(r, r->search.number);
	else if (r->step == RED_OPEN)
		create_issue(r);
	else
		end_red_issue(r);
}

static void find_issue(struct red_issue *r)
{
	struct claimed *c = &r->claimed;
	char *marker = red_marker(r->get.episode->id, RED_OPEN);

	if (claimed_begin_call(c, &r->search.call, on_issue_searched)) {
		r->search.since_wall_ms = r->get.episode->first_bad_ms - LOOK_BACK_MS;
		github_issue_find(c->github, &r->search, red_issue_repository(r), marker);
	}
	free(marker);
}

static void on_issue_closed(struct claimed *c, struct github_call *call)
{
	struct red_issue *r = CONTAINER_OF(c, struct red_issue, claimed);

	if (is_issue_call_good(r, &call->result))
		record_red_step(r, 0);
}

/* The issue has the step's comment. */
static void finish_issue_comment(struct red_issue *r)
{
	struct claimed *c = &r->claimed;

	if (r->step != RED_CLOSE)
		record_red_step(r, 0);
	else if (effect_may_write(&c->effect, WRITE_ISSUE) && claimed_begin_call(c, &c->call, on_issue_closed))
		github_issue_close(c->github, &c->call, red_issue_repository(r), r->get.episode->issue_number);
}

static void on_issue_commented(struct claimed *c, struct github_call *call)
{
	struct red_issue *r = CONTAINER_OF(c, struct red_issue, claimed);

	if (is_issue_call_good(r, &call->result))
		finish_issue_comment(r);
}

static void on_issue_comment_searched(struct claimed *c, struct github_call *call)
{
	struct red_issue *r = CONTAINER_OF(c, struct red_issue, claimed);

	if (!is_issue_call_good(r, &call->result))
		return;
	if (r->comment_search.comment_id > 0) {
		finish_issue_comment(r);
	} else if (effect_may_write(&c->effect, WRITE_ISSUE) && claimed_begin_call(c, &c->call, on_issue_commented)) {
		struct red_facts facts = red_issue_facts(r);
		char *text = red_comment_text(&facts, r->step);

		github_issue_comment(c->github, &c->call, red_issue_repository(r), r->get.episode->issue_number, text);
		free(text);
	}
}

static void find_issue_comment(struct red_issue *r)
{
	struct claimed *c = &r->claimed;
	char *marker = red_marker(r->get.episode->id, r->step);

	if (claimed_begin_call(c, &r->comment_search.call, on_issue_comment_searched)) {
		r->comment_search.is_on_issue = true;
		github_comment_find(
		    c->github, &r->comment_search, red_issue_repository(r), r->get.episode->issue_number, marker);
	}
	free(marker);
}

/* ---- the next step ---- */

static void do_red_step(struct red_issue *r)
{
	if (!has_issue(r) && r->step == RED_FIND) /* no repository takes an issue any more */
		end_red_issue(r);
	else if (!has_issue(r))
		record_red_notice(r);
	else if (is_about_issue(r->step))
		find_issue(r);
	else
		find_issue_comment(r);
}

static void on_commits(struct store_query *q)
{
	/* a list that could not be read is left out */
	do_red_step(CONTAINER_OF(q, struct red_issue, commits.q));
}

static void decide_red_step(struct red_issue *r)
{
	const struct red_episode *e = r->get.episode;
	int64_t next_ms;

	r->step = red_step_next(e, r->claimed.effect.is_uncertain, clock_wall_ms(), &next_ms);
	if (r->step == RED_OVER) {
		end_red_issue(r);
	} else if (r->step == RED_WAIT) {
		r->claimed.again_ms = next_ms;
		claimed_end_ok(&r->claimed);
	} else if (!e->last_good_sha) {
		do_red_step(r);
	} else {
		list_commits_release(&r->commits);
		r->commits = (struct list_commits){.q = {.done = on_commits},
		    .repository = e->repository,
		    .ref = e->ref,
		    .after = e->last_good_sha,
		    .until = e->first_bad_sha,
		    .limit = RED_COMMITS_MAX};
		if (store_list_commits(r->claimed.store, &r->commits))
			claimed_end_busy(&r->claimed);
	}
}

static void on_episode(struct store_query *q)
{
	struct red_issue *r = CONTAINER_OF(q, struct red_issue, get.q);
	const struct red_episode *e = r->get.episode;

	if (q->err != ERR_NOT_FOUND && !claimed_is_stored(&r->claimed, q->err, &q->why))
		return;
	/* An accelerator that left the registry or went to L1 gets no more messages. Its next red push begins an episode. */
	const struct accelerator *a = q->err ? NULL : config_accelerator(r->claimed.config, e->accelerator);
	r->accelerator = a;
	if (!a || a->level <= LEVEL_1 || !e->repository || !e->first_bad_sha)
		claimed_end_ok(&r->claimed);
	else
		decide_red_step(r);
}

static void begin_red_issue(struct effect *e)
{
	struct red_issue *r = CONTAINER_OF(e, struct red_issue, claimed.effect);

	claimed_begin(&r->claimed, "red_issue");
	r->get = (struct get_red_episode){.q = {.done = on_episode}, .id = r->claimed.number};
	if (store_get_red_episode(r->claimed.store, &r->get))
		claimed_end_busy(&r->claimed);
}

const struct effect_kind red_issue_kind =
    CLAIMED_KIND(OUTBOX_RED_ISSUE, RED_ISSUE_LANE, struct red_issue, begin_red_issue, release_red_issue);
