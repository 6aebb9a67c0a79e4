#include "db/copy.h"

#include "db/db_driver.h"
#include "db/key.h"
#include "db/packed_lists.h"
#include "db/schema.h"
#include "model/test_result.h"

enum {
	COLUMNS_MAX = 60,
	KEYS_MAX = 6,
	ROWS_AT_ONCE = 500,
	BATCH_BYTES = 8 << 20,
	TRIES = 2,
	ROW_MAX_BYTES = 256 << 20,
};

/* ---- what is copied: the tables of SQLite; PostgreSQL has the same, and columns of its own ---- */

/* The texts of the statements are their keys, so they live longer than the connections. */
struct copied_table {
	const struct db_table *table;
	int keys[KEYS_MAX]; /* the primary key's columns */
	int n_keys;
	char *first, *next, *at, *insert, *count, *clear;
};

/* A key of a row, kept while other rows are read. */
struct copied_key {
	struct value values[KEYS_MAX + 1];
	char *owned[KEYS_MAX];
};

static void release_key(struct copied_key *k)
{
	for (size_t i = 0; i < KEYS_MAX; i++)
		free(k->owned[i]);
	*k = (struct copied_key){.values = {{.type = VALUE_END}}};
}

/* The key of a row whose columns begin with those of the table, or are the key (columns NULL), as its database stores it. */
static void keep_key(struct copied_key *k, const struct copied_table *t, const struct rows *r, bool is_key_only)
{
	release_key(k);
	for (int i = 0; i < t->n_keys; i++) {
		int column = is_key_only ? i : t->keys[i];
		const struct db_column *c = &t->table->columns[t->keys[i]];
		size_t n;

		if (c->type == DB_INTEGER) {
			k->values[i] = V_INT(rows_int(r, column));
			continue;
		}
		const void *p = rows_blob(r, column, &n);
		k->owned[i] = xcalloc(1, n + 1);
		memcpy(k->owned[i], p ? p : "", n);
		k->values[i] = rows_is_blob(r, column) ? V_BLOB(k->owned[i], n) : V_TEXT(k->owned[i]);
	}
	k->values[t->n_keys] = (struct value){.type = VALUE_END};
}

static void add_names(struct buf *to, const struct copied_table *t, bool is_keys)
{
	int n = is_keys ? t->n_keys : (int)t->table->n_columns;

	for (int i = 0; i < n; i++)
		buf_appendf(to, "%s\"%s\"", i ? ", " : "", t->table->columns[is_keys ? t->keys[i] : i].name);
}

static void add_places(struct buf *to, int n)
{
	for (int i = 1; i <= n; i++)
		buf_appendf(to, "%s?%d", i > 1 ? ", " : "", i);
}

static char *select_text(const struct copied_table *t, bool is_next)
{
	struct buf text = BUF_INIT(65536);

	buf_append_str(&text, "SELECT ");
	add_names(&text, t, false);
	buf_appendf(&text, " FROM \"%s\"", t->table->name);
	if (is_next) {
		buf_append_str(&text, " WHERE (");
		add_names(&text, t, true);
		buf_append_str(&text, ") > (");
		add_places(&text, t->n_keys);
		buf_append_str(&text, ")");
	}
	buf_append_str(&text, " ORDER BY ");
	add_names(&text, t, true);
	buf_appendf(&text, " LIMIT %d", ROWS_AT_ONCE);
	return buf_detach(&text);
}

