/* The work tree borrows its objects from the mirror instead of copying them, and gets a
 * repository of its own that is made from nothing: no setting and no hook of anybody's. What the
 * steps do in it touches the mirror in no way (in the sandbox they cannot; without, nothing is
 * promised). */
#include "steps/checkout.h"

#include <errno.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "steps/git_command.h"
#include "steps/mirror.h"

enum { SHALLOW_MAX_BYTES = 16 << 20 };

/* https://user:password@host/… without what is before the "@": steps can read it. free(). */
static char *public_url(const char *url)
{
	const char *host = strstr(url, "://"), *at, *slash;

	if (!host || !str_has_prefix(url, "http"))
		return xstrdup(url);
	host += 3;
	slash = strchr(host, '/');
	at = strchr(host, '@');
	if (!at || (slash && at > slash))
		return xstrdup(url);
	return xasprintf("%.*s%s", (int)(host - url), url, at + 1);
}

static int write_borrowing(const struct job *j, struct error *e)
{
	char *path = xasprintf("%s/.git/objects/info/alternates", j->work);
	char *text = xasprintf("%s/objects\n", j->mirror);
	int rc = file_write_atomic(path, text, strlen(text), 0644, e);

	free(text);
	free(path);
	return rc;
}

/* Where history is cut off is noted in the repository, not with the objects. */
static int copy_shallow(const struct job *j, struct error *e)
{
	char *from = xasprintf("%s/shallow", j->mirror);
	char *to = xasprintf("%s/.git/shallow", j->work);
	struct buf text = BUF_INIT(SHALLOW_MAX_BYTES);
	int rc = 0;

	if (!access(from, F_OK)) {
		rc = file_read(from, &text, e);
		if (!rc)
			rc = file_write_atomic(to, buf_str(&text), text.len, 0644, e);
	}
	buf_release(&text);
	free(to);
	free(from);
	return rc;
}

static int make_repository(struct job *j, struct error *e)
{
	char *url = public_url(j->config->git_url);
	const char *init[] = {"init", "--quiet", ".", NULL};
	const char *origin[] = {"config", "remote.origin.url", url, NULL};
	int rc = git_must(j, j->work, init, e);

	if (!rc)
		rc = write_borrowing(j, e);
	if (!rc)
		rc = copy_shallow(j, e);
	if (!rc)
		rc = git_must(j, j->work, origin, e);
	free(url);
	return rc;
}

static int check_out_tree(struct job *j, struct error *e)
{
	const char *args[] = {
	    "checkout", "--progress", "--force", "--detach", j->offer.head_sha, "--", NULL};
	const char *head[] = {"rev-parse", "--verify", "HEAD", NULL};
	char *at = NULL;
	int rc = git_must(j, j->work, args, e);

	if (!rc)
		rc = git_ask(j, j->work, head, &at, e);
	if (!rc && !str_eq(at, j->offer.head_sha))
		rc = error_set(
		    e, ERR_IO, "the work tree is at %s instead of %s", at, j->offer.head_sha);
	free(at);
	return rc;
}

static bool is_shallow(const struct job *j)
{
	char *path = xasprintf("%s/shallow", j->mirror);
	bool is_there = !access(path, F_OK);

	free(path);
	return is_there;
}

static int check_out_submodules(struct job *j, struct error *e)
{
	/* git borrows from no mirror that lacks a part of history */
	const char *args[] = {"submodule", "update", "--init", "--recursive", "--force",
	    "--progress", "--depth", "1", is_shallow(j) ? NULL : "--reference", j->mirror, NULL};
	int rc = 0;

	job_log_say(j->log, "submodules");
	for (int try = 1; try <= 3; try++) {
		struct git_end end;

		rc = git_run(j, j->work, args, &end, e);
		if (rc || end.is_done)
			return rc;
		if (try == 3)
			return error_set(e, ERR_NETWORK, "submodules: %s", end.message);
		job_log_say(j->log, "the submodules failed (%s); trying again", end.message);
		if (stop_wait(&j->stop, j->pace.retry_ms))
			return error_set(e, ERR_CANCELLED, "cancelled during the checkout");
	}
	return rc;
}

int checkout(struct job *j, struct error *e)
{
	int lock = -1, rc;

	job_log_begin_excerpt(j->log);
	job_log_say(j->log, "checkout: %s", j->offer.head_sha);
	if (!is_sha1(j->offer.head_sha))
		return error_set(e, ERR_INVALID, "the commit's name is not 40 hexadecimal digits");
	rc = mirror_fetch(j, &lock, e);
	if (!rc)
		rc = make_repository(j, e);
	if (!rc)
		rc = check_out_tree(j, e);
	if (lock >= 0)
		close(lock);
	if (!rc && j->config->git_submodules)
		rc = check_out_submodules(j, e);
	return rc;
}
