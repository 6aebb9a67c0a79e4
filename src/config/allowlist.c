#include "config/allowlist.h"

#include <ctype.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/str.h"
#include "base/strv.h"
#include "config/accelerator_file.h"

enum { REPOSITORIES_MAX = 2000, DEVICE_MAX_BYTES = 100 };

/* What one entry says. */
struct entry {
	char *repository;
	char **oncall;
	bool is_nightly_only; /* `events` leaves pull_request out */
	int line;
};

static void entry_release(struct entry *e)
{
	free(e->repository);
	strv_free(e->oncall);
}

struct node *allowlist_parse(
    const char *file, const char *text, size_t n, struct problems *problems)
{
	char *copy = xmemdup(text, n);
	struct node *root;

	/* The same length, so that lines stay what they are. */
	for (size_t i = 0; i < n; i++)
		if (copy[i] == '@' && (i == 0 || strchr(" \t\n[,{", copy[i - 1])))
			copy[i] = ' ';
	root = tree_parse(file, copy, n, problems);
	free(copy);
	return root;
}

static void add_login(struct reader *r, struct entry *e, const char *s, size_t n, int line)
{
	char login[64], why[WHY_BYTES], value[SHOWN_BYTES];

	while (n && isspace((unsigned char)*s)) {
		s++;
		n--;
	}
	while (n && isspace((unsigned char)s[n - 1]))
		n--;
	if (n == 0)
		return;
	snprintf(login, sizeof(login), "%.*s", (int)(n < sizeof(login) ? n : sizeof(login) - 1), s);
	if (!check_login(r, login, why)) {
		problem_add(r->problems, r->file, line, "an oncall must be %s, not %s", why,
		    shown(login, value));
		return;
	}
	strv_add(&e->oncall, login[0] == '@' ? login + 1 : login);
}

/* "a, b" */
static void add_logins(struct reader *r, struct entry *e, const char *text, int line)
{
	for (const char *part = text; part;) {
		const char *comma = strchr(part, ',');

		add_login(r, e, part, comma ? (size_t)(comma - part) : strlen(part), line);
		part = comma ? comma + 1 : NULL;
	}
}

static void read_oncall(struct reader *r, struct entry *e, const struct node *v)
{
	if (v->kind == NODE_SCALAR)
		add_logins(r, e, v->text, v->line);
	else if (v->kind == NODE_MAP)
		problem_add(r->problems, r->file, v->line, "oncalls must be a text or a list");
	for (size_t i = 0; v->kind == NODE_LIST && i < v->n; i++) {
		if (v->values[i]->kind == NODE_SCALAR)
			add_logins(r, e, v->values[i]->text, v->values[i]->line);
		else
			problem_add(r->problems, r->file, v->values[i]->line,
			    "an oncall must be a GitHub login, not %s",
			    tree_kind_name(v->values[i]));
	}
}

/* `events`: without a value both are meant, as without the key. The vendor starts and reports nightly
 * runs by itself, so `nightly` adds nothing here; `pull_request` left out takes pull requests away. */
static void read_events(struct reader *r, struct entry *e, const struct node *v)
{
	static const char *const names[] = {"pull_request", "nightly"};
	bool is_given[ARRAY_LEN(names)] = {false};

	if (v->kind == NODE_NULL)
		return;
	if (v->kind != NODE_LIST || v->n == 0) {
		problem_add(r->problems, r->file, v->line, "events must be a list with an entry");
		return;
	}
	for (size_t i = 0; i < v->n; i++) {
		const struct node *ev = v->values[i];
		size_t k = 0;

		while (k < ARRAY_LEN(names) &&
		       !(ev->kind == NODE_SCALAR && str_eq(ev->text, names[k])))
			k++;
		if (k == ARRAY_LEN(names)) {
			problem_add(r->problems, r->file, ev->line,
			    "an event must be one of pull_request, nightly");
			continue;
		}
		if (is_given[k])
			problem_add(
			    r->problems, r->file, ev->line, "event %s is listed twice", names[k]);
		is_given[k] = true;
	}
	e->is_nightly_only = !is_given[0];
}

/* What stands behind a repository: nothing, oncalls, or a map with oncalls and events. */
static void read_metadata(struct reader *r, struct entry *e, const struct node *v)
{
	char value[SHOWN_BYTES];

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
			problem_add(r->problems, r->file, v->keys[i]->line,
			    "unknown key %s; an entry has oncalls and events",
			    shown(v->keys[i]->text, value));
	}
}

