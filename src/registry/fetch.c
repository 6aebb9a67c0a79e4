#include "registry/fetch.h"

#include <dirent.h>
#include <pthread.h>

enum {
	PACKS_MAX = 64, /* each fetch with new commits adds one */
	OBJECTS_MAX = 1000000,
	EXPLANATION_MAX_CHARS = 300,
};

static const char LOCAL_REF[] = "refs/outpost/fetched";

void fetch_explain(char *out, size_t out_bytes)
{
	const git_error *last = git_error_last();
	struct buf line = BUF_INIT(out_bytes);

	escape_line(&line, last && last->message ? last->message : "no reason was given", EXPLANATION_MAX_CHARS);
	snprintf(out, out_bytes, "%s", buf_str(&line));
	buf_release(&line);
}

static pthread_once_t setup_guard = PTHREAD_ONCE_INIT;
static struct error setup_error;

static void setup_once(void)
{
	static const int levels[] = {
	    GIT_CONFIG_LEVEL_SYSTEM, GIT_CONFIG_LEVEL_GLOBAL, GIT_CONFIG_LEVEL_XDG, GIT_CONFIG_LEVEL_PROGRAMDATA};

	if (git_libgit2_init() < 0) {
		error_set(&setup_error, ERR_IO, "libgit2 cannot be initialised");
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(levels); i++)
		git_libgit2_opts(GIT_OPT_SET_SEARCH_PATH, levels[i], "");
	git_libgit2_opts(GIT_OPT_SET_PACK_MAX_OBJECTS, (size_t)OBJECTS_MAX);
	git_libgit2_opts(GIT_OPT_ENABLE_FSYNC_GITDIR, 1);
	/* state_dir may belong to another user, e.g. root. */
	git_libgit2_opts(GIT_OPT_SET_OWNER_VALIDATION, 0);
	if (transport_setup())
		error_set(&setup_error, ERR_IO, "libgit2 does not accept our sockets");
}

int fetch_setup(struct error *e)
{
	pthread_once(&setup_guard, setup_once);
	if (setup_error.code)
		*e = setup_error;
	return setup_error.code;
}

/* ---- the local repository ---- */

int fetch_open(const char *path, git_repository **ret, struct error *e)
{
	char *packs = xasprintf("%s/objects/pack", path), why[512];
	DIR *folder = opendir(packs);
	struct dirent *d;
	size_t n = 0;

	while (folder && (d = readdir(folder)) != NULL)
		n += str_has_suffix(d->d_name, ".pack");
	if (folder)
		closedir(folder);
	free(packs);
	*ret = NULL;
	if (n > PACKS_MAX)
		folder_remove(path);
	if (git_repository_open_bare(ret, path) == 0)
		return 0;
	folder_remove(path);
	if (git_repository_init(ret, path, 1) == 0)
		return 0;
	fetch_explain(why, sizeof(why));
	return error_set(e, ERR_IO, "%s: %s", path, why);
}

/* ---- the fetch ---- */

static int on_progress(const git_indexer_progress *at, void *bounds)
{
	(void)at;
	return bounds_check(bounds) ? GIT_EUSER : 0;
}

/* Sets e to the bound that was hit, or else to libgit2's last error. url: NULL, or named first. */
static int explain_failure(const struct bounds *b, const char *url, struct error *e)
{
	const git_error *last = git_error_last();
	int klass = last ? last->klass : GIT_ERROR_NONE;
	const char *prefix = url ? url : "", *colon = url ? ": " : "";
	int code = ERR_NETWORK;
	char why[400];

	if (b->why.code)
		return error_set(e, b->why.code, "%s%s%s", prefix, colon, b->why.text);
	if (klass == GIT_ERROR_ODB || klass == GIT_ERROR_ZLIB || klass == GIT_ERROR_REFERENCE ||
	    klass == GIT_ERROR_OBJECT)
		code = ERR_CORRUPT;
	fetch_explain(why, sizeof(why));
	return error_set(e, code, "%s%s%s", prefix, colon, why);
}

