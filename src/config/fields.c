#include "config/fields.h"

#include "model/accelerator.h"

enum { KEYS_MAX = 32, LIST_MAX = 10000 };

const struct choice LOG_LEVELS[] = {
    {"debug", LOG_DEBUG}, {"info", LOG_INFO}, {"warn", LOG_WARN}, {"error", LOG_ERROR}, {NULL, 0}};
const struct choice LOG_FORMATS[] = {{"text", LOG_TEXT}, {"json", LOG_JSON}, {NULL, 0}};
const struct choice VISIBILITIES[] = {{"public", VISIBILITY_PUBLIC}, {"summary", VISIBILITY_SUMMARY}, {NULL, 0}};

const char *field_name(const struct reader *r, const struct field *f, char out[SHOWN_BYTES])
{
	snprintf(out, SHOWN_BYTES, "%s%s%s", r->path, *r->path ? "." : "", f->key);
	return out;
}

void refuse_kind(struct reader *r, const struct field *f, const struct node *v, const char *what)
{
	refuse_at(r, v->line, "%s must be %s, not %s", FIELD_NAME(r, f), what,
	    v->kind == NODE_SCALAR ? QUOTED(v->text) : tree_kind_name(v));
}

bool expect_kind(struct reader *r, const struct field *f, const struct node *v, enum node_kind kind)
{
	if (v->kind == kind || v->kind == NODE_NULL)
		return true;
	refuse_kind(r, f, v, kind == NODE_LIST ? "a list" : "a map");
	return false;
}

/* True for a scalar; else reports the mistake. */
static bool expect_text(struct reader *r, const struct field *f, const struct node *v)
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

static void list_keys(const struct mapping *m, const char *ret[KEYS_MAX + 1])
{
	size_t n = 0;

	for (const struct field *f = m->fields; f->key && n < KEYS_MAX; f++)
		ret[n++] = f->key;
	ret[n] = NULL;
}

/* Names the map that the key belongs to, and the nearest key of this map. */
static void refuse_unknown(struct reader *r, const struct mapping *m, const struct node *key)
{
	const char *known[KEYS_MAX + 1];
	char belongs[128] = "", like[128] = "";
	int n_homes = 0;
	const struct mapping *home = find_home(r->root, key->text, &n_homes);
	bool is_misplaced = n_homes == 1;

	list_keys(m, known);
	const char *near = str_nearest(key->text, known);
	const char *far = str_least_far(key->text, known);
	if (is_misplaced)
		snprintf(belongs, sizeof(belongs), "; it belongs %s%s", *home->path ? "in " : "at the top of the file",
		    home->path);
	if (near)
		snprintf(like, sizeof(like), "; did you mean \"%s\"?", near);
	else if (far)
		snprintf(like, sizeof(like), "; the nearest known key%s is \"%s\"", is_misplaced ? " here" : "", far);
	refuse_at(
	    r, key->line, "unknown key %s%s%s%s%s", QUOTED(key->text), *m->path ? " in " : "", m->path, belongs, like);
}

static const struct field *find_field(const struct mapping *m, const char *key)
{
	const struct field *f = m->fields;

	while (f->key && !str_eq(f->key, key))
		f++;
	return f->key ? f : NULL;
}

/* An unknown key of this map looks like the field's. Its message says so; the key is not missing as well. */
static bool field_is_misspelt(const struct mapping *m, const struct field *f, const struct node *v)
{
	const char *known[KEYS_MAX + 1];

	list_keys(m, known);
	for (size_t i = 0; i < v->n; i++) {
		const char *near = find_field(m, v->keys[i]->text) ? NULL : str_nearest(v->keys[i]->text, known);

		if (near && str_eq(near, f->key))
			return true;
	}
	return false;
}

void read_mapping(struct reader *r, const struct mapping *m, const struct node *v, void *base)
{
	const char *outer = r->path;

	if (v->kind != NODE_MAP && v->kind != NODE_NULL) {
		refuse_at(r, v->line, "%s must be a map, not %s", *m->path ? m->path : "the file", tree_kind_name(v));
		return;
	}
	r->path = m->path;
	if (!r->root)
		r->root = m;
	for (size_t i = 0; i < v->n; i++) {
		const struct field *f = find_field(m, v->keys[i]->text);

		if (tree_get(v, v->keys[i]->text) != v->values[i])
			continue; /* a duplicate key, which tree.c has reported: the first counts */
		if (f)
			f->read(r, f, v->values[i], (char *)base + f->offset);
		else
			refuse_unknown(r, m, v->keys[i]);
	}
	for (const struct field *f = m->fields; f->key; f++) {
		const struct node empty = {.kind = NODE_NULL, .line = v->line};

		if (f->presence == OPTIONAL || tree_get(v, f->key) || field_is_misspelt(m, f, v))
			continue;
		/* A missing required map is read as an empty one, so that the messages name its required keys. */
		if (f->map)
			f->read(r, f, &empty, (char *)base + f->offset);
		else
			refuse_at(r, v->line, "missing key \"%s\"", FIELD_NAME(r, f));
	}
	r->path = outer;
}

