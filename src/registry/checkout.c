#include "registry/fetch.h"

#include <dirent.h>
#include <ftw.h>

enum {
	FILES_MAX = 1000,
	FILE_MAX_BYTES = 256 * 1024,
	TREE_MAX_BYTES = 4 << 20,
	COMMIT_MAX_BYTES = 1 << 20,
	NAME_MAX_BYTES = 128, /* of a file, and of a folder */
	NAME_MAX_CHARS = 80,  /* of a name that is shown */
	OPEN_FOLDERS_MAX = 16,
};

/* ---- the folders ---- */

static const char GOOD[] = "good", REPOSITORY[] = "repo.git";

/* The name has a digest of the path, because another path of the same commit is another folder. */
char *folder_checkout_name(const char *commit, const char *path)
{
	uint8_t digest[SHA256_BYTES];

	sha256(path, strlen(path), digest);
	return xasprintf("%s-%02x%02x%02x%02x", commit, digest[0], digest[1], digest[2], digest[3]);
}

char *folder_good(const char *root, int64_t *ret_wall_ms)
{
	char *path = path_join(root, GOOD), *name = NULL;
	struct buf text = BUF_INIT(NAME_MAX_BYTES);
	struct error ignored = {0};
	struct stat st;

	if (file_read(path, &text, &ignored) == 0 && stat(path, &st) == 0) {
		const char *s = buf_str(&text);

		if (text.len && text.data[text.len - 1] == '\n')
			text.data[--text.len] = '\0';
		if (strlen(s) < NAME_MAX_BYTES && strspn(s, "0123456789abcdef-") == strlen(s) && strlen(s) > 40) {
			name = xstrdup(s);
			*ret_wall_ms = (int64_t)st.st_mtim.tv_sec * 1000;
		}
	}
	buf_release(&text);
	free(path);
	return name;
}

int folder_keep(const char *root, const char *name, struct error *e)
{
	char *path = path_join(root, GOOD), *line = xasprintf("%s\n", name);
	int rc = file_write_atomic(path, line, strlen(line), 0600, e);

	free(line);
	free(path);
	return rc;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	remove(path); /* If this fails, a later sweep tries again. The other files are removed now. */
	return 0;
}

void folder_remove(const char *path) { nftw(path, remove_one, OPEN_FOLDERS_MAX, FTW_DEPTH | FTW_PHYS); }

void folder_sweep(const char *root, const char *name)
{
	DIR *folder = opendir(root);
	struct dirent *d;

	while (folder && (d = readdir(folder)) != NULL) {
		if (str_eq(d->d_name, ".") || str_eq(d->d_name, "..") || str_eq(d->d_name, GOOD) ||
		    str_eq(d->d_name, REPOSITORY) || (name && str_eq(d->d_name, name)))
			continue;
		char *path = path_join(root, d->d_name);
		folder_remove(path);
		free(path);
	}
	if (folder)
		closedir(folder);
}

/* ---- mistakes ---- */

/* Adds "accelerators.git@1a2b3c4:folder/file:1: text"; name NULL: about the folder itself. */
static int add_mistake(const struct checkout *c, const char *name, const char *text)
{
	char id[8];

	git_oid_tostr(id, sizeof(id), &c->commit);
	buf_appendf(c->mistakes, "accelerators.git@%s:%s%s", id, c->path, name ? "/" : "");
	if (name)
		escape_line(c->mistakes, name, NAME_MAX_CHARS);
	buf_appendf(c->mistakes, ":1: %s\n", text);
	return ERR_INVALID;
}

/* ---- reading ---- */

static int fail_corrupt(struct error *e)
{
	char why[256];

	fetch_explain(why, sizeof(why));
	return error_set(e, ERR_CORRUPT, "%s", why);
}

/* Checks an object's size before libgit2 inflates it into memory. Returns ERR_TOO_BIG without setting e. */
static int check_size(const struct checkout *c, const git_oid *id, size_t max, struct error *e)
{
	git_object_t type;
	git_odb *odb = NULL;
	size_t bytes = 0;
	int rc = 0;

	if (git_repository_odb(&odb, c->repo) || git_odb_read_header(&bytes, &type, odb, id))
		rc = fail_corrupt(e);
	else if (bytes > max)
		rc = ERR_TOO_BIG;
	git_odb_free(odb);
	return rc;
}

static int read_tree(const struct checkout *c, const git_oid *id, git_tree **ret, struct error *e)
{
	int rc = check_size(c, id, TREE_MAX_BYTES, e);

	if (rc == ERR_TOO_BIG)
		return add_mistake(c, NULL, "the folder is too large");
	return !rc && git_tree_lookup(ret, c->repo, id) ? fail_corrupt(e) : rc;
}

