#include "steps/report_pickup.h"

#include <dirent.h>
#include <fnmatch.h>

#include "documents/report_file.h"

enum { FOLDERS_DEEP_MAX = 32, ENTRIES_MAX = 1000 * 1000 };

/* Of all files together, so that untrusted files do not keep the machine busy for long. */
#define ALL_MAX_BYTES (INT64_C(8) * REPORT_FILE_MAX_BYTES)

/* ---- finding ---- */

struct search {
	struct found_files *found;
	struct buf path; /* of the current folder, with its last "/" */
	long n_entries;  /* seen so far; the limit bounds the cost of an untrusted tree */
};

static void search_folder(struct search *s, int fd, const char *pattern, int depth);

static void add_found_file(struct search *s, int fd, const char *name)
{
	struct found_files *f = s->found;
	struct stat st;

	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
		return;
	if (f->n == REPORT_FILES_MAX) {
		f->is_cut = true;
		return;
	}
	*ARRAY_PUSH(f->list, f->n) = (struct found_file){.path = xasprintf("%s%s", buf_str(&s->path), name), .st = st};
}

static void search_below(struct search *s, int fd, const char *name, const char *pattern, int depth)
{
	size_t length = s->path.len;

	if (depth >= FOLDERS_DEEP_MAX || s->n_entries >= ENTRIES_MAX)
		return;
	int below = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (below < 0)
		return;
	buf_appendf(&s->path, "%s/", name);
	search_folder(s, below, pattern, depth + 1);
	s->path.len = length;
	if (s->path.data)
		s->path.data[length] = '\0';
	close(below);
}

static bool is_dot_name(const char *name) { return !strcmp(name, ".") || !strcmp(name, ".."); }

/* Matches each entry with the pattern's first part. `rest`: the rest of the pattern; NULL: nothing. For `**`
 * every folder is searched with the whole pattern. */
static void search_entries(struct search *s, int fd, const char *part, const char *pattern, const char *rest, int depth)
{
	bool is_deep = !strcmp(part, "**");
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
	struct dirent *entry;

	while (dir && (entry = readdir(dir)) != NULL && s->n_entries++ < ENTRIES_MAX) {
		const char *name = entry->d_name;

		if (is_dot_name(name))
			continue;
		if (is_deep && name[0] != '.')
			search_below(s, fd, name, pattern, depth);
		else if (!is_deep && !fnmatch(part, name, FNM_PERIOD) && rest)
			search_below(s, fd, name, rest, depth);
		else if (!is_deep && !fnmatch(part, name, FNM_PERIOD))
			add_found_file(s, fd, name);
	}
	if (dir)
		closedir(dir);
}

static void search_folder(struct search *s, int fd, const char *pattern, int depth)
{
	while (*pattern == '/')
		pattern++;
	const char *slash = strchr(pattern, '/');
	char *part = slash ? xstrndup(pattern, (size_t)(slash - pattern)) : xstrdup(pattern);
	if (!*part || is_dot_name(part)) {
		if (!strcmp(part, ".") && slash)
			search_folder(s, fd, slash + 1, depth);
	} else if (!strcmp(part, "**")) {
		/* `**` also stands for no folder at all. */
		search_folder(s, fd, slash ? slash + 1 : "*", depth);
		search_entries(s, fd, part, slash ? pattern : "**/*", NULL, depth);
	} else if (strpbrk(part, "*?[\\")) {
		search_entries(s, fd, part, pattern, slash ? slash + 1 : NULL, depth);
	} else if (slash) {
		search_below(s, fd, part, slash + 1, depth);
	} else {
		add_found_file(s, fd, part);
	}
	free(part);
}

static int compare_paths(const void *a, const void *b)
{
	return strcmp(((const struct found_file *)a)->path, ((const struct found_file *)b)->path);
}

