#include "base/alloc.h"
#include "github/github_internal.h"

static char *body_of(const char *content)
{
	json_t *o = json_object();
	char *body;

	json_set_str(o, "content", content);
	body = json_text(o);
	json_decref(o);
	return body;
}

void github_comment_react(struct github *g, struct github_call *call, const char *repository,
    int64_t comment_id, const char *content)
{
	if (!request_has_repository(g, call, repository, "reaction"))
		return;
	request_start(g, call,
	    &(struct request_spec){
		.access = ACCESS_COMMENT,
		.kind = BUDGET_CONTENT,
		.what = "reaction",
		.repository = repository,
		.method = "POST",
		.path = xasprintf(
		    "/repos/%s/issues/comments/%lld/reactions", repository, (long long)comment_id),
		.own_body = body_of(content),
		.answer = ANSWER_OBJECT,
	    });
}