static int prepare_table(struct copied_table *t, const struct db_table *table, struct error *e)
{
	struct buf text = BUF_INIT(65536);

	*t = (struct copied_table){.table = table};
	for (size_t i = 0; i < table->n_columns; i++)
		if (table->columns[i].key_place > 0 && table->columns[i].key_place <= KEYS_MAX) {
			t->keys[table->columns[i].key_place - 1] = (int)i;
			t->n_keys++;
		}
	if (t->n_keys == 0 || table->n_columns > COLUMNS_MAX)
		return error_set(e, ERR_INVALID, "table %s cannot be copied: it has no primary key", table->name);
	t->first = select_text(t, false);
	t->next = select_text(t, true);
	buf_append_str(&text, "SELECT ");
	add_names(&text, t, true);
	buf_appendf(&text, " FROM \"%s\" ORDER BY ", table->name);
	add_names(&text, t, true);
	buf_append_str(&text, " LIMIT 1 OFFSET ?1");
	t->at = buf_detach(&text);
	buf_init(&text, 65536);
	buf_appendf(&text, "INSERT INTO \"%s\" (", table->name);
	add_names(&text, t, false);
	buf_append_str(&text, ") VALUES (");
	add_places(&text, (int)table->n_columns);
	buf_append_str(&text, ")");
	t->insert = buf_detach(&text);
	t->count = xasprintf("SELECT COUNT(*) FROM \"%s\"", table->name);
	t->clear = xasprintf("DELETE FROM \"%s\"", table->name);
	return 0;
}

/* ---- a row ---- */

struct copied_row {
	struct value values[COLUMNS_MAX + 1];
	char *guids[COLUMNS_MAX];
	struct guid_key guid_keys[COLUMNS_MAX];
	size_t bytes;
};

static void release_row(struct copied_row *row, size_t n)
{
	for (size_t i = 0; i < n; i++)
		FREE_AND_NULL(row->guids[i]);
}

/* Borrows from the row, until its next step. False: the text cannot be in the other database. */
static bool read_row(const struct db_table *t, const struct rows *r, struct copied_row *row)
{
	row->bytes = 0;
	for (size_t i = 0; i < t->n_columns; i++) {
		struct value *v = &row->values[i];
		int column = (int)i;
		size_t n = 0;
		const void *p;

		if (rows_is_null(r, column)) {
			*v = V_NULL;
			continue;
		}
		switch (t->columns[i].type) {
		case DB_INTEGER:
			*v = V_INT(rows_int(r, column));
			break;
		case DB_REAL:
			*v = V_REAL(rows_real(r, column));
			break;
		case DB_GUID:
			row->guids[i] = guid_dup(r, column);
			row->guid_keys[i] = guid_key(row->guids[i]);
			*v = guid_value(&row->guid_keys[i]);
			break;
		case DB_BLOB:
			p = rows_blob(r, column, &n);
			*v = V_BLOB(p ? p : "", n);
			break;
		case DB_TEXT:
			p = rows_text(r, column);
			rows_blob(r, column, &n);
			if (strlen(p) != n || !utf8_is_valid(p, n))
				return false;
			*v = V_TEXT(p);
			break;
		}
		row->bytes += n + 16;
	}
	row->values[t->n_columns] = (struct value){.type = VALUE_END};
	return true;
}

static void hash_row(const struct db_table *t, const struct copied_row *row, struct buf *bytes, struct copy_digest *to)
{
	uint8_t digest[SHA256_BYTES];
	uint64_t lane;

	buf_clear(bytes);
	for (size_t i = 0; i < t->n_columns; i++) {
		const struct value *v = &row->values[i];
		const char *text = v->type == VALUE_GUID ? row->guids[i] : v->p;
		uint64_t n = v->type == VALUE_BLOB                            ? v->n
			     : v->type == VALUE_TEXT || v->type == VALUE_GUID ? strlen(text)
									      : 8;

		if (v->type == VALUE_NULL) {
			buf_append_char(bytes, 0);
			continue;
		}
		buf_append_char(bytes, 1);
		buf_append(bytes, &n, sizeof(n));
		buf_append(bytes,
		    v->type == VALUE_INT    ? (const void *)&v->number
		    : v->type == VALUE_REAL ? (const void *)&v->real
					    : text,
		    n);
	}
	sha256(bytes->data, bytes->len, digest);
	to->n_rows++;
	for (size_t i = 0; i < ARRAY_LEN(to->sum); i++) {
		memcpy(&lane, digest + i * sizeof(lane), sizeof(lane));
		to->sum[i] += lane;
	}
}

const char *copy_digest_text(const struct copy_digest *d, char out[COPY_DIGEST_CHARS + 1])
{
	snprintf(out, COPY_DIGEST_CHARS + 1, "%016llx", (unsigned long long)d->sum[0]);
	return out;
}

/* ---- a table ---- */

