#include "steps/mirror.h"

#include <dirent.h>
#include <sys/file.h>

#include "steps/git.h"
#include "steps/relay.h"
#include "steps/steps.h"

#define MIRROR_TIP "refs/outpost/tip" /* of the branch or pull request that was searched last */

enum {
	FETCH_TRIES = 3,
	LOCK_POLL_MS = 100,
	COMMITS_KEPT = 200,
	MODULES_KEPT = 300,
	TIDY_MS = 10 * 60 * 1000,
};

static const char *const mirror_folders[] = {[MIRROR_MAIN] = "mirror", [MIRROR_MODULE] = "mirror/modules"};

/* The folder of a URL's mirror. The name of a submodule's mirror contains the rules of its fetch, so that a
 * mirror from a private network is not used once that network is no longer allowed. free(). */
static char *mirror_path(const struct job *j, enum mirror_kind kind, const char *url)
{
	const struct runner_config *c = j->config;
	struct buf key = BUF_INIT(SIZE_MAX / 2);
	uint8_t digest[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];

	buf_append_str(&key, url);
	if (kind == MIRROR_MODULE) {
		buf_appendf(&key, "\n%s\n", c->submodule_proxy ? c->submodule_proxy : "relay");
		for (size_t i = 0; i < c->git_networks.n; i++) {
			buf_append(&key, c->git_networks.items[i].address, 16);
			buf_appendf(&key, "/%d\n", c->git_networks.items[i].prefix_bits);
		}
	}
	sha256(key.data, key.len, digest);
	buf_release(&key);
	hex_encode(digest, sizeof(digest), hex);
	return xasprintf("%s/%s/%.32s.git", c->work_dir, mirror_folders[kind], hex);
}

static int open_mirror_lock(const char *work_dir, struct error *e)
{
	char *file = xasprintf("%s/mirror/lock", work_dir);
	int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		error_set(e, ERR_IO, "%s: %s", file, strerror(errno));
	free(file);
	return fd;
}

int mirror_lock(struct job *j, int *ret_lock, struct error *e)
{
	*ret_lock = -1;
	for (size_t i = 0; i < ARRAY_LEN(mirror_folders); i++) {
		char *path = xasprintf("%s/%s", j->config->work_dir, mirror_folders[i]);
		int rc = job_folder_make(path, e);

		free(path);
		if (rc)
			return rc;
	}
	*ret_lock = open_mirror_lock(j->config->work_dir, e);
	if (*ret_lock < 0)
		return ERR_IO;
	for (bool is_said = false; flock(*ret_lock, LOCK_EX | LOCK_NB); is_said = true) {
		if (!is_said)
			job_log_say(j->log, "waiting for another job's checkout");
		if (stop_wait(&j->stop, LOCK_POLL_MS))
			return error_set(e, ERR_CANCELLED, "cancelled during the checkout");
		if (job_time_left(j) == 0)
			return error_set(e, ERR_TIMEOUT, "the job's time was over during the checkout");
	}
	return 0;
}

/* ---- one mirror ---- */

/* Makes the mirror if it is missing. Else removes the files of a killed git: its lock files keep every later git out, and
 * its unfinished packs are as large as a whole fetch, and git itself keeps them for weeks. Needs the mirrors' lock, so
 * no git works here. */
static int prepare_mirror(struct job *j, const char *path, const char *ref, struct error *e)
{
	char *ref_lock = xasprintf("%s.lock", ref);
	const char *const names[] = {
	    "shallow.lock", "packed-refs.lock", "config.lock", "HEAD.lock", MIRROR_TIP ".lock", ref_lock, "gc.pid"};
	char *packs = xasprintf("%s/objects/pack", path), *head = xasprintf("%s/HEAD", path);
	struct dirent *entry;
	const char *args[] = {"init", "--quiet", "--bare", ".", NULL};
	int rc = 0;

	if (access(head, F_OK)) {
		rc = job_folder_make(path, e);
		if (!rc)
			rc = git_must(j, path, args, e);
	} else {
		for (size_t i = 0; i < ARRAY_LEN(names); i++) {
			char *file = xasprintf("%s/%s", path, names[i]);

			unlink(file);
			free(file);
		}
		DIR *dir = opendir(packs);
		while (dir && (entry = readdir(dir)) != NULL)
			if (str_has_prefix(entry->d_name, "tmp_"))
				unlinkat(dirfd(dir), entry->d_name, 0);
		if (dir)
			closedir(dir);
	}
	/* Its time says when a job used it last. */
	if (!rc && utimensat(AT_FDCWD, path, NULL, 0))
		rc = error_set(e, ERR_IO, "%s: %s", path, strerror(errno));
	FREE_ALL(head, packs, ref_lock);
	return rc;
}

