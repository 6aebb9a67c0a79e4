#include "registry/list_heads.h"

#include <git2.h>

#include "base/alloc.h"
#include "base/str.h"
#include "registry/fetch.h"
#include "registry/smart_http.h"
#include "registry/stream.h"

/* A bound that was hit says more than what libgit2 made of it. */
static int explain(const struct bounds *b, struct error *e)
{
	char why[400];

	if (b->why.code) {
		*e = b->why;
		return e->code;
	}
	fetch_explain(why, sizeof(why));
	return error_set(e, ERR_NETWORK, "%s", why);
}

static int find(git_remote *remote, const char *branch, const struct bounds *b, char ret_sha[41],
    struct error *e)
{
	char *wanted = branch ? xasprintf("refs/heads/%s", branch) : xstrdup("HEAD");
	const git_remote_head **heads = NULL;
	size_t n = 0;
	int rc = ERR_NOT_FOUND;

	if (git_remote_ls(&heads, &n, remote))
		rc = explain(b, e);
	for (size_t i = 0; rc == ERR_NOT_FOUND && i < n; i++) {
		if (!str_eq(heads[i]->name, wanted))
			continue;
		git_oid_tostr(ret_sha, 41, &heads[i]->oid);
		rc = 0;
	}
	if (rc == ERR_NOT_FOUND)
		error_set(e, rc, "there is no branch %s", branch ? branch : "that HEAD names");
	free(wanted);
	return rc;
}

int list_heads_find(
    const char *url, const char *branch, struct bounds *b, char ret_sha[41], struct error *e)
{
	git_remote_connect_options options;
	git_remote *remote = NULL;
	int rc;

	git_error_clear();
	stream_use(b);
	git_remote_connect_options_init(&options, GIT_REMOTE_CONNECT_OPTIONS_VERSION);
	options.callbacks.transport = smart_http_transport;
	options.callbacks.payload = b;
	if (git_remote_create_detached(&remote, url) ||
	    git_remote_connect_ext(remote, GIT_DIRECTION_FETCH, &options))
		rc = explain(b, e);
	else
		rc = find(remote, branch, b, ret_sha, e);
	git_remote_free(remote);
	stream_use(NULL);
	return rc;
}
