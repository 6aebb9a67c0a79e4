#include "steps/mirror.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/hash.h"
#include "base/str.h"
#include "steps/git_command.h"

enum { FETCH_TRIES = 3, LOCK_POLL_MS = 100, COMMITS_KEPT = 200, TIDY_MS = 10 * 60 * 1000 };

static char *mirror_path(const struct job *j)
{
	uint8_t digest[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];

	sha256(j->config->git_url, strlen(j->config->git_url), digest);
	hex_encode(digest, sizeof(digest), hex);
	return xasprintf("%s/mirror/%.32s.git", j->config->work_dir, hex);
}

static char *ref_of(const struct job *j)
{
	return xasprintf("refs/outpost/%d/%s", j->config->git_depth, j->offer.head_sha);
}

static int make_folder(const char *path, struct error *e)
{
	if (mkdir(path, 0700) && errno != EEXIST)
		return error_set(e, ERR_IO, "%s: %s", path, strerror(errno));
	return 0;
}

static int take_lock(struct job *j, const char *path, int *ret_fd, struct error *e)
{
	char *file = xasprintf("%s.lock", path);
	int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		error_set(e, ERR_IO, "%s: %s", file, strerror(errno));
	free(file);
	if (fd < 0)
		return ERR_IO;
	*ret_fd = fd;
	for (bool is_told = false; flock(fd, LOCK_EX | LOCK_NB); is_told = true) {
		if (!is_told)
			job_log_say(j->log, "waiting for another job's checkout");
		if (stop_wait(&j->stop, LOCK_POLL_MS))
			return error_set(e, ERR_CANCELLED, "cancelled during the checkout");
		if (job_time_left(j) == 0)
			return error_set(
			    e, ERR_TIMEOUT, "the job's time was over during the checkout");
	}
	return 0;
}

/* With the lock in hand no git is at work here: what one left that was killed is in the way of
 * every later one. */
static void remove_stale_locks(const char *mirror, const char *ref)
{
	const char *names[] = {
	    "shallow.lock", "packed-refs.lock", "config.lock", "HEAD.lock", "gc.pid"};
	char *path;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		path = xasprintf("%s/%s", mirror, names[i]);
		unlink(path);
		free(path);
	}
	path = xasprintf("%s/%s.lock", mirror, ref);
	unlink(path);
	free(path);
}

static int points_at(
    struct job *j, const char *mirror, const char *ref, char **ret, struct error *e)
{
	char *commit = xasprintf("%s^{commit}", ref);
	const char *args[] = {"rev-parse", "--quiet", "--verify", commit, NULL};
	int rc = git_ask(j, mirror, args, ret, e);

	free(commit);
	return rc;
}

/* All of history is what git fetches without a word, but not into a mirror that lacks some. */
static const char *depth_option(const struct job *j, const char *mirror, char *out, size_t n)
{
	char *shallow = xasprintf("%s/shallow", mirror);
	bool is_shallow = !access(shallow, F_OK);

	free(shallow);
	if (j->config->git_depth == 0 && !is_shallow)
		return "--no-tags";
	snprintf(out, n, "--depth=%d", j->config->git_depth ? j->config->git_depth : INT32_MAX);
	return out;
}

/* Tried again where it may help: not when the other side answered that it has no such thing. */
static int fetch_ref(
    struct job *j, const char *mirror, const char *refspec, struct git_end *end, struct error *e)
{
	char depth[24];
	const char *args[] = {"fetch", "--progress", "--no-tags", "--no-recurse-submodules",
	    "--force", depth_option(j, mirror, depth, sizeof(depth)), "--", j->config->git_url,
	    refspec, NULL};
	int rc = 0;

	for (int try = 1; try <= FETCH_TRIES; try++) {
		int64_t wait_ms = j->pace.retry_ms * (try == 1 ? 1 : 4);

		rc = git_run(j, mirror, args, end, e);
		if (rc || end->is_done || end->is_missing || try == FETCH_TRIES)
			return rc;
		job_log_say(j->log, "the fetch failed (%s); trying again in %lld s", end->message,
		    (long long)(wait_ms + 999) / 1000);
		if (stop_wait(&j->stop, wait_ms))
			return error_set(e, ERR_CANCELLED, "cancelled during the checkout");
	}
	return rc;
}

