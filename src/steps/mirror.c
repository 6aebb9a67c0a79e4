#include "steps/mirror.h"

#include <errno.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "base/strv.h"
#include "steps/git_command.h"
#include "steps/git_url.h"
#include "steps/mirror_internal.h"
#include "steps/relay.h"

enum { FETCH_TRIES = 3 };

/* How much of a branch's history is searched for the commit, one after another; of a pull request
 * the first is enough: what is not there was pushed over. */
static const int search_depths[] = {50, 500, 5000};

struct fetching {
	struct job *job;
	const struct mirror_want *want;
	const char *mirror;
	char *ref; /* what keeps the commit */
};

static int points_at(struct fetching *f, const char *ref, char **ret, struct error *e)
{
	char *commit = xasprintf("%s^{commit}", ref);
	const char *args[] = {"rev-parse", "--quiet", "--verify", commit, NULL};
	int rc = git_ask(f->job, f->mirror, args, ret, e);

	free(commit);
	return rc;
}

static bool is_shallow(const struct fetching *f)
{
	char *path = xasprintf("%s/shallow", f->mirror);
	bool is_there = !access(path, F_OK);

	free(path);
	return is_there;
}

/* All of history is what git fetches without a word, but not into a mirror that lacks some. */
static const char *depth_option(const struct fetching *f, int depth, char *out, size_t n)
{
	if (depth == 0 && !is_shallow(f))
		return "--no-tags";
	snprintf(out, n, "--depth=%d", depth ? depth : INT32_MAX);
	return out;
}

/* A submodule's host is reached through a relay, which is there for this one fetch, or through the
 * proxy that the operator chose for submodules. */
static int fetch_submodule(
    struct fetching *f, const char *const *args, struct git_end *end, struct error *e)
{
	const struct runner_config *c = f->job->config;
	struct git_remote remote = {.kind = GIT_CHANGES_URL, .proxy = c->submodule_proxy};
	enum relay_trouble trouble;
	struct relay relay;
	struct git_url url;
	char proxy[48];
	int rc;

	if (git_url_parse(f->want->url, &url))
		return error_set(e, ERR_DENIED, "%s is not fetched", f->want->url);
	remote.is_plain = url.is_plain;
	if (remote.proxy)
		return git_fetch(f->job, f->mirror, &remote, args, end, e);
	rc = relay_start(&url, &c->git_networks, &relay, e);
	if (rc)
		return rc;
	snprintf(proxy, sizeof(proxy), "socks5h://127.0.0.1:%d", relay.port);
	remote.proxy = proxy;
	rc = git_fetch(f->job, f->mirror, &remote, args, end, e);
	trouble = relay_stop(&relay);
	if (rc || end->is_done)
		return rc;
	if (trouble == RELAY_UNREACHABLE) {
		end->is_final = true;
		snprintf(end->message, sizeof(end->message),
		    "%s: there is no such host, or its address is one that a submodule may not "
		    "reach (checkout.allow_networks)",
		    url.host);
	} else if (trouble == RELAY_NOT_CONNECTED) {
		snprintf(end->message, sizeof(end->message), "%s: no connection to port %d",
		    url.host, url.port);
	}
	return 0;
}

static int fetch_once(
    struct fetching *f, const char *const *args, struct git_end *end, struct error *e)
{
	static const struct git_remote git_url = {.kind = GIT_OPERATORS_URL};
	int rc = f->want->kind == MIRROR_MAIN ? git_fetch(f->job, f->mirror, &git_url, args, end, e)
					      : fetch_submodule(f, args, end, e);

	if (!rc && end->is_redirect)
		snprintf(end->message, sizeof(end->message), "%s",
		    f->want->kind == MIRROR_MAIN
			? "the server answers with a redirect, and none is followed: write "
			  "checkout.git_url as it is after the redirect"
			: "the server answers with a redirect, and none is followed");
	return rc;
}

/* Tried again where it may help: not when the other side answered that it has no such thing. */
static int fetch_ref(
    struct fetching *f, const char *refspec, int depth, struct git_end *end, struct error *e)
{
	struct job *j = f->job;
	char text[24];
	const char *args[] = {"fetch", "--progress", "--no-tags", "--no-recurse-submodules",
	    "--force", depth_option(f, depth, text, sizeof(text)), "--", f->want->url, refspec,
	    NULL};
	int rc = 0;

	for (int try = 1; try <= FETCH_TRIES; try++) {
		int64_t wait_ms = j->pace.retry_ms * (try == 1 ? 1 : 4);

		rc = fetch_once(f, args, end, e);
		if (rc || end->is_done || end->is_final || try == FETCH_TRIES ||
		    mirror_is_damage(end->message))
			return rc;
		job_log_say(j->log, "the fetch failed (%s); trying again in %lld s", end->message,
		    (long long)(wait_ms + 999) / 1000);
		if (stop_wait(&j->stop, wait_ms))
			return error_set(e, ERR_CANCELLED, "cancelled during the checkout");
	}
	return rc;
}

