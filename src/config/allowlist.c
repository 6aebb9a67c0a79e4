#include "config/allowlist.h"

#include "config/accelerator_file.h"
#include "config/source.h"

enum { REPOSITORIES_MAX = 2000, DEVICE_MAX_BYTES = 100, TEXT_MAX_BYTES = 1 << 20 };

struct entry {
	char *repository;
	char **oncall;
	bool is_nightly_only; /* `events` does not list pull_request */
	int line;
};

static void entry_release(struct entry *e)
{
	free(e->repository);
	strv_free(e->oncall);
}

struct node *allowlist_parse(const char *file, const char *text, size_t n, struct problems *problems)
{
	char *copy = xmemdup(text, n);

	/* Replaces in place, so that lines and columns stay the same. */
	for (size_t i = 0; i < n; i++)
		if (copy[i] == '@' && (i == 0 || strchr(" \t\n[,{", copy[i - 1])))
			copy[i] = ' ';
	struct node *root = tree_parse(file, copy, n, problems);
	free(copy);
	return root;
}

/* Removes white space and the characters of `also` at both ends. */
static void trim_text(const char **s, size_t *n, const char *also)
{
	while (*n && (isspace((unsigned char)**s) || strchr(also, **s))) {
		(*s)++;
		(*n)--;
	}
	while (*n && (isspace((unsigned char)(*s)[*n - 1]) || strchr(also, (*s)[*n - 1])))
		(*n)--;
}

/* "a, b" */
static void add_logins(struct reader *r, struct entry *e, const char *text, int line)
{
	for (const char *part = text, *comma; part; part = comma ? comma + 1 : NULL) {
		char login[64], why[WHY_BYTES];
		const char *s = part;

		comma = strchr(part, ',');
		size_t n = comma ? (size_t)(comma - part) : strlen(part);
		trim_text(&s, &n, "");
		if (n == 0)
			continue;
		snprintf(login, sizeof(login), "%.*s", (int)(n < sizeof(login) ? n : sizeof(login) - 1), s);
		if (check_login(r, login, why))
			strv_add(&e->oncall, login[0] == '@' ? login + 1 : login);
		else
			refuse_at(r, line, "an oncall must be %s, not %s", why, QUOTED(login));
	}
}

static void read_oncall(struct reader *r, struct entry *e, const struct node *v)
{
	if (v->kind == NODE_SCALAR)
		add_logins(r, e, v->text, v->line);
	else if (v->kind == NODE_MAP)
		refuse_at(r, v->line, "oncalls must be a text or a list");
	for (size_t i = 0; v->kind == NODE_LIST && i < v->n; i++) {
		if (v->values[i]->kind == NODE_SCALAR)
			add_logins(r, e, v->values[i]->text, v->values[i]->line);
		else
			refuse_at(r, v->values[i]->line, "an oncall must be a GitHub login, not %s",
			    tree_kind_name(v->values[i]));
	}
}

/* `events` without a value means both events. The vendor starts nightly runs by itself, so `nightly`
 * changes nothing here; without `pull_request`, pull requests are not tested. */
static void read_events(struct reader *r, struct entry *e, const struct node *v)
{
	static const char *const names[] = {"pull_request", "nightly"};
	bool is_given[ARRAY_LEN(names)] = {false};

	if (v->kind == NODE_NULL)
		return;
	if (v->kind != NODE_LIST || v->n == 0) {
		refuse_at(r, v->line, "events must be a list with an entry");
		return;
	}
	for (size_t i = 0; i < v->n; i++) {
		const struct node *ev = v->values[i];
		size_t k = 0;

		while (k < ARRAY_LEN(names) && !(ev->kind == NODE_SCALAR && str_eq(ev->text, names[k])))
			k++;
		if (k == ARRAY_LEN(names)) {
			refuse_at(r, ev->line, "an event must be one of pull_request, nightly");
			continue;
		}
		if (is_given[k])
			refuse_at(r, ev->line, "event %s is listed twice", names[k]);
		is_given[k] = true;
	}
	e->is_nightly_only = !is_given[0];
}