bool mirror_is_damage(const char *message)
{
	static const char *const signs[] = {"corrupt", "unable to read", "bad object", "missing blob", "missing tree",
	    "missing commit", "is empty", "inflate", "not a git repository", "reference broken",
	    "did not send all necessary objects", "packfile", "unable to unpack", "Could not read", "could not parse",
	    "bad signature", NULL};

	for (const char *const *p = signs; *p; p++)
		if (strstr(message, *p))
			return true;
	return false;
}

int mirror_forget(struct job *j, const struct mirror_want *w, struct error *e)
{
	char *path = mirror_path(j, w->kind, w->url);
	int rc = job_folder_remove(path, e);

	free(path);
	return rc;
}

/* ---- fetching ---- */

/* The depths of a branch's history that are searched for a commit, one after another. Of a pull request only the
 * first is searched: a commit that is not there was replaced by a push. */
static const int search_depths[] = {50, 500, 5000};

struct fetching {
	struct job *job;
	const struct mirror_want *want;
	const char *mirror;
	char *ref; /* keeps the commit */
};

/* The commit that a ref or name points at; "" if there is none. free() *ret. */
static int resolve_commit(struct fetching *f, const char *ref, char **ret, struct error *e)
{
	char *commit = xasprintf("%s^{commit}", ref);
	const char *args[] = {"rev-parse", "--quiet", "--verify", commit, NULL};
	int rc = git_ask(f->job, f->mirror, args, ret, e);

	free(commit);
	return rc;
}

static bool is_shallow_mirror(const struct fetching *f)
{
	char *path = xasprintf("%s/shallow", f->mirror);
	bool is_there = !access(path, F_OK);

	free(path);
	return is_there;
}

/* A submodule's host is reached only through a relay, which lives for this one fetch and checks each address, or
 * through the proxy that the operator chose for submodules. The URL is parsed again here, right before its
 * use, so that this function alone keeps the rule. */
static int fetch_submodule(struct fetching *f, const char *const *args, struct git_end *end, struct error *e)
{
	const struct runner_config *c = f->job->config;
	struct git_remote remote = {.kind = GIT_CHANGES_URL, .proxy = c->submodule_proxy};
	struct relay relay;
	struct git_url url;
	char proxy[48];

	if (git_url_parse(f->want->url, &url))
		return error_set(e, ERR_DENIED, "%s is not fetched", f->want->url);
	remote.is_plain = url.is_plain;
	if (remote.proxy)
		return git_fetch(f->job, f->mirror, &remote, args, end, e);
	int rc = relay_start(&url, &c->git_networks, &relay, e);
	if (rc)
		return rc;
	snprintf(proxy, sizeof(proxy), "socks5h://127.0.0.1:%d", relay.port);
	remote.proxy = proxy;
	rc = git_fetch(f->job, f->mirror, &remote, args, end, e);
	enum relay_trouble trouble = relay_stop(&relay);
	if (rc || end->is_done)
		return rc;
	if (trouble == RELAY_UNREACHABLE) {
		end->is_final = true;
		snprintf(end->message, sizeof(end->message),
		    "%s: there is no such host, or its address is one that a submodule may not "
		    "reach (checkout.allow_networks)",
		    url.host);
	} else if (trouble == RELAY_NOT_CONNECTED) {
		snprintf(end->message, sizeof(end->message), "%s: no connection to port %d", url.host, url.port);
	}
	return 0;
}

/* Fetches with a few tries. Does not try again if the other side answered that it does not have the commit. For
 * all of history git needs no option, but a mirror that lacks some has to be asked to deepen. */