/* Takes "owner/repo" out of a text, slashes around it forgiven as CRCR does. */
static bool read_repository(struct reader *r, struct entry *e, const char *text, size_t n, int line)
{
	char value[SHOWN_BYTES];

	while (n && (isspace((unsigned char)*text) || *text == '/')) {
		text++;
		n--;
	}
	while (n && (isspace((unsigned char)text[n - 1]) || text[n - 1] == '/'))
		n--;
	*e = (struct entry){
	    .repository = xstrndup(text, n), .oncall = strv_copy(NULL), .line = line};
	if (is_repository_name(e->repository))
		return true;
	problem_add(r->problems, r->file, line, "an entry must be owner/repo, not %s",
	    shown(e->repository, value));
	entry_release(e);
	return false;
}

/* A list's element: "owner/repo", "owner/repo: a, b" as one text, or a map of one key. */
static bool read_element(struct reader *r, struct entry *e, const struct node *v)
{
	const char *colon;

	if (v->kind == NODE_MAP && v->n == 1) {
		if (!read_repository(
			r, e, v->keys[0]->text, strlen(v->keys[0]->text), v->keys[0]->line))
			return false;
		read_metadata(r, e, v->values[0]);
		return true;
	}
	if (v->kind != NODE_SCALAR) {
		problem_add(r->problems, r->file, v->line,
		    "an entry must be owner/repo or owner/repo: oncalls");
		return false;
	}
	colon = strchr(v->text, ':');
	if (!read_repository(
		r, e, v->text, colon ? (size_t)(colon - v->text) : strlen(v->text), v->line))
		return false;
	if (colon)
		add_logins(r, e, colon + 1, v->line);
	return true;
}

/* Lower case, and - for everything that is no letter or digit. free(). */
static char *slug(const char *s)
{
	char *out = xstrdup(s);

	for (char *c = out; *c; c++)
		*c = isalnum((unsigned char)*c) ? (char)tolower((unsigned char)*c) : '-';
	return out;
}

static struct accelerator *add_accelerator(
    struct reader *r, struct allowlist *l, enum level level, const char *title, int line)
{
	struct accelerator *a;

	if ((l->n & (l->n - 1)) == 0) /* grows at powers of two */
		l->items = xrealloc(l->items, (l->n ? 2 * l->n : 1) * sizeof(*l->items));
	a = &l->items[l->n++];
	accelerator_set_defaults(a);
	a->name = slug(title);
	a->title = xstrdup(title);
	a->level = level;
	a->trust = TRUST_ANYONE;
	a->triggers.has_push = true;
	a->file = xstrdup(r->file);
	a->line = line;
	return a;
}

/* Same repository in any level, in whatever case: GitHub knows only one. */
static bool is_listed(struct reader *r, const struct allowlist *l, const struct entry *e)
{
	char value[SHOWN_BYTES];

	for (size_t i = 0; i < l->n; i++)
		for (size_t k = 0; k < l->items[i].n_runners; k++)
			if (strcasecmp(l->items[i].runners[k].repository, e->repository) == 0) {
				problem_add(r->problems, r->file, e->line,
				    "repository %s is listed twice; first under line %d",
				    shown(e->repository, value), l->items[i].line);
				return true;
			}
	return false;
}

/* Moves an entry into an accelerator as one more runner. */
static void add_runner(struct reader *r, struct accelerator *a, struct entry *e)
{
	struct runner *runner;
	char *name = slug(e->repository), value[SHOWN_BYTES];

	for (size_t i = 0; i < a->n_runners; i++)
		if (str_eq(a->runners[i].name, name))
			problem_add(r->problems, r->file, e->line,
			    "repositories %s and %s give runners of one name",
			    a->runners[i].repository, shown(e->repository, value));
	a->runners = xrealloc(a->runners, (a->n_runners + 1) * sizeof(*a->runners));
	runner = &a->runners[a->n_runners++];
	*runner = (struct runner){.name = name,
	    .kind = RUNNER_GITHUB,
	    .repository = e->repository,
	    .is_nightly_only = e->is_nightly_only};
	e->repository = NULL;
	for (char **login = e->oncall; *login; login++)
		if (!strv_contains_nocase((const char *const *)a->oncall, *login))
			strv_add(&a->oncall, *login);
}

