#include "steps/submodule_list.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/strv.h"
#include "steps/git_command.h"

/* ---- .gitmodules ---- */

/* It comes back from git as a path of the tree, so this is only about what git's command line
 * would take for something else. */
static bool is_plain_path(const char *path)
{
	if (!*path || *path == '/' || *path == ':' || *path == '-' || str_has_suffix(path, "/"))
		return false;
	for (const char *part = path; part; part = strchr(part, '/')) {
		size_t n;

		part += *part == '/';
		n = strcspn(part, "/");
		if (n == 0 || (n == 1 && *part == '.') || (n == 2 && !strncmp(part, "..", 2)) ||
		    (n == 4 && !strncasecmp(part, ".git", 4)))
			return false;
	}
	return true;
}

static struct submodule *by_name(struct submodules *s, const char *name, size_t n)
{
	for (size_t i = 0; i < s->n; i++)
		if (strlen(s->list[i].name) == n && !memcmp(s->list[i].name, name, n))
			return &s->list[i];
	s->list = xrealloc(s->list, (s->n + 1) * sizeof(*s->list));
	s->list[s->n] = (struct submodule){.name = xstrndup(name, n)};
	return &s->list[s->n++];
}

static void set(char **place, const char *value)
{
	free(*place);
	*place = xstrdup(value);
}

/* "submodule.NAME.KEY\nVALUE"; the name may hold dots. */
static void take_setting(struct submodules *s, const char *entry)
{
	static const char section[] = "submodule.";
	const char *end = strchr(entry, '\n'), *dot = end;
	struct submodule *one;

	while (dot && dot > entry && *dot != '.')
		dot--;
	if (!end || !str_has_prefix(entry, section) || dot < entry + sizeof(section))
		return;
	entry += sizeof(section) - 1;
	one = by_name(s, entry, (size_t)(dot - entry));
	if (str_has_prefix(dot, ".path\n"))
		set(&one->path, end + 1);
	else if (str_has_prefix(dot, ".url\n"))
		set(&one->url, end + 1);
	else
		one->is_left_out = str_eq(end + 1, "none");
}

static int read_settings(struct job *j, const char *folder, struct submodules *s, struct error *e)
{
	const char *args[] = {"config", "-z", "--blob", "HEAD:.gitmodules", "--get-regexp",
	    "^submodule\\..*\\.(path|url|update)$", NULL};
	char *text = NULL;
	size_t n = 0;
	int rc = git_ask_bytes(j, folder, args, &text, &n, e);

	for (const char *p = text; !rc && p < text + n; p += strlen(p) + 1)
		take_setting(s, p);
	free(text);
	return rc;
}

/* ---- the tree ---- */

static void drop_those_without_commit(struct submodules *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		struct submodule *one = &s->list[i];

		if (*one->sha && !one->is_left_out) {
			s->list[n++] = *one;
			continue;
		}
		free(one->name);
		free(one->path);
		free(one->url);
	}
	s->n = n;
}

/* "160000 commit SHA\tPATH" */
static void take_entry(struct submodules *s, const char *entry)
{
	static const char kind[] = "160000 commit ";
	const char *tab = strchr(entry, '\t'), *sha = entry + sizeof(kind) - 1;

	if (!tab || !str_has_prefix(entry, kind) || tab - sha != 40)
		return;
	/* the first of two that name one path */
	for (size_t i = 0; i < s->n; i++)
		if (str_eq(s->list[i].path, tab + 1)) {
			snprintf(s->list[i].sha, sizeof(s->list[i].sha), "%.40s", sha);
			if (!is_sha1(s->list[i].sha))
				s->list[i].sha[0] = '\0';
			return;
		}
}

static int read_tree(struct job *j, const char *folder, struct submodules *s, struct error *e)
{
	char **args = NULL, *text = NULL;
	size_t n = 0;
	int rc;

	strv_add(&args, "ls-tree");
	strv_add(&args, "-z");
	strv_add(&args, "HEAD");
	strv_add(&args, "--");
	for (size_t i = 0; i < s->n; i++)
		if (s->list[i].path && is_plain_path(s->list[i].path))
			strv_add(&args, s->list[i].path);
	rc = git_ask_bytes(j, folder, (const char *const *)args, &text, &n, e);
	for (const char *p = text; !rc && p < text + n; p += strlen(p) + 1)
		take_entry(s, p);
	strv_free(args);
	free(text);
	return rc;
}

int submodule_list(struct job *j, const char *folder, struct submodules *ret, struct error *e)
{
	int rc;

	*ret = (struct submodules){.n = 0};
	rc = read_settings(j, folder, ret, e);
	if (!rc && ret->n > 0)
		rc = read_tree(j, folder, ret, e);
	if (!rc)
		drop_those_without_commit(ret);
	return rc;
}

void submodules_release(struct submodules *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->list[i].name);
		free(s->list[i].path);
		free(s->list[i].url);
	}
	free(s->list);
	*s = (struct submodules){.n = 0};
}
