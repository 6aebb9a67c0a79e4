/* Comments, reactions and issues. A comment or an issue counts as ours only if the App is its author and it has the
 * marker: the marker alone can be forged, and the App may have written older texts without it. */
#include "github/github_internal.h"

enum {
	COMMENT_PAGES_MAX = 50, /* 5,000 comments */
	ISSUE_PAGES_MAX = 10,   /* 1,000 issues and pull requests */
	LIST_BYTES_MAX = 16 * 1024 * 1024,
};

/* `id` is the name of its number: "id" or "number". The marker must be a line of its own: within a line
 * it may be a quotation. */
static bool is_ours(const struct request *r, const json_t *entry, const char *id)
{
	const char *body = json_get_str(entry, "body"), *marker = r->spec.marker;
	const char *author = json_get_str(json_object_get(entry, "user"), "login");
	size_t n = strlen(marker);

	if (!body || json_get_int(entry, id, 0) <= 0 || !str_eq(author, r->g->bot_login))
		return false;
	for (const char *at = body; (at = strstr(at, marker)); at += n)
		if ((at == body || at[-1] == '\n') && (!at[n] || at[n] == '\n' || at[n] == '\r'))
			return true;
	return false;
}

static json_t *text_json(const char *key, const char *text)
{
	json_t *o = json_object();

	json_set_str(o, key, text);
	return o;
}

/* ---- comments ---- */

static enum request_next on_comments(struct request *r)
{
	struct github_comment_search *s = CONTAINER_OF(r->call, struct github_comment_search, call);
	json_t *comment;
	size_t i;

	json_array_foreach(r->call->answer, i, comment)
	{
		if (!is_ours(r, comment, "id"))
			continue;
		s->comment_id = json_get_int(comment, "id", 0);
		s->text = xstrdup(json_get_str(comment, "body"));
		github_call_release(r->call);
		return REQUEST_DONE;
	}
	return request_next_page(r, COMMENT_PAGES_MAX);
}

void github_comment_find(
    struct github *g, struct github_comment_search *search, const char *repository, int64_t number, const char *marker)
{
	github_comment_search_release(search);
	search->comment_id = 0;
	request_start(g, &search->call,
	    &(struct request_spec){.access = search->is_on_issue ? ACCESS_ISSUES : ACCESS_COMMENT,
		.what = "looking for the comment",
		.repository = repository,
		.path = xasprintf("/repos/%s/issues/%lld/comments?per_page=100", repository, (long long)number),
		.page = 1,
		.needs_login = true,
		.max_answer_bytes = LIST_BYTES_MAX,
		.answer = ANSWER_ARRAY,
		.on_answer = on_comments,
		.marker = xstrdup(marker)});
}

void github_comment_search_release(struct github_comment_search *search)
{
	FREE_AND_NULL(search->text);
	github_call_release(&search->call);
}

void github_comment_create(
    struct github *g, struct github_call *call, const char *repository, int64_t number, const char *text)
{
	request_write(g, call, ACCESS_COMMENT, "POST", "new comment", repository,
	    xasprintf("/repos/%s/issues/%lld/comments", repository, (long long)number), text_json("body", text));
}

void github_comment_update(
    struct github *g, struct github_call *call, const char *repository, int64_t comment_id, const char *text)
{
	request_write(g, call, ACCESS_COMMENT, "PATCH", "comment's new text", repository,
	    xasprintf("/repos/%s/issues/comments/%lld", repository, (long long)comment_id), text_json("body", text));
}

void github_comment_react(
    struct github *g, struct github_call *call, const char *repository, int64_t comment_id, const char *content)
{
	request_write(g, call, ACCESS_COMMENT, "POST", "reaction", repository,
	    xasprintf("/repos/%s/issues/comments/%lld/reactions", repository, (long long)comment_id),
	    text_json("content", content));
}

/* ---- issues ---- */

static enum request_next on_issues(struct request *r)
{
	struct github_issue_search *s = CONTAINER_OF(r->call, struct github_issue_search, call);
	bool is_over = false;
	int64_t created_ms;
	json_t *issue;
	size_t i;

	json_array_foreach(r->call->answer, i, issue)
	{
		const char *created = json_get_str(issue, "created_at");

		if (is_ours(r, issue, "number") && !json_object_get(issue, "pull_request")) {
			s->number = json_get_int(issue, "number", 0);
			break;
		}
		if (created && !rfc3339_parse(created, &created_ms) && created_ms < s->since_wall_ms)
			is_over = true;
	}
	if (s->number || is_over) {
		github_call_release(r->call);
		return REQUEST_DONE;
	}
	return request_next_page(r, ISSUE_PAGES_MAX);
}

/* Newest first, so that the search can stop at the first issue that is older than it needs. */
void github_issue_find(struct github *g, struct github_issue_search *search, const char *repository, const char *marker)
{
	search->number = 0;
	request_start(g, &search->call,
	    &(struct request_spec){.access = ACCESS_ISSUES,
		.what = "looking for the issue",
		.repository = repository,
		.path = xasprintf("/repos/%s/issues?state=all&sort=created&direction=desc&per_page=100", repository),
		.page = 1,
		.needs_login = true,
		.max_answer_bytes = LIST_BYTES_MAX,
		.answer = ANSWER_ARRAY,
		.on_answer = on_issues,
		.marker = xstrdup(marker)});
}

void github_issue_create(
    struct github *g, struct github_call *call, const char *repository, const char *title, const char *text)
{
	json_t *body = text_json("title", title);

	json_set_str(body, "body", text);
	request_write(
	    g, call, ACCESS_ISSUES, "POST", "issue", repository, xasprintf("/repos/%s/issues", repository), body);
}

void github_issue_close(struct github *g, struct github_call *call, const char *repository, int64_t number)
{
	json_t *body = text_json("state", "closed");

	json_set_str(body, "state_reason", "completed");
	request_write(g, call, ACCESS_ISSUES, "PATCH", "issue", repository,
	    xasprintf("/repos/%s/issues/%lld", repository, (long long)number), body);
}

void github_issue_comment(
    struct github *g, struct github_call *call, const char *repository, int64_t number, const char *text)
{
	request_write(g, call, ACCESS_ISSUES, "POST", "issue", repository,
	    xasprintf("/repos/%s/issues/%lld/comments", repository, (long long)number), text_json("body", text));
}
