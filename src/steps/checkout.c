#include "steps/checkout.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "steps/mirror.h"
#include "steps/submodules.h"
#include "steps/work_tree.h"

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

/* What git may take for an option or a pattern is no branch of ours. */
static bool is_plain_ref(const char *ref)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789/._-+=@,#";

	return str_has_prefix(ref, "refs/heads/") && strspn(ref, letters) == strlen(ref);
}

/* Where the commit is to be found on a server that gives none by its name. NULL: nowhere. free() */
static char *fallback_ref(const struct job *j)
{
	const struct lease_offer *o = &j->offer;
	bool is_base = o->experiment && o->experiment->side == EXPERIMENT_BASE;

	if (o->number > 0 && !is_base)
		return xasprintf("refs/pull/%lld/head", (long long)o->number);
	return o->ref && is_plain_ref(o->ref) ? xstrdup(o->ref) : NULL;
}

static int check_out_with_lock(struct job *j, const char *url, struct error *e)
{
	char *ref = fallback_ref(j);
	const struct mirror_want want = {.kind = MIRROR_MAIN,
	    .url = j->config->git_url,
	    .sha = j->offer.head_sha,
	    .ref = ref,
	    .depth = j->config->git_depth};
	int rc = work_tree_make(j, &want, j->work, url, e);

	if (!rc && j->config->git_submodules)
		rc = submodules_check_out(j, url, e);
	free(ref);
	return rc;
}

/* All that git takes for the user's configuration. Repositories of other users are read as they
 * are: git_url may name one on this machine, and the mirrors may have changed hands. */
static int make_git_home(const struct job *j, struct error *e)
{
	static const char text[] = "[safe]\n\tdirectory = *\n";
	char *file = job_folder_file(j->git_home, ".gitconfig");
	int rc = 0;

	if (mkdir(j->git_home, 0700))
		rc = error_set(e, ERR_IO, "%s: %s", j->git_home, strerror(errno));
	if (!rc)
		rc = file_write_atomic(file, text, strlen(text), 0600, e);
	free(file);
	return rc;
}

int checkout(struct job *j, struct error *e)
{
	char *url = public_url(j->config->git_url);
	int lock = -1, rc;

	job_log_begin_excerpt(j->log);
	job_log_say(j->log, "checkout: %s", j->offer.head_sha);
	if (!is_sha1(j->offer.head_sha))
		rc = error_set(e, ERR_INVALID, "the commit's name is not 40 hexadecimal digits");
	else
		rc = make_git_home(j, e);
	if (!rc)
		rc = mirror_lock(j, &lock, e);
	if (!rc)
		rc = check_out_with_lock(j, url, e);
	if (lock >= 0)
		close(lock);
	free(url);
	return rc;
}
