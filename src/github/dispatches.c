#include "base/alloc.h"
#include "github/github_internal.h"

void github_dispatch(struct github *g, struct github_call *call, const char *repository,
    const char *body, size_t body_bytes)
{
	if (!request_has_repository(g, call, repository, "dispatch"))
		return;
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