/* The commit is at the end of the pull request, or in what was fetched of it. */
static int take_from_pull(struct job *j, const char *mirror, const char *ref, struct error *e)
{
	const char *sha = j->offer.head_sha;
	char *pull = xasprintf("refs/outpost/pull/%lld", (long long)j->offer.number), *at = NULL;
	const char *contains[] = {"merge-base", "--is-ancestor", sha, pull, NULL};
	const char *keep[] = {"update-ref", ref, sha, NULL};
	struct git_end end = {.is_done = true};
	int rc = points_at(j, mirror, pull, &at, e);

	if (!rc && !str_eq(at, sha))
		rc = git_run(j, mirror, contains, &end, e);
	if (!rc && !end.is_done)
		rc = error_set(e, ERR_NOT_FOUND,
		    "commit %s cannot be fetched, and refs/pull/%lld/head is at %s by now: it was "
		    "pushed to again",
		    sha, (long long)j->offer.number, at);
	if (!rc)
		rc = git_must(j, mirror, keep, e);
	free(at);
	free(pull);
	return rc;
}

static int fetch_pull(struct job *j, const char *mirror, const char *ref, struct error *e)
{
	char *refspec = xasprintf("+refs/pull/%lld/head:refs/outpost/pull/%lld",
	    (long long)j->offer.number, (long long)j->offer.number);
	struct git_end end;
	int rc;

	job_log_say(j->log, "the commit is not given by its name; fetching refs/pull/%lld/head",
	    (long long)j->offer.number);
	rc = fetch_ref(j, mirror, refspec, &end, e);
	free(refspec);
	if (!rc && !end.is_done)
		rc = error_set(e, ERR_NETWORK, "%s", end.message);
	return rc ? rc : take_from_pull(j, mirror, ref, e);
}

static int fetch(struct job *j, const char *mirror, const char *ref, struct error *e)
{
	char *refspec = xasprintf("+%s:%s", j->offer.head_sha, ref), *at = NULL;
	struct git_end end;
	int rc = fetch_ref(j, mirror, refspec, &end, e);

	free(refspec);
	if (!rc && !end.is_done && end.is_missing && j->offer.number > 0)
		rc = fetch_pull(j, mirror, ref, e);
	else if (!rc && !end.is_done)
		rc = error_set(e, ERR_NETWORK, "%s", end.message);
	if (!rc)
		rc = points_at(j, mirror, ref, &at, e);
	if (!rc && !str_eq(at, j->offer.head_sha))
		rc = error_set(e, ERR_PROTOCOL, "git fetched %s where %s was asked for", at,
		    j->offer.head_sha);
	free(at);
	return rc;
}

static int make_mirror(struct job *j, const char *mirror, struct error *e)
{
	char *head = xasprintf("%s/HEAD", mirror);
	const char *args[] = {"init", "--quiet", "--bare", ".", NULL};
	int rc = 0;

	if (access(head, F_OK)) {
		rc = make_folder(mirror, e);
		if (!rc)
			rc = git_must(j, mirror, args, e);
	}
	free(head);
	return rc;
}

int mirror_fetch(struct job *j, int *ret_lock, struct error *e)
{
	char *mirrors = xasprintf("%s/mirror", j->config->work_dir), *mirror = mirror_path(j);
	char *ref = ref_of(j), *at = NULL;
	int rc = make_folder(mirrors, e);

	*ret_lock = -1;
	if (!rc)
		rc = take_lock(j, mirror, ret_lock, e);
	if (!rc) {
		remove_stale_locks(mirror, ref);
		rc = make_mirror(j, mirror, e);
	}
	if (!rc)
		rc = points_at(j, mirror, ref, &at, e);
	if (!rc && str_eq(at, j->offer.head_sha))
		job_log_say(j->log, "commit %s is here already", j->offer.head_sha);
	else if (!rc)
		rc = fetch(j, mirror, ref, e);
	if (!rc)
		j->mirror = realpath(mirror, NULL);
	if (!rc && !j->mirror)
		rc = error_set(e, ERR_IO, "%s: %s", mirror, strerror(errno));
	free(at);
	free(ref);
	free(mirror);
	free(mirrors);
	return rc;
}

static int delete_old_refs(struct job *j, const char *mirror)
{
	const char *list[] = {
	    "for-each-ref", "--sort=-committerdate", "--format=%(refname)", "refs/outpost", NULL};
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
	free(refs);
	return rc;
}

void mirror_tidy(struct job *j)
{
	const char *args[] = {
	    "-c", "gc.auto=1000", "-c", "gc.autoDetach=false", "gc", "--auto", "--quiet", NULL};
	char *file = xasprintf("%s.lock", j->mirror), *answer = NULL;
	int fd = open(file, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

	free(file);
	if (fd < 0)
		return;
	j->until_mono_ms = clock_mono_ms() + TIDY_MS;
	/* who has it will tidy up */
	if (!flock(fd, LOCK_EX | LOCK_NB) && !delete_old_refs(j, j->mirror) &&
	    !git_ask(j, j->mirror, args, &answer, NULL))
		free(answer);
	close(fd);
}
