/* One table per map of a file: its rows drive reading, the messages, the nearest-key suggestions, and the test that
 * compares the tables with the reference in docs/.
 *
 * Thread: the one that reads. Readers open no other file: the files that a value names are read later. Owns: the
 * target owns the values that a reader allocates. */
#pragma once

#include "config/check.h"
#include "config/source.h"
#include "config/tree.h"

struct field;
/* Reads `v` into `target` (the struct of the table plus the row's offset). Reports a mistake and
 * leaves the default there. */
typedef void field_read_fn(struct reader *r, const struct field *f, const struct node *v, void *target);

struct choice { /* ends with name NULL */
	const char *name;
	int value;
};

enum presence { OPTIONAL, REQUIRED };

struct field {
	const char *key; /* NULL ends the table */
	field_read_fn *read;
	enum presence presence;
	size_t offset;
	check_fn *check;              /* text and texts: the check of an element */
	int64_t min, max;             /* numbers, durations in ms, bytes of a text; list length */
	const struct choice *choices; /* field_choice */
	const struct mapping *map;    /* field_map: filled into `offset` as base */
};

struct mapping {
	const char *path; /* dotted, "" for the file's outermost map: for messages and docs */
	const struct field *fields;
};

/* A mapping's initializer: its path, and then its fields, each in braces. */
#define MAPPING(path, ...)                                                                                             \
	{                                                                                                              \
		path, (const struct field[])                                                                           \
		{                                                                                                      \
			__VA_ARGS__, { .key = NULL }                                                                   \
		}                                                                                                      \
	}

/* For the limits and defaults of durations, in ms, and of paths. */
#define SECONDS(n)   (INT64_C(1000) * (n))
#define MINUTES(n)   (INT64_C(60000) * (n))
#define HOURS(n)     (INT64_C(3600000) * (n))
#define DAYS(n)      (INT64_C(86400000) * (n))
#define PATH_MAX_LEN 4096

/* The words that several files have. */
extern const struct choice LOG_LEVELS[], LOG_FORMATS[], VISIBILITIES[];

/* A file that outpost.yml names, kept with the place that names it. */
struct file_ref {
	char *path; /* as written; NULL: not given. free() */
	int line;
};

/* Reads a map by its table, and reports unknown and missing keys. A NODE_NULL is an empty map. */
void read_mapping(struct reader *r, const struct mapping *m, const struct node *v, void *base);
/* The full name of a key: "github.app_id". Returns out; the macro returns memory of the surrounding block. */
const char *field_name(const struct reader *r, const struct field *f, char out[SHOWN_BYTES]);
#define FIELD_NAME(r, f) field_name(r, f, (char[SHOWN_BYTES]){0})
/* Adds "KEY must be WHAT, not KIND". */
void refuse_kind(struct reader *r, const struct field *f, const struct node *v, const char *what);
/* True for a value of this kind, a list or a map, and for nothing at all; else reports the mistake. */
bool expect_kind(struct reader *r, const struct field *f, const struct node *v, enum node_kind kind);

field_read_fn field_text;      /* char *, owned */
field_read_fn field_texts;     /* char **, NULL-terminated, owned */
field_read_fn field_integer;   /* int */
field_read_fn field_integer64; /* int64_t */
field_read_fn field_duration;  /* int64_t, milliseconds: 30s */
field_read_fn field_size;      /* int64_t, bytes: 64MiB */
field_read_fn field_bool;      /* bool */
field_read_fn field_choice;    /* an enum, that is int */
field_read_fn field_file;      /* struct file_ref */
field_read_fn field_networks;  /* struct network_list */
field_read_fn field_map;
