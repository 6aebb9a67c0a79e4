/* outpostctl import-allowlist: what CRCR's list becomes, and as files of accelerators.d. Files are
 * written all or, where one is there already, none. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"
#include "config/allowlist_files.h"
#include "ctl/arguments.h"
#include "ctl/server.h"
#include "ctl/table.h"

enum { MESSAGES_MAX_BYTES = 1 << 20, CELL_MAX_BYTES = 64 << 10 };

struct asked {
	const char *file, *directory; /* directory: NULL: only tell */
};

static bool read_arguments(int argc, char **argv, struct asked *ret)
{
	const struct argument_option options[] = {
	    {.name = "--to", .text = &ret->directory}, {.name = NULL}};

	*ret = (struct asked){0};
	return arguments_read("import-allowlist", argc, argv, options, &ret->file, 1, 1);
}

/* ---- to tell ---- */

/* free() */
static char *joined(char **list)
{
	struct buf out = BUF_INIT(CELL_MAX_BYTES);

	for (char **s = list; *s; s++)
		buf_appendf(&out, "%s%s", s == list ? "" : ", ", *s);
	return buf_take(&out);
}

static char **repositories_of(const struct accelerator *a)
{
	char **list = xcalloc(a->n_runners + 1, sizeof(*list)); /* the texts stay the runners' */

	for (size_t i = 0; i < a->n_runners; i++)
		list[i] = a->runners[i].repository;
	return list;
}

static void print_table(const struct ctl *ctl, const struct allowlist *l)
{
	static const char *const headings[] = {
	    "ACCELERATOR", "LEVEL", "ONCALL", "REPOSITORIES", NULL};
	struct table *t = table_new(headings);

	for (size_t i = 0; i < l->n; i++) {
		const struct accelerator *a = &l->items[i];
		char **repositories = repositories_of(a);
		char *oncall = joined(a->oncall), *all = joined(repositories);

		table_add(t, a->name);
		table_add(t, level_name(a->level));
		table_add(t, oncall);
		table_add(t, all);
		free(oncall);
		free(all);
		free(repositories);
	}
	table_print(t, ctl, "the list names no repository");
}

static json_t *texts_json(char **list)
{
	json_t *array = json_array();

	for (; *list; list++)
		json_array_append_new(array, json_string(*list));
	return array;
}

static void print_json(const struct allowlist_files *f)
{
	json_t *list = json_array();

	for (size_t i = 0; i < f->list.n; i++) {
		const struct accelerator *a = &f->list.items[i];
		char **repositories = repositories_of(a);
		json_t *v = json_object();

		json_set_str(v, "name", a->name);
		json_set_str(v, "title", a->title);
		json_set_str(v, "level", level_name(a->level));
		json_object_set_new(v, "oncall", texts_json(a->oncall));
		json_object_set_new(v, "repositories", texts_json(repositories));
		json_set_int(v, "line", a->line);
		json_set_str(v, "file", f->texts[i]);
		json_array_append_new(list, v);
		free(repositories);
	}
	(void)server_print_json(json_pack("{s:o}", "accelerators", list));
}

/* ---- to write ---- */

static char *path_of(const char *directory, const struct accelerator *a)
{
	char *name = xasprintf("%s.yml", a->name), *path = path_join(directory, name);

	free(name);
	return path;
}

static bool is_free(const char *path)
{
	struct stat st;

	if (lstat(path, &st) && errno == ENOENT)
		return true;
	fprintf(stderr, "outpostctl: %s is there already; nothing was written\n", path);
	return false;
}

/* Never over a file that came meanwhile. */
static bool write_new(const char *path, const char *text)
{
	size_t n = strlen(text);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	bool is_written = fd >= 0 && write(fd, text, n) == (ssize_t)n && fsync(fd) == 0;

	if (!is_written)
		fprintf(stderr, "outpostctl: cannot write %s: %s\n", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return is_written;
}

static int write_files(const struct allowlist_files *f, const char *directory)
{
	bool is_fine = true;

	for (size_t i = 0; is_fine && i < f->list.n; i++) {
		char *path = path_of(directory, &f->list.items[i]);

		is_fine = is_free(path);
		free(path);
	}
	for (size_t i = 0; is_fine && i < f->list.n; i++) {
		char *path = path_of(directory, &f->list.items[i]);

		is_fine = write_new(path, f->texts[i]);
		free(path);
	}
	if (is_fine)
		fprintf(stderr, "%s: %zu file%s written; take the list out of outpost.yml\n",
		    directory, f->list.n, f->list.n == 1 ? "" : "s");
	return is_fine ? EXIT_DONE : EXIT_FAILED;
}

int cmd_import_allowlist(const struct ctl *ctl, int argc, char **argv)
{
	struct buf messages = BUF_INIT(MESSAGES_MAX_BYTES);
	struct allowlist_files files;
	struct asked asked;
	int exit_code = EXIT_FAILED;

	if (!read_arguments(argc, argv, &asked))
		return EXIT_USAGE;
	if (allowlist_files_read(asked.file, &files, &messages) == 0) {
		if (ctl->is_json)
			print_json(&files);
		else
			print_table(ctl, &files.list);
		exit_code = asked.directory ? write_files(&files, asked.directory) : EXIT_DONE;
	}
	fputs(buf_str(&messages), stderr);
	allowlist_files_release(&files);
	buf_release(&messages);
	return exit_code;
}