void field_map(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	read_mapping(r, f->map, v, target);
}

/* Checks one scalar, and reports a mistake. */
static bool check_scalar(struct reader *r, const struct field *f, const struct node *v)
{
	char why[WHY_BYTES];

	if (!expect_text(r, f, v))
		return false;
	size_t n = strlen(v->text);
	if (n == 0 || (f->max && n > (size_t)f->max)) {
		refuse_at(r, v->line, "%s must be 1 to %lld bytes, not %zu", FIELD_NAME(r, f), (long long)f->max, n);
		return false;
	}
	if (!f->check(r, v->text, why)) {
		refuse_at(r, v->line, "%s must be %s, not %s", FIELD_NAME(r, f), why, QUOTED(v->text));
		return false;
	}
	return true;
}

void field_text(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	char **text = target;

	if (!check_scalar(r, f, v))
		return;
	free(*text);
	*text = xstrdup(v->text);
}

void field_texts(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	char ***texts = target, **read;
	size_t n = 0;

	if (!expect_kind(r, f, v, NODE_LIST))
		return;
	if (v->n > LIST_MAX) {
		refuse_at(r, v->line, "%s has more than %d entries", FIELD_NAME(r, f), LIST_MAX);
		return;
	}
	if (v->n < (size_t)f->min) {
		refuse_at(r, v->line, "%s must not be empty", FIELD_NAME(r, f));
		return;
	}
	read = xcalloc(v->n + 1, sizeof(*read));
	for (size_t i = 0; i < v->n; i++)
		if (check_scalar(r, f, v->values[i]))
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
		snprintf(what, sizeof(what), "a whole number from %lld to %lld", (long long)f->min, (long long)f->max);
	if (v->kind != NODE_SCALAR || parse_int64(v->text, &value) || value < f->min || value > f->max)
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

/* ---- numbers with a unit ---- */

struct unit {
	const char *name; /* NULL ends the list */
	int64_t factor;
};
static const struct unit DURATION_UNITS[] = {
    {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}, {NULL, 0}};
static const struct unit SIZE_UNITS[] = {{"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {NULL, 0}};

/* Writes the number with the largest unit that needs no fraction. Zero has the unit of index i_zero. */
static void format_quantity(int64_t n, const struct unit *units, size_t i_zero, char *out, size_t out_bytes)
{
	size_t best = n ? 0 : i_zero;

	for (size_t i = 0; n && units[i].name; i++)
		if (n % units[i].factor == 0)
			best = i;
	snprintf(out, out_bytes, "%lld%s", (long long)(n / units[best].factor), units[best].name);
}

static void read_quantity(struct reader *r, const struct field *f, const struct node *v, int64_t *target,
    const struct unit *units, size_t i_zero, const char *kind, const char *examples)
{
	char least[32], most[32], what[WHY_BYTES];
	const char *s = v->kind == NODE_SCALAR ? v->text : "";
	size_t digits = strspn(s, "0123456789");
	const struct unit *unit = units;
	int64_t n = 0;

	for (size_t i = 0; i < digits && i < 9; i++)
		n = n * 10 + (s[i] - '0');
	while (unit->name && !str_eq(s + digits, unit->name))
		unit++;
	n *= unit->factor;
	if (digits > 0 && digits <= 9 && unit->name && n >= f->min && n <= f->max) {
		*target = n;
		return;
	}
	format_quantity(f->min, units, i_zero, least, sizeof(least));
	format_quantity(f->max, units, i_zero, most, sizeof(most));
	snprintf(what, sizeof(what), "a %s from %s to %s (%s)", kind, least, most, examples);
	refuse_kind(r, f, v, what);
}

void field_duration(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	read_quantity(r, f, v, target, DURATION_UNITS, 1, "duration", "500ms, 30s, 10m, 6h, 30d");
}

void field_size(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	read_quantity(r, f, v, target, SIZE_UNITS, 0, "size", "64KiB, 64MiB, 1GiB");
}

/* ---- other values ---- */

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

	if (!check_scalar(r, f, v))
		return;
	free(file->path);
	*file = (struct file_ref){.path = xstrdup(v->text), .line = v->line};
}

void field_networks(struct reader *r, const struct field *f, const struct node *v, void *target)
{
	struct network_list *list = target;

	if (!expect_kind(r, f, v, NODE_LIST))
		return;
	free(list->items);
	*list = (struct network_list){.items = xcalloc(v->n, sizeof(struct network))};
	for (size_t i = 0; i < v->n; i++) {
		struct error e = {0};

		if (!expect_text(r, f, v->values[i]))
			continue;
		if (network_parse(v->values[i]->text, &list->items[list->n], &e) == 0)
			list->n++;
		else
			refuse_at(
			    r, v->values[i]->line, "%s: %s %s", FIELD_NAME(r, f), QUOTED(v->values[i]->text), e.text);
	}
}
