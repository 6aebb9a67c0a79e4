/* YAML text as a tree with line numbers. It supports what a configuration needs: one document of maps,
 * lists and scalars. It refuses anchors, aliases, tags and merge keys, so the tree's size is bounded by
 * the text's. Thread: any; only tree_read() reads a file. Owns: the caller, with tree_free(). */
#pragma once

#include "config/source.h"

#define YAML_FILE_MAX_BYTES ((size_t)1 << 20)

enum node_kind { NODE_NULL, NODE_SCALAR, NODE_LIST, NODE_MAP };

struct node {
	enum node_kind kind;
	int line;             /* where it starts; a map's value: where its key is */
	bool is_plain;        /* scalar: written without quotes */
	char *text;           /* scalar: UTF-8 without NUL */
	size_t n;             /* list: elements, map: entries */
	struct node **values; /* list and map */
	struct node **keys;   /* map: scalars, no two alike */
};

/* The tree, or NULL after a mistake that prevents one. Mistakes go to `problems` under the name
 * `file`. An empty document is a NODE_NULL of line 1. tree_free(). */
struct node *tree_parse(const char *file, const char *text, size_t n, struct problems *problems);
/* The same for a file, which messages call `named`. A file that cannot be read is a mistake in line 1. */
struct node *tree_read(const char *path, const char *named, struct problems *problems);
void tree_free(struct node *root);
/* The value of map[key], or NULL; also when `map` is NULL or no map. */
const struct node *tree_get(const struct node *map, const char *key);
/* "a map", "a list", "text", "nothing": for messages. */
const char *tree_kind_name(const struct node *v);
