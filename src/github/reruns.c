#include "base/alloc.h"
#include "base/str.h"
#include "github/github_internal.h"

static bool is_run_id(const char *s)
{
	size_t n = strspn(s, "0123456789");

	return n > 0 && n < 20 && s[n] == '\0';
}

void github_run_again(struct github *g, struct github_call *call, const char *repository,
    const char *run_id, enum github_rerun what)
{
	static const char *const verbs[] = {
	    [GITHUB_RERUN_FAILED] = "rerun-failed-jobs",
	    [GITHUB_RERUN_ALL] = "rerun",
	};

	if (!is_repository_name(repository) || !is_run_id(run_id)) {
		request_refuse(g, call, "re-run: no such run");
		return;
	}
	request_start(g, call,
	    &(struct request_spec){
		.access = ACCESS_ACTIONS,
		.what = "re-run",
		.repository = repository,
		.method = "POST",
		.path = xasprintf("/repos/%s/actions/runs/%s/%s", repository, run_id, verbs[what]),
	    });
}