static bool is_full(struct reader *r, const struct allowlist *l, int line)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		n += l->items[i].n_runners;
	if (n < REPOSITORIES_MAX)
		return false;
	problem_add(r->problems, r->file, line, "more than %d repositories", REPOSITORIES_MAX);
	return true;
}

static void read_level(
    struct reader *r, enum level level, const struct node *v, struct allowlist *l)
{
	if (v->kind != NODE_LIST && v->kind != NODE_NULL) {
		problem_add(r->problems, r->file, v->line, "%s must be a list of repositories",
		    level_name(level));
		return;
	}
	for (size_t i = 0; i < v->n && !is_full(r, l, v->values[i]->line); i++) {
		struct entry e;

		if (!read_element(r, &e, v->values[i]))
			continue;
		if (!is_listed(r, l, &e))
			add_runner(r, add_accelerator(r, l, level, e.repository, e.line), &e);
		entry_release(&e);
	}
}

static void read_device(
    struct reader *r, struct accelerator *a, const struct node *v, struct allowlist *l)
{
	for (size_t i = 0; i < v->n && !is_full(r, l, v->values[i]->line); i++) {
		struct entry e;
		bool is_entry;

		if (v->kind == NODE_MAP) {
			is_entry = read_repository(
			    r, &e, v->keys[i]->text, strlen(v->keys[i]->text), v->keys[i]->line);
			if (is_entry)
				read_metadata(r, &e, v->values[i]);
		} else {
			is_entry = read_element(r, &e, v->values[i]);
		}
		if (!is_entry)
			continue;
		if (!is_listed(r, l, &e))
			add_runner(r, a, &e);
		entry_release(&e);
	}
}

static bool is_device(const struct reader *r, const char *s)
{
	char why[WHY_BYTES];

	return strlen(s) <= DEVICE_MAX_BYTES && check_line(r, s, why) &&
	       s[strcspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")];
}

static void read_devices(struct reader *r, const struct node *v, struct allowlist *l)
{
	char value[SHOWN_BYTES];

	if (v->kind == NODE_LIST && v->n == 0)
		return;
	if (v->kind != NODE_MAP && v->kind != NODE_NULL) {
		problem_add(r->problems, r->file, v->line,
		    "L3 must be a map of devices, each with its repositories");
		return;
	}
	for (size_t i = 0; i < v->n; i++) {
		const struct node *repositories = v->values[i];

		if (!is_device(r, v->keys[i]->text))
			problem_add(r->problems, r->file, v->keys[i]->line,
			    "a device must be a name of letters and digits, not %s",
			    shown(v->keys[i]->text, value));
		else if ((repositories->kind != NODE_MAP && repositories->kind != NODE_LIST) ||
			 repositories->n == 0)
			problem_add(r->problems, r->file, v->keys[i]->line,
			    "device %s must have repositories", shown(v->keys[i]->text, value));
		else
			read_device(r,
			    add_accelerator(r, l, LEVEL_3, v->keys[i]->text, v->keys[i]->line),
			    repositories, l);
	}
}

void allowlist_read(struct reader *r, const struct node *root, struct allowlist *ret)
{
	static const char *const levels[] = {"L1", "L2", "L3", "L4", NULL};
	char value[SHOWN_BYTES];

	*ret = (struct allowlist){0};
	if (root->kind != NODE_MAP && root->kind != NODE_NULL) {
		problem_add(r->problems, r->file, root->line,
		    "the file must be a map of the levels L1, L2, L3, L4");
		return;
	}
	for (size_t i = 0; i < root->n; i++) {
		const char *key = root->keys[i]->text;
		int level = 0;

		while (levels[level] && !str_eq(levels[level], key))
			level++;
		if (!levels[level])
			problem_add(r->problems, r->file, root->keys[i]->line,
			    "unknown key %s; the levels are L1, L2, L3, L4", shown(key, value));
		else if (level + LEVEL_1 == LEVEL_3)
			read_devices(r, root->values[i], ret);
		else
			read_level(r, (enum level)(level + LEVEL_1), root->values[i], ret);
	}
}

void allowlist_release(struct allowlist *l)
{
	for (size_t i = 0; i < l->n; i++)
		accelerator_release(&l->items[i]);
	free(l->items);
	*l = (struct allowlist){0};
}
