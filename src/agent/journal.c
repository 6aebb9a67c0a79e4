#include "agent/journal.h"

#include <dirent.h>
#include <sys/file.h>
#include <sys/statvfs.h>

#include "steps/job_folder.h"

enum { PROGRESS_MAX_BYTES = 4096 };

static const char REJECTED[] = "rejected";

static const char *const progress_names[N_PROGRESS] = {
    "none", "returning", "sent", "returned", "lost", "died", "rejected"};

const char *progress_name(enum progress p) { return progress_names[p]; }

int journal_open(struct journal *j, const char *work_dir, struct error *e)
{
	char *path = path_join(work_dir, "agent.lock"), who[32] = "";
	int rc = 0;

	*j = (struct journal){.work_dir = xstrdup(work_dir)};
	j->jobs_dir = path_join(work_dir, "jobs");
	char *rejected = path_join(j->jobs_dir, REJECTED);
	j->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (j->lock_fd < 0) {
		rc = error_set(e, ERR_IO, "%s: %s", path, strerror(errno));
	} else if (flock(j->lock_fd, LOCK_EX | LOCK_NB)) {
		ssize_t n = read(j->lock_fd, who, sizeof(who) - 1);

		who[n > 0 ? (int)strcspn(who, "\n") : 0] = '\0';
		rc = error_set(e, ERR_BUSY,
		    "work_dir %s is in use by another outpost-runner (process %s); each needs a work_dir of its own",
		    j->work_dir, *who ? who : "unknown");
	} else if (ftruncate(j->lock_fd, 0) || dprintf(j->lock_fd, "%d\n", (int)getpid()) < 0) {
		rc = error_set(e, ERR_IO, "%s: %s", path, strerror(errno));
	}
	if (!rc)
		rc = job_folder_make(j->jobs_dir, e);
	if (!rc)
		rc = job_folder_make(rejected, e);
	FREE_ALL(rejected, path);
	if (rc)
		journal_close(j);
	return rc;
}

void journal_close(struct journal *j)
{
	if (j->lock_fd >= 0)
		close(j->lock_fd);
	j->lock_fd = -1;
	FREE_AND_NULL(j->work_dir);
	FREE_AND_NULL(j->jobs_dir);
}

int64_t journal_room_bytes(const struct journal *j)
{
	struct statvfs v;

	if (statvfs(j->work_dir, &v))
		return -1;
	return (int64_t)v.f_bavail * (int64_t)v.f_frsize;
}

int journal_claim_id(struct journal *j, char **ret, struct error *e)
{
	char id[ID_BYTES], *text = NULL;
	size_t n;

	*ret = NULL;
	int rc = job_folder_read(j->work_dir, "claim", ID_BYTES, &text, &n, NULL);
	if (!rc && n == ID_BYTES - 1 && strspn(text, "abcdefghijklmnopqrstuvwxyz234567") == n) {
		*ret = text;
		return 0;
	}
	free(text);
	id_new(id);
	char *path = path_join(j->work_dir, "claim");
	rc = file_write_atomic(path, id, strlen(id), 0600, e);
	free(path);
	if (!rc)
		*ret = xstrdup(id);
	return rc;
}

void journal_claim_over(struct journal *j)
{
	char *path = path_join(j->work_dir, "claim");

	/* If the file stays, the claim is sent again, and the journal knows the lease already. */
	(void)unlink(path);
	free(path);
}

