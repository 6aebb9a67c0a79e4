/* The commit under test as a work tree: a folder with its files and a repository of its own around them, and the
 * same for its submodules and theirs.
 *
 * A work tree borrows its objects from a mirror instead of copying them. Its repository is made from nothing,
 * so it has no foreign setting or hook. Nothing that steps do in it changes the mirror: in the sandbox
 * they cannot; without a sandbox that is not promised.
 *
 * Each submodule has a mirror of its own, so a second job with the same ones fetches nothing. The change's
 * author writes .gitmodules, so everything in it is hostile. Its URLs reach only the public internet and
 * checkout.allow_networks (relay.h), without any login; only paths that git's own tree has are used; nothing
 * that git would run or obey is taken from it. */
#include "steps/job.h"

#include "steps/git.h"
#include "steps/mirror.h"
#include "steps/relay.h"

enum { SHALLOW_MAX_BYTES = 16 << 20, MODULES_MAX = 500, NESTED_MAX = 10 };

/* ---- a work tree ---- */

/* The repository exists before it borrows, and it borrows before the checkout needs objects. The file `shallow`, which
 * lists where history is cut off, belongs to the repository and not to the objects, so it is copied. */
static int try_work_tree(
    struct job *j, const struct mirror_want *w, const char *folder, const char *url, struct error *e)
{
	const char *init[] = {"init", "--quiet", ".", NULL};
	const char *origin[] = {"config", "remote.origin.url", url, NULL};
	const char *args[] = {"checkout", "--progress", "--force", "--detach", w->sha, "--", NULL};
	const char *head[] = {"rev-parse", "--verify", "HEAD", NULL};
	char *alternates = xasprintf("%s/.git/objects/info/alternates", folder);
	char *own_shallow = xasprintf("%s/.git/shallow", folder);
	char *mirror = NULL, *objects = NULL, *shallow = NULL, *at = NULL;
	struct buf text = BUF_INIT(SHALLOW_MAX_BYTES);
	int rc = mirror_fetch(j, w, &mirror, e);

	if (!rc)
		rc = git_must(j, folder, init, e);
	if (!rc) {
		objects = xasprintf("%s/objects\n", mirror);
		shallow = xasprintf("%s/shallow", mirror);
		rc = file_write_atomic(alternates, objects, strlen(objects), 0644, e);
	}
	if (!rc && !access(shallow, F_OK)) {
		rc = file_read(shallow, &text, e);
		if (!rc)
			rc = file_write_atomic(own_shallow, buf_str(&text), text.len, 0644, e);
	}
	if (!rc)
		rc = git_must(j, folder, origin, e);
	if (!rc)
		rc = git_must(j, folder, args, e);
	if (!rc)
		rc = git_ask(j, folder, head, &at, e);
	if (!rc && !str_eq(at, w->sha))
		rc = error_set(e, ERR_IO, "the work tree is at %s instead of %s", at, w->sha);
	buf_release(&text);
	FREE_ALL(own_shallow, alternates, shallow, objects, at, mirror);
	return rc;
}

/* Makes the work tree of a commit: fetches what is missing and fills the folder, which is there and empty. `url`
 * becomes the remote `origin`, which steps can read, so it holds no password. Needs the mirrors' lock. A damaged mirror
 * is removed and fetched again, once, because a machine that lost its power must not need a person. */
static int make_work_tree(
    struct job *j, const struct mirror_want *w, const char *folder, const char *url, struct error *e)
{
	struct error why = {0};
	int rc = try_work_tree(j, w, folder, url, &why);

	if (rc && rc != ERR_CANCELLED && rc != ERR_TIMEOUT && mirror_is_damage(why.text)) {
		job_log_say(j->log, "the local mirror is damaged (%s); fetching it again", why.text);
		why = (struct error){0};
		/* The half-made work tree goes too: it borrows from the mirror. */
		rc = mirror_forget(j, w, &why);
		if (!rc)
			rc = job_folder_remove(folder, &why);
		if (!rc && mkdir(folder, 0700))
			rc = error_set(&why, ERR_IO, "%s: %s", folder, strerror(errno));
		if (!rc)
			rc = try_work_tree(j, w, folder, url, &why);
	}
	return rc ? error_set(e, rc, "%s", why.text) : 0;
}

