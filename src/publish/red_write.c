/* An episode's step at GitHub: the issue, a comment under it, its end.
 *
 * Never here: an issue or a comment that was not looked for first. A process that died between
 * GitHub's answer and the note in the store finds its work when it comes back. */
#include "base/alloc.h"
#include "base/log.h"
#include "publish/red_telling.h"

/* GitHub's clock may differ from ours. */
static const int64_t LOOK_BACK_MS = INT64_C(3600) * 1000;

/* The repository says no, and will say so again: issues are disabled there, the App is not
 * installed or may not, the issue was deleted or locked. */
static bool is_refusal(const struct github_result *result)
{
	return result->err && (result->is_final || result->err == ERR_DENIED);
}

static void on_refused(struct telling *t, const struct github_result *result)
{
	log_event(LOG_WARN, "red_issue_refused", LOG_S("accelerator", t->accelerator->name),
	    LOG_S("repository", telling_repository(t)), LOG_S("error", result->why.text));
	if (t->step == RED_LOOK) {
		telling_over(t);
		return;
	}
	if (t->step != RED_TELL) { /* whoever closed the issue to us knows of it */
		telling_note(t, 0);
		return;
	}
	t->is_refused = true;
	telling_by_notice(t);
}

/* False when the call failed; the row, or the step, is taken care of then. */
static bool is_done(struct telling *t, const struct github_call *call)
{
	t->claimed.on_wire = NULL;
	if (!call->result.err)
		return true;
	if (is_refusal(&call->result))
		on_refused(t, &call->result);
	else
		claimed_fail(&t->claimed, &call->result);
	return false;
}

static void on_created(struct github_call *call)
{
	struct telling *t = call->owner;

	if (!is_done(t, call))
		return;
	if (json_get_int(call->answer, "number", 0) > 0) {
		telling_note(t, json_get_int(call->answer, "number", 0));
	} else { /* it is found by the marker next time */
		error_set(&call->result.why, ERR_PROTOCOL, "GitHub's new issue has no number");
		claimed_retry(&t->claimed, &call->result.why, 0);
	}
}

static void create(struct telling *t)
{
	char *github_url, *title, *text;
	struct red_facts facts;

	if (!claimed_may_write(&t->claimed, WRITE_ISSUE) ||
	    !claimed_begin_call(&t->claimed, &t->call, on_created, t))
		return;
	t->claimed.is_uncertain =
	    true; /* the episode may end before anybody knows what came of it */
	facts = telling_facts(t, &github_url);
	title = red_issue_title(&facts);
	text = red_issue_text(&facts);
	github_issue_create(
	    t->claimed.p->deps.github, &t->call, telling_repository(t), title, text);
	free(title);
	free(text);
	free(github_url);
}

static void on_issue_searched(struct github_call *call)
{
	struct telling *t = call->owner;

	if (!is_done(t, call))
		return;
	if (t->search.number > 0)
		telling_note(t, t->search.number);
	else if (t->step == RED_TELL)
		create(t);
	else
		telling_over(t);
}

void telling_find_issue(struct telling *t)
{
	char *marker = red_marker(t->get.episode->id, RED_TELL);

	if (claimed_begin_call(&t->claimed, &t->search.call, on_issue_searched, t)) {
		t->search.since_wall_ms = t->get.episode->first_bad_ms - LOOK_BACK_MS;
		github_issue_find(
		    t->claimed.p->deps.github, &t->search, telling_repository(t), marker);
	}
	free(marker);
}

static void on_closed(struct github_call *call)
{
	struct telling *t = call->owner;

	if (is_done(t, call))
		telling_note(t, 0);
}

/* The comment stands there. */
static void commented(struct telling *t)
{
	if (t->step != RED_CLOSE)
		telling_note(t, 0);
	else if (claimed_may_write(&t->claimed, WRITE_ISSUE) &&
		 claimed_begin_call(&t->claimed, &t->call, on_closed, t))
		github_issue_close(t->claimed.p->deps.github, &t->call, telling_repository(t),
		    t->get.episode->issue_number);
}

static void on_commented(struct github_call *call)
{
	struct telling *t = call->owner;

	if (is_done(t, call))
		commented(t);
}

static void comment(struct telling *t)
{
	char *github_url, *text;
	struct red_facts facts;

	if (!claimed_may_write(&t->claimed, WRITE_ISSUE) ||
	    !claimed_begin_call(&t->claimed, &t->call, on_commented, t))
		return;
	facts = telling_facts(t, &github_url);
	text = red_comment_text(&facts, t->step);
	github_issue_comment(t->claimed.p->deps.github, &t->call, telling_repository(t),
	    t->get.episode->issue_number, text);
	free(text);
	free(github_url);
}

static void on_comment_searched(struct github_call *call)
{
	struct telling *t = call->owner;

	if (!is_done(t, call))
		return;
	if (t->comment_search.comment_id > 0)
		commented(t);
	else
		comment(t);
}

void telling_find_comment(struct telling *t)
{
	char *marker = red_marker(t->get.episode->id, t->step);

	if (claimed_begin_call(&t->claimed, &t->comment_search.call, on_comment_searched, t)) {
		t->comment_search.is_on_issue = true;
		github_comment_find(t->claimed.p->deps.github, &t->comment_search,
		    telling_repository(t), t->get.episode->issue_number, marker);
	}
	free(marker);
}
