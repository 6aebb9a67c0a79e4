/* Builds a tree from libyaml's events. It refuses while reading, not afterwards, whatever could make
 * a small text large or slow: aliases, depth, huge maps. */
#include "config/tree.h"

#include <yaml.h>

#include "config/source.h"

enum { DEPTH_MAX = 16, NODES_MAX = 50000, MAP_ENTRIES_MAX = 1000 };

struct build {
	const char *file, *text;
	size_t n_text;
	struct problems *problems;
	yaml_parser_t parser;
	size_t n_nodes;
	struct node *open[DEPTH_MAX]; /* the open collections, outermost first */
	int depth;
	struct node *keys[DEPTH_MAX]; /* of each open map: the key whose value comes next */
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
	FREE_ALL(root->values, root->keys, root->text, root);
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
	static const char *const names[] = {
	    [NODE_NULL] = "nothing", [NODE_SCALAR] = "text", [NODE_LIST] = "a list", [NODE_MAP] = "a map"};

	return names[v->kind];
}

static int refuse_yaml(struct build *b, int line, const char *what)
{
	problem_add(b->problems, b->file, line, "%s", what);
	return ERR_INVALID;
}

/* Puts a finished scalar, or a collection that begins, into the open collection. */
static int place_node(struct build *b, struct node *node)
{
	struct node *in = b->depth ? b->open[b->depth - 1] : NULL;

	if (!in) {
		b->root = node;
		return 0;
	}
	if (in->kind == NODE_MAP && !b->keys[b->depth - 1]) {
		b->keys[b->depth - 1] = node;
		if (node->kind != NODE_SCALAR)
			return refuse_yaml(b, node->line, "a key must be a text");
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

static int check_decoration(struct build *b, const yaml_char_t *anchor, const yaml_char_t *tag, int line)
{
	if (anchor)
		return refuse_yaml(b, line, "anchors (&…) are not supported; write the value");
	if (tag)
		return refuse_yaml(b, line, "tags (!…) are not supported; write the plain value");
	if (++b->n_nodes > NODES_MAX)
		return refuse_yaml(b, line, "more than 50000 values in one file");
	return 0;
}

static int on_scalar(struct build *b, const yaml_event_t *ev, int line)
{
	static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
	const char *text = (const char *)ev->data.scalar.value;
	struct node *node, *in = b->depth ? b->open[b->depth - 1] : NULL;
	bool is_key = in && in->kind == NODE_MAP && !b->keys[b->depth - 1];
	int rc = check_decoration(b, ev->data.scalar.anchor, ev->data.scalar.tag, line);

	if (rc)
		return rc;
	if (strlen(text) != ev->data.scalar.length)
		return refuse_yaml(b, line, "a NUL character in a text");
	/* Reports a duplicate key and reads on, to find the other mistakes. */
	for (size_t i = 0; is_key && i < in->n; i++)
		if (str_eq(in->keys[i]->text, text)) {
			problem_add(b->problems, b->file, line, "key %s is given twice; the first is in line %d",
			    QUOTED(text), in->keys[i]->line);
			break;
		}
	if (is_key && in->n >= MAP_ENTRIES_MAX)
		return refuse_yaml(b, line, "a map of more than 1000 keys");
	node = xcalloc(1, sizeof(*node));
	node->line = line;
	node->is_plain = ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
	node->kind = node->is_plain && !is_key && strv_contains(nulls, text) ? NODE_NULL : NODE_SCALAR;
	node->text = xstrdup(text);
	return place_node(b, node);
}

static int on_collection(
    struct build *b, enum node_kind kind, const yaml_char_t *anchor, const yaml_char_t *tag, int line)
{
	struct node *node;
	int rc = check_decoration(b, anchor, tag, line);

	if (rc)
		return rc;
	if (b->depth == DEPTH_MAX)
		return refuse_yaml(b, line, "nested deeper than 16 levels");
	node = xcalloc(1, sizeof(*node));
	node->kind = kind;
	node->line = line;
	rc = place_node(b, node);
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
			return refuse_yaml(b, line, "a second document; one file holds one");
		return 0;
	case YAML_DOCUMENT_END_EVENT:
		b->is_document_over = true;
		return 0;
	case YAML_ALIAS_EVENT:
		return refuse_yaml(b, line, "aliases (*…) are not supported; write the value");
	case YAML_SCALAR_EVENT:
		return on_scalar(b, ev, line);
	case YAML_SEQUENCE_START_EVENT:
		return on_collection(b, NODE_LIST, ev->data.sequence_start.anchor, ev->data.sequence_start.tag, line);
	case YAML_MAPPING_START_EVENT:
		return on_collection(b, NODE_MAP, ev->data.mapping_start.anchor, ev->data.mapping_start.tag, line);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		b->depth--;
		return 0;
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_STREAM_END_EVENT:
		break;
	}
	return 0;
}

/* Explains libyaml's message to the author of a cron line, an address or a sentence. */
static int refuse_syntax(struct build *b)
{
	const yaml_parser_t *p = &b->parser;
	const char *at = b->text, *end = b->text + b->n_text, *hint = "";
	size_t index = p->problem_mark.index;
	int line = (int)p->problem_mark.line + 1;

	for (int i = 1; i < line && at; i++) {
		at = memchr(at, '\n', (size_t)(end - at));
		at = at ? at + 1 : NULL;
	}
	while (at && at < end && *at == ' ')
		at++;
	if (at && at < end && *at == '\t')
		return refuse_yaml(b, line, "a tab in the indentation; YAML allows only spaces there");
	/* In a list, libyaml reads the first colon of [::1] as a map's. */
	if (index > 0 && index < b->n_text && b->text[index] == ':' && strchr("[, :", b->text[index - 1]))
		return refuse_yaml(b, line, "put an IPv6 address in a list in quotes, as \"::1\"");
	if (str_eq(p->context, "while scanning an alias"))
		hint = "; put a value that begins with * in quotes";
	else if (str_eq(p->problem, "mapping values are not allowed in this context"))
		hint = "; put a value with \": \" in it in quotes, and indent the keys of one map alike";
	problem_add(b->problems, b->file, line, "YAML: %s%s%s%s", p->problem ? p->problem : "not understood",
	    p->context ? " " : "", p->context ? p->context : "", hint);
	return ERR_INVALID;
}

static struct node *parse_yaml(const char *file, const struct buf *text, struct problems *problems)
{
	struct build b = {.file = file, .text = buf_str(text), .n_text = text->len, .problems = problems};
	bool is_end = false;
	int rc = 0;

	if (!yaml_parser_initialize(&b.parser))
		abort(); /* it fails only without memory */
	yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&b.parser, (const unsigned char *)b.text, b.n_text);
	while (!rc && !is_end) {
		yaml_event_t ev;

		if (!yaml_parser_parse(&b.parser, &ev)) {
			rc = refuse_syntax(&b);
			break;
		}
		is_end = ev.type == YAML_STREAM_END_EVENT;
		rc = on_event(&b, &ev);
		yaml_event_delete(&ev);
	}
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

/* The length of the address in a line `listen: [::1]:8080`; 0: the line has none. */
static size_t bracketed_listen(const char *line, size_t *ret_start)
{
	static const char key[] = "listen:";
	size_t i = sizeof(key) - 1;

	if (!str_has_prefix(line, key))
		return 0;
	i += strspn(line + i, " ");
	*ret_start = i;
	if (line[i] != '[')
		return 0;
	i++;
	i += strspn(line + i, "0123456789abcdefABCDEF:.");
	if (line[i] != ']' || line[i + 1] != ':')
		return 0;
	i += 2;
	size_t n_digits = strspn(line + i, "0123456789");
	/* the end of the text counts as a blank here */
	return n_digits && strchr(" \r\n", line[i + n_digits]) ? i + n_digits - *ret_start : 0;
}

/* Appends the text without a byte order mark, and quotes the address in a line
 * `listen: [::1]:8080`, which is not YAML without quotes. Line numbers stay the same. */
static void prepare_text(const char *text, size_t n, struct buf *out)
{
	static const char mark[] = "\xef\xbb\xbf";
	struct buf whole = BUF_INIT(n);
	const char *at;

	if (n >= sizeof(mark) - 1 && memcmp(text, mark, sizeof(mark) - 1) == 0) {
		text += sizeof(mark) - 1;
		n -= sizeof(mark) - 1;
	}
	buf_append(&whole, text, n);
	for (at = buf_str(&whole); *at;) {
		size_t n_line = strcspn(at, "\n"), start;
		size_t n_address = bracketed_listen(at, &start);

		n_line += at[n_line] == '\n';
		if (n_address) {
			buf_append(out, at, start);
			buf_appendf(out, "\"%.*s\"", (int)n_address, at + start);
			start += n_address;
			buf_append(out, at + start, n_line - start);
		} else {
			buf_append(out, at, n_line);
		}
		at += n_line;
	}
	buf_release(&whole);
}

struct node *tree_parse(const char *file, const char *text, size_t n, struct problems *problems)
{
	struct buf prepared = BUF_INIT(2 * YAML_FILE_MAX_BYTES);
	const char *start = text;
	int line = 1;

	if (n > YAML_FILE_MAX_BYTES) {
		problem_add(problems, file, 1, "larger than %zu bytes", YAML_FILE_MAX_BYTES);
		return NULL;
	}
	/* libyaml reports no line for these mistakes. */
	for (size_t i = 0; i <= n; i++) {
		unsigned char c = i < n ? (unsigned char)text[i] : '\n';

		if (c == '\n' && !utf8_is_valid(start, (size_t)(text + i - start))) {
			problem_add(problems, file, line, "this line is not UTF-8");
			return NULL;
		}
		if ((c < 0x20 && c != '\n' && c != '\t' && c != '\r') || c == 0x7f) {
			problem_add(problems, file, line, "a control byte (0x%02x) in the file", c);
			return NULL;
		}
		if (c == '\n') {
			start = text + i + 1;
			line++;
		}
	}
	prepare_text(text, n, &prepared);
	struct node *root = parse_yaml(file, &prepared, problems);
	buf_release(&prepared);
	return root;
}

struct node *tree_read(const char *path, const char *named, struct problems *problems)
{
	struct buf text = BUF_INIT(YAML_FILE_MAX_BYTES);
	struct error e = {0};
	struct node *root = NULL;

	if (source_read(path, &text, &e))
		problem_add(problems, named, 1, "cannot read %s", e.text);
	else
		root = tree_parse(named, buf_str(&text), text.len, problems);
	buf_release(&text);
	return root;
}