static void init_connect(git_remote_connect_options *options, struct bounds *b)
{
	git_remote_connect_options_init(options, GIT_REMOTE_CONNECT_OPTIONS_VERSION);
	options->callbacks.transport = transport_new;
	options->callbacks.transfer_progress = on_progress;
	options->callbacks.payload = b;
}

/* branch NULL: HEAD. Returns 0, ERR_NOT_FOUND, or ERR_NETWORK. */
static int find_branch(git_remote *remote, const char *branch, git_oid *ret)
{
	char *ref = branch ? xasprintf("refs/heads/%s", branch) : xstrdup("HEAD");
	const git_remote_head **heads = NULL;
	size_t n = 0;
	int rc = git_remote_ls(&heads, &n, remote) ? ERR_NETWORK : ERR_NOT_FOUND;

	for (size_t i = 0; rc == ERR_NOT_FOUND && i < n; i++) {
		if (!str_eq(heads[i]->name, ref))
			continue;
		*ret = heads[i]->oid;
		rc = 0;
	}
	free(ref);
	return rc;
}

int fetch_branch(
    git_repository *repo, const char *url, const char *branch, struct bounds *b, git_oid *ret, struct error *e)
{
	git_remote_create_options create;
	git_remote_connect_options connect;
	git_fetch_options options;
	git_remote *remote = NULL;
	git_reference *ref = NULL;
	char *spec = xasprintf("+refs/heads/%s:%s", branch, LOCAL_REF);
	const git_strarray specs = {.strings = &spec, .count = 1};
	git_oid here;
	int rc = ERR_NETWORK;

	git_error_clear();
	transport_use(b);
	init_connect(&connect, b);
	git_remote_create_options_init(&create, GIT_REMOTE_CREATE_OPTIONS_VERSION);
	create.repository = repo;
	/* No `insteadOf` is configured, and libgit2 1.5 leaks memory when it looks for one. */
	create.flags = GIT_REMOTE_CREATE_SKIP_INSTEADOF;
	if (!git_remote_create_with_opts(&remote, url, &create) &&
	    !git_remote_connect_ext(remote, GIT_DIRECTION_FETCH, &connect))
		rc = find_branch(remote, branch, ret);
	if (rc == ERR_NOT_FOUND) {
		error_set(e, rc, "%s has no branch %s", url, branch);
	} else if (rc) {
		rc = explain_failure(b, url, e);
	} else if (git_reference_name_to_id(&here, repo, LOCAL_REF) || !git_oid_equal(&here, ret)) {
		/* Download this branch only. The local reference lets the next fetch skip the commits that are here. */
		git_fetch_options_init(&options, GIT_FETCH_OPTIONS_VERSION);
		options.callbacks = connect.callbacks;
		options.download_tags = GIT_REMOTE_DOWNLOAD_TAGS_NONE;
		options.update_fetchhead = 0;
		if (git_remote_download(remote, &specs, &options) ||
		    git_reference_create(&ref, repo, LOCAL_REF, ret, 1, NULL))
			rc = explain_failure(b, url, e);
	}
	git_reference_free(ref);
	free(spec);
	git_remote_free(remote);
	transport_use(NULL);
	return rc;
}

int fetch_head(const char *url, const char *branch, struct bounds *b, char ret_sha[41], struct error *e)
{
	git_remote_connect_options options;
	git_remote *remote = NULL;
	git_oid id;
	int rc = ERR_NETWORK;

	git_error_clear();
	transport_use(b);
	init_connect(&options, b);
	if (!git_remote_create_detached(&remote, url) && !git_remote_connect_ext(remote, GIT_DIRECTION_FETCH, &options))
		rc = find_branch(remote, branch, &id);
	if (!rc)
		git_oid_tostr(ret_sha, 41, &id);
	else if (rc == ERR_NOT_FOUND)
		error_set(e, rc, "there is no branch %s", branch ? branch : "that HEAD names");
	else
		rc = explain_failure(b, NULL, e);
	git_remote_free(remote);
	transport_use(NULL);
	return rc;
}
