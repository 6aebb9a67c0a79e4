/* The mirrors as files: where they are, who may touch them, what goes when. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/hash.h"
#include "base/str.h"
#include "steps/git_command.h"
#include "steps/mirror_internal.h"
#include "steps/steps.h"

enum { LOCK_POLL_MS = 100, COMMITS_KEPT = 200, MODULES_KEPT = 300, TIDY_MS = 10 * 60 * 1000 };

static const char *const folders[] = {[MIRROR_MAIN] = "mirror", [MIRROR_MODULE] = "mirror/modules"};

/* A submodule's mirror serves only under the rules that it was fetched by: what was fetched from a
 * private network is not handed out when that is no longer allowed. */
static void add_rules(struct buf *key, const struct runner_config *c)
{
	buf_appendf(key, "\n%s\n", c->submodule_proxy ? c->submodule_proxy : "relay");
	for (size_t i = 0; i < c->git_networks.n; i++) {
		buf_append(key, c->git_networks.items[i].address, 16);
		buf_appendf(key, "/%d\n", c->git_networks.items[i].prefix_bits);
	}
}

char *mirror_path(const struct job *j, enum mirror_kind kind, const char *url)
{
	struct buf key = BUF_INIT(SIZE_MAX / 2);
	uint8_t digest[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];

	buf_append_str(&key, url);
	if (kind == MIRROR_MODULE)
		add_rules(&key, j->config);
	sha256(key.data, key.len, digest);
	buf_release(&key);
	hex_encode(digest, sizeof(digest), hex);
	return xasprintf("%s/%s/%.32s.git", j->config->work_dir, folders[kind], hex);
}

static int make_folder(const char *path, struct error *e)
{
	if (mkdir(path, 0700) && errno != EEXIST)
		return error_set(e, ERR_IO, "%s: %s", path, strerror(errno));
	return 0;
}

/* ---- the lock ---- */

static int open_lock(const char *work_dir, struct error *e)
{
	char *file = xasprintf("%s/mirror/lock", work_dir);
	int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		error_set(e, ERR_IO, "%s: %s", file, strerror(errno));
	free(file);
	return fd;
}

static int make_folders(const struct job *j, struct error *e)
{
	int rc = 0;

	for (size_t i = 0; i < ARRAY_LEN(folders) && !rc; i++) {
		char *path = xasprintf("%s/%s", j->config->work_dir, folders[i]);

		rc = make_folder(path, e);
		free(path);
	}
	return rc;
}

int mirror_lock(struct job *j, int *ret_lock, struct error *e)
{
	int rc = make_folders(j, e);

	*ret_lock = -1;
	if (rc)
		return rc;
	*ret_lock = open_lock(j->config->work_dir, e);
	if (*ret_lock < 0)
		return ERR_IO;
	for (bool is_told = false; flock(*ret_lock, LOCK_EX | LOCK_NB); is_told = true) {
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

/* ---- one mirror ---- */

static void remove_at(const char *mirror, const char *name, const char *suffix)
{
	char *path = xasprintf("%s/%s%s", mirror, name, suffix);

	unlink(path);
	free(path);
}

/* Packs that were never finished: as large as a whole fetch, and git itself keeps them for weeks. */
static void remove_half_packs(const char *mirror)
{
	char *path = xasprintf("%s/objects/pack", mirror);
	DIR *dir = opendir(path);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)) != NULL)
		if (str_has_prefix(entry->d_name, "tmp_"))
			unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	free(path);
}

/* With the lock in hand no git is at work here: what one left that was killed is in the way of
 * every later one. */
static void remove_stale(const char *mirror, const char *ref)
{
	static const char *const names[] = {"shallow", "packed-refs", "config", "HEAD", MIRROR_TIP};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		remove_at(mirror, names[i], ".lock");
	remove_at(mirror, ref, ".lock");
	remove_at(mirror, "gc.pid", "");
	remove_half_packs(mirror);
}

