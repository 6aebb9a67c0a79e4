/* outpostctl check and import-allowlist: configuration files. Neither needs a running service. */

#include "config/allowlist.h"
#include "config/config.h"
#include "config/source.h"
#include "ctl/server.h"
#include "db/db.h"
#include "http/server.h"

enum { MESSAGES_MAX_BYTES = 1 << 20, CELL_MAX_BYTES = 64 << 10 };

static void add_problem_json(json_t *list, const char *file, long line, const char *text)
{
	json_t *one = json_object();

	json_set_str(one, "file", file);
	if (line)
		json_set_int(one, "line", line);
	json_set_str(one, "text", text);
	json_array_append_new(list, one);
}

static void print_check_json(const struct config *config, const char *messages)
{
	json_t *o = json_object(), *problems = json_array(), *warnings = json_array();

	json_object_set_new(o, "ok", json_boolean(config != NULL));
	if (config)
		json_set_int(o, "accelerators", (int64_t)config->n_accelerators);
	/* "file:line: text" is the form of every mistake; other lines are left out. */
	for (const char *end; *messages; messages = *end ? end + 1 : end) {
		char *copy, *at, *after;

		end = strchrnul(messages, '\n');
		at = copy = xstrndup(messages, (size_t)(end - messages));
		while ((at = strchr(at, ':')) != NULL) {
			long line = strtol(++at, &after, 10);

			if (after == at || !str_has_prefix(after, ": "))
				continue;
			at[-1] = '\0';
			add_problem_json(problems, copy, line, after + 2);
			break;
		}
		free(copy);
	}
	for (char **file = config ? config->exposed_files : NULL; file && *file; file++)
		add_problem_json(warnings, *file, 0, EXPOSED_FILE_TEXT);
	for (size_t i = 0; config && i < problems_n_kept(&config->notes); i++) {
		const struct problem *note = &config->notes.all[i];

		add_problem_json(warnings, note->file, note->line, note->text);
	}
	json_object_set_new(o, "problems", problems);
	json_object_set_new(o, "warnings", warnings);
	(void)server_print_json(o);
}

int cmd_check(const struct ctl *ctl)
{
	struct buf messages = BUF_INIT(MESSAGES_MAX_BYTES);
	struct config *config = NULL;
	struct error why = {0};

	int rc = config_load(ctl->config_path, &config, &messages);
	if (!rc) {
		rc = db_check_url(config->store, &why);
		if (rc == ERR_NOT_FOUND) { /* the daemon's machine may have the library */
			problem_add(
			    &config->notes, config->path, config->store_line, "store is not checked: %s", why.text);
			rc = 0;
			why = (struct error){0};
		}
		if (rc)
			buf_appendf(&messages, "%s:%d: store: %s\n", config->path, config->store_line, why.text);
	}
	if (!rc && config->tls_certificate_pem) {
		rc = http_tls_check(config->tls_certificate_pem, config->tls_private_key, &why);
		if (rc)
			buf_appendf(&messages, "%s:1: tls: %s\n", config->tls_certificate_file, why.text);
	}
	if (ctl->is_json)
		print_check_json(rc ? NULL : config, buf_str(&messages));
	else
		fputs(buf_str(&messages), stdout);
	if (!ctl->is_json && !rc) {
		config_print_warnings(config, stderr);
		fprintf(stderr, "%s: ok, %zu accelerator%s%s\n", ctl->config_path, config->n_accelerators,
		    config->n_accelerators == 1 ? "" : "s",
		    config->accelerators_git_url ? ", without those of accelerators.git: outpostd "
						   "--check reads the ones that it fetched last"
						 : "");
	}
	config_unref(config);
	buf_release(&messages);
	return rc ? EXIT_FAILED : EXIT_DONE;
}

/* free() */
static char *join_texts(char **list)
{
	struct buf out = BUF_INIT(CELL_MAX_BYTES);

	for (char **s = list; *s; s++)
		buf_appendf(&out, "%s%s", s == list ? "" : ", ", *s);
	return buf_detach(&out);
}

/* Writes all files, or none where one of them exists. O_EXCL protects a file that another process creates meanwhile. */
static int write_allowlist(const struct allowlist_files *f, const char *directory)
{
	char **paths = xcalloc(f->list.n + 1, sizeof(*paths));
	bool is_fine = true;
	struct stat st;

	for (size_t i = 0; i < f->list.n; i++) {
		char *name = xasprintf("%s.yml", f->list.items[i].name);

		paths[i] = path_join(directory, name);
		free(name);
		if (is_fine && (lstat(paths[i], &st) == 0 || errno != ENOENT)) {
			fprintf(stderr, "outpostctl: %s already exists; no file was written\n", paths[i]);
			is_fine = false;
		}
	}
	for (size_t i = 0; is_fine && i < f->list.n; i++) {
		size_t n = strlen(f->texts[i]);
		int fd = open(paths[i], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

		is_fine = fd >= 0 && write(fd, f->texts[i], n) == (ssize_t)n && fsync(fd) == 0;
		if (!is_fine)
			fprintf(stderr, "outpostctl: cannot write %s: %s\n", paths[i], strerror(errno));
		if (fd >= 0)
			close(fd);
	}
	if (is_fine)
		fprintf(stderr, "%s: %zu file%s written; remove allowlist from outpost.yml\n", directory, f->list.n,
		    f->list.n == 1 ? "" : "s");
	for (size_t i = 0; i < f->list.n; i++)
		free(paths[i]);
	free(paths);
	return is_fine ? EXIT_DONE : EXIT_FAILED;
}

int cmd_import_allowlist(const struct ctl *ctl)
{
	static const char *const headings[] = {"ACCELERATOR", "LEVEL", "ONCALL", "REPOSITORIES", NULL};
	struct buf messages = BUF_INIT(MESSAGES_MAX_BYTES);
	struct allowlist_files files;
	const char *file, *directory = NULL;
	const struct argument_option options[] = {{.name = "--to", .text = &directory}, {.name = NULL}};
	int exit_code = EXIT_FAILED;

	if (!arguments_read(ctl, options, &file, 1, 1))
		return EXIT_USAGE;
	if (allowlist_files_read(file, &files, &messages) == 0) {
		json_t *list = ctl->is_json ? json_array() : NULL;
		struct table *t = ctl->is_json ? NULL : table_new(headings);
		for (size_t i = 0; i < files.list.n; i++) {
			const struct accelerator *a = &files.list.items[i];
			char **repositories = NULL, *oncall = join_texts(a->oncall);

			for (size_t k = 0; k < a->n_runners; k++)
				strv_add(&repositories, a->runners[k].repository);
			char *all = join_texts(repositories);
			if (t) {
				table_add(t, a->name);
				table_add(t, level_name(a->level));
				table_add(t, oncall);
				table_add(t, all);
			} else {
				json_array_append_new(list,
				    json_pack("{s:s, s:s, s:s, s:o, s:o, s:i, s:s}", "name", a->name, "title", a->title,
					"level", level_name(a->level), "oncall", json_foreign_texts(a->oncall),
					"repositories", json_foreign_texts(repositories), "line", a->line, "file",
					files.texts[i]));
			}
			FREE_ALL(oncall, all);
			strv_free(repositories);
		}
		if (t)
			table_print(t, ctl, "the list names no repository");
		else
			(void)server_print_json(json_pack("{s:o}", "accelerators", list));
		exit_code = directory ? write_allowlist(&files, directory) : EXIT_DONE;
	}
	fputs(buf_str(&messages), stderr);
	allowlist_files_release(&files);
	buf_release(&messages);
	return exit_code;
}
