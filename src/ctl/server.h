/* Requests to the daemon over its control socket, and its answers as aligned tables. Only `store copy` opens a
 * database. Thread: the only one of outpostctl. */
#pragma once

#include "ctl/command.h"

/* ---- tables: columns as wide as their content, on a terminal with a dim heading and coloured states. On a
 * terminal that is too narrow the last column, which holds sentences, moves below its row, and the widest
 * columns are cut ---- */

enum { LIST_COLUMNS_MAX = 16 };
struct table;

/* headings: NULL-terminated; borrowed until table_print(). */
struct table *table_new(const char *const *headings);
/* Adds one cell; cells fill the table row by row. Copies the text without its control characters.
 * NULL adds an empty cell. */
void table_add(struct table *t, const char *text);
/* Adds AGE(), or an empty cell without a time. */
void table_add_age(struct table *t, const json_t *obj, const char *key);
void table_add_int(struct table *t, int64_t n);
/* Prints the table on stdout, or `empty` when it has no row, and frees it. */
void table_print(struct table *t, const struct ctl *ctl, const char *empty);

enum { AGE_BYTES = 32 };
/* "3 min ago" for the RFC 3339 time obj[key]; `missing` if there is no time. AGE() returns memory of the surrounding
 * block. */
const char *age_text(const json_t *obj, const char *key, const char *missing, char out[AGE_BYTES]);
#define AGE(obj, key, missing) age_text(obj, key, missing, (char[AGE_BYTES]){0})

/* ---- requests ---- */

/* Sends one request and waits for the answer. body may be NULL; the call frees its reference.
 * Returns EXIT_DONE and a new reference in *ret, or EXIT_FAILED after explaining why on stderr. */
int server_ask(const struct ctl *ctl, const char *method, const char *path, json_t *body, json_t **ret);
/* The same. With --json it also prints the answer and sets *ret to NULL, so the caller prints text
 * only where *ret is set. */
int server_show(const struct ctl *ctl, const char *method, const char *path, json_t *body, json_t **ret);
/* Prints v as indented JSON on stdout and drops the reference. Returns EXIT_DONE. */
int server_print_json(json_t *v);

/* A list of the service as a table, or as JSON. */
struct server_list {
	const char *key;                            /* the member of the answer that holds the rows */
	const char *headings[LIST_COLUMNS_MAX + 1]; /* as table_new() */
	/* Adds the cells of one row. */
	void (*add_row)(struct table *t, const json_t *row);
	const char *empty; /* printed when there is no row */
};

/* Prints the rows of an answer as a table. */
void server_print_rows(const struct ctl *ctl, const json_t *answer, const struct server_list *list);
/* Requests the list from path and prints it. Returns the exit code. */
int server_print_list(const struct ctl *ctl, const char *path, const struct server_list *list);
