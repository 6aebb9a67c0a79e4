#include "runners/access.h"

#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/str.h"
#include "base/strv.h"

/* What stands behind the "@": a full ref or a commit. "x.yml@evil.yml" is a file's name too. */
static bool is_ref(const char *s)
{
	return str_has_prefix(s, "refs/") || is_sha1(s);
}

/* "owner/repo/PATH@ref" names exactly `path` in `repository`. Repositories compare without
 * case, paths with it, as GitHub does. Which ref it was started from does not matter. */
static bool names_workflow(const char *workflow_ref, const char *repository, const char *path)
{
	size_t n_repository = strlen(repository), n_path = strlen(path);
	const char *rest;

	if (!workflow_ref || strncasecmp(workflow_ref, repository, n_repository) != 0 ||
	    workflow_ref[n_repository] != '/')
		return false;
	rest = workflow_ref + n_repository + 1;
	return strncmp(rest, path, n_path) == 0 && rest[n_path] == '@' && is_ref(rest + n_path + 1);
}

enum bond { BOND_NONE, BOND_REFUSED, BOND_ALLOWED };

/* The configuration holds no two pins that contradict each other. */
static void pin(struct repository_ids *pinned, const struct runner *r)
{
	if (r->repository_id)
		pinned->repository_id = r->repository_id;
	if (r->repository_owner_id)
		pinned->owner_id = r->repository_owner_id;
}

static enum bond bond_of(const struct accelerator *a, const char *repository,
    const char *workflow_ref, struct access *ret)
{
	enum bond best = BOND_NONE;

	for (size_t i = 0; i < a->n_runners; i++) {
		const struct runner *r = &a->runners[i];
		bool is_here = (r->kind == RUNNER_GITHUB || r->kind == RUNNER_INFRA) &&
			       r->repository && strcasecmp(r->repository, repository) == 0;

		if (!is_here)
			continue;
		ret->repository = r->repository;
		pin(&ret->pinned, r);
		if (!r->workflow || names_workflow(workflow_ref, r->repository, r->workflow))
			best = BOND_ALLOWED;
		else if (best == BOND_NONE)
			best = BOND_REFUSED;
	}
	return best;
}

static void allow(struct access *ret, const struct accelerator *a)
{
	ret->allowed[ret->n_allowed++] = a->name;
	if (a->level == LEVEL_1)
		ret->silent[ret->n_silent++] = a->name;
}

static void access_init(struct access *ret, size_t n_max)
{
	*ret = (struct access){0};
	ret->allowed = xcalloc(n_max + 1, sizeof *ret->allowed);
	ret->silent = xcalloc(n_max + 1, sizeof *ret->silent);
	ret->refused = xcalloc(n_max + 1, sizeof *ret->refused);
}

void access_of_repository(
    const struct config *c, const char *repository, const char *workflow_ref, struct access *ret)
{
	access_init(ret, c->n_accelerators);
	for (size_t i = 0; i < c->n_accelerators; i++) {
		const struct accelerator *a = &c->accelerators[i];

		switch (bond_of(a, repository, workflow_ref, ret)) {
		case BOND_ALLOWED:
			allow(ret, a);
			break;
		case BOND_REFUSED:
			ret->refused[ret->n_refused++] = a->name;
			break;
		case BOND_NONE:
			break;
		}
	}
}

void access_of_accelerator(const struct config *c, const char *accelerator, struct access *ret)
{
	const struct accelerator *a = config_accelerator(c, accelerator);

	access_init(ret, 1);
	if (a)
		allow(ret, a);
}

void access_release(struct access *a)
{
	free(a->allowed);
	free(a->silent);
	free(a->refused);
	*a = (struct access){0};
}

bool access_is_registered(const struct access *a)
{
	return a->n_allowed + a->n_refused > 0;
}

bool access_is_silent(const struct access *a)
{
	return a->n_allowed > 0 && a->n_silent == a->n_allowed;
}

bool access_refuses(const struct access *a, const char *accelerator)
{
	return strv_contains(a->refused, accelerator);
}
