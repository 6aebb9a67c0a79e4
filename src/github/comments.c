/* The results comment on GitHub's side. A comment is ours only when both hold: its author
 * is the App and it bears the marker; either alone can be forged or left over. */
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "github/github_internal.h"

enum {
	PAGES_MAX = 50, /* 5,000 comments */
	LIST_BYTES_MAX = 16 * 1024 * 1024,
};

/* spec.text is "NUMBER marker". */
static char *list_path(const struct request *r)
{
	return xasprintf("/repos/%s/issues/%lld/comments?per_page=100&page=%d", r->repository,
	    strtoll(r->spec.text, NULL, 10), r->spec.page);
}

bool body_is_marked(const char *body, const char *marker)
{
	size_t n = strlen(marker);

	for (const char *at = body; (at = strstr(at, marker)); at += n)
		if ((at == body || at[-1] == '\n') && (!at[n] || at[n] == '\n' || at[n] == '\r'))
			return true;
	return false;
}

static bool is_ours(const struct github *g, const json_t *comment, const char *marker)
{
	const char *body = json_get_str(comment, "body");

	return body && body_is_marked(body, marker) && json_get_int(comment, "id", 0) > 0 &&
	       str_eq(json_get_str(json_object_get(comment, "user"), "login"), g->bot_login);
}

static enum access access_of(const struct github_comment_search *s)
{
	return s->is_on_issue ? ACCESS_ISSUES : ACCESS_COMMENT;
}

static void look_for_comment(struct request *r, int page)
{
	r->spec.access = access_of(CONTAINER_OF(r->call, struct github_comment_search, call));
	r->spec.answer = ANSWER_ARRAY;
	r->spec.page = page;
	request_go_to(r, list_path(r));
}

static bool on_author(struct request *r)
{
	if (!app_read(r))
		return false;
	if (r->call->result.err)
		return true;
	look_for_comment(r, 1);
	return false;
}

static bool on_list(struct request *r)
{
	struct github_comment_search *s = CONTAINER_OF(r->call, struct github_comment_search, call);
	const char *marker = strchr(r->spec.text, ' ') + 1;
	char next[2048];
	json_t *comment;
	size_t i;

	if (r->spec.access == ACCESS_APP)
		return on_author(r);
	if (!r->g->bot_login) { /* another App since the search began */
		request_go_to_app(r);
		return false;
	}
	json_array_foreach(r->call->answer, i, comment)
	{
		if (!is_ours(r->g, comment, marker))
			continue;
		s->comment_id = json_get_int(comment, "id", 0);
		s->text = xstrdup(json_get_str(comment, "body"));
		break;
	}
	github_call_release(r->call);
	if (s->text || r->spec.page >= PAGES_MAX || !pages_next_url(r, next, sizeof(next)))
		return true;
	look_for_comment(r, r->spec.page + 1);
	return false;
}

void github_comment_find(struct github *g, struct github_comment_search *search,
    const char *repository, int64_t number, const char *marker)
{
	struct request_spec spec = {
	    .access = g->bot_login ? access_of(search) : ACCESS_APP,
	    .what = "looking for the comment",
	    .repository = repository,
	    .method = "GET",
	    .max_answer_bytes = LIST_BYTES_MAX,
	    .answer = g->bot_login ? ANSWER_ARRAY : ANSWER_OBJECT,
	    .on_answer = on_list,
	    .page = 1,
	};

	github_comment_search_release(search);
	search->comment_id = 0;
	if (!request_has_repository(g, &search->call, repository, "comment"))
		return;
	spec.text = xasprintf("%lld %s", (long long)number, marker);
	spec.path = g->bot_login ? xasprintf("/repos/%s/issues/%lld/comments?per_page=100&page=1",
				       repository, (long long)number)
				 : xstrdup("/app");
	request_start(g, &search->call, &spec);
}

void github_comment_search_release(struct github_comment_search *search)
{
	FREE_AND_NULL(search->text);
	github_call_release(&search->call);
}

static char *body_of(const char *text)
{
	json_t *o = json_object();
	char *body;

	json_set_str(o, "body", text);
	body = json_text(o);
	json_decref(o);
	return body;
}

void github_comment_create(struct github *g, struct github_call *call, const char *repository,
    int64_t number, const char *text)
{
	if (!request_has_repository(g, call, repository, "comment"))
		return;
	request_start(g, call,
	    &(struct request_spec){
		.access = ACCESS_COMMENT,
		.kind = BUDGET_CONTENT,
		.what = "new comment",
		.repository = repository,
		.method = "POST",
		.path = xasprintf("/repos/%s/issues/%lld/comments", repository, (long long)number),
		.own_body = body_of(text),
		.answer = ANSWER_OBJECT,
	    });
}

void github_comment_update(struct github *g, struct github_call *call, const char *repository,
    int64_t comment_id, const char *text)
{
	if (!request_has_repository(g, call, repository, "comment"))
		return;
	request_start(g, call,
	    &(struct request_spec){
		.access = ACCESS_COMMENT,
		.kind = BUDGET_CONTENT,
		.what = "comment's new text",
		.repository = repository,
		.method = "PATCH",
		.path =
		    xasprintf("/repos/%s/issues/comments/%lld", repository, (long long)comment_id),
		.own_body = body_of(text),
		.answer = ANSWER_OBJECT,
	    });
}

void github_comment_get(
    struct github *g, struct github_call *call, const char *repository, int64_t comment_id)
{
	if (!request_has_repository(g, call, repository, "comment"))
		return;
	request_start(g, call,
	    &(struct request_spec){
		.access = ACCESS_COMMENT,
		.what = "reading the comment",
		.repository = repository,
		.method = "GET",
		.path =
		    xasprintf("/repos/%s/issues/comments/%lld", repository, (long long)comment_id),
		.answer = ANSWER_OBJECT,
	    });
}