static int fail(const struct db_copy *c, struct error *e)
{
	struct db *d = db_status(c->from) ? c->from : c->to;

	return db_status(d) ? error_set(e, db_status(d), "%s", db_why(d)->text) : 0;
}

static void say(const struct db_copy *c, const struct copied_table *t, int what, int64_t n, int64_t total,
    const struct copy_digest *digest)
{
	struct copy_step step = {.table = t->table->name, .n = n, .total = total};

	step.what = what;
	if (digest)
		step.digest = *digest;
	if (c->on_step)
		c->on_step(&step, c->owner);
}

static int64_t count_rows(struct db *d, const struct copied_table *t)
{
	return db_int_values(db_view(d), 0, t->count, VALUES());
}

static struct rows *read_on(struct db *d, const struct copied_table *t, const struct copied_key *after)
{
	return after->values[0].type == VALUE_END ? db_rows_values(db_view(d), t->first, after->values)
						  : db_rows_values(db_view(d), t->next, after->values);
}

static int64_t row_number(const struct copied_table *t, const struct copied_row *row, const char *column)
{
	for (size_t i = 0; i < t->table->n_columns; i++)
		if (str_eq(t->table->columns[i].name, column))
			return row->values[i].number;
	return 0;
}

static const struct value *row_blob(const struct copied_table *t, const struct copied_row *row, const char *column)
{
	for (size_t i = 0; i < t->table->n_columns; i++)
		if (str_eq(t->table->columns[i].name, column))
			return &row->values[i];
	return NULL;
}

/* Packed results have the same as arrays on PostgreSQL. */
static void unpack_row(struct db_copy *c, const struct copied_table *t, const struct copied_row *row)
{
	bool is_list = str_eq(t->table->name, "test_list"), is_job = str_eq(t->table->name, "packed_job");
	struct test_list *list;

	if (!is_list && !is_job)
		return;
	list = test_list_of(db_view(c->from), row_number(t, row, is_list ? "id" : "list_id"));
	if (!list) {
		db_fail(c->from, ERR_CORRUPT, "the list of tests %lld is damaged",
		    (long long)row_number(t, row, is_list ? "id" : "list_id"));
	} else if (is_list) {
		db_unpack_list(db_txn(c->to), list->id, list->ids, list->n);
	} else {
		const struct packed_place place = {row_number(t, row, "job_id"), row_number(t, row, "first"), list->id};
		const struct value *cells = row_blob(t, row, "cells");
		uint8_t *statuses = xmalloc(list->n + 1);
		int64_t *durations = xcalloc(list->n + 1, sizeof(*durations));
		struct test_result *tests = xcalloc(list->n + 1, sizeof(*tests));

		if (!packed_cells_get(cells->p, cells->n, &place, statuses, durations, list->n))
			db_fail(c->from, ERR_CORRUPT, "the packed results of job %lld are damaged",
			    (long long)place.job_id);
		for (size_t i = 0; i < list->n; i++) {
			tests[i].status = statuses[i];
			tests[i].duration_ms = durations[i];
		}
		db_unpack_job(db_txn(c->to), place.job_id, place.first, tests, list->n);
		FREE_ALL(statuses, durations, tests);
	}
	test_list_release(list);
}

/* Copies the next rows in one transaction. *n: of the table's rows, how many are copied. False at the end of the table, or after a failure. */
static bool copy_batch(struct db_copy *c, const struct copied_table *t, struct copied_key *last, int64_t *n)
{
	struct copied_row *row = c->row;
	int64_t n_before = *n;
	size_t bytes = 0;
	struct rows *r;

	if (db_begin(c->to, DB_WRITER))
		return false;
	if (*n == 0)
		db_exec_values(db_txn(c->to), t->clear, VALUES());
	r = read_on(c->from, t, last);
	while (bytes < BATCH_BYTES && !db_status(c->to) && !db_status(c->from) && rows_next(r)) {
		if (read_row(t->table, r, row)) {
			db_exec_values(db_txn(c->to), t->insert, row->values);
			unpack_row(c, t, row);
		} else {
			db_fail(c->from, ERR_INVALID, "a text is not UTF-8, or has a NUL character");
		}
		bytes += row->bytes;
		++*n;
		keep_key(last, t, r, false);
		release_row(row, t->table->n_columns);
	}
	rows_end(r);
	db_exec(db_txn(c->to), "UPDATE unfinished_copy SET n = ?2 WHERE name = ?1", V_TEXT(t->table->name), V_INT(*n));
	if (db_status(c->from) || db_status(c->to) || db_commit(c->to)) {
		db_rollback(c->to);
		return false;
	}
	return *n > n_before;
}