void report_find(const char *folder, char *const *patterns, struct found_files *ret)
{
	struct search s = {.found = ret, .path = BUF_INIT(64 * 1024)};
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	*ret = (struct found_files){.n = 0};
	for (; fd >= 0 && patterns && *patterns; patterns++) {
		size_t n = 0;

		search_folder(&s, fd, *patterns, 0);
		if (ret->n > 0)
			qsort(ret->list, ret->n, sizeof(*ret->list), compare_paths);
		for (size_t i = 0; i < ret->n; i++)
			if (n > 0 && !strcmp(ret->list[n - 1].path, ret->list[i].path))
				free(ret->list[i].path);
			else
				ret->list[n++] = ret->list[i];
		ret->n = n;
	}
	if (fd >= 0)
		close(fd);
	buf_release(&s.path);
}

void found_files_release(struct found_files *f)
{
	for (size_t i = 0; i < f->n; i++)
		free(f->list[i].path);
	free(f->list);
	*f = (struct found_files){.n = 0};
}

/* True if the file is in the list and was not written to since. */
static bool found_files_has_same(const struct found_files *f, const struct found_file *file)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct stat *a = &f->list[i].st, *b = &file->st;

		/* The kernel sets the time of the last status change; no program can set it back. */
		if (!strcmp(f->list[i].path, file->path))
			return a->st_ino == b->st_ino && a->st_size == b->st_size &&
			       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
	}
	return false;
}

/* Opens a path of the list without following a link. Returns -1 and sets errno. */
static int report_open(const char *folder, const char *path)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	while (fd >= 0 && *path) {
		size_t n = strcspn(path, "/");
		char *name = xstrndup(path, n);
		/* Opening a FIFO would block, and a device may do anything: NONBLOCK and NOCTTY. */
		int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
		int next = openat(fd, name, path[n] ? flags | O_DIRECTORY : flags);
		int err = errno;

		free(name);
		close(fd);
		fd = next;
		errno = err;
		path += n + (path[n] ? 1 : 0);
	}
	return fd;
}

/* ---- reading ---- */

/* Adds one file's cases to `all`. */
static int add_report_file(const struct job *j, const char *path, struct report_file *all, struct error *e)
{
	enum report_format format = report_format_parse(j->config->report_format);
	struct buf text = BUF_INIT(REPORT_FILE_MAX_BYTES);
	struct report_file one = {.n_tests = 0};
	struct error why = {0};
	int fd = report_open(j->work, path), rc = 0;
	char chunk[65536];
	struct stat st;
	ssize_t n = 1;

	if (fd < 0)
		return error_set(e, ERR_INVALID, "%s: %s", path, strerror(errno));
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		rc = error_set(e, ERR_INVALID, "%s: not a regular file", path);
	while (!rc && n != 0) {
		n = read(fd, chunk, sizeof(chunk));
		if (n < 0 && errno != EINTR)
			rc = error_set(e, ERR_INVALID, "%s: %s", path, strerror(errno));
		else if (n > 0 && buf_append(&text, chunk, (size_t)n))
			rc = error_set(e, ERR_INVALID, "%s: larger than %d MiB", path, REPORT_FILE_MAX_BYTES >> 20);
	}
	close(fd);

	if (!rc && report_file_parse(format, buf_str(&text), text.len, &one, &why))
		rc = error_set(e, ERR_INVALID, "%s: %s", path, why.text);
	if (!rc)
		report_file_merge(all, &one);
	report_file_release(&one);
	buf_release(&text);
	return rc;
}

static void mask_in_place(const struct masks *m, char **text)
{
	if (!*text)
		return;
	char *masked = masks_text(m, *text);
	free(*text);
	*text = masked;
}

/* Masks every text of a JSON value, also the names in objects. */
static json_t *mask_json(const struct masks *m, const json_t *v)
{
	json_t *ret, *item;
	const char *key;
	size_t i;

	if (json_is_string(v)) {
		char *masked = masks_text(m, json_string_value(v));
		ret = json_string(masked);
		free(masked);
		return ret ? ret : json_string("***");
	}
	if (json_is_object(v)) {
		ret = json_object();
		json_object_foreach((json_t *)v, key, item)
		{
			char *masked = masks_text(m, key);
			json_object_set_new(ret, masked, mask_json(m, item));
			free(masked);
		}
		return ret;
	}
	if (json_is_array(v)) {
		ret = json_array();
		json_array_foreach(v, i, item) json_array_append_new(ret, mask_json(m, item));
		return ret;
	}
	return json_copy((json_t *)v);
}

