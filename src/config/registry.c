#include "config/main_file.h"

#include <dirent.h>

#include "config/accelerator_file.h"
#include "config/allowlist.h"
#include "config/source.h"

enum { FILES_MAX = 10000 };

struct registry {
	const char *folder, *main_path;
	struct main_file *main;
	struct problems *problems;
	struct accelerator *items;
	size_t n;
};

/* named: the name of the file at `path` in messages. */
static void read_vendor_file(struct registry *g, const char *path, const char *named)
{
	struct reader r = {.file = named,
	    .problems = g->problems,
	    .notes = &g->main->c.notes,
	    .path = "",
	    .allowed = &g->main->allow_networks};
	struct node *root = tree_read(path, named, g->problems);
	struct accelerator_file f;

	if (!root)
		return;
	accelerator_file_read(&r, root, &f);
	tree_free(root);
	char *secrets_dir = source_path(g->folder, g->main->secrets_dir.path);
	for (size_t i = 0; f.a.name && i < f.n_secrets; i++) {
		struct error e = {0};

		if (f.secrets[i].path && source_read_vendor_secret(secrets_dir, f.a.name, f.secrets[i].path,
					     &g->main->c.exposed_files, &f.a.runners[i].secret, &e))
			refuse_at(&r, f.secrets[i].line, "cannot read %s", e.text);
	}
	free(secrets_dir);
	if (!f.a.n_runners && !g->main->c.infra_repository) {
		refuse_at(&r, f.a.line, "runners is missing, and outpost.yml has no infra.repository to run it");
	} else if (!f.a.n_runners) {
		free(f.a.runners);
		f.a.runners = xcalloc(1, sizeof(*f.a.runners));
		f.a.n_runners = 1;
		f.a.runners[0] = (struct runner){
		    .name = xstrdup("infra"),
		    .kind = RUNNER_INFRA,
		    .repository = xstrdup(g->main->c.infra_repository),
		    .repository_id = g->main->c.infra_repository_id,
		    .repository_owner_id = g->main->c.infra_repository_owner_id,
		};
	}
	if (f.a.name) {
		*ARRAY_PUSH(g->items, g->n) = f.a;
		f.a = (struct accelerator){0};
	}
	accelerator_file_release(&f);
}

static int is_candidate(const struct dirent *d)
{
	return d->d_name[0] != '.' && (str_has_suffix(d->d_name, ".yml") || str_has_suffix(d->d_name, ".yaml"));
}

/* named: the name of the folder in messages. */
static void read_folder(struct registry *g, const char *folder, const char *named, int line)
{
	struct dirent **entries = NULL;
	int n = scandir(folder, &entries, is_candidate, alphasort);

	if (n < 0)
		problem_add(g->problems, g->main_path, line, "cannot read %s: %s", folder, strerror(errno));
	if (n > FILES_MAX)
		problem_add(g->problems, g->main_path, line, "%s holds more than %d files", named, FILES_MAX);
	for (int i = 0; i < n; i++) {
		char *path = xasprintf("%s/%s", folder, entries[i]->d_name);
		char *file = xasprintf("%s/%s", named, entries[i]->d_name);

		if (str_has_suffix(path, ".yaml"))
			problem_add(g->problems, file, 1, "only *.yml is read: rename it");
		else if (n <= FILES_MAX)
			read_vendor_file(g, path, file);
		FREE_ALL(file, path, entries[i]);
	}
	free(entries);
}

static int compare_accelerators(const void *a, const void *b)
{
	const struct accelerator *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	order = order ? order : strcmp(x->file, y->file);
	return order ? order : (x->line > y->line) - (x->line < y->line);
}

struct pin {
	const struct accelerator *of;
	const struct runner *runner;
};

static int compare_pins(const void *a, const void *b)
{
	const struct pin *x = a, *y = b;
	int by_repository = strcasecmp(x->runner->repository, y->runner->repository);

	return by_repository ? by_repository : (x->of > y->of) - (x->of < y->of);
}

/* Returns whether `id` differs from the first pinned one. *first becomes `p` where none was pinned. */
static bool note_pin(const struct pin **first, int64_t first_id, const struct pin *p, int64_t id)
{
	if (id && !*first)
		*first = p;
	return id && first_id && id != first_id;
}

/* A pin is valid for the repository in every accelerator's file. Two different pins would refuse every token. */
static void check_pins(const struct registry *g)
{
	const struct pin *by_id = NULL, *by_owner = NULL;
	struct pin *pins = NULL;
	size_t n = 0;

	for (size_t i = 0; i < g->n; i++)
		for (size_t k = 0; k < g->items[i].n_runners; k++) {
			const struct runner *r = &g->items[i].runners[k];

			if (r->repository && (r->repository_id || r->repository_owner_id))
				*ARRAY_PUSH(pins, n) = (struct pin){&g->items[i], r};
		}
	if (n)
		qsort(pins, n, sizeof(*pins), compare_pins);
	for (size_t i = 0; i < n; i++) {
		const struct runner *r = pins[i].runner;
		const struct pin *other = NULL;

		if (i && strcasecmp(pins[i - 1].runner->repository, r->repository) != 0)
			by_id = by_owner = NULL;
		if (note_pin(&by_id, by_id ? by_id->runner->repository_id : 0, &pins[i], r->repository_id))
			other = by_id;
		else if (note_pin(&by_owner, by_owner ? by_owner->runner->repository_owner_id : 0, &pins[i],
			     r->repository_owner_id))
			other = by_owner;
		if (other)
			problem_add(g->problems, pins[i].of->file, pins[i].of->line,
			    "%s is pinned to another id by %s:%d", r->repository, other->of->file, other->of->line);
	}
	free(pins);
}

enum { SHORT_COMMIT_CHARS = 7 };

void registry_read(const char *folder, struct main_file *main, struct problems *problems)
{
	struct registry g = {.folder = folder, .main_path = main->c.path, .main = main, .problems = problems};
	struct allowlist list;
	char *path;

	if (main->directory.path) {
		path = source_path(folder, main->directory.path);
		read_folder(&g, path, path, main->directory.line);
		free(path);
	}
	if (main->c.accelerators_git_folder) {
		const struct config *c = &g.main->c;
		char *named = xasprintf("accelerators.git@%.*s:%s", SHORT_COMMIT_CHARS, c->accelerators_git_commit,
		    c->accelerators_git_path);

		/* Messages name the files by commit and path in the repository. */
		read_folder(&g, c->accelerators_git_folder, named, g.main->git.line);
		free(named);
	}
	if (main->allowlist.path) {
		path = source_path(folder, main->allowlist.path);
		allowlist_load(path, g.main_path, main->allowlist.line, problems, &list);
		for (size_t i = 0; i < list.n; i++)
			*ARRAY_PUSH(g.items, g.n) = list.items[i];
		FREE_ALL(list.items, path);
	}
	if (g.n)
		qsort(g.items, g.n, sizeof(*g.items), compare_accelerators);
	for (size_t i = 1; i < g.n; i++) {
		const struct accelerator *first = &g.items[i - 1], *a = &g.items[i];

		if (str_eq(first->name, a->name))
			problem_add(g.problems, a->file, a->line, "the name \"%s\" is taken by %s:%d", a->name,
			    first->file, first->line);
	}
	check_pins(&g);
	main->c.accelerators = g.items;
	main->c.n_accelerators = g.n;
}