/* *ret: the tree of c->path. git_tree_free(), also after a failure. */
static int find_folder(const struct checkout *c, git_tree **ret, struct error *e)
{
	char *path = xstrdup(c->path), *rest = path, *name;
	git_commit *commit = NULL;
	int rc = check_size(c, &c->commit, COMMIT_MAX_BYTES, e);

	if (rc == ERR_TOO_BIG)
		rc = add_mistake(c, NULL, "the commit's message is too large");
	else if (!rc && git_commit_lookup(&commit, c->repo, &c->commit))
		rc = fail_corrupt(e);
	if (!rc)
		rc = read_tree(c, git_commit_tree_id(commit), ret, e);
	while (!rc && (name = strsep(&rest, "/")) != NULL) {
		git_tree *below = NULL;

		if (!*name || str_eq(name, "."))
			continue;
		const git_tree_entry *entry = git_tree_entry_byname(*ret, name);
		if (!entry || git_tree_entry_filemode(entry) != GIT_FILEMODE_TREE)
			rc = add_mistake(c, NULL, "there is no such folder (accelerators.git.path)");
		else
			rc = read_tree(c, git_tree_entry_id(entry), &below, e);
		if (!rc) {
			git_tree_free(*ret);
			*ret = below;
		}
	}
	git_commit_free(commit);
	free(path);
	return rc;
}

/* ---- files ---- */

/* The reason to refuse the entry, or NULL. */
static const char *entry_mistake(const git_tree_entry *entry)
{
	const char *name = git_tree_entry_name(entry);
	git_filemode_t mode = git_tree_entry_filemode(entry);
	bool is_safe = strlen(name) <= NAME_MAX_BYTES && name[0] != '-' && !str_eq(name, "..") && !str_eq(name, ".");

	for (const char *p = name; *p; p++)
		is_safe = is_safe && (isalnum((unsigned char)*p) || strchr("._-", *p));
	if (!is_safe)
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
		rc = error_set(e, errno == ENOSPC ? ERR_FULL : ERR_IO, "%s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return rc;
}

static int write_entry(const struct checkout *c, const git_tree_entry *entry, const char *folder, struct error *e)
{
	const char *name = git_tree_entry_name(entry), *why = entry_mistake(entry);
	git_blob *blob = NULL;

	if (why)
		return add_mistake(c, name, why);
	int rc = check_size(c, git_tree_entry_id(entry), FILE_MAX_BYTES, e);
	if (rc == ERR_TOO_BIG)
		return add_mistake(c, name, "larger than 256 KiB");
	if (rc)
		return rc;
	if (git_blob_lookup(&blob, c->repo, git_tree_entry_id(entry)))
		return fail_corrupt(e);
	char *path = path_join(folder, name);
	rc = write_file(path, git_blob_rawcontent(blob), (size_t)git_blob_rawsize(blob), e);
	git_blob_free(blob);
	free(path);
	return rc == ERR_EXISTS ? add_mistake(c, name, "a second file of this name") : rc;
}

/* Ignores hidden files and other kinds of files, as accelerators.directory does. A name with a path in it is not ignored,
 * so that the commit is refused. Continues after a mistake, so that one check shows all of them. */
static int write_entries(const struct checkout *c, const git_tree *tree, const char *folder, struct error *e)
{
	size_t n_all = git_tree_entrycount(tree), n = 0;
	int refused = 0;

	for (size_t i = 0; i < n_all; i++) {
		const git_tree_entry *entry = git_tree_entry_byindex(tree, i);
		const char *name = git_tree_entry_name(entry);
		bool has_path = strchr(name, '/') || str_eq(name, "..") || str_eq(name, ".");

		if (!has_path && (name[0] == '.' || (!str_has_suffix(name, ".yml") && !str_has_suffix(name, ".yaml"))))
			continue;
		if (++n > FILES_MAX)
			return add_mistake(c, NULL, "more than 1000 files");
		int rc = write_entry(c, entry, folder, e);
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

int checkout_write(const struct checkout *c, struct error *e)
{
	char *folder = path_join(c->root, c->name), *draft = path_join(c->root, ".draft");
	git_tree *tree = NULL;
	int rc = 0;

	if (access(folder, F_OK) != 0)
		rc = find_folder(c, &tree, e);
	if (!rc && tree) {
		folder_remove(draft);
		if (mkdir(draft, 0700) != 0)
			rc = error_set(e, errno == ENOSPC ? ERR_FULL : ERR_IO, "%s: %s", draft, strerror(errno));
		if (!rc)
			rc = write_entries(c, tree, draft, e);
		if (!rc)
			rc = sync_folder(draft, e);
		if (!rc && rename(draft, folder) != 0)
			rc = error_set(e, ERR_IO, "%s: %s", folder, strerror(errno));
		if (!rc)
			rc = sync_folder(c->root, e);
		if (rc)
			folder_remove(draft);
	}
	git_tree_free(tree);
	free(draft);
	free(folder);
	return rc;
}