static int copy_rows(struct db_copy *c, const struct copied_table *t, int64_t total, struct error *e)
{
	int64_t n = db_int(c->to, 0, "SELECT n FROM unfinished_copy WHERE name = ?1", V_TEXT(t->table->name));
	struct copied_key last = {.values = {{.type = VALUE_END}}};
	struct error why = {0};
	struct rows *r;

	if (n > 0) {
		r = db_rows_values(db_view(c->from), t->at, VALUES(V_INT(n - 1)));
		if (rows_next(r))
			keep_key(&last, t, r, true);
		else
			n = 0; /* it has fewer rows than before: from its beginning */
		rows_end(r);
	}
	say(c, t, COPY_WRITES, n, total, NULL);
	while (copy_batch(c, t, &last, &n))
		say(c, t, COPY_WRITES, n, total, NULL);
	release_key(&last);
	if (!fail(c, &why))
		return 0;
	return error_set(e, why.code, "table %s, row %lld: %s", t->table->name, (long long)n, why.text);
}

static int digest_table(struct db_copy *c, struct db *d, const struct copied_table *t, int64_t total,
    struct copy_digest *ret, struct error *e)
{
	struct copied_row *row = c->row;
	struct copied_key last = {.values = {{.type = VALUE_END}}};
	struct buf bytes = BUF_INIT(ROW_MAX_BYTES);
	int64_t n;

	*ret = (struct copy_digest){0};
	do {
		struct rows *r = read_on(d, t, &last);

		n = ret->n_rows;
		while (rows_next(r)) {
			if (!read_row(t->table, r, row))
				db_fail(d, ERR_INVALID, "a text is not UTF-8, or has a NUL character");
			else
				hash_row(t->table, row, &bytes, ret);
			keep_key(&last, t, r, false);
			release_row(row, t->table->n_columns);
		}
		rows_end(r);
		say(c, t, COPY_COMPARES, ret->n_rows, total, NULL);
	} while (ret->n_rows > n && !db_status(d));
	release_key(&last);
	buf_release(&bytes);
	return fail(c, e);
}

/* Copies and compares. A table that changed since a part of it was copied is copied again. */
static int copy_table(struct db_copy *c, const struct copied_table *t, struct error *e)
{
	struct copy_digest from = {0}, to = {0};
	int rc = 0;

	for (int i = 0; i < TRIES; i++) {
		int64_t total = count_rows(c->from, t);

		if (i > 0) {
			say(c, t, COPY_AGAIN, 0, total, NULL);
			db_exec(
			    db_txn(c->to), "UPDATE unfinished_copy SET n = 0 WHERE name = ?1", V_TEXT(t->table->name));
		}
		rc = copy_rows(c, t, total, e);
		if (!rc)
			rc = digest_table(c, c->from, t, total, &from, e);
		if (!rc)
			rc = digest_table(c, c->to, t, total, &to, e);
		if (rc || memcmp(&from, &to, sizeof(from)) == 0)
			break;
	}
	if (rc)
		return rc;
	if (memcmp(&from, &to, sizeof(from)) != 0)
		return error_set(e, ERR_CORRUPT, "table %s differs after it was copied: %lld rows in %s, %lld in %s",
		    t->table->name, (long long)from.n_rows, c->from->path, (long long)to.n_rows, c->to->path);
	say(c, t, COPY_IS_EQUAL, from.n_rows, from.n_rows, &from);
	c->n_tables++;
	c->n_rows += from.n_rows;
	return 0;
}

/* ---- the whole ---- */

static const char *const NOT_COPIED[] = {"unfinished_copy", "log", "log_piece", "log_object", NULL};