/* The value of a repository: nothing, oncalls, or a map with oncalls and events. */
static void read_metadata(struct reader *r, struct entry *e, const struct node *v)
{
	if (v->kind != NODE_MAP) {
		read_oncall(r, e, v);
		return;
	}
	for (size_t i = 0; i < v->n; i++) {
		if (str_eq(v->keys[i]->text, "oncalls"))
			read_oncall(r, e, v->values[i]);
		else if (str_eq(v->keys[i]->text, "events"))
			read_events(r, e, v->values[i]);
		else
			refuse_at(r, v->keys[i]->line, "unknown key %s; an entry has oncalls and events",
			    QUOTED(v->keys[i]->text));
	}
}

/* Reads "owner/repo", and like CRCR ignores slashes around it. */
static bool read_repository(struct reader *r, struct entry *e, const char *text, size_t n, int line)
{
	trim_text(&text, &n, "/");
	*e = (struct entry){.repository = xstrndup(text, n), .oncall = strv_copy(NULL), .line = line};
	if (is_repository_name(e->repository))
		return true;
	refuse_at(r, line, "an entry must be owner/repo, not %s", QUOTED(e->repository));
	entry_release(e);
	return false;
}

/* "owner/repo" with its metadata. */
static bool read_pair(struct reader *r, struct entry *e, const struct node *key, const struct node *v)
{
	if (!read_repository(r, e, key->text, strlen(key->text), key->line))
		return false;
	read_metadata(r, e, v);
	return true;
}

/* A list's element: "owner/repo", "owner/repo: a, b" as one text, or a map of one key. */
static bool read_element(struct reader *r, struct entry *e, const struct node *v)
{
	if (v->kind == NODE_MAP && v->n == 1)
		return read_pair(r, e, v->keys[0], v->values[0]);
	if (v->kind != NODE_SCALAR) {
		refuse_at(r, v->line, "an entry must be owner/repo or owner/repo: oncalls");
		return false;
	}
	const char *colon = strchr(v->text, ':');
	if (!read_repository(r, e, v->text, colon ? (size_t)(colon - v->text) : strlen(v->text), v->line))
		return false;
	if (colon)
		add_logins(r, e, colon + 1, v->line);
	return true;
}

/* A name in lower case, with - for every other character than letters and digits. free(). */
static char *make_name(const char *s)
{
	char *out = xstrdup(s);

	for (char *c = out; *c; c++)
		*c = isalnum((unsigned char)*c) ? (char)tolower((unsigned char)*c) : '-';
	return out;
}

static struct accelerator *add_listed_accelerator(
    struct reader *r, struct allowlist *l, enum level level, const char *title, int line)
{
	struct accelerator *a = ARRAY_PUSH(l->items, l->n);

	accelerator_set_defaults(a);
	a->name = make_name(title);
	a->title = xstrdup(title);
	a->level = level;
	a->trust = TRUST_ANYONE;
	a->triggers.has_push = true;
	a->file = xstrdup(r->file);
	a->line = line;
	return a;
}

/* Moves an entry into an accelerator as one more runner. */
static void add_runner(struct reader *r, struct accelerator *a, struct entry *e)
{
	char *name = make_name(e->repository);

	for (size_t i = 0; i < a->n_runners; i++)
		if (str_eq(a->runners[i].name, name))
			refuse_at(r, e->line, "repositories %s and %s give runners of the same name",
			    a->runners[i].repository, QUOTED(e->repository));
	*ARRAY_PUSH(a->runners, a->n_runners) = (struct runner){
	    .name = name, .kind = RUNNER_GITHUB, .repository = e->repository, .is_nightly_only = e->is_nightly_only};
	e->repository = NULL;
	for (char **login = e->oncall; *login; login++)
		if (!strv_contains_nocase((const char *const *)a->oncall, *login))
			strv_add(&a->oncall, *login);
}