int mirror_make(struct job *j, const char *path, const char *ref, struct error *e)
{
	char *head = xasprintf("%s/HEAD", path);
	const char *args[] = {"init", "--quiet", "--bare", ".", NULL};
	int rc = 0;

	if (access(head, F_OK)) {
		rc = make_folder(path, e);
		if (!rc)
			rc = git_must(j, path, args, e);
	} else {
		remove_stale(path, ref);
	}
	/* when it was last asked for */
	if (!rc && utimensat(AT_FDCWD, path, NULL, 0))
		rc = error_set(e, ERR_IO, "%s: %s", path, strerror(errno));
	free(head);
	return rc;
}

bool mirror_is_damage(const char *message)
{
	static const char *const signs[] = {"corrupt", "unable to read", "bad object",
	    "missing blob", "missing tree", "missing commit", "is empty", "inflate",
	    "not a git repository", "reference broken", "did not send all necessary objects",
	    "packfile", "unable to unpack", "Could not read", "could not parse", "bad signature",
	    NULL};

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

/* ---- after a job ---- */

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

static int tidy_one(struct job *j, const char *mirror)
{
	const char *args[] = {
	    "-c", "gc.auto=1000", "-c", "gc.autoDetach=false", "gc", "--auto", "--quiet", NULL};
	char *answer = NULL;
	int rc = delete_old_refs(j, mirror);

	if (!rc)
		rc = git_ask(j, mirror, args, &answer, NULL);
	free(answer);
	return rc;
}

struct module {
	char *name;
	struct timespec used;
};

static int newest_first(const void *a, const void *b)
{
	const struct timespec *x = &((const struct module *)a)->used,
			      *y = &((const struct module *)b)->used;

	if (x->tv_sec != y->tv_sec)
		return x->tv_sec < y->tv_sec ? 1 : -1;
	return x->tv_nsec < y->tv_nsec ? 1 : x->tv_nsec > y->tv_nsec ? -1 : 0;
}

static struct module *list_modules(DIR *dir, size_t *ret_n)
{
	struct module *list = NULL;
	struct dirent *entry;
	struct stat st;

	*ret_n = 0;
	while ((entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.' ||
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		list = xrealloc(list, (*ret_n + 1) * sizeof(*list));
		list[(*ret_n)++] =
		    (struct module){.name = xstrdup(entry->d_name), .used = st.st_mtim};
	}
	return list;
}

/* Which URLs there are is the changes' choice, so their number is bounded. */
static void remove_old_modules(const struct job *j)
{
	char *folder = xasprintf("%s/%s", j->config->work_dir, folders[MIRROR_MODULE]);
	DIR *dir = opendir(folder);
	struct module *list = NULL;
	size_t n = 0;

	if (dir)
		list = list_modules(dir, &n);
	if (n > 0)
		qsort(list, n, sizeof(*list), newest_first);
	for (size_t i = 0; i < n; i++) {
		char *path = xasprintf("%s/%s", folder, list[i].name);

		/* one that stays goes with a later job */
		if (i >= MODULES_KEPT)
			(void)!job_folder_remove(path, NULL);
		free(path);
		free(list[i].name);
	}
	free(list);
	if (dir)
		closedir(dir);
	free(folder);
}

void mirror_tidy(struct job *j)
{
	int fd = open_lock(j->config->work_dir, NULL);

	if (fd < 0)
		return;
	j->until_mono_ms = clock_mono_ms() + TIDY_MS;
	/* who has it will tidy up */
	if (!flock(fd, LOCK_EX | LOCK_NB)) {
		for (char **p = j->mirrors; p && *p && !tidy_one(j, *p); p++)
			;
		remove_old_modules(j);
	}
	close(fd);
}

void steps_make_room(const char *work_dir)
{
	char *path = xasprintf("%s/%s", work_dir, folders[MIRROR_MODULE]);
	int fd = open_lock(work_dir, NULL);

	if (fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB))
		(void)!job_folder_remove(path, NULL);
	if (fd >= 0)
		close(fd);
	free(path);
}