static int compare_job_names(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

int journal_list(const char *path, char ***ret, struct error *e)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;
	size_t n = 0;

	*ret = NULL;
	if (!dir)
		return error_set(e, ERR_IO, "%s: %s", path, strerror(errno));
	*ret = xcalloc(1, sizeof(**ret));
	while ((entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
			continue;
		*ret = xrealloc(*ret, (n + 2) * sizeof(**ret));
		(*ret)[n++] = xstrdup(entry->d_name);
		(*ret)[n] = NULL;
	}
	closedir(dir);
	qsort(*ret, n, sizeof(**ret), compare_job_names);
	return 0;
}

int journal_add(struct journal *j, const struct lease_offer *o, char **ret_folder, struct error *e)
{
	char **names;
	bool is_known = false;
	int fd = -1;

	*ret_folder = NULL;
	if (!journal_list(j->jobs_dir, &names, NULL)) {
		for (char **name = names; *name && !is_known; name++)
			is_known = strchr(*name, '-') && str_eq(strchr(*name, '-') + 1, o->lease_id);
		strv_free(names);
	}
	if (is_known)
		return error_set(e, ERR_EXISTS, "lease %s is known already", o->lease_id);
	char *folder = xasprintf("%s/%013lld-%s", j->jobs_dir, (long long)clock_wall_ms(), o->lease_id);
	char *text = lease_offer_text(o);
	int rc = job_folder_make(folder, e);
	if (!rc)
		rc = job_folder_write(folder, "offer.json", text, strlen(text), e);
	/* The new folder's name has to survive a power loss too. */
	if (!rc) {
		fd = open(j->jobs_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0 || fsync(fd))
			rc = error_set(e, ERR_IO, "%s: %s", j->jobs_dir, strerror(errno));
	}
	if (fd >= 0)
		close(fd);
	free(text);
	if (rc) {
		(void)rmdir(folder);
		free(folder);
	} else {
		*ret_folder = folder;
	}
	return rc;
}

int journal_read_offer(const char *folder, struct lease_offer *ret, struct error *e)
{
	char *text = NULL;
	size_t n = 0;

	*ret = (struct lease_offer){0};
	int rc = job_folder_read(folder, "offer.json", LEASE_OFFER_MAX_BYTES, &text, &n, e);
	if (!rc)
		rc = lease_offer_parse(text, n, ret, e);
	free(text);
	return rc;
}

enum progress journal_progress(const char *folder)
{
	enum progress p = PROGRESS_NONE;
	char *text = NULL;
	json_t *v = NULL;
	size_t n = 0;

	if (job_folder_read(folder, "progress", PROGRESS_MAX_BYTES, &text, &n, NULL) || json_parse(text, n, &v, NULL)) {
		free(text);
		return PROGRESS_NONE;
	}
	const char *word = json_get_str(v, "progress");
	for (int i = 0; i < N_PROGRESS; i++)
		if (str_eq(word, progress_names[i]))
			p = (enum progress)i;
	json_decref(v);
	free(text);
	return p;
}

int journal_set_progress(const char *folder, enum progress p, const char *reason, struct error *e)
{
	json_t *v = json_object();

	json_set_str(v, "progress", progress_name(p));
	json_set_str(v, "reason", reason);
	json_set_time(v, "at", clock_wall_ms());
	char *text = json_text(v);
	int rc = job_folder_write(folder, "progress", text, strlen(text), e);
	free(text);
	json_decref(v);
	return rc;
}

int journal_reject(const struct journal *j, const char *folder, const char *reason, struct error *e)
{
	const char *name = strrchr(folder, '/') + 1;
	char *to = xasprintf("%s/%s/%s", j->jobs_dir, REJECTED, name);
	int rc = journal_set_progress(folder, PROGRESS_REJECTED, reason, e);

	if (!rc && rename(folder, to))
		rc = error_set(e, ERR_IO, "%s: cannot be moved to %s: %s", folder, to, strerror(errno));
	free(to);
	return rc;
}

static void remove_tree_at(const char *folder, const char *name)
{
	char *path = path_join(folder, name);

	/* A folder that cannot be removed now is tried again with the next job. */
	(void)!job_folder_remove(path, NULL);
	free(path);
}

void journal_prune(const char *jobs_dir, int keep)
{
	char *rejected = path_join(jobs_dir, REJECTED), **names;
	int n_kept = 0;

	/* A folder that cannot be listed is explained by journal_open() at the next start. */
	if (!journal_list(jobs_dir, &names, NULL)) {
		for (size_t i = strv_len((const char *const *)names); i-- > 0;) {
			char *folder = path_join(jobs_dir, names[i]);
			enum progress p = journal_progress(folder);
			bool is_over = p != PROGRESS_NONE && p != PROGRESS_RETURNING && !job_folder_is_locked(folder);

			if (is_over && n_kept++ >= keep)
				remove_tree_at(jobs_dir, names[i]);
			free(folder);
		}
		strv_free(names);
	}
	n_kept = 0;
	if (!journal_list(rejected, &names, NULL)) {
		for (size_t i = strv_len((const char *const *)names); i-- > 0; n_kept++) {
			char *folder = path_join(rejected, names[i]);

			if (n_kept >= KEEP_REJECTED) {
				remove_tree_at(rejected, names[i]);
			} else if (n_kept >= keep) {
				remove_tree_at(folder, "work");
				remove_tree_at(folder, "tmp");
			}
			free(folder);
		}
		strv_free(names);
	}
	free(rejected);
}
