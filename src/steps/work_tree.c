/* The work tree borrows its objects from the mirror instead of copying them, and gets a
 * repository of its own that is made from nothing: no setting and no hook of anybody's. What the
 * steps do in it touches the mirror in no way (in the sandbox they cannot; without, nothing is
 * promised). */
#include "steps/work_tree.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "steps/git_command.h"

enum { SHALLOW_MAX_BYTES = 16 << 20 };

struct work_tree {
	const char *folder, *url, *sha;
	char *mirror; /* which has the commit; what the tree borrows from */
};

static int write_borrowing(const struct work_tree *t, struct error *e)
{
	char *path = xasprintf("%s/.git/objects/info/alternates", t->folder);
	char *text = xasprintf("%s/objects\n", t->mirror);
	int rc = file_write_atomic(path, text, strlen(text), 0644, e);

	free(text);
	free(path);
	return rc;
}

/* Where history is cut off is noted in the repository, not with the objects. */
static int copy_shallow(const struct work_tree *t, struct error *e)
{
	char *from = xasprintf("%s/shallow", t->mirror);
	char *to = xasprintf("%s/.git/shallow", t->folder);
	struct buf text = BUF_INIT(SHALLOW_MAX_BYTES);
	int rc = 0;

	if (!access(from, F_OK)) {
		rc = file_read(from, &text, e);
		if (!rc)
			rc = file_write_atomic(to, buf_str(&text), text.len, 0644, e);
	}
	buf_release(&text);
	free(to);
	free(from);
	return rc;
}

static int make_repository(struct job *j, const struct work_tree *t, struct error *e)
{
	const char *init[] = {"init", "--quiet", ".", NULL};
	const char *origin[] = {"config", "remote.origin.url", t->url, NULL};
	int rc = git_must(j, t->folder, init, e);

	if (!rc)
		rc = write_borrowing(t, e);
	if (!rc)
		rc = copy_shallow(t, e);
	if (!rc)
		rc = git_must(j, t->folder, origin, e);
	return rc;
}

static int check_out_tree(struct job *j, const struct work_tree *t, struct error *e)
{
	const char *args[] = {"checkout", "--progress", "--force", "--detach", t->sha, "--", NULL};
	const char *head[] = {"rev-parse", "--verify", "HEAD", NULL};
	char *at = NULL;
	int rc = git_must(j, t->folder, args, e);

	if (!rc)
		rc = git_ask(j, t->folder, head, &at, e);
	if (!rc && !str_eq(at, t->sha))
		rc = error_set(e, ERR_IO, "the work tree is at %s instead of %s", at, t->sha);
	free(at);
	return rc;
}

static int try_once(
    struct job *j, const struct mirror_want *w, struct work_tree *t, struct error *e)
{
	int rc = mirror_fetch(j, w, &t->mirror, e);

	if (!rc)
		rc = make_repository(j, t, e);
	if (!rc)
		rc = check_out_tree(j, t, e);
	FREE_AND_NULL(t->mirror);
	return rc;
}

/* All that was begun goes: what it borrowed is gone. */
static int begin_again(
    struct job *j, const struct mirror_want *w, const char *folder, struct error *e)
{
	int rc = mirror_forget(j, w, e);

	if (!rc)
		rc = job_folder_remove(folder, e);
	if (!rc && mkdir(folder, 0700))
		rc = error_set(e, ERR_IO, "%s: %s", folder, strerror(errno));
	return rc;
}

int work_tree_make(struct job *j, const struct mirror_want *w, const char *folder, const char *url,
    struct error *e)
{
	struct work_tree t = {.folder = folder, .url = url, .sha = w->sha};
	struct error why = {0};
	int rc = try_once(j, w, &t, &why);

	if (rc && rc != ERR_CANCELLED && rc != ERR_TIMEOUT && mirror_is_damage(why.text)) {
		job_log_say(j->log, "the local mirror is damaged (%s); making it anew", why.text);
		why = (struct error){0};
		rc = begin_again(j, w, folder, &why);
		if (!rc)
			rc = try_once(j, w, &t, &why);
	}
	return rc ? error_set(e, rc, "%s", why.text) : 0;
}
