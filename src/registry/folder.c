#include "registry/folder.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/str.h"
#include "registry/registry.h"

enum { NAME_MAX_BYTES = 128, OPEN_FOLDERS_MAX = 16 };

static const char GOOD[] = "good", REPOSITORY[] = "repo.git";

char *registry_root(const char *state_dir)
{
	return path_join(state_dir, "registry");
}

/* The commit alone would not do: another `path` of the same commit is another folder. */
char *registry_checkout_name(const char *commit, const char *path)
{
	uint8_t digest[SHA256_BYTES];

	sha256(path, strlen(path), digest);
	return xasprintf("%s-%02x%02x%02x%02x", commit, digest[0], digest[1], digest[2], digest[3]);
}

static bool is_checkout_name(const char *s)
{
	return strlen(s) < NAME_MAX_BYTES && strspn(s, "0123456789abcdef-") == strlen(s) &&
	       strlen(s) > 40;
}

char *registry_good(const char *root, int64_t *ret_wall_ms)
{
	char *path = path_join(root, GOOD), *name = NULL;
	struct buf text = BUF_INIT(NAME_MAX_BYTES);
	struct error ignored = {0};
	struct stat st;

	if (file_read(path, &text, &ignored) == 0 && stat(path, &st) == 0) {
		if (text.len && text.data[text.len - 1] == '\n')
			text.data[--text.len] = '\0';
		if (is_checkout_name(buf_str(&text))) {
			name = xstrdup(buf_str(&text));
			*ret_wall_ms = (int64_t)st.st_mtim.tv_sec * 1000;
		}
	}
	buf_release(&text);
	free(path);
	return name;
}

int registry_keep(const char *root, const char *name, struct error *e)
{
	char *path = path_join(root, GOOD), *line = xasprintf("%s\n", name);
	int rc = file_write_atomic(path, line, strlen(line), 0600, e);

	free(line);
	free(path);
	return rc;
}

int registry_keep_folder(const char *folder, struct error *e)
{
	const char *slash = strrchr(folder, '/');
	char *root = xstrndup(folder, (size_t)(slash - folder));
	int rc = registry_keep(root, slash + 1, e);

	free(root);
	return rc;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	/* What cannot be removed now goes with the next sweep; the rest goes today. */
	if (remove(path) != 0)
		errno = 0;
	return 0;
}

void remove_all(const char *path)
{
	nftw(path, remove_one, OPEN_FOLDERS_MAX, FTW_DEPTH | FTW_PHYS);
}

void registry_sweep(const char *root, const char *name)
{
	DIR *folder = opendir(root);
	struct dirent *d;

	while (folder && (d = readdir(folder)) != NULL) {
		char *path;

		if (str_eq(d->d_name, ".") || str_eq(d->d_name, "..") || str_eq(d->d_name, GOOD) ||
		    str_eq(d->d_name, REPOSITORY) || (name && str_eq(d->d_name, name)))
			continue;
		path = path_join(root, d->d_name);
		remove_all(path);
		free(path);
	}
	if (folder)
		closedir(folder);
}

char *registry_folder(const char *state_dir)
{
	char *root = registry_root(state_dir), *folder = NULL, *name;
	int64_t since_ms;
	struct stat st;

	name = registry_good(root, &since_ms);
	if (name) {
		folder = path_join(root, name);
		if (stat(folder, &st) != 0 || !S_ISDIR(st.st_mode))
			FREE_AND_NULL(folder);
	}
	free(name);
	free(root);
	return folder;
}
