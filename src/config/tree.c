/* libyaml's events become a tree here. What could make a small text large or slow
 * (aliases, depth, huge maps) is refused while it is read, not after. */
#include "config/tree.h"

#include <yaml.h>

#include "base/alloc.h"
#include "base/str.h"
#include "config/source.h"
#include "config/yaml_text.h"

enum { DEPTH_MAX = 16, NODES_MAX = 50000, MAP_ENTRIES_MAX = 1000 };

struct build {
	const char *file, *text;
	size_t n_text;
	struct problems *problems;
	yaml_parser_t parser;
	size_t n_nodes;
	struct node *open[DEPTH_MAX]; /* the collections that have not ended, outermost first */
	int depth;
	struct node *keys[DEPTH_MAX]; /* of each open map: read, its value not yet */
	struct node *root;
	bool is_document_over;
};

void tree_free(struct node *root)
{
	if (!root)
		return;
	for (size_t i = 0; i < root->n; i++) {
		tree_free(root->values[i]);
		if (root->keys)
			tree_free(root->keys[i]);
	}
	free(root->values);
	free(root->keys);
	free(root->text);
	free(root);
}

const struct node *tree_get(const struct node *map, const char *key)
{
	if (!map || map->kind != NODE_MAP)
		return NULL;
	for (size_t i = 0; i < map->n; i++)
		if (str_eq(map->keys[i]->text, key))
			return map->values[i];
	return NULL;
}

const char *tree_kind_name(const struct node *v)
{
	switch (v->kind) {
	case NODE_NULL:
		return "nothing";
	case NODE_SCALAR:
		return "text";
	case NODE_LIST:
		return "a list";
	case NODE_MAP:
		return "a map";
	}
	return "unknown";
}

static int refuse(struct build *b, int line, const char *what)
{
	problem_add(b->problems, b->file, line, "%s", what);
	return ERR_INVALID;
}

/* Checked before libyaml sees the text, because it tells no line for these. */
static int check_bytes(const char *file, const char *text, size_t n, struct problems *problems)
{
	int line = 1;
	const char *start = text;

	if (n > YAML_FILE_MAX_BYTES) {
		problem_add(problems, file, 1, "larger than %zu bytes", YAML_FILE_MAX_BYTES);
		return ERR_TOO_BIG;
	}
	for (size_t i = 0; i <= n; i++) {
		unsigned char c = i < n ? (unsigned char)text[i] : '\n';

		if (c == '\n') {
			if (!utf8_is_valid(start, (size_t)(text + i - start))) {
				problem_add(problems, file, line, "this line is not UTF-8");
				return ERR_INVALID;
			}
			start = text + i + 1;
			line++;
		} else if ((c < 0x20 && c != '\t' && c != '\r') || c == 0x7f) {
			problem_add(problems, file, line, "a control byte (0x%02x) in the file", c);
			return ERR_INVALID;
		}
	}
	return 0;
}

/* Puts a finished scalar or a collection that begins into what is open. */
static int place(struct build *b, struct node *node)
{
	struct node *in = b->depth ? b->open[b->depth - 1] : NULL;

	if (!in) {
		b->root = node;
		return 0;
	}
	if (in->kind == NODE_MAP && !b->keys[b->depth - 1]) {
		b->keys[b->depth - 1] = node;
		if (node->kind != NODE_SCALAR)
			return refuse(b, node->line, "a key must be a text");
		return 0;
	}
	if ((in->n & (in->n - 1)) == 0) { /* grows at powers of two */
		size_t room = in->n ? 2 * in->n : 1;

		in->values = xrealloc(in->values, room * sizeof(*in->values));
		if (in->kind == NODE_MAP)
			in->keys = xrealloc(in->keys, room * sizeof(*in->keys));
	}
	if (in->kind == NODE_MAP) {
		node->line = b->keys[b->depth - 1]->line;
		in->keys[in->n] = b->keys[b->depth - 1];
		b->keys[b->depth - 1] = NULL;
	}
	in->values[in->n++] = node;
	return 0;
}