/* ---- submodules ---- */

struct submodule {
	char *name;
	/* plain and relative: no "..", no ".git"; git's tree has it, so no link is on the way */
	char *path;
	char *url; /* as written; NULL: none */
	char sha[41];
	bool is_left_out; /* update = none */
};

struct submodules {
	struct submodule *list;
	size_t n;
};

/* False for a path that git's command line could take for something else. Whether the tree has the path is
 * checked later. */
static bool is_plain_path(const char *path)
{
	if (!*path || *path == '/' || *path == ':' || *path == '-' || str_has_suffix(path, "/"))
		return false;
	for (const char *part = path; part; part = strchr(part, '/')) {
		part += *part == '/';
		size_t n = strcspn(part, "/");
		if (n == 0 || (n == 1 && *part == '.') || (n == 2 && !strncmp(part, "..", 2)) ||
		    (n == 4 && !strncasecmp(part, ".git", 4)))
			return false;
	}
	return true;
}

/* "submodule.NAME.KEY\nVALUE"; the name may hold dots. */
static void read_setting(struct submodules *s, const char *entry)
{
	static const char section[] = "submodule.";
	const char *end = strchr(entry, '\n'), *dot = end;
	struct submodule *one = NULL;
	char **place = NULL;

	while (dot && dot > entry && *dot != '.')
		dot--;
	if (!end || !str_has_prefix(entry, section) || dot < entry + sizeof(section))
		return;
	entry += sizeof(section) - 1;
	size_t n = (size_t)(dot - entry);
	for (size_t i = 0; i < s->n && !one; i++)
		if (strlen(s->list[i].name) == n && !memcmp(s->list[i].name, entry, n))
			one = &s->list[i];
	if (!one) {
		one = ARRAY_PUSH(s->list, s->n);
		*one = (struct submodule){.name = xstrndup(entry, n)};
	}
	if (str_has_prefix(dot, ".path\n"))
		place = &one->path;
	else if (str_has_prefix(dot, ".url\n"))
		place = &one->url;
	else
		one->is_left_out = str_eq(end + 1, "none");
	if (place) {
		free(*place);
		*place = xstrdup(end + 1);
	}
}

/* Reads HEAD's .gitmodules. */
static int read_gitmodules(struct job *j, const char *folder, struct submodules *s, struct error *e)
{
	const char *args[] = {
	    "config", "-z", "--blob", "HEAD:.gitmodules", "--get-regexp", "^submodule\\..*\\.(path|url|update)$", NULL};
	char *text = NULL;
	size_t n = 0;
	int rc = git_ask_bytes(j, folder, args, &text, &n, e);

	for (const char *p = text; !rc && p < text + n; p += strlen(p) + 1)
		read_setting(s, p);
	free(text);
	return rc;
}

static void submodule_release(struct submodule *s) { FREE_ALL(s->name, s->path, s->url); }

/* Asks HEAD's tree which of the paths are submodules, and at which commits. */
static int read_tree(struct job *j, const char *folder, struct submodules *s, struct error *e)
{
	static const char kind[] = "160000 commit ";
	static const char *const command[] = {"ls-tree", "-z", "HEAD", "--", NULL};
	char **args = strv_copy(command), *text = NULL;
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		if (s->list[i].path && is_plain_path(s->list[i].path))
			strv_add(&args, s->list[i].path);
	int rc = git_ask_bytes(j, folder, (const char *const *)args, &text, &n, e);
	/* "160000 commit SHA\tPATH" */
	for (const char *p = text; !rc && p < text + n; p += strlen(p) + 1) {
		const char *tab = strchr(p, '\t'), *sha = p + sizeof(kind) - 1;
		struct submodule *one = NULL;

		if (!tab || !str_has_prefix(p, kind) || tab - sha != 40)
			continue;
		/* If two name one path, the first counts. */
		for (size_t i = 0; i < s->n && !one; i++)
			if (str_eq(s->list[i].path, tab + 1))
				one = &s->list[i];
		if (one)
			snprintf(one->sha, sizeof(one->sha), "%.40s", sha);
		if (one && !is_sha1(one->sha))
			one->sha[0] = '\0';
	}
	strv_free(args);
	free(text);
	return rc;
}