static int fetch_ref(struct fetching *f, const char *refspec, int depth, struct git_end *end, struct error *e)
{
	struct job *j = f->job;
	bool is_complete = depth == 0 && !is_shallow_mirror(f);
	char depth_text[24];
	const char *args[] = {"fetch", "--progress", "--no-tags", "--no-recurse-submodules", "--force",
	    is_complete ? "--no-tags" : depth_text, "--", f->want->url, refspec, NULL};
	const struct git_remote operators = {.kind = GIT_OPERATORS_URL};
	bool is_main = f->want->kind == MIRROR_MAIN;
	int rc = 0;

	snprintf(depth_text, sizeof(depth_text), "--depth=%d", depth ? depth : INT32_MAX);
	for (int try = 1; try <= FETCH_TRIES; try++) {
		int64_t wait_ms = j->pace.retry_ms * (try == 1 ? 1 : 4);

		rc = is_main ? git_fetch(j, f->mirror, &operators, args, end, e) : fetch_submodule(f, args, end, e);
		if (!rc && end->is_redirect)
			snprintf(end->message, sizeof(end->message),
			    "the server answers with a redirect, and none is followed%s",
			    is_main ? ": write checkout.git_url as it is after the redirect" : "");
		if (rc || end->is_done || end->is_final || try == FETCH_TRIES || mirror_is_damage(end->message))
			return rc;
		job_log_say(j->log, "the fetch failed (%s); trying again in %lld s", end->message,
		    (long long)(wait_ms + 999) / 1000);
		if (stop_wait(&j->stop, wait_ms))
			return error_set(e, ERR_CANCELLED, "cancelled during the checkout");
	}
	return rc;
}

/* *ret: the tip is the commit, or the commit is in the fetched part of its history. */
static int look_in_tip(struct fetching *f, bool *ret, struct error *e)
{
	const char *sha = f->want->sha;
	const char *contains[] = {"merge-base", "--is-ancestor", sha, MIRROR_TIP, NULL};
	char *answer = NULL;
	struct git_end end = {.is_done = false};
	int rc = resolve_commit(f, MIRROR_TIP, &answer, e);

	*ret = !rc && str_eq(answer, sha);
	free(answer);
	if (rc || *ret)
		return rc;
	/* The commit has to be there: about a missing one git would log an error. */
	rc = resolve_commit(f, sha, &answer, e);
	if (!rc && str_eq(answer, sha))
		rc = git_fetch(f->job, f->mirror, NULL, contains, &end, e);
	free(answer);
	*ret = end.is_done;
	return rc;
}

/* For a server that does not hand out commits by name but does hand out branches. The branch has often moved on;
 * the commit under test stays the same. */
static int fetch_tip(struct fetching *f, struct error *e)
{
	char *refspec = xasprintf("+%s:%s", f->want->ref, MIRROR_TIP), *at = NULL;
	const char *keep[] = {"update-ref", f->ref, f->want->sha, NULL};
	size_t n_depths = str_has_prefix(f->want->ref, "refs/pull/") ? 1 : ARRAY_LEN(search_depths);
	struct git_end end = {.is_done = true};
	bool is_there = false;
	int rc = 0, depth = f->want->depth;

	job_log_say(f->job->log, "the commit is not given by its name; fetching %s", f->want->ref);
	do {
		rc = fetch_ref(f, refspec, depth, &end, e);
		if (!rc && !end.is_done)
			rc = error_set(e, ERR_NETWORK, "%s", end.message);
		if (!rc)
			rc = look_in_tip(f, &is_there, e);
		/* the next depth to search after this one was not enough; 0: none */
		int next = 0;
		for (size_t i = 0; depth > 0 && !next && i < n_depths; i++)
			next = search_depths[i] > depth ? search_depths[i] : 0;
		depth = is_shallow_mirror(f) ? next : 0;
		if (!rc && !is_there && depth)
			job_log_say(f->job->log, "looking for it in %d commits", depth);
	} while (!rc && !is_there && depth);
	if (!rc)
		rc = is_there ? git_must(f->job, f->mirror, keep, e) : resolve_commit(f, MIRROR_TIP, &at, e);
	if (!rc && !is_there)
		rc = error_set(e, ERR_NOT_FOUND, "commit %s cannot be fetched by its name, and %s is at %s by now%s",
		    f->want->sha, f->want->ref, at,
		    str_has_prefix(f->want->ref, "refs/pull/") ? ": it was pushed to again"
							       : ", without it among the newest commits");
	FREE_ALL(at, refspec);
	return rc;
}

