#include "config/fields.h"

#include "base/alloc.h"
#include "base/str.h"
#include "base/strv.h"

enum { KEYS_MAX = 32, LIST_MAX = 10000 };

const char *field_name(const struct reader *r, const struct field *f, char out[SHOWN_BYTES])
{
	snprintf(out, SHOWN_BYTES, "%s%s%s", r->path, *r->path ? "." : "", f->key);
	return out;
}

void refuse_kind(struct reader *r, const struct field *f, const struct node *v, const char *what)
{
	char name[SHOWN_BYTES], value[SHOWN_BYTES];

	field_name(r, f, name);
	if (v->kind == NODE_SCALAR)
		problem_add(r->problems, r->file, v->line, "%s must be %s, not %s", name, what,
		    shown(v->text, value));
	else
		problem_add(r->problems, r->file, v->line, "%s must be %s, not %s", name, what,
		    tree_kind_name(v));
}

bool want_text(struct reader *r, const struct field *f, const struct node *v)
{
	if (v->kind == NODE_SCALAR)
		return true;
	refuse_kind(r, f, v, "a text");
	return false;
}

/* The map at or below m that has this key; *n counts them. */
static const struct mapping *find_home(const struct mapping *m, const char *key, int *n)
{
	const struct mapping *home = NULL, *inner;

	for (const struct field *f = m->fields; f->key; f++) {
		inner = f->map ? find_home(f->map, key, n) : NULL;
		if (inner)
			home = inner;
		if (str_eq(f->key, key)) {
			home = m;
			(*n)++;
		}
	}
	return home;
}

/* A key that stands in the wrong map. False: no map has it, or several have. */
static bool refuse_misplaced(struct reader *r, const struct mapping *m, const struct node *key)
{
	char written[SHOWN_BYTES];
	int n = 0;
	const struct mapping *home = find_home(r->root, key->text, &n);

	if (n != 1)
		return false;
	problem_add(r->problems, r->file, key->line, "unknown key %s%s%s; it belongs %s%s",
	    shown(key->text, written), *m->path ? " in " : "", m->path,
	    *home->path ? "in " : "at the top of the file", home->path);
	return true;
}

static void refuse_unknown(struct reader *r, const struct mapping *m, const struct node *key)
{
	const char *known[KEYS_MAX + 1] = {NULL}, *near, *far;
	char written[SHOWN_BYTES];
	size_t n = 0;

	if (refuse_misplaced(r, m, key))
		return;
	for (const struct field *f = m->fields; f->key && n < KEYS_MAX; f++)
		known[n++] = f->key;
	near = str_nearest(key->text, known);
	far = str_least_far(key->text, known);
	shown(key->text, written);
	if (near)
		problem_add(r->problems, r->file, key->line,
		    "unknown key %s%s%s; did you mean \"%s\"?", written, *m->path ? " in " : "",
		    m->path, near);
	else
		problem_add(r->problems, r->file, key->line, "unknown key %s%s%s%s%s%s", written,
		    *m->path ? " in " : "", m->path, far ? "; the nearest known key is \"" : "",
		    far ? far : "", far ? "\"" : "");
}

/* A required map that is missing is read as an empty one, so that its own required keys
 * are named. */
static void read_missing(struct reader *r, const struct field *f, int line, void *target)
{
	const struct node empty = {.kind = NODE_NULL, .line = line};
	char name[SHOWN_BYTES];

	if (f->presence == OPTIONAL)
		return;
	if (f->map)
		f->read(r, f, &empty, target);
	else
		problem_add(
		    r->problems, r->file, line, "missing key \"%s\"", field_name(r, f, name));
}

static const struct field *find_field(const struct mapping *m, const char *key)
{
	for (const struct field *f = m->fields; f->key; f++)
		if (str_eq(f->key, key))
			return f;
	return NULL;
}

void read_mapping(struct reader *r, const struct mapping *m, const struct node *v, void *base)
{
	const char *outer = r->path;

	if (v->kind != NODE_MAP && v->kind != NODE_NULL) {
		problem_add(r->problems, r->file, v->line, "%s must be a map, not %s",
		    *m->path ? m->path : "the file", tree_kind_name(v));
		return;
	}
	r->path = m->path;
	if (!r->root)
		r->root = m;
	for (size_t i = 0; i < v->n; i++) {
		const struct field *f = find_field(m, v->keys[i]->text);

		if (tree_get(v, v->keys[i]->text) != v->values[i])
			continue; /* a key that is here twice: told already, the first counts */
		if (f)
			f->read(r, f, v->values[i], (char *)base + f->offset);
		else
			refuse_unknown(r, m, v->keys[i]);
	}
	for (const struct field *f = m->fields; f->key; f++)
		if (!tree_get(v, f->key))
			read_missing(r, f, v->line, (char *)base + f->offset);
	r->path = outer;
}

void field_map(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	read_mapping(r, f->map, v, target);
}

/* Checks one scalar; on a mistake adds it. */
static bool is_right(struct reader *r, const struct field *f, const struct node *v)
{
	char why[WHY_BYTES], name[SHOWN_BYTES], value[SHOWN_BYTES];
	size_t n;

	if (!want_text(r, f, v))
		return false;
	n = strlen(v->text);
	if (n == 0 || (f->max && n > (size_t)f->max)) {
		problem_add(r->problems, r->file, v->line, "%s must be 1 to %lld bytes, not %zu",
		    field_name(r, f, name), (long long)f->max, n);
		return false;
	}
	if (!f->check(r, v->text, why)) {
		problem_add(r->problems, r->file, v->line, "%s must be %s, not %s",
		    field_name(r, f, name), why, shown(v->text, value));
		return false;
	}
	return true;
}