/* Reads the repositories of a level, each as an accelerator of its own, or those of one device. */
static void read_repositories(
    struct reader *r, enum level level, struct accelerator *device, const struct node *v, struct allowlist *l)
{
	for (size_t i = 0; i < v->n; i++) {
		struct entry e;
		size_t n = 0;
		int first = 0;

		for (size_t k = 0; k < l->n; k++)
			n += l->items[k].n_runners;
		if (n >= REPOSITORIES_MAX) {
			refuse_at(r, v->values[i]->line, "more than %d repositories", REPOSITORIES_MAX);
			return;
		}
		if (v->kind == NODE_MAP ? !read_pair(r, &e, v->keys[i], v->values[i])
					: !read_element(r, &e, v->values[i]))
			continue;
		/* Another entry of any level may have the repository; case does not matter to GitHub. */
		for (size_t a = 0; a < l->n && !first; a++)
			for (size_t k = 0; k < l->items[a].n_runners; k++)
				if (!strcasecmp(l->items[a].runners[k].repository, e.repository))
					first = l->items[a].line;
		if (first)
			refuse_at(r, e.line, "repository %s is listed twice; first under line %d", QUOTED(e.repository),
			    first);
		else
			add_runner(r, device ? device : add_listed_accelerator(r, l, level, e.repository, e.line), &e);
		entry_release(&e);
	}
}