/* In the end the ref must point at the commit that was asked for, whatever the server sent. */
int mirror_fetch(struct job *j, const struct mirror_want *w, char **ret, struct error *e)
{
	char *path = mirror_path(j, w->kind, w->url), *at = NULL;
	struct fetching f = {.job = j, .want = w, .mirror = path};
	struct git_end end;

	*ret = NULL;
	f.ref = xasprintf("refs/outpost/%d/%s", w->depth, w->sha);
	int rc = prepare_mirror(j, path, f.ref, e);
	if (!rc)
		rc = resolve_commit(&f, f.ref, &at, e);
	if (!rc && str_eq(at, w->sha))
		job_log_say(j->log, "commit %s is here already", w->sha);
	else if (!rc) {
		char *refspec = xasprintf("+%s:%s", w->sha, f.ref);

		rc = fetch_ref(&f, refspec, w->depth, &end, e);
		free(refspec);
		if (!rc && !end.is_done && end.is_missing && w->ref)
			rc = fetch_tip(&f, e);
		else if (!rc && !end.is_done)
			rc = error_set(e, ERR_NETWORK, "%s", end.message);
		FREE_AND_NULL(at);
		if (!rc)
			rc = resolve_commit(&f, f.ref, &at, e);
		if (!rc && !str_eq(at, w->sha))
			rc = error_set(e, ERR_PROTOCOL, "git fetched %s where %s was asked for", at, w->sha);
	}
	if (!rc)
		*ret = realpath(path, NULL);
	if (!rc && !*ret)
		rc = error_set(e, ERR_IO, "%s: %s", path, strerror(errno));
	if (!rc && !strv_contains((const char *const *)j->mirrors, *ret))
		strv_add(&j->mirrors, *ret);
	FREE_ALL(at, f.ref, path);
	return rc;
}

/* ---- after a job ---- */

/* Deletes all refs but the newest, then lets git collect garbage. Nonzero: the time is over. */
static int tidy_mirror(struct job *j, const char *mirror)
{
	const char *list[] = {"for-each-ref", "--sort=-committerdate", "--format=%(refname)", "refs/outpost", NULL};
	const char *collect[] = {"-c", "gc.auto=1000", "-c", "gc.autoDetach=false", "gc", "--auto", "--quiet", NULL};
	char *refs = NULL, *answer = NULL, *next;
	int rc = git_ask(j, mirror, list, &refs, NULL), n = 0;

	for (char *ref = refs; !rc && ref && *ref; ref = next) {
		const char *args[] = {"update-ref", "-d", ref, NULL};
		size_t length = strcspn(ref, "\n");

		next = ref + length + (ref[length] ? 1 : 0);
		ref[length] = '\0';
		if (++n <= COMMITS_KEPT)
			continue;
		rc = git_ask(j, mirror, args, &answer, NULL);
		FREE_AND_NULL(answer);
	}
	if (!rc)
		rc = git_ask(j, mirror, collect, &answer, NULL);
	FREE_ALL(answer, refs);
	return rc;
}

struct module {
	char *name;
	int64_t used_ns; /* when a job asked for it last */
};

static int compare_newest_first(const void *a, const void *b)
{
	const struct module *x = a, *y = b;

	return x->used_ns < y->used_ns ? 1 : x->used_ns > y->used_ns ? -1 : 0;
}

void mirror_tidy(struct job *j)
{
	int fd = open_mirror_lock(j->config->work_dir, NULL);
	struct module *list = NULL;
	struct dirent *entry;
	struct stat st;
	size_t n = 0;

	j->until_mono_ms = clock_mono_ms() + TIDY_MS;
	/* A job that has the lock will tidy up itself. */
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB)) {
		if (fd >= 0)
			close(fd);
		return;
	}
	for (char **p = j->mirrors; p && *p && !tidy_mirror(j, *p); p++)
		;
	/* Changes choose the URLs of submodules, so the number of their mirrors is bounded. */
	char *folder = xasprintf("%s/%s", j->config->work_dir, mirror_folders[MIRROR_MODULE]);
	DIR *dir = opendir(folder);
	while (dir && (entry = readdir(dir)) != NULL)
		if (entry->d_name[0] != '.' && !fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
			*ARRAY_PUSH(list, n) = (struct module){.name = xstrdup(entry->d_name),
			    .used_ns = st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec};
	if (n > 0)
		qsort(list, n, sizeof(*list), compare_newest_first);
	for (size_t i = 0; i < n; i++) {
		char *path = xasprintf("%s/%s", folder, list[i].name);

		/* A mirror that cannot be removed is tried again after a later job. */
		if (i >= MODULES_KEPT)
			(void)!job_folder_remove(path, NULL);
		FREE_ALL(path, list[i].name);
	}
	if (dir)
		closedir(dir);
	FREE_ALL(list, folder);
	close(fd);
}

void steps_make_room(const char *work_dir)
{
	char *path = xasprintf("%s/%s", work_dir, mirror_folders[MIRROR_MODULE]);
	int fd = open_mirror_lock(work_dir, NULL);

	if (fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB))
		(void)!job_folder_remove(path, NULL);
	if (fd >= 0)
		close(fd);
	free(path);
}
