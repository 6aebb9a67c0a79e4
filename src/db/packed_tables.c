#include "db/packed_tables.h"

/* ---- a table and its cursors ---- */

static struct packed_table *table_of(const struct packed_cursor *c) { return (struct packed_table *)c->base.pVtab; }

static int packed_fail(struct packed_cursor *c, int rc)
{
	struct packed_table *t = table_of(c);

	sqlite3_free(t->base.zErrMsg);
	t->base.zErrMsg = sqlite3_mprintf("%s", sqlite3_errmsg(t->db->handle));
	return rc;
}

static int packed_fail_damaged(struct packed_cursor *c, int64_t job_id)
{
	struct packed_table *t = table_of(c);

	sqlite3_free(t->base.zErrMsg);
	t->base.zErrMsg = sqlite3_mprintf("the packed results of job %lld are damaged", (long long)job_id);
	return SQLITE_FORMAT;
}

int packed_connect(sqlite3 *handle, void *db, const char *columns, sqlite3_vtab **ret)
{
	struct packed_table *t;
	int rc = sqlite3_declare_vtab(handle, columns);

	if (rc != SQLITE_OK)
		return rc;
	sqlite3_vtab_config(handle, SQLITE_VTAB_INNOCUOUS);
	t = xcalloc(1, sizeof(*t));
	t->db = db;
	*ret = &t->base;
	return SQLITE_OK;
}

int packed_statement_open(struct packed_cursor *c, const char *const *texts, int which, int64_t id,
    const char *accelerator, int64_t id_2, sqlite3_stmt **ret)
{
	sqlite3_stmt **s = &c->statements[which];
	int at = 1;

	if (!*s) {
		int rc =
		    sqlite3_prepare_v3(table_of(c)->db->handle, texts[which], -1, SQLITE_PREPARE_PERSISTENT, s, NULL);

		if (rc != SQLITE_OK)
			return packed_fail(c, rc);
	}
	sqlite3_reset(*s);
	sqlite3_bind_int64(*s, at++, id);
	if (accelerator)
		sqlite3_bind_text(*s, at++, accelerator, -1, SQLITE_TRANSIENT);
	if (id_2 >= 0)
		sqlite3_bind_int64(*s, at, id_2);
	*ret = *s;
	return SQLITE_OK;
}

int packed_statement_step(struct packed_cursor *c, sqlite3_stmt *s, bool *ret_has)
{
	int rc = sqlite3_step(s);

	*ret_has = rc == SQLITE_ROW;
	if (rc == SQLITE_ROW)
		return SQLITE_OK;
	sqlite3_reset(s);
	return rc == SQLITE_DONE ? SQLITE_OK : packed_fail(c, rc);
}

int packed_cursor_open(sqlite3_vtab *table, sqlite3_vtab_cursor **ret, size_t bytes)
{
	struct packed_table *t = (struct packed_table *)table;
	struct packed_cursor *c = t->idle;

	if (c)
		t->idle = c->next_idle;
	else
		c = xcalloc(1, bytes);
	*ret = &c->base;
	return SQLITE_OK;
}

void packed_cursor_close(struct packed_cursor *c)
{
	struct packed_table *t = table_of(c);

	for (size_t i = 0; i < N_STATEMENTS_MAX; i++)
		sqlite3_reset(c->statements[i]);
	c->next_idle = t->idle;
	t->idle = c;
}

int packed_disconnect(sqlite3_vtab *table)
{
	struct packed_table *t = (struct packed_table *)table;

	for (struct packed_cursor *c = t->idle, *next; c; c = next) {
		next = c->next_idle;
		for (size_t i = 0; i < N_STATEMENTS_MAX; i++)
			sqlite3_finalize(c->statements[i]);
		free(c);
	}
	free(t);
	return SQLITE_OK;
}

int packed_plan_find(const sqlite3_index_info *info, int column, int op)
{
	for (int i = 0; i < info->nConstraint; i++) {
		const struct sqlite3_index_constraint *c = &info->aConstraint[i];

		if (c->iColumn == column && c->op == op && c->usable)
			return i;
	}
	return -1;
}

void packed_plan_use(sqlite3_index_info *info, int i, int *n) { info->aConstraintUsage[i].argvIndex = ++*n; }

/* ---- the packed results of one part of a job ---- */

void packed_part_release(struct packed_part *p)
{
	test_list_release(p->list);
	free(p->statuses);
	free(p->durations);
	*p = (struct packed_part){.list = NULL};
}

bool packed_part_get(struct test_list *list, const struct packed_place *place, int64_t n, const void *cells,
    size_t bytes, bool has_durations, struct packed_part *ret)
{
	*ret = (struct packed_part){.place = *place, .list = list};
	if (!ret->list || (int64_t)ret->list->n != n)
		return false;
	ret->statuses = xmalloc(ret->list->n);
	if (has_durations)
		ret->durations = xcalloc(ret->list->n, sizeof(*ret->durations));
	return packed_cells_get(cells, bytes, place, ret->statuses, ret->durations, ret->list->n);
}

int packed_part_read(
    struct packed_cursor *c, sqlite3_stmt *s, int at, int64_t job_id, bool has_durations, struct packed_part *ret)
{
	struct packed_place place = {job_id, sqlite3_column_int64(s, at), sqlite3_column_int64(s, at + 2)};

	return packed_part_get(test_list_of(&table_of(c)->db->db.view, place.list_id), &place,
		   sqlite3_column_int64(s, at + 1), sqlite3_column_blob(s, at + 3),
		   (size_t)sqlite3_column_bytes(s, at + 3), has_durations, ret)
		   ? SQLITE_OK
		   : packed_fail_damaged(c, job_id);
}

void packed_status_result(sqlite3_context *out, uint8_t status)
{
	sqlite3_result_text(out, test_status_name((enum test_status)status), -1, SQLITE_STATIC);
}

/* More than the tests of any CI. A function, so that a test replaces it. */
size_t packed_cells_at_once(void) { return (size_t)1 << 19; }

int packed_tables_add(struct sqlite *d, struct error *e)
{
	int rc;

	rc = sqlite3_create_module(d->handle, "job_test", &packed_job_test, d);
	if (rc == SQLITE_OK)
		rc = sqlite3_create_module(d->handle, "cell", &packed_cell, d);
	return rc == SQLITE_OK ? 0
			       : error_set(e, db_code_of_sqlite(rc), "%s: %s", d->db.path, sqlite3_errmsg(d->handle));
}