static void read_devices(struct reader *r, const struct node *v, struct allowlist *l)
{
	char why[WHY_BYTES];

	if (v->kind == NODE_LIST && v->n == 0)
		return;
	if (v->kind != NODE_MAP && v->kind != NODE_NULL) {
		refuse_at(r, v->line, "L3 must be a map of devices, each with its repositories");
		return;
	}
	for (size_t i = 0; i < v->n; i++) {
		const struct node *key = v->keys[i], *repositories = v->values[i];

		if (strlen(key->text) > DEVICE_MAX_BYTES || !check_line(r, key->text, why) ||
		    !key->text[strcspn(key->text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")])
			refuse_at(
			    r, key->line, "a device must be a name of letters and digits, not %s", QUOTED(key->text));
		else if ((repositories->kind != NODE_MAP && repositories->kind != NODE_LIST) || repositories->n == 0)
			refuse_at(r, key->line, "device %s must have repositories", QUOTED(key->text));
		else
			read_repositories(
			    r, LEVEL_3, add_listed_accelerator(r, l, LEVEL_3, key->text, key->line), repositories, l);
	}
}

void allowlist_read(struct reader *r, const struct node *root, struct allowlist *ret)
{
	*ret = (struct allowlist){0};
	if (root->kind != NODE_MAP && root->kind != NODE_NULL) {
		refuse_at(r, root->line, "the file must be a map of the levels L1, L2, L3, L4");
		return;
	}
	for (size_t i = 0; i < root->n; i++) {
		const char *key = root->keys[i]->text;
		int level = LEVEL_1;

		while (level <= LEVEL_4 && !str_eq(level_name((enum level)level), key))
			level++;
		if (level > LEVEL_4)
			refuse_at(r, root->keys[i]->line, "unknown key %s; the levels are L1, L2, L3, L4", QUOTED(key));
		else if (level == LEVEL_3)
			read_devices(r, root->values[i], ret);
		else if (root->values[i]->kind != NODE_LIST && root->values[i]->kind != NODE_NULL)
			refuse_at(r, root->values[i]->line, "%s must be a list of repositories",
			    level_name((enum level)level));
		else
			read_repositories(r, (enum level)level, NULL, root->values[i], ret);
	}
}

void allowlist_load(const char *path, const char *named_in, int line, struct problems *problems, struct allowlist *ret)
{
	struct reader r = {.file = path, .problems = problems, .path = ""};
	struct buf text = BUF_INIT(YAML_FILE_MAX_BYTES);
	struct node *root = NULL;
	struct error e = {0};

	*ret = (struct allowlist){0};
	if (source_read(path, &text, &e) == 0)
		root = allowlist_parse(path, buf_str(&text), text.len, problems);
	else
		problem_add(problems, named_in, line, "cannot read %s", e.text);
	buf_release(&text);
	if (root)
		allowlist_read(&r, root, ret);
	tree_free(root);
}

void allowlist_release(struct allowlist *l)
{
	for (size_t i = 0; i < l->n; i++)
		accelerator_release(&l->items[i]);
	free(l->items);
	*l = (struct allowlist){0};
}

/* ---- as files of accelerators.d ---- */

/* Quotes the text: YAML would read some names as numbers, null or syntax. */
static void append_quoted(struct buf *out, const char *s)
{
	buf_append_str(out, "\"");
	for (; *s; s++)
		buf_appendf(out, "%s%c", *s == '"' || *s == '\\' ? "\\" : "", *s);
	buf_append_str(out, "\"");
}

/* free() */
static char *format_file(const struct accelerator *a)
{
	struct buf out = BUF_INIT(TEXT_MAX_BYTES);

	buf_appendf(&out, "# From line %d of CRCR's allowlist.\nname: ", a->line);
	append_quoted(&out, a->name);
	buf_append_str(&out, "\ntitle: ");
	append_quoted(&out, a->title);
	buf_appendf(&out, "\nlevel: %s\n", level_name(a->level));
	for (char **login = a->oncall; *login; login++) {
		buf_append_str(&out, login == a->oncall ? "oncall: [" : ", ");
		append_quoted(&out, *login);
	}
	if (*a->oncall)
		buf_append_str(&out, "]\n");
	buf_append_str(&out, "trust: anyone\nrunners:\n");
	for (size_t i = 0; i < a->n_runners; i++) {
		buf_append_str(&out, "  - name: ");
		append_quoted(&out, a->runners[i].name);
		buf_append_str(&out, "\n    github: {repository: ");
		append_quoted(&out, a->runners[i].repository);
		buf_append_str(&out, "}\n");
		if (a->runners[i].is_nightly_only)
			buf_append_str(&out, "    nightly_only: true\n");
	}
	buf_append_str(&out, "triggers:\n  pull_request: true\n  push: true\n");
	return buf_detach(&out);
}

int allowlist_files_read(const char *path, struct allowlist_files *ret, struct buf *messages)
{
	struct problems problems = {0};

	*ret = (struct allowlist_files){0};
	allowlist_load(path, path, 1, &problems, &ret->list);
	for (size_t i = 0; i < ret->list.n; i++)
		for (size_t k = 0; k < i; k++)
			if (str_eq(ret->list.items[i].name, ret->list.items[k].name)) {
				problem_add(&problems, ret->list.items[i].file, ret->list.items[i].line,
				    "the name %s is taken by line %d", QUOTED(ret->list.items[i].name),
				    ret->list.items[k].line);
				break;
			}
	ret->texts = xcalloc(ret->list.n + 1, sizeof(*ret->texts));
	for (size_t i = 0; i < ret->list.n; i++) {
		const struct accelerator *a = &ret->list.items[i];
		struct problems own = {0};
		struct reader r = {.file = a->file, .problems = &own, .path = ""};
		struct accelerator_file f;

		/* Reads the file back: the list allows names that a file does not. */
		ret->texts[i] = format_file(a);
		struct node *root = tree_parse(a->file, ret->texts[i], strlen(ret->texts[i]), &own);
		if (root) {
			accelerator_file_read(&r, root, &f);
			accelerator_file_release(&f);
		}
		tree_free(root);
		if (own.n)
			problem_add(&problems, a->file, a->line, "%s cannot have a file of its own: %s",
			    QUOTED(a->name), own.all[0].text);
		problems_release(&own);
	}
	int rc = problems.n ? ERR_INVALID : 0;
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
