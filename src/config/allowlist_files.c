#include "config/allowlist_files.h"

#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "config/accelerator_file.h"
#include "config/source.h"

enum { TEXT_MAX_BYTES = 1 << 20 };

/* ---- out ---- */

/* In quotes, so that no name is taken for a number, for `null` or for YAML's own characters. */
static void put_text(struct buf *out, const char *s)
{
	buf_append_str(out, "\"");
	for (; *s; s++)
		buf_appendf(out, "%s%c", *s == '"' || *s == '\\' ? "\\" : "", *s);
	buf_append_str(out, "\"");
}

static void put_oncall(struct buf *out, char **oncall)
{
	if (!*oncall)
		return;
	buf_append_str(out, "oncall: [");
	for (char **login = oncall; *login; login++) {
		buf_append_str(out, login == oncall ? "" : ", ");
		put_text(out, *login);
	}
	buf_append_str(out, "]\n");
}

/* free() */
static char *file_text(const struct accelerator *a)
{
	struct buf out = BUF_INIT(TEXT_MAX_BYTES);

	buf_appendf(&out, "# As line %d of CRCR's allowlist has it.\nname: ", a->line);
	put_text(&out, a->name);
	buf_append_str(&out, "\ntitle: ");
	put_text(&out, a->title);
	buf_appendf(&out, "\nlevel: %s\n", level_name(a->level));
	put_oncall(&out, a->oncall);
	buf_append_str(&out, "trust: anyone\nrunners:\n");
	for (size_t i = 0; i < a->n_runners; i++) {
		buf_append_str(&out, "  - name: ");
		put_text(&out, a->runners[i].name);
		buf_append_str(&out, "\n    github: {repository: ");
		put_text(&out, a->runners[i].repository);
		buf_append_str(&out, "}\n");
		if (a->runners[i].is_nightly_only)
			buf_append_str(&out, "    nightly_only: true\n");
	}
	buf_append_str(&out, "triggers:\n  pull_request: true\n  push: true\n");
	return buf_take(&out);
}

/* ---- in ---- */

/* Whether the file is one: the list takes names that a file may not have. */
static void try_text(const struct accelerator *a, const char *text, struct problems *problems)
{
	struct problems own = {0};
	struct reader r = {.file = a->file, .problems = &own, .path = ""};
	struct node *root = tree_parse(a->file, text, strlen(text), &own);
	struct accelerator_file f;
	char value[SHOWN_BYTES];

	if (root) {
		accelerator_file_read(&r, root, &f);
		accelerator_file_release(&f);
		tree_free(root);
	}
	for (size_t i = 0; i < own.n && own.all && i < 1; i++)
		problem_add(problems, a->file, a->line, "%s cannot have a file of its own: %s",
		    shown(a->name, value), own.all[i].text);
	problems_release(&own);
}

static void tell_clashes(const struct allowlist *l, struct problems *problems)
{
	char value[SHOWN_BYTES];

	for (size_t i = 0; i < l->n; i++)
		for (size_t k = 0; k < i; k++)
			if (str_eq(l->items[i].name, l->items[k].name)) {
				problem_add(problems, l->items[i].file, l->items[i].line,
				    "the name %s is taken by line %d",
				    shown(l->items[i].name, value), l->items[k].line);
				break;
			}
}

static void read_list(const char *path, struct allowlist *ret, struct problems *problems)
{
	struct reader r = {.file = path, .problems = problems, .path = ""};
	struct buf text = BUF_INIT(YAML_FILE_MAX_BYTES);
	struct node *root = NULL;
	struct error e = {0};

	if (source_read(path, &text, &e) == 0)
		root = allowlist_parse(path, buf_str(&text), text.len, problems);
	else
		problem_add(problems, path, 1, "cannot read %s", e.text);
	buf_release(&text);
	if (root)
		allowlist_read(&r, root, ret);
	tree_free(root);
}

int allowlist_files_read(const char *path, struct allowlist_files *ret, struct buf *messages)
{
	struct problems problems = {0};
	int rc;

	*ret = (struct allowlist_files){0};
	read_list(path, &ret->list, &problems);
	tell_clashes(&ret->list, &problems);
	ret->texts = xcalloc(ret->list.n + 1, sizeof(*ret->texts));
	for (size_t i = 0; i < ret->list.n; i++) {
		ret->texts[i] = file_text(&ret->list.items[i]);
		try_text(&ret->list.items[i], ret->texts[i], &problems);
	}
	rc = problems.n ? ERR_INVALID : 0;
	problems_print(&problems, messages);
	problems_release(&problems);
	return rc;
}

void allowlist_files_release(struct allowlist_files *f)
{
	for (size_t i = 0; f->texts && i < f->list.n; i++)
		free(f->texts[i]);
	free(f->texts);
	allowlist_release(&f->list);
	*f = (struct allowlist_files){0};
}
