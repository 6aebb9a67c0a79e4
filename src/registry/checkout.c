#include "registry/checkout.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/str.h"
#include "registry/fetch.h"
#include "registry/folder.h"

enum {
	FILES_MAX = 1000,
	FILE_MAX_BYTES = 256 * 1024,
	TREE_MAX_BYTES = 4 << 20,
	COMMIT_MAX_BYTES = 1 << 20,
	NAME_MAX_BYTES = 128,
	NAME_MAX_CHARS = 80, /* of a name that is shown */
};

/* "accelerators.git@1a2b3c4:folder/file:1: what is wrong"; name NULL: the folder itself. */
static int mistake(const struct checkout *c, const char *name, const char *what)
{
	char id[8];

	git_oid_tostr(id, sizeof(id), &c->commit);
	buf_appendf(c->mistakes, "accelerators.git@%s:%s%s", id, c->path, name ? "/" : "");
	if (name)
		escape_line(c->mistakes, name, NAME_MAX_CHARS);
	buf_appendf(c->mistakes, ":1: %s\n", what);
	return ERR_INVALID;
}

/* ---- reading ---- */

/* Objects are inflated whole, so their size is asked for first. */
static int check_size(const struct checkout *c, const git_oid *id, size_t max, struct error *e)
{
	git_object_t type;
	git_odb *odb = NULL;
	size_t bytes = 0;
	int rc = 0;
	char why[256];

	if (git_repository_odb(&odb, c->repo) || git_odb_read_header(&bytes, &type, odb, id)) {
		fetch_explain(why, sizeof(why));
		rc = error_set(e, ERR_CORRUPT, "%s", why);
	} else if (bytes > max) {
		rc = ERR_TOO_BIG;
	}
	git_odb_free(odb);
	return rc;
}

static int corrupt(struct error *e)
{
	char why[256];

	fetch_explain(why, sizeof(why));
	return error_set(e, ERR_CORRUPT, "%s", why);
}

static int read_tree(const struct checkout *c, const git_oid *id, git_tree **ret, struct error *e)
{
	int rc = check_size(c, id, TREE_MAX_BYTES, e);

	if (rc == ERR_TOO_BIG)
		return mistake(c, NULL, "the folder is too large");
	if (rc)
		return rc;
	return git_tree_lookup(ret, c->repo, id) ? corrupt(e) : 0;
}

static int read_root(const struct checkout *c, git_tree **ret, struct error *e)
{
	git_commit *commit = NULL;
	int rc = check_size(c, &c->commit, COMMIT_MAX_BYTES, e);

	if (rc == ERR_TOO_BIG)
		return mistake(c, NULL, "the commit's message is too large");
	if (rc)
		return rc;
	if (git_commit_lookup(&commit, c->repo, &c->commit))
		return corrupt(e);
	rc = read_tree(c, git_commit_tree_id(commit), ret, e);
	git_commit_free(commit);
	return rc;
}

/* Replaces *tree by its folder `name`. */
static int descend(const struct checkout *c, git_tree **tree, const char *name, struct error *e)
{
	const git_tree_entry *entry = git_tree_entry_byname(*tree, name);
	git_tree *below = NULL;
	int rc;

	if (!entry || git_tree_entry_filemode(entry) != GIT_FILEMODE_TREE)
		return mistake(c, NULL, "there is no such folder (accelerators.git.path)");
	rc = read_tree(c, git_tree_entry_id(entry), &below, e);
	if (rc)
		return rc;
	git_tree_free(*tree);
	*tree = below;
	return 0;
}

static int find_folder(const struct checkout *c, git_tree **ret, struct error *e)
{
	char *path = xstrdup(c->path), *rest = path, *name;
	int rc = read_root(c, ret, e);

	while (!rc && (name = strsep(&rest, "/")) != NULL)
		if (*name && !str_eq(name, "."))
			rc = descend(c, ret, name, e);
	free(path);
	return rc;
}

/* ---- what may become a file ---- */

static bool is_safe_name(const char *s)
{
	size_t n = strlen(s);

	for (const char *p = s; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("._-", *p))
			return false;
	return n <= NAME_MAX_BYTES && s[0] != '-';
}

/* Hidden files and those of other kinds are nobody's business, as in accelerators.directory. */
static bool is_candidate(const char *s)
{
	if (strchr(s, '/') || str_eq(s, "..") || str_eq(s, "."))
		return true; /* so that it is refused */
	return s[0] != '.' && (str_has_suffix(s, ".yml") || str_has_suffix(s, ".yaml"));
}