/* ---- by a branch ---- */

/* The tip is the commit, or the commit is in what was fetched of its history. *ret: it is. */
static int is_in_tip(struct fetching *f, bool *ret, struct error *e)
{
	const char *sha = f->want->sha;
	const char *contains[] = {"merge-base", "--is-ancestor", sha, MIRROR_TIP, NULL};
	char *answer = NULL;
	struct git_end end = {.is_done = false};
	int rc = points_at(f, MIRROR_TIP, &answer, e);

	*ret = !rc && str_eq(answer, sha);
	free(answer);
	if (rc || *ret)
		return rc;
	/* git says something only where it lacks the commit, which is no news to anybody */
	rc = points_at(f, sha, &answer, e);
	if (!rc && str_eq(answer, sha))
		rc = git_run(f->job, f->mirror, contains, &end, e);
	free(answer);
	*ret = end.is_done;
	return rc;
}

static int say_not_found(struct fetching *f, struct error *e)
{
	char *at = NULL;
	int rc = points_at(f, MIRROR_TIP, &at, e);

	if (rc)
		return rc;
	error_set(e, ERR_NOT_FOUND,
	    "commit %s cannot be fetched by its name, and %s is at %s by now%s", f->want->sha,
	    f->want->ref, at,
	    str_has_prefix(f->want->ref, "refs/pull/") ? ": it was pushed to again"
						       : ", without it among the newest commits");
	free(at);
	return ERR_NOT_FOUND;
}

/* How far to look after `depth` was not enough; 0: no further. */
static int deeper(const struct fetching *f, int depth)
{
	size_t n = str_has_prefix(f->want->ref, "refs/pull/") ? 1 : ARRAY_LEN(search_depths);

	if (!is_shallow(f))
		return 0;
	for (size_t i = 0; depth > 0 && i < n; i++)
		if (search_depths[i] > depth)
			return search_depths[i];
	return 0;
}

/* A server that gives nothing by a commit's name gives its branches. That the branch moved on is
 * usual; what is tested is the commit all the same. */
static int fetch_tip(struct fetching *f, struct error *e)
{
	char *refspec = xasprintf("+%s:%s", f->want->ref, MIRROR_TIP);
	const char *keep[] = {"update-ref", f->ref, f->want->sha, NULL};
	struct git_end end = {.is_done = true};
	bool is_there = false;
	int rc = 0, depth = f->want->depth;

	job_log_say(f->job->log, "the commit is not given by its name; fetching %s", f->want->ref);
	do {
		rc = fetch_ref(f, refspec, depth, &end, e);
		if (!rc && !end.is_done)
			rc = error_set(e, ERR_NETWORK, "%s", end.message);
		if (!rc)
			rc = is_in_tip(f, &is_there, e);
		depth = deeper(f, depth);
		if (!rc && !is_there && depth)
			job_log_say(f->job->log, "looking for it in %d commits", depth);
	} while (!rc && !is_there && depth);
	if (!rc)
		rc = is_there ? git_must(f->job, f->mirror, keep, e) : say_not_found(f, e);
	free(refspec);
	return rc;
}

/* ---- by its name ---- */

static int fetch(struct fetching *f, struct error *e)
{
	const struct mirror_want *w = f->want;
	char *refspec = xasprintf("+%s:%s", w->sha, f->ref), *at = NULL;
	struct git_end end;
	int rc = fetch_ref(f, refspec, w->depth, &end, e);

	free(refspec);
	if (!rc && !end.is_done && end.is_missing && w->ref)
		rc = fetch_tip(f, e);
	else if (!rc && !end.is_done)
		rc = error_set(e, ERR_NETWORK, "%s", end.message);
	if (!rc)
		rc = points_at(f, f->ref, &at, e);
	if (!rc && !str_eq(at, w->sha))
		rc =
		    error_set(e, ERR_PROTOCOL, "git fetched %s where %s was asked for", at, w->sha);
	free(at);
	return rc;
}

int mirror_fetch(struct job *j, const struct mirror_want *w, char **ret, struct error *e)
{
	char *path = mirror_path(j, w->kind, w->url), *at = NULL;
	struct fetching f = {.job = j, .want = w, .mirror = path};
	int rc;

	*ret = NULL;
	f.ref = xasprintf("refs/outpost/%d/%s", w->depth, w->sha);
	rc = mirror_make(j, path, f.ref, e);
	if (!rc)
		rc = points_at(&f, f.ref, &at, e);
	if (!rc && str_eq(at, w->sha))
		job_log_say(j->log, "commit %s is here already", w->sha);
	else if (!rc)
		rc = fetch(&f, e);
	if (!rc)
		*ret = realpath(path, NULL);
	if (!rc && !*ret)
		rc = error_set(e, ERR_IO, "%s: %s", path, strerror(errno));
	if (!rc && !strv_contains((const char *const *)j->mirrors, *ret))
		strv_add(&j->mirrors, *ret);
	free(at);
	free(f.ref);
	free(path);
	return rc;
}