static int find_tables(struct db_copy *c, struct error *e)
{
	struct db *sqlite = c->from->driver == &sqlite_driver ? c->from : c->to;
	size_t n = 0;
	int rc = db_tables(sqlite, &c->tables, &n, e);

	c->copied = xcalloc(n + 1, sizeof(*c->copied));
	c->row = xcalloc(1, sizeof(*c->row));
	for (size_t i = 0; i < n && !rc; i++)
		if (!strv_contains(NOT_COPIED, c->tables[i].name))
			rc = prepare_table(&c->copied[c->n++], &c->tables[i], e);
	return rc;
}

void db_copy_release(struct db_copy *c)
{
	for (size_t i = 0; i < c->n; i++) {
		struct copied_table *t = &c->copied[i];

		FREE_ALL(t->first, t->next, t->at, t->insert, t->count, t->clear);
	}
	FREE_ALL(c->copied, c->row);
	db_tables_free(c->tables);
	c->copied = NULL;
	c->tables = NULL;
	c->n = 0;
}

/* Calls work() for each table, until it fails. */
static int each_table(
    struct db_copy *c, int (*work)(struct db_copy *c, const struct copied_table *t, struct error *e), struct error *e)
{
	int rc = 0;

	for (size_t i = 0; i < c->n && !rc; i++)
		rc = work(c, &c->copied[i], e);
	return rc;
}

static int check_is_empty(struct db_copy *c, const struct copied_table *t, struct error *e)
{
	/* setting: the migrations write it, too */
	int64_t n = str_eq(t->table->name, "setting") ? 0 : count_rows(c->to, t);

	if (n)
		return error_set(e, ERR_EXISTS, "%s: the table %s has rows already; give an empty database",
		    c->to->path, t->table->name);
	return fail(c, e);
}

static int mark_table(struct db_copy *c, const struct copied_table *t, struct error *e)
{
	db_exec(db_txn(c->to), "INSERT INTO unfinished_copy (name, n) VALUES (?1, 0)", V_TEXT(t->table->name));
	return fail(c, e);
}

bool db_copy_is_unfinished(const struct view *d) { return db_has(d, "SELECT 1 FROM unfinished_copy LIMIT 1"); }

int db_copy_begin(struct db_copy *c, struct error *e)
{
	int64_t version = db_version(c->from);
	int rc = fail(c, e);

	if (!rc && version != SCHEMA_VERSION)
		return error_set(e, ERR_INVALID,
		    "%s: has schema version %lld, and this program copies version %d: start its outpostd once first",
		    c->from->path, (long long)version, SCHEMA_VERSION);
	if (!rc && db_copy_is_unfinished(db_view(c->from)))
		return error_set(e, ERR_INVALID, "%s: the database is an incomplete copy itself", c->from->path);
	if (!rc)
		rc = db_migrate(c->to, e);
	if (!rc)
		rc = find_tables(c, e);
	if (rc)
		return rc;
	c->goes_on = db_copy_is_unfinished(db_view(c->to));
	if (c->goes_on)
		return fail(c, e);
	rc = each_table(c, check_is_empty, e);
	if (!rc && db_begin(c->to, DB_WRITER) == 0)
		rc = each_table(c, mark_table, e);
	if (!rc && (db_status(c->to) || db_commit(c->to)))
		rc = fail(c, e);
	if (rc)
		db_rollback(c->to);
	return rc;
}

int db_copy_tables(struct db_copy *c, struct error *e) { return each_table(c, copy_table, e); }

static int copy_sequence(struct db_copy *c, const struct copied_table *t, struct error *e)
{
	int64_t last = t->table->has_sequence ? db_sequence(c->from, t->table->name) : 0;

	if (last > 0)
		db_set_sequence(db_txn(c->to), t->table->name, last);
	return fail(c, e);
}

static void remove_marks(struct txn *t) { db_exec(t, "DELETE FROM unfinished_copy"); }

int db_copy_end(struct db_copy *c, struct error *e)
{
	int rc = db_set_sequences(c->to, e);

	if (!rc)
		rc = each_table(c, copy_sequence, e);
	return rc ? rc : db_transaction(c->to, remove_marks, e);
}
