#include "base/alloc.h"
#include "base/str.h"
#include "github/github_internal.h"

static bool on_branch(struct request *r)
{
	struct github_branch *b = CONTAINER_OF(r->call, struct github_branch, call);
	const char *sha;

	if (r->http.status == 304) {
		b->is_unchanged = true;
		return true;
	}
	sha = json_get_str(json_object_get(r->call->answer, "commit"), "sha");
	if (!sha || !is_sha1(sha)) {
		r->call->result.err = error_set(&r->call->result.why, ERR_PROTOCOL,
		    "%s: GitHub's branch has no commit", r->repository);
		return true;
	}
	memcpy(b->sha, sha, sizeof(b->sha));
	if (!http_call_header(&r->http, "ETag", b->etag, sizeof(b->etag)))
		b->etag[0] = '\0';
	return true;
}

void github_branch_get(
    struct github *g, struct github_branch *branch, const char *repository, const char *name)
{
	char *encoded;

	branch->is_unchanged = false;
	if (!is_repository_name(repository) || !*name || strlen(name) > 250) {
		request_refuse(g, &branch->call, "branch: not a repository's or branch's name");
		return;
	}
	encoded = pages_encode(name);
	request_start(g, &branch->call,
	    &(struct request_spec){
		.access = ACCESS_READ,
		.what = "reading a branch",
		.repository = repository,
		.method = "GET",
		.path = xasprintf("/repos/%s/branches/%s", repository, encoded),
		.etag = branch->etag[0] ? xstrdup(branch->etag) : NULL,
		.answer = ANSWER_OBJECT,
		.on_answer = on_branch,
	    });
	free(encoded);
}