/* Reads the submodules of HEAD in the folder: those of .gitmodules that are submodules in the tree and are not
 * left out. Release also after a failure. */
static int list_submodules(struct job *j, const char *folder, struct submodules *ret, struct error *e)
{
	size_t n = 0;

	*ret = (struct submodules){.n = 0};
	int rc = read_gitmodules(j, folder, ret, e);
	if (!rc && ret->n > 0)
		rc = read_tree(j, folder, ret, e);
	if (rc)
		return rc;
	for (size_t i = 0; i < ret->n; i++) {
		if (*ret->list[i].sha && !ret->list[i].is_left_out)
			ret->list[n++] = ret->list[i];
		else
			submodule_release(&ret->list[i]);
	}
	ret->n = n;
	return 0;
}

struct walk {
	struct job *job;
	int n; /* submodules so far; the limit bounds the cost of an untrusted tree */
};

static int visit_tree(struct walk *w, const char *folder, const char *url, int depth, struct error *e);

/* Checks a URL before any connection is made; *e says why it is not fetched. The order matters: the strict parse
 * comes first, because the other checks need its result. Plain http reaches only the networks of
 * checkout.allow_networks. With a proxy, which connects for us, a literal address is checked here, because no
 * relay will check it; a name is looked up by the proxy. */
static int check_submodule_url(const struct runner_config *c, const char *text, struct error *e)
{
	struct git_url url;

	if (git_url_parse(text, &url))
		return error_set(
		    e, ERR_DENIED, "%s is not fetched: a submodule's URL is https://host/path, without a login", text);
	if (url.is_plain && (c->submodule_proxy || !c->git_networks.n))
		return error_set(
		    e, ERR_DENIED, "%s is not fetched: plain http goes to checkout.allow_networks only", text);
	if (c->submodule_proxy && url.is_address && !relay_may_reach(&url, &c->git_networks, url.address))
		return error_set(e, ERR_DENIED,
		    "%s is not fetched: its address is not public and checkout.allow_networks does not list it", text);
	return 0;
}

/* Checks one submodule out, and its own submodules. Everything is checked before anything is fetched: the URL,
 * the number of submodules, and that the folder is a plain folder as git made it. No step has run yet, so
 * the folder cannot change between the check and its use. */
static int visit_submodule(struct walk *w, const struct submodule *s, const char *parent_folder, const char *parent_url,
    int depth, struct error *e)
{
	char *url = s->url ? git_url_resolve(parent_url, s->url) : NULL, *real = NULL;
	char *folder = xasprintf("%s/%s", parent_folder, s->path);
	struct mirror_want want = {.kind = MIRROR_MODULE, .url = url, .sha = s->sha, .ref = "HEAD", .depth = 1};
	struct error why = {0};
	int rc;

	if (!s->url) {
		rc = error_set(e, ERR_INVALID, "submodule %s: .gitmodules has no url for it", s->path);
	} else if (!url) {
		rc = error_set(
		    e, ERR_INVALID, "submodule %s: %s does not lead anywhere from %s", s->path, s->url, parent_url);
	} else if (check_submodule_url(w->job->config, url, &why)) {
		rc = error_set(e, ERR_DENIED, "submodule %s: %s", s->path, why.text);
	} else if (++w->n > MODULES_MAX) {
		rc = error_set(e, ERR_RANGE, "more than %d submodules", MODULES_MAX);
	} else {
		job_log_say(w->job->log, "submodule %s: %s", s->path, url);
		real = realpath(folder, NULL);
		if (!str_eq(real, folder))
			rc = error_set(&why, ERR_INVALID, "%s: not a folder", folder);
		else
			rc = make_work_tree(w->job, &want, folder, url, &why);
		if (rc)
			error_set(e, rc, "submodule %s: %s", s->path, why.text);
		else
			rc = visit_tree(w, folder, url, depth + 1, e);
	}
	FREE_ALL(real, folder, url);
	return rc;
}

