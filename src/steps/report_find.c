#include "steps/report_find.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"

enum { DEPTH_MAX = 32, ENTRIES_MAX = 1000 * 1000 };

struct search {
	struct found_files *found;
	struct buf path; /* of the folder at hand, with its last "/" */
	long n_entries;  /* seen so far: what a stranger's tree may cost is bounded */
};

static void search_folder(struct search *s, int fd, const char *pattern, int depth);

static void note_file(struct search *s, int fd, const char *name)
{
	struct found_files *f = s->found;
	struct stat st;

	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
		return;
	if (f->n == REPORT_FILES_MAX) {
		f->is_cut = true;
		return;
	}
	f->list = xrealloc(f->list, (f->n + 1) * sizeof(*f->list));
	f->list[f->n++] =
	    (struct found_file){.path = xasprintf("%s%s", buf_str(&s->path), name), .st = st};
}

static void search_below(struct search *s, int fd, const char *name, const char *pattern, int depth)
{
	size_t length = s->path.len;
	int below;

	if (depth >= DEPTH_MAX || s->n_entries >= ENTRIES_MAX)
		return;
	below = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (below < 0)
		return;
	buf_appendf(&s->path, "%s/", name);
	search_folder(s, below, pattern, depth + 1);
	s->path.len = length;
	if (s->path.data)
		s->path.data[length] = '\0';
	close(below);
}

static bool is_special(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

/* Each entry against the pattern's first part; `rest` is what follows it, NULL: nothing. For
 * `**` every folder is gone into with the pattern as it is. */
static void search_entries(
    struct search *s, int fd, const char *part, const char *pattern, const char *rest, int depth)
{
	bool is_deep = !strcmp(part, "**");
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
	struct dirent *entry;

	while (dir && (entry = readdir(dir)) != NULL && s->n_entries++ < ENTRIES_MAX) {
		const char *name = entry->d_name;

		if (is_special(name))
			continue;
		if (is_deep && name[0] != '.')
			search_below(s, fd, name, pattern, depth);
		else if (!is_deep && !fnmatch(part, name, FNM_PERIOD) && rest)
			search_below(s, fd, name, rest, depth);
		else if (!is_deep && !fnmatch(part, name, FNM_PERIOD))
			note_file(s, fd, name);
	}
	if (dir)
		closedir(dir);
}

static void search_folder(struct search *s, int fd, const char *pattern, int depth)
{
	const char *slash;
	char *part;

	while (*pattern == '/')
		pattern++;
	slash = strchr(pattern, '/');
	part = slash ? xstrndup(pattern, (size_t)(slash - pattern)) : xstrdup(pattern);
	if (!*part || is_special(part)) {
		if (!strcmp(part, ".") && slash)
			search_folder(s, fd, slash + 1, depth);
	} else if (!strcmp(part, "**")) {
		/* no folder at all is meant by it too */
		search_folder(s, fd, slash ? slash + 1 : "*", depth);
		search_entries(s, fd, part, slash ? pattern : "**/*", NULL, depth);
	} else if (strpbrk(part, "*?[\\")) {
		search_entries(s, fd, part, pattern, slash ? slash + 1 : NULL, depth);
	} else if (slash) {
		search_below(s, fd, part, slash + 1, depth);
	} else {
		note_file(s, fd, part);
	}
	free(part);
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct found_file *)a)->path, ((const struct found_file *)b)->path);
}

static void sort_and_unite(struct found_files *f)
{
	size_t n = 0;

	if (f->n > 0)
		qsort(f->list, f->n, sizeof(*f->list), by_path);
	for (size_t i = 0; i < f->n; i++)
		if (n > 0 && !strcmp(f->list[n - 1].path, f->list[i].path))
			free(f->list[i].path);
		else
			f->list[n++] = f->list[i];
	f->n = n;
}

void report_find(const char *folder, char *const *patterns, struct found_files *ret)
{
	struct search s = {.found = ret, .path = BUF_INIT(64 * 1024)};
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	*ret = (struct found_files){.n = 0};
	for (; fd >= 0 && patterns && *patterns; patterns++) {
		search_folder(&s, fd, *patterns, 0);
		sort_and_unite(ret);
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

bool found_files_has_same(const struct found_files *f, const struct found_file *file)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct stat *a = &f->list[i].st, *b = &file->st;

		/* the time of its last change is the kernel's: no program can set it back */
		if (!strcmp(f->list[i].path, file->path))
			return a->st_ino == b->st_ino && a->st_size == b->st_size &&
			       a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
			       a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
	}
	return false;
}

int report_open(const char *folder, const char *path)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	while (fd >= 0 && *path) {
		size_t n = strcspn(path, "/");
		char *name = xstrndup(path, n);
		/* a FIFO would keep us waiting, a device may do anything */
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