static const struct node *entry_key(const struct node *map, const char *key)
{
	for (size_t i = 0; i < map->n; i++)
		if (str_eq(map->keys[i]->text, key))
			return map->keys[i];
	return NULL;
}

/* A duplicate is told and read on: the file has other mistakes to tell. */
static int check_key(struct build *b, const struct node *map, const struct node *key)
{
	const struct node *first = entry_key(map, key->text);
	char value[SHOWN_BYTES];

	if (first)
		problem_add(b->problems, b->file, key->line,
		    "key %s is here twice; the first is in line %d", shown(key->text, value),
		    first->line);
	if (map->n >= MAP_ENTRIES_MAX)
		return refuse(b, key->line, "a map of more than 1000 keys");
	return 0;
}

static bool is_null_text(const char *s)
{
	return *s == '\0' || str_eq(s, "~") || str_eq(s, "null") || str_eq(s, "Null") ||
	       str_eq(s, "NULL");
}

static int check_decoration(
    struct build *b, const yaml_char_t *anchor, const yaml_char_t *tag, int line)
{
	if (anchor)
		return refuse(b, line, "anchors (&…) are not read; write the value out");
	if (tag)
		return refuse(b, line, "tags (!…) are not read; write the plain value");
	if (++b->n_nodes > NODES_MAX)
		return refuse(b, line, "more than 50000 values in one file");
	return 0;
}

static int on_scalar(struct build *b, const yaml_event_t *ev, int line)
{
	const char *text = (const char *)ev->data.scalar.value;
	struct node *node, *in = b->depth ? b->open[b->depth - 1] : NULL;
	bool is_key = in && in->kind == NODE_MAP && !b->keys[b->depth - 1];
	int rc = check_decoration(b, ev->data.scalar.anchor, ev->data.scalar.tag, line);

	if (rc)
		return rc;
	if (strlen(text) != ev->data.scalar.length)
		return refuse(b, line, "a NUL character in a text");
	node = xcalloc(1, sizeof(*node));
	node->line = line;
	node->is_plain = ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	node->kind = node->is_plain && !is_key && is_null_text(text) ? NODE_NULL : NODE_SCALAR;
	node->text = xstrdup(text);
	if (is_key)
		rc = check_key(b, in, node);
	if (rc) {
		tree_free(node);
		return rc;
	}
	return place(b, node);
}

static int on_start(struct build *b, enum node_kind kind, const yaml_char_t *anchor,
    const yaml_char_t *tag, int line)
{
	struct node *node;
	int rc = check_decoration(b, anchor, tag, line);

	if (rc)
		return rc;
	if (b->depth == DEPTH_MAX)
		return refuse(b, line, "nested deeper than 16 levels");
	node = xcalloc(1, sizeof(*node));
	node->kind = kind;
	node->line = line;
	rc = place(b, node);
	if (rc)
		return rc;
	b->keys[b->depth] = NULL;
	b->open[b->depth++] = node;
	return 0;
}

static int on_event(struct build *b, const yaml_event_t *ev)
{
	int line = (int)ev->start_mark.line + 1;

	switch (ev->type) {
	case YAML_DOCUMENT_START_EVENT:
		if (b->is_document_over)
			return refuse(b, line, "a second document; one file holds one");
		return 0;
	case YAML_DOCUMENT_END_EVENT:
		b->is_document_over = true;
		return 0;
	case YAML_ALIAS_EVENT:
		return refuse(b, line, "aliases (*…) are not read; write the value out");
	case YAML_SCALAR_EVENT:
		return on_scalar(b, ev, line);
	case YAML_SEQUENCE_START_EVENT:
		return on_start(b, NODE_LIST, ev->data.sequence_start.anchor,
		    ev->data.sequence_start.tag, line);
	case YAML_MAPPING_START_EVENT:
		return on_start(
		    b, NODE_MAP, ev->data.mapping_start.anchor, ev->data.mapping_start.tag, line);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		b->depth--;
		return 0;
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_STREAM_END_EVENT:
		return 0;
	}
	return 0;
}