/* Checks out all submodules of one work tree. Relative URLs start from `url`. Needs the mirrors' lock. *e names the
 * submodule that failed. In the end `git submodule init` makes `git submodule` know them: it looks at
 * the change's URLs once more, and takes none of its `update` commands. */
static int visit_tree(struct walk *w, const char *folder, const char *url, int depth, struct error *e)
{
	const char *init[] = {"submodule", "--quiet", "init", NULL};
	struct submodules all;
	int rc = list_submodules(w->job, folder, &all, e);

	if (!rc && all.n > 0 && depth == NESTED_MAX)
		rc = error_set(e, ERR_RANGE, "submodules are nested deeper than %d", NESTED_MAX);
	for (size_t i = 0; i < all.n && !rc; i++)
		rc = visit_submodule(w, &all.list[i], folder, url, depth, e);
	if (!rc && all.n > 0)
		rc = git_must(w->job, folder, init, e);
	for (size_t i = 0; i < all.n; i++)
		submodule_release(&all.list[i]);
	free(all.list);
	return rc;
}

/* ---- the commit under test ---- */

/* The URL without a login (https://user:password@host/…), because steps can read it. free(). */
static char *public_url(const char *url)
{
	const char *host = strstr(url, "://");

	if (!host || !str_has_prefix(url, "http"))
		return xstrdup(url);
	host += 3;
	const char *slash = strchr(host, '/');
	const char *at = strchr(host, '@');
	if (!at || (slash && at > slash))
		return xstrdup(url);
	return xasprintf("%.*s%s", (int)(host - url), url, at + 1);
}

/* The ref to search on a server that does not hand out commits by name. NULL: none, or one that git could take for
 * an option or a pattern. free(). */
static char *fallback_ref(const struct job *j)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+=@,#";
	const struct lease_offer *o = &j->offer;
	bool is_base = o->experiment && o->experiment->side == EXPERIMENT_BASE;

	if (o->number > 0 && !is_base)
		return xasprintf("refs/pull/%lld/head", (long long)o->number);
	if (!o->ref || !str_has_prefix(o->ref, "refs/heads/") || strspn(o->ref, letters) != strlen(o->ref))
		return NULL;
	return xstrdup(o->ref);
}

/* The commit's name is checked first, before it becomes a part of any command or path. */
int checkout(struct job *j, struct error *e)
{
	/* The folder that git reads the user's configuration from. `safe.directory` lets git read repositories of other
	 * users as they are: git_url may name one on this machine, and the mirrors may have changed their owner. */
	static const char settings[] = "[safe]\n\tdirectory = *\n";
	char *file = path_join(j->git_home, ".gitconfig");
	char *url = public_url(j->config->git_url), *ref = fallback_ref(j);
	const struct mirror_want want = {.kind = MIRROR_MAIN,
	    .url = j->config->git_url,
	    .sha = j->offer.head_sha,
	    .ref = ref,
	    .depth = j->config->git_depth};
	struct walk submodules = {.job = j};
	int lock = -1, rc = 0;

	job_log_begin_excerpt(j->log);
	job_log_say(j->log, "checkout: %s", j->offer.head_sha);
	if (!is_sha1(j->offer.head_sha))
		rc = error_set(e, ERR_INVALID, "the commit's name is not 40 hexadecimal digits");
	else if (mkdir(j->git_home, 0700))
		rc = error_set(e, ERR_IO, "%s: %s", j->git_home, strerror(errno));
	if (!rc)
		rc = file_write_atomic(file, settings, strlen(settings), 0600, e);
	if (!rc)
		rc = mirror_lock(j, &lock, e);
	if (!rc)
		rc = make_work_tree(j, &want, j->work, url, e);
	if (!rc && j->config->git_submodules)
		rc = visit_tree(&submodules, j->work, url, 0, e);
	if (lock >= 0)
		close(lock);
	FREE_ALL(file, ref, url);
	return rc;
}
