#include "steps/submodules.h"

#include "base/alloc.h"
#include "base/str.h"
#include "steps/git_command.h"
#include "steps/git_url.h"
#include "steps/relay.h"
#include "steps/submodule_list.h"
#include "steps/work_tree.h"

enum { MODULES_MAX = 500, NESTED_MAX = 10 };

struct walk {
	struct job *job;
	int n; /* so far: what a stranger's tree may cost is bounded */
};

static int visit(struct walk *w, const char *folder, const char *url, int depth, struct error *e);

/* The way there is as git made it: no step has run yet, so this cannot change under our hands. */
static int check_place(const char *folder, struct error *e)
{
	char *real = realpath(folder, NULL);
	int rc = 0;

	if (!str_eq(real, folder))
		rc = error_set(e, ERR_INVALID, "%s: not a folder", folder);
	free(real);
	return rc;
}

static int one(struct walk *w, const struct submodule *s, const char *folder, const char *url,
    int depth, struct error *e)
{
	const struct mirror_want want = {
	    .kind = MIRROR_MODULE, .url = url, .sha = s->sha, .ref = "HEAD", .depth = 1};
	struct error why = {0};
	int rc;

	job_log_say(w->job->log, "submodule %s: %s", s->path, url);
	rc = check_place(folder, &why);
	if (!rc)
		rc = work_tree_make(w->job, &want, folder, url, &why);
	if (rc)
		return error_set(e, rc, "submodule %s: %s", s->path, why.text);
	return visit(w, folder, url, depth + 1, e);
}

/* Says why a URL is not fetched, before anything is connected; 0: it may be tried. */
static int check_url(const struct runner_config *c, const char *text, struct error *e)
{
	struct git_url url;

	if (git_url_parse(text, &url))
		return error_set(e, ERR_DENIED,
		    "%s is not fetched: a submodule's URL is https://host/path, without a login",
		    text);
	if (url.is_plain && (c->submodule_proxy || !c->git_networks.n))
		return error_set(e, ERR_DENIED,
		    "%s is not fetched: plain http goes to checkout.allow_networks only", text);
	if (c->submodule_proxy && url.is_address &&
	    !relay_may_reach(&url, &c->git_networks, url.address))
		return error_set(e, ERR_DENIED,
		    "%s is not fetched: its address is not public and checkout.allow_networks "
		    "does not list it",
		    text);
	return 0;
}

static int one_of(struct walk *w, const struct submodule *s, const char *folder, const char *parent,
    int depth, struct error *e)
{
	char *url = s->url ? git_url_resolve(parent, s->url) : NULL;
	char *place = xasprintf("%s/%s", folder, s->path);
	struct error why = {0};
	int rc;

	if (!s->url)
		rc = error_set(
		    e, ERR_INVALID, "submodule %s: .gitmodules has no url for it", s->path);
	else if (!url)
		rc = error_set(e, ERR_INVALID, "submodule %s: %s does not lead anywhere from %s",
		    s->path, s->url, parent);
	else if (check_url(w->job->config, url, &why))
		rc = error_set(e, ERR_DENIED, "submodule %s: %s", s->path, why.text);
	else if (++w->n > MODULES_MAX)
		rc = error_set(e, ERR_RANGE, "more than %d submodules", MODULES_MAX);
	else
		rc = one(w, s, place, url, depth, e);
	free(place);
	free(url);
	return rc;
}

/* So that `git submodule` knows them. git looks at the URLs of the change once more here, and
 * takes none of its `update` commands. */
static int initialise(struct walk *w, const char *folder, struct error *e)
{
	const char *args[] = {"submodule", "--quiet", "init", NULL};

	return git_must(w->job, folder, args, e);
}

static int visit(struct walk *w, const char *folder, const char *url, int depth, struct error *e)
{
	struct submodules all;
	int rc = submodule_list(w->job, folder, &all, e);

	if (!rc && all.n > 0 && depth == NESTED_MAX)
		rc = error_set(e, ERR_RANGE, "submodules are nested deeper than %d", NESTED_MAX);
	for (size_t i = 0; i < all.n && !rc; i++)
		rc = one_of(w, &all.list[i], folder, url, depth, e);
	if (!rc && all.n > 0)
		rc = initialise(w, folder, e);
	submodules_release(&all);
	return rc;
}

int submodules_check_out(struct job *j, const char *url, struct error *e)
{
	struct walk w = {.job = j};

	return visit(&w, j->work, url, 0, e);
}
