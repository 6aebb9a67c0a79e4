#include "registry/round.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "registry/checkout.h"
#include "registry/fetch.h"
#include "registry/folder.h"

enum {
	FETCH_MAX_MS = 5 * 60 * 1000,
	FETCH_MAX_BYTES = 256 << 20,
	MISTAKES_MAX_BYTES = 64 * 1024,
};

static const char *last_part(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}

void round_prepare(struct round *q, const struct config *c, const char *name_refused, int cancel_fd)
{
	*q = (struct round){
	    .root = registry_root(c->state_dir),
	    .url = xstrdup(c->accelerators_git_url),
	    .branch = xstrdup(c->accelerators_git_branch),
	    .path = xstrdup(c->accelerators_git_path),
	    .name_in_force = xstrdup_or_null(last_part(c->accelerators_git_folder)),
	    .name_refused = xstrdup_or_null(name_refused),
	    .cancel_fd = cancel_fd,
	};
	buf_init(&q->mistakes, MISTAKES_MAX_BYTES);
}

bool round_fits(const struct round *q, const struct config *c)
{
	return str_eq(q->url, c->accelerators_git_url) &&
	       str_eq(q->branch, c->accelerators_git_branch) &&
	       str_eq(q->path, c->accelerators_git_path);
}

char *round_folder(const struct round *q)
{
	return path_join(q->root, q->name);
}

void round_release(struct round *q)
{
	free(q->root);
	free(q->url);
	free(q->branch);
	free(q->path);
	free(q->name_in_force);
	free(q->name_refused);
	free(q->name);
	buf_release(&q->mistakes);
	*q = (struct round){0};
}

/* The one that is good on disk is another one than the one in force if the owner kept a commit and then
 * could not put it in force, or if somebody removed the file. */
static int mend_good(struct round *q)
{
	char *good = registry_good(q->root, &q->good_wall_ms);
	int rc = 0;

	if (q->name_in_force && !str_eq(good, q->name_in_force))
		rc = registry_keep(q->root, q->name_in_force, &q->why);
	free(good);
	return rc;
}

static int check_out(struct round *q, git_repository *repo, const git_oid *id)
{
	struct checkout c = {
	    .repo = repo,
	    .commit = *id,
	    .path = q->path,
	    .root = q->root,
	    .name = q->name,
	    .mistakes = &q->mistakes,
	};
	int rc;

	if (str_eq(q->name, q->name_in_force) || str_eq(q->name, q->name_refused))
		return 0;
	rc = checkout_write(&c, &q->why);
	return rc == ERR_INVALID ? 0 : rc;
}

static int fetch(struct round *q, const char *path)
{
	struct bounds b = {
	    .deadline_mono_ms = clock_mono_ms() + FETCH_MAX_MS,
	    .n_bytes_left = FETCH_MAX_BYTES,
	    .cancel_fd = q->cancel_fd,
	};
	git_repository *repo = NULL;
	git_oid id;
	int rc = fetch_open(path, &repo, &q->why);

	if (!rc)
		rc = fetch_branch(repo, q->url, q->branch, &b, &id, &q->why);
	if (!rc) {
		git_oid_tostr(q->commit, sizeof(q->commit), &id);
		q->name = registry_checkout_name(q->commit, q->path);
		rc = check_out(q, repo, &id);
	}
	git_repository_free(repo);
	/* It is a cache: the next round begins with an empty one. */
	if (rc == ERR_CORRUPT)
		remove_all(path);
	return rc;
}

void round_fetch(struct pool_work *w)
{
	struct round *q = CONTAINER_OF(w, struct round, work);
	char *path = path_join(q->root, "repo.git");
	int rc = 0;

	if (mkdir(q->root, 0700) != 0 && errno != EEXIST)
		rc = error_set(&q->why, ERR_IO, "%s: %s", q->root, strerror(errno));
	if (!rc)
		rc = mend_good(q);
	if (!rc) {
		registry_sweep(q->root, q->name_in_force);
		rc = fetch_setup(&q->why);
	}
	if (!rc)
		rc = fetch(q, path);
	q->err = rc;
	free(path);
}

void round_sweep(struct pool_work *w)
{
	struct round *q = CONTAINER_OF(w, struct round, work);

	registry_sweep(q->root, q->name);
}