void field_text(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	char **text = target;

	if (!is_right(r, f, v))
		return;
	free(*text);
	*text = xstrdup(v->text);
}

void field_texts(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	char ***texts = target, **read;
	char name[SHOWN_BYTES];
	size_t n = 0;

	if (v->kind != NODE_LIST && v->kind != NODE_NULL) {
		refuse_kind(r, f, v, "a list");
		return;
	}
	if (v->n > LIST_MAX) {
		problem_add(r->problems, r->file, v->line, "%s has more than %d entries",
		    field_name(r, f, name), LIST_MAX);
		return;
	}
	if (v->n < (size_t)f->min) {
		problem_add(
		    r->problems, r->file, v->line, "%s must not be empty", field_name(r, f, name));
		return;
	}
	read = xcalloc(v->n + 1, sizeof(*read));
	for (size_t i = 0; i < v->n; i++)
		if (is_right(r, f, v->values[i]))
			read[n++] = xstrdup(v->values[i]->text);
	strv_free(*texts);
	*texts = read;
}

void field_integer64(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	char what[WHY_BYTES];
	int64_t value;

	if (f->max == INT64_MAX)
		snprintf(what, sizeof(what), "a whole number from %lld", (long long)f->min);
	else
		snprintf(what, sizeof(what), "a whole number from %lld to %lld", (long long)f->min,
		    (long long)f->max);
	if (v->kind != NODE_SCALAR || parse_int64(v->text, &value) || value < f->min ||
	    value > f->max)
		refuse_kind(r, f, v, what);
	else
		*(int64_t *)target = value;
}

void field_integer(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	int64_t value = *(int *)target;

	field_integer64(r, f, v, &value);
	*(int *)target = (int)value;
}

static const struct {
	const char *unit;
	int64_t ms;
} DURATION_UNITS[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};

int duration_parse(const char *s, int64_t *ret_ms)
{
	size_t digits = strspn(s, "0123456789");
	int64_t n = 0;

	if (digits == 0 || digits > 9)
		return ERR_INVALID;
	for (size_t i = 0; i < digits; i++)
		n = n * 10 + (s[i] - '0');
	for (size_t i = 0; i < ARRAY_LEN(DURATION_UNITS); i++)
		if (str_eq(s + digits, DURATION_UNITS[i].unit)) {
			*ret_ms = n * DURATION_UNITS[i].ms;
			return 0;
		}
	return ERR_INVALID;
}

/* The largest unit that writes it without a fraction. */
static void duration_format(int64_t ms, char *out, size_t n)
{
	size_t i = ms ? ARRAY_LEN(DURATION_UNITS) - 1 : 1;

	while (i > 0 && ms % DURATION_UNITS[i].ms != 0)
		i--;
	snprintf(out, n, "%lld%s", (long long)(ms / DURATION_UNITS[i].ms), DURATION_UNITS[i].unit);
}

void field_duration(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	char least[32], most[32], what[WHY_BYTES];
	int64_t ms;

	if (v->kind == NODE_SCALAR && duration_parse(v->text, &ms) == 0 && ms >= f->min &&
	    ms <= f->max) {
		*(int64_t *)target = ms;
		return;
	}
	duration_format(f->min, least, sizeof(least));
	duration_format(f->max, most, sizeof(most));
	snprintf(
	    what, sizeof(what), "a duration from %s to %s (500ms, 30s, 10m, 6h, 30d)", least, most);
	refuse_kind(r, f, v, what);
}

void field_bool(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	bool is_true = v->kind == NODE_SCALAR && str_eq(v->text, "true");

	if (is_true || (v->kind == NODE_SCALAR && str_eq(v->text, "false")))
		*(bool *)target = is_true;
	else
		refuse_kind(r, f, v, "true or false");
}

void field_choice(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	struct buf what = BUF_INIT(WHY_BYTES);

	for (const struct choice *c = f->choices; c->name; c++) {
		if (v->kind == NODE_SCALAR && str_eq(v->text, c->name)) {
			*(int *)target = c->value;
			buf_release(&what);
			return;
		}
		buf_appendf(&what, "%s%s", c == f->choices ? "one of " : ", ", c->name);
	}
	refuse_kind(r, f, v, buf_str(&what));
	buf_release(&what);
}

void field_file(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	struct file_ref *file = target;

	if (!is_right(r, f, v))
		return;
	free(file->path);
	*file = (struct file_ref){.path = xstrdup(v->text), .line = v->line};
}

void field_networks(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	struct network_list *list = target;

	if (v->kind != NODE_LIST && v->kind != NODE_NULL) {
		refuse_kind(r, f, v, "a list");
		return;
	}
	free(list->items);
	*list = (struct network_list){.items = xcalloc(v->n, sizeof(struct network))};
	for (size_t i = 0; i < v->n; i++) {
		struct error e = {0};
		char name[SHOWN_BYTES], value[SHOWN_BYTES];

		if (!want_text(r, f, v->values[i]))
			continue;
		if (network_parse(v->values[i]->text, &list->items[list->n], &e) == 0)
			list->n++;
		else
			problem_add(r->problems, r->file, v->values[i]->line, "%s: %s %s",
			    field_name(r, f, name), shown(v->values[i]->text, value), e.text);
	}
}