/* True when the given line (from 0) is indented with a tab. */
static bool is_tab_indented(const struct build *b, size_t line)
{
	const char *at = b->text, *end = b->text + b->n_text;

	for (; line > 0 && at; line--) {
		at = memchr(at, '\n', (size_t)(end - at));
		at = at ? at + 1 : NULL;
	}
	for (; at && at < end && (*at == ' ' || *at == '\t'); at++)
		if (*at == '\t')
			return true;
	return false;
}

/* [::1] in a list: libyaml takes the first colon for a map's. */
static bool is_at_colon(const struct build *b)
{
	size_t at = b->parser.problem_mark.index;

	return at > 0 && at < b->n_text && b->text[at] == ':' && strchr("[, :", b->text[at - 1]);
}

/* What libyaml's words mean to somebody who wrote a cron line or a sentence; "": they say it. */
static const char *hint_of(const yaml_parser_t *p)
{
	if (str_eq(p->context, "while scanning an alias"))
		return "; a value that begins with * must stand in quotes";
	if (str_eq(p->problem, "mapping values are not allowed in this context"))
		return "; a value that has \": \" in it must stand in quotes, and keys of one map "
		       "are indented alike";
	return "";
}

static void refuse_syntax(struct build *b)
{
	const yaml_parser_t *p = &b->parser;
	size_t line = p->problem_mark.line;

	if (is_tab_indented(b, line))
		problem_add(b->problems, b->file, (int)line + 1,
		    "a tab in the indentation; YAML takes only spaces there");
	else if (is_at_colon(b))
		problem_add(b->problems, b->file, (int)line + 1,
		    "an IPv6 address in a list has to stand in quotes, as \"::1\"");
	else
		problem_add(b->problems, b->file, (int)line + 1, "YAML: %s%s%s%s",
		    p->problem ? p->problem : "not understood", p->context ? " " : "",
		    p->context ? p->context : "", hint_of(p));
}

static int run(struct build *b)
{
	for (;;) {
		yaml_event_t ev;
		bool is_end;
		int rc;

		if (!yaml_parser_parse(&b->parser, &ev)) {
			refuse_syntax(b);
			return ERR_INVALID;
		}
		is_end = ev.type == YAML_STREAM_END_EVENT;
		rc = on_event(b, &ev);
		yaml_event_delete(&ev);
		if (rc || is_end)
			return rc;
	}
}

static struct node *parse(const char *file, const struct buf *text, struct problems *problems)
{
	struct build b = {
	    .file = file, .text = buf_str(text), .n_text = text->len, .problems = problems};
	int rc;

	if (!yaml_parser_initialize(&b.parser))
		abort(); /* only when there is no memory */
	yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&b.parser, (const unsigned char *)b.text, b.n_text);
	rc = run(&b);
	yaml_parser_delete(&b.parser);
	if (rc) {
		for (int i = 0; i < DEPTH_MAX; i++)
			tree_free(b.keys[i]);
		tree_free(b.root);
		return NULL;
	}
	if (!b.root) {
		b.root = xcalloc(1, sizeof(*b.root));
		b.root->line = 1;
	}
	return b.root;
}

struct node *tree_parse(const char *file, const char *text, size_t n, struct problems *problems)
{
	struct buf prepared = BUF_INIT(2 * YAML_FILE_MAX_BYTES);
	struct node *root;

	if (check_bytes(file, text, n, problems))
		return NULL;
	yaml_text_prepare(text, n, &prepared);
	root = parse(file, &prepared, problems);
	buf_release(&prepared);
	return root;
}

struct node *tree_read(const char *path, struct problems *problems)
{
	struct buf text = BUF_INIT(YAML_FILE_MAX_BYTES);
	struct error e = {0};
	struct node *root = NULL;

	if (source_read(path, &text, &e))
		problem_add(problems, path, 1, "cannot read %s", e.text);
	else
		root = tree_parse(path, buf_str(&text), text.len, problems);
	buf_release(&text);
	return root;
}
