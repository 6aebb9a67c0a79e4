#include "base/alloc.h"
#include "base/str.h"
#include "github/github_internal.h"

void github_dispatch(struct github *g, struct github_call *call, const char *repository,
    const char *body, size_t body_bytes)
{
	if (!is_repository_name(repository)) {
		request_refuse(g, call, "dispatch: not a repository's name");
		return;
	}
	request_start(g, call,
	    &(struct request_spec){
		.access = ACCESS_DISPATCH,
		.what = "dispatch",
		.repository = repository,
		.method = "POST",
		.path = xasprintf("/repos/%s/dispatches", repository),
		.body = body,
		.body_bytes = body_bytes,
		.if_not_found = "the App is not installed on it, or may not write its contents",
	    });
}