/* NULL, or why this entry cannot be taken. */
static const char *refuse_entry(const git_tree_entry *entry)
{
	const char *name = git_tree_entry_name(entry);
	git_filemode_t mode = git_tree_entry_filemode(entry);

	if (!is_safe_name(name) || str_eq(name, "..") || str_eq(name, "."))
		return "the name may have letters, digits, '.', '_' and '-' only";
	if (str_has_suffix(name, ".yaml"))
		return "only *.yml is read: rename it";
	if (mode == GIT_FILEMODE_LINK)
		return "a symbolic link: only plain files are read";
	if (mode == GIT_FILEMODE_COMMIT)
		return "a submodule: only plain files are read";
	if (mode != GIT_FILEMODE_BLOB && mode != GIT_FILEMODE_BLOB_EXECUTABLE)
		return "not a plain file";
	return NULL;
}

/* ---- writing ---- */

static int write_file(const char *path, const void *data, size_t n, struct error *e)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600), rc = 0;
	const char *p = data;

	while (fd >= 0 && n > 0) {
		ssize_t done = write(fd, p, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			break;
		p += done;
		n -= (size_t)done;
	}
	if (fd < 0 && errno == EEXIST)
		return ERR_EXISTS;
	if (fd < 0 || n > 0 || fsync(fd) != 0)
		rc = error_set(
		    e, errno == ENOSPC ? ERR_FULL : ERR_IO, "%s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return rc;
}

static int write_entry(
    const struct checkout *c, const git_tree_entry *entry, const char *folder, struct error *e)
{
	const char *name = git_tree_entry_name(entry), *why = refuse_entry(entry);
	git_blob *blob = NULL;
	char *path;
	int rc;

	if (why)
		return mistake(c, name, why);
	rc = check_size(c, git_tree_entry_id(entry), FILE_MAX_BYTES, e);
	if (rc == ERR_TOO_BIG)
		return mistake(c, name, "larger than 256 KiB");
	if (rc)
		return rc;
	if (git_blob_lookup(&blob, c->repo, git_tree_entry_id(entry)))
		return corrupt(e);
	path = path_join(folder, name);
	rc = write_file(path, git_blob_rawcontent(blob), (size_t)git_blob_rawsize(blob), e);
	git_blob_free(blob);
	free(path);
	return rc == ERR_EXISTS ? mistake(c, name, "a second file of this name") : rc;
}

/* Goes on after a mistake, so that one look shows them all. */
static int write_entries(
    const struct checkout *c, const git_tree *tree, const char *folder, struct error *e)
{
	size_t n_all = git_tree_entrycount(tree), n = 0;
	int refused = 0;

	for (size_t i = 0; i < n_all; i++) {
		const git_tree_entry *entry = git_tree_entry_byindex(tree, i);
		int rc;

		if (!is_candidate(git_tree_entry_name(entry)))
			continue;
		if (++n > FILES_MAX)
			return mistake(c, NULL, "more than 1000 files");
		rc = write_entry(c, entry, folder, e);
		if (rc == ERR_INVALID)
			refused = rc;
		else if (rc)
			return rc;
	}
	return refused;
}

static int sync_folder(const char *path, struct error *e)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;

	if (fd < 0 || fsync(fd) != 0)
		rc = error_set(e, ERR_IO, "%s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return rc;
}

static int write_folder(
    const struct checkout *c, const git_tree *tree, const char *folder, struct error *e)
{
	char *draft = xasprintf("%s/.draft", c->root);
	int rc = 0;

	remove_all(draft);
	if (mkdir(draft, 0700) != 0)
		rc = error_set(
		    e, errno == ENOSPC ? ERR_FULL : ERR_IO, "%s: %s", draft, strerror(errno));
	if (!rc)
		rc = write_entries(c, tree, draft, e);
	if (!rc)
		rc = sync_folder(draft, e);
	if (!rc && rename(draft, folder) != 0)
		rc = error_set(e, ERR_IO, "%s: %s", folder, strerror(errno));
	if (!rc)
		rc = sync_folder(c->root, e);
	if (rc)
		remove_all(draft);
	free(draft);
	return rc;
}

int checkout_write(const struct checkout *c, struct error *e)
{
	char *folder = path_join(c->root, c->name);
	git_tree *tree = NULL;
	int rc = 0;

	if (access(folder, F_OK) != 0) {
		rc = find_folder(c, &tree, e);
		if (!rc)
			rc = write_folder(c, tree, folder, e);
	}
	git_tree_free(tree);
	free(folder);
	return rc;
}
