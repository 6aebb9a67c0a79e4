/* Issues in vendors' repositories. Like comments, an issue is ours only when its author is the App
 * and it bears the marker. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "github/github_internal.h"

enum {
	PAGES_MAX = 10, /* 1,000 issues and pull requests since then */
	LIST_BYTES_MAX = 16 * 1024 * 1024,
};

/* Newest first, so that the look can end at what is older than what is looked for. */
static char *list_path(const char *repository, int page)
{
	return xasprintf("/repos/%s/issues?state=all&sort=created&direction=desc&per_page=100"
			 "&page=%d",
	    repository, page);
}

static void go_to_list(struct request *r, int page)
{
	r->spec.access = ACCESS_ISSUES;
	r->spec.answer = ANSWER_ARRAY;
	r->spec.page = page;
	request_go_to(r, list_path(r->repository, page));
}

static bool is_ours(const struct github *g, const json_t *issue, const char *marker)
{
	const char *body = json_get_str(issue, "body");

	return body && body_is_marked(body, marker) && json_get_int(issue, "number", 0) > 0 &&
	       !json_object_get(issue, "pull_request") &&
	       str_eq(json_get_str(json_object_get(issue, "user"), "login"), g->bot_login);
}

static bool is_older(const json_t *issue, int64_t since_wall_ms)
{
	const char *created = json_get_str(issue, "created_at");
	int64_t created_ms;

	return created && !rfc3339_parse(created, &created_ms) && created_ms < since_wall_ms;
}

static bool on_author(struct request *r)
{
	if (!app_read(r))
		return false;
	if (r->call->result.err)
		return true;
	go_to_list(r, 1);
	return false;
}

static bool on_list(struct request *r)
{
	struct github_issue_search *s = CONTAINER_OF(r->call, struct github_issue_search, call);
	bool is_over = false;
	char next[2048];
	json_t *issue;
	size_t i;

	if (r->spec.access == ACCESS_APP)
		return on_author(r);
	if (!r->g->bot_login) { /* another App since the search began */
		request_go_to_app(r);
		return false;
	}
	json_array_foreach(r->call->answer, i, issue)
	{
		if (is_ours(r->g, issue, r->spec.text)) {
			s->number = json_get_int(issue, "number", 0);
			break;
		}
		is_over = is_over || is_older(issue, s->since_wall_ms);
	}
	github_call_release(r->call);
	if (s->number || is_over || r->spec.page >= PAGES_MAX ||
	    !pages_next_url(r, next, sizeof(next)))
		return true;
	go_to_list(r, r->spec.page + 1);
	return false;
}

void github_issue_find(struct github *g, struct github_issue_search *search, const char *repository,
    const char *marker)
{
	struct request_spec spec = {
	    .access = g->bot_login ? ACCESS_ISSUES : ACCESS_APP,
	    .what = "looking for the issue",
	    .repository = repository,
	    .method = "GET",
	    .max_answer_bytes = LIST_BYTES_MAX,
	    .answer = g->bot_login ? ANSWER_ARRAY : ANSWER_OBJECT,
	    .on_answer = on_list,
	    .page = 1,
	};

	search->number = 0;
	if (!request_has_repository(g, &search->call, repository, "issue"))
		return;
	spec.text = xstrdup(marker);
	spec.path = g->bot_login ? list_path(repository, 1) : xstrdup("/app");
	request_start(g, &search->call, &spec);
}

static void write_issue(struct github *g, struct github_call *call, const char *repository,
    const char *method, char *path, json_t *body)
{
	request_start(g, call,
	    &(struct request_spec){
		.access = ACCESS_ISSUES,
		.kind = BUDGET_CONTENT,
		.what = "issue",
		.repository = repository,
		.method = method,
		.path = path,
		.own_body = json_text(body),
		.answer = ANSWER_OBJECT,
	    });
	json_decref(body);
}

void github_issue_create(struct github *g, struct github_call *call, const char *repository,
    const char *title, const char *text)
{
	if (request_has_repository(g, call, repository, "issue"))
		write_issue(g, call, repository, "POST", xasprintf("/repos/%s/issues", repository),
		    json_pack("{s:s, s:s}", "title", title, "body", text));
}

void github_issue_close(
    struct github *g, struct github_call *call, const char *repository, int64_t number)
{
	if (request_has_repository(g, call, repository, "issue"))
		write_issue(g, call, repository, "PATCH",
		    xasprintf("/repos/%s/issues/%lld", repository, (long long)number),
		    json_pack("{s:s, s:s}", "state", "closed", "state_reason", "completed"));
}

void github_issue_comment(struct github *g, struct github_call *call, const char *repository,
    int64_t number, const char *text)
{
	if (request_has_repository(g, call, repository, "issue"))
		write_issue(g, call, repository, "POST",
		    xasprintf("/repos/%s/issues/%lld/comments", repository, (long long)number),
		    json_pack("{s:s}", "body", text));
}