static int set_missing_error(const struct job *j, size_t n_old, struct error *e)
{
	struct buf patterns = BUF_INIT(300);

	for (char *const *p = j->config->report_globs; *p; p++)
		buf_appendf(&patterns, "%s%s", p == j->config->report_globs ? "" : ", ", *p);
	error_set(e, ERR_INVALID,
	    n_old > 0 ? "no report: what matches %s came with the checkout"
		      : "no report: nothing matches %s in the job's work folder",
	    patterns.data ? patterns.data : "report.files");
	buf_release(&patterns);
	return ERR_INVALID;
}

/* Adds all files that the steps wrote to `all`. Returns how many came with the checkout. */
static size_t add_new_files(struct job *j, const struct found_files *now, const struct found_files *before,
    struct report_file *all, struct error *e)
{
	size_t n_old = 0;
	int64_t n_bytes = 0;

	for (size_t i = 0; i < now->n; i++) {
		struct error why = {0}, stop = {0};

		if (found_files_has_same(before, &now->list[i])) {
			n_old++;
			continue;
		}
		n_bytes += now->list[i].st.st_size;
		if (stop_wait(&j->stop, 0))
			error_set(&stop, ERR_CANCELLED, "cancelled while the report was read");
		else if (n_bytes > ALL_MAX_BYTES)
			error_set(&stop, ERR_INVALID, "report: more than %d MiB in all files together",
			    (int)(ALL_MAX_BYTES >> 20));
		if (stop.code) {
			job_log_say(j->log, "%s", stop.text);
			error_set(e, stop.code, "%s", stop.text);
			break;
		}
		if (add_report_file(j, now->list[i].path, all, &why))
			error_set(e, ERR_INVALID, "report: %s", why.text);
		job_log_say(
		    j->log, "report: %s%s%s", now->list[i].path, why.code ? ": " : "", why.code ? why.text : "");
	}
	return n_old;
}

int report_pickup(struct job *j, const struct found_files *before, bool *ret_has_report, struct error *e)
{
	struct report_file all = {.n_tests = 0};
	struct found_files now;
	size_t n_bytes = 0;
	int rc = 0;

	*ret_has_report = false;
	if (!j->config->report_globs || !*j->config->report_globs)
		return 0;
	report_find(j->work, j->config->report_globs, &now);
	size_t n_old = add_new_files(j, &now, before, &all, e);
	if (now.is_cut)
		error_set(e, ERR_INVALID, "report: more than %d files", REPORT_FILES_MAX);
	if (now.n == n_old)
		rc = set_missing_error(j, n_old, e);
	if (all.n_tests > 0) {
		const struct masks *m = j->masks;
		json_t *environment = NULL;

		/* The report is public, and a failing test may print its environment. */
		for (size_t i = 0; i < all.n_tests; i++) {
			struct test_result *t = &all.tests[i];
			char **const texts[] = {
			    &t->suite, &t->name, &t->file, &t->dtype, &t->message, &t->trace, &t->log_url, &t->unit};

			for (size_t k = 0; k < ARRAY_LEN(texts); k++)
				mask_in_place(m, texts[k]);
		}
		/* text by text, because JSON escapes some characters of a secret */
		if (all.environment && !json_parse(all.environment, strlen(all.environment), &environment, NULL)) {
			json_t *masked = mask_json(m, environment);
			free(all.environment);
			all.environment = json_text(masked);
			json_decref(masked);
		} else {
			FREE_AND_NULL(all.environment);
		}
		json_decref(environment);
		char *text = report_file_text(&all, &n_bytes);
		rc = job_folder_write(j->folder, "report.json", text, n_bytes, e);
		free(text);
	}
	*ret_has_report = all.n_tests > 0 && !rc && !j->stop.is_requested;
	if (!rc && e->code)
		rc = e->code;
	found_files_release(&now);
	report_file_release(&all);
	return rc;
}
