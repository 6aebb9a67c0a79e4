/* The parts of a connection that do not depend on the engine: its statements by their text, the failure that sticks, and
 * notifications. */
#include "db/db_driver.h"

#include "db/packed_lists.h"

enum { BODY_MAX_BYTES = 64 << 20 };

/* ---- opening ---- */

bool db_is_server(const char *path)
{
	return strncmp(path, "postgresql://", 13) == 0 || strncmp(path, "postgres://", 11) == 0;
}

void db_init(struct db *d, const struct db_driver *driver, const char *path)
{
	d->driver = driver;
	d->path = xstrdup(path);
	d->view.db = d;
	d->txn.view = &d->view;
	d->lists = test_lists_new();
	buf_init(&d->scratch, BODY_MAX_BYTES);
}

int db_open(const char *path, enum db_use use, struct db **ret, struct error *e)
{
	return db_open_with_password(path, NULL, use, ret, e);
}

int db_open_with_password(
    const char *path, const struct secret *password, enum db_use use, struct db **ret, struct error *e)
{
	const struct db_driver *driver = db_is_server(path) ? &postgres_driver : &sqlite_driver;
	struct db *d = NULL;
	int rc = driver->open(path, password, use, &d, e);

	if (d)
		d->use = use;
	if (rc) {
		db_close(d);
		d = NULL;
	}
	*ret = d;
	return rc;
}

void db_close(struct db *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < STATEMENT_BUCKETS; i++) {
		while (d->buckets[i]) {
			struct rows *r = d->buckets[i];

			d->buckets[i] = r->next;
			d->driver->finalize(r);
		}
	}
	compressor_free(d->compressor);
	body_bases_free(d->bases);
	test_lists_free(d->lists);
	buf_release(&d->scratch);
	free(d->path);
	d->driver->close(d);
}

const struct view *db_view(struct db *d) { return &d->view; }

struct txn *db_txn(struct db *d) { return &d->txn; }

void db_limit_silence(struct db *d, int max_ms) { d->silence_max_ms = max_ms; }

int db_lock(struct db *d, bool with_others, struct error *e) { return d->driver->lock(d, with_others, e); }

int db_migrate(struct db *d, struct error *e) { return d->driver->migrate(d, e); }

int db_check_version(struct db *d, struct error *e)
{
	return d->driver->check_version ? d->driver->check_version(d, e) : 0;
}

int db_batch_max_ops(const struct db *d) { return d->driver->batch_max_ops; }

bool db_survives_failure(const struct db *d) { return d->driver->survives_failure; }

/* ---- statements ---- */

struct value value_text(const char *s) { return (struct value){.type = s ? VALUE_TEXT : VALUE_NULL_TEXT, .p = s}; }

static struct rows *prepare_once(struct db *d, const char *sql)
{
	struct rows **bucket = &d->buckets[((uintptr_t)sql >> 3) * UINT64_C(0x9E3779B97F4A7C15) >> 57];
	struct rows *r;

	for (r = *bucket; r; r = r->next)
		if (r->sql == sql)
			return r;
	r = d->driver->prepare(d, sql);
	if (!r)
		return d->no_rows;
	r->db = d;
	r->sql = sql;
	r->next = *bucket;
	*bucket = r;
	return r;
}

static struct rows *open_rows(struct db *d, const char *sql, const struct value *values, bool is_static)
{
	struct rows *r;

	if (d->why.code)
		return d->no_rows;
	r = prepare_once(d, sql);
	if (r == d->no_rows)
		return r;
	assert(!r->is_open);
	r->is_awaited = false;
	if (!d->driver->bind(r, values, is_static))
		return d->no_rows;
	r->is_open = true;
	return r;
}

/* A statement that changes rows needs a struct txn. */
static struct rows *open_read(const struct view *v, const char *sql, const struct value *values, bool is_static)
{
	struct rows *r = open_rows(v->db, sql, values, is_static);

	assert(r == v->db->no_rows || !v->db->driver->may_write(r));
	return r;
}

struct rows *db_rows_values(const struct view *v, const char *sql, const struct value *values)
{
	return open_read(v, sql, values, false);
}

struct rows *db_exec_rows_values(struct txn *t, const char *sql, const struct value *values)
{
	return open_rows(t->view->db, sql, values, false);
}

bool view_pipeline_begin(const struct view *v)
{
	if (v->db->driver->pipeline_begin)
		v->db->driver->pipeline_begin(v->db);
	return true;
}

bool view_pipeline_again(const struct view *v)
{
	return v->db->driver->pipeline_again && v->db->driver->pipeline_again(v->db);
}

bool rows_next(struct rows *r)
{
	if (!r->is_open)
		return false;
	if (r->db->driver->step(r)) {
		r->column = 1;
		return true;
	}
	rows_end(r);
	return false;
}

bool rows_are_awaited(const struct rows *r) { return r->is_awaited; }

bool rows_have_failed(const struct rows *r) { return r->db->why.code != 0; }

int rows_next_column(struct rows *r) { return r->column++; }

void rows_end(struct rows *r)
{
	if (!r->is_open)
		return;
	r->db->driver->reset(r);
	r->is_open = false;
}

void db_exec_values(struct txn *t, const char *sql, const struct value *values)
{
	struct db *d = t->view->db;
	struct rows *r;

	if (!d->driver->send) {
		db_exec_count_values(t, sql, values);
		return;
	}
	r = d->why.code ? d->no_rows : prepare_once(d, sql);
	if (r != d->no_rows)
		d->driver->send(r, values);
}

int64_t db_exec_count_values(struct txn *t, const char *sql, const struct value *values)
{
	struct db *d = t->view->db;
	struct rows *r = open_rows(d, sql, values, true);

	while (rows_next(r))
		continue;
	return d->why.code ? 0 : d->driver->changes(d);
}

int64_t db_insert_values(struct txn *t, const char *sql, const char *returning, const struct value *values)
{
	const struct db_driver *driver = t->view->db->driver;

	if (!driver->last_id)
		return db_exec_int_values(t, 0, returning, values);
	return db_exec_count_values(t, sql, values) ? driver->last_id(t) : 0;
}

static int64_t first_int(struct rows *r, int64_t fallback)
{
	int64_t got = fallback;

	if (rows_next(r) && !rows_is_null(r, 0))
		got = rows_int(r, 0);
	rows_end(r);
	return got;
}

int64_t db_int_values(const struct view *v, int64_t fallback, const char *sql, const struct value *values)
{
	return first_int(open_read(v, sql, values, true), fallback);
}

int64_t db_exec_int_values(struct txn *t, int64_t fallback, const char *sql, const struct value *values)
{
	return first_int(open_rows(t->view->db, sql, values, true), fallback);
}

char *db_text_values(const struct view *v, const char *sql, const struct value *values)
{
	struct rows *r = db_rows_values(v, sql, values);
	char *got = rows_next(r) ? rows_dup(r, 0) : NULL;

	rows_end(r);
	return got;
}

int64_t rows_int(const struct rows *r, int column) { return r->db->driver->column_int(r, column); }

double rows_real(const struct rows *r, int column) { return r->db->driver->column_real(r, column); }

int rows_n_columns(const struct rows *r) { return r->db->driver->n_columns(r); }

bool rows_is_null(const struct rows *r, int column) { return r->db->driver->is_null(r, column); }

bool rows_is_blob(const struct rows *r, int column) { return r->db->driver->is_blob(r, column); }

const char *rows_text(const struct rows *r, int column)
{
	const char *s = r->db->driver->column_text(r, column);

	return s ? s : "";
}

char *rows_dup(const struct rows *r, int column) { return xstrdup_or_null(r->db->driver->column_text(r, column)); }

const void *rows_blob(const struct rows *r, int column, size_t *ret_bytes)
{
	return r->db->driver->column_blob(r, column, ret_bytes);
}

/* ---- failures ---- */

static void wait_for_sent(struct db *d)
{
	if (d->driver->wait)
		d->driver->wait(d);
}

int view_status(const struct view *v)
{
	wait_for_sent(v->db);
	return v->db->why.code;
}

const struct error *view_why(const struct view *v) { return &v->db->why; }

int view_fail(const struct view *v, int code, const char *fmt, ...)
{
	struct db *d = v->db;
	char text[sizeof(d->why.text)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	error_set(&d->why, code, "%s", text);
	return d->why.code;
}

void db_forget_failure(struct db *d)
{
	wait_for_sent(d);
	d->why = (struct error){0};
	for (size_t i = 0; i < STATEMENT_BUCKETS; i++)
		for (struct rows *r = d->buckets[i]; r; r = r->next)
			rows_end(r);
}

/* ---- transactions ---- */

int db_script(struct db *d, const char *sql, struct error *e) { return d->driver->script(d, sql, e); }

int db_begin(struct db *d, enum db_use use)
{
	d->driver->run(d, d->driver->begin[use]);
	return d->why.code;
}

int db_commit(struct db *d)
{
	d->driver->run(d, "COMMIT");
	if (!d->why.code)
		body_bases_committed(d->bases);
	return d->why.code;
}

bool db_is_in_transaction(const struct db *d) { return d->driver->is_in_transaction(d); }

static void changes_undone(struct db *d)
{
	body_bases_undone(d->bases);
	if (d->use == DB_WRITER) /* a reader ends each query like this */
		test_lists_undone(d->lists);
}

void db_rollback(struct db *d)
{
	struct error why = d->why;

	db_forget_failure(d);
	if (db_is_in_transaction(d))
		d->driver->run(d, "ROLLBACK");
	changes_undone(d);
	d->why = why;
}

int db_transaction(struct db *d, void (*work)(struct txn *d), struct error *e)
{
	int rc = db_begin(d, DB_WRITER);

	if (!rc) {
		db_turn(d);
		work(&d->txn);
		rc = d->why.code ? d->why.code : db_commit(d);
	}
	if (rc) {
		rc = error_set(e, rc, "%s", d->why.text);
		db_rollback(d);
		db_forget_failure(d);
	}
	return rc;
}

void db_savepoint(struct db *d) { d->driver->run(d, "SAVEPOINT op"); }

void db_savepoint_release(struct db *d) { d->driver->run(d, "RELEASE op"); }

void db_savepoint_undo(struct db *d)
{
	d->driver->run(d, "ROLLBACK TO op");
	changes_undone(d);
	db_savepoint_release(d);
}

/* ---- several daemons on one database ---- */

bool view_is_shared(const struct view *v) { return v->db->driver->turn != NULL; }

int64_t db_turn(struct db *d) { return db_is_shared(d) ? d->driver->turn(d) : clock_wall_ms(); }

int64_t view_now_ms(const struct view *v) { return view_is_shared(v) ? v->db->driver->now_ms(v) : clock_wall_ms(); }

int64_t view_epoch(const struct view *v) { return v->db->epoch; }

void db_set_epoch(struct db *d, int64_t epoch) { d->epoch = epoch; }

enum db_repeat db_may_repeat(const struct db *d) { return d->driver->may_repeat ? d->driver->may_repeat(d) : DB_FINAL; }

/* ---- notes between the daemons ---- */

void db_note(struct txn *t, const char *text)
{
	if (t->view->db->driver->note)
		t->view->db->driver->note(t, text);
}

int db_listen(struct db *d) { return d->driver->listen(d); }

int db_wait_notes(struct db *d, int wake_fd, int64_t ms, void (*on_note)(const char *text, void *owner), void *owner)
{
	return d->why.code ? d->why.code : d->driver->wait_notes(d, wake_fd, ms, on_note, owner);
}

int64_t db_version(struct db *d) { return d->driver->version(d); }

int db_set_sequences(struct db *d, struct error *e)
{
	return d->driver->set_sequences ? d->driver->set_sequences(d, e) : 0;
}

int64_t db_sequence(struct db *d, const char *table) { return d->driver->sequence(d, table); }

void db_set_sequence(struct txn *t, const char *table, int64_t last_id)
{
	t->view->db->driver->set_sequence(t, table, last_id);
}

/* ---- the space ---- */

int64_t db_file_bytes(const struct view *v) { return v->db->driver->file_bytes(v); }

int64_t db_free_bytes(const struct view *v) { return v->db->driver->free_bytes(v); }

bool db_can_shrink(const struct view *v) { return v->db->driver->can_shrink(v); }

bool db_shrink(struct txn *t) { return t->view->db->driver->shrink(t); }

int db_measure(const struct view *v, bool (*go_on)(void *owner), void *owner, struct table_bytes **ret, size_t *ret_n,
    struct error *e)
{
	*ret = NULL;
	*ret_n = 0;
	return v->db->driver->measure(v, go_on, owner, ret, ret_n, e);
}

int db_check(struct db *d, struct error *e) { return d->driver->check(d, e); }

int64_t db_total_changes(const struct db *d) { return d->driver->total_changes(d); }

int db_backup(const struct view *v, const char *path, bool (*go_on)(void *owner), void *owner, int64_t *ret_bytes,
    struct error *e)
{
	return v->db->driver->backup(v, path, go_on, owner, ret_bytes, e);
}

/* ---- packed results ---- */

void db_unpack_list(struct txn *t, int64_t list_id, const int64_t *ids, size_t n)
{
	if (t->view->db->driver->unpack_list)
		t->view->db->driver->unpack_list(t, list_id, ids, n);
}

void db_unpack_job(struct txn *t, int64_t job_id, int64_t first, const struct test_result *tests, size_t n)
{
	if (t->view->db->driver->unpack_job)
		t->view->db->driver->unpack_job(t, job_id, first, tests, n);
}

/* ---- notifications and totals ---- */

void db_notify(struct txn *t, unsigned topics) { t->view->db->topics |= topics; }

unsigned db_drain_topics(struct db *d)
{
	unsigned topics = d->topics;

	d->topics = 0;
	return topics;
}

void db_notify_change(struct txn *t, int64_t change_id)
{
	db_notify(t, STORE_CHANGES);
	touched_add_change(&t->view->db->touched, change_id);
}

void db_notify_job(struct txn *t, int64_t job_id)
{
	db_notify(t, STORE_CHANGES);
	touched_add_job(&t->view->db->touched, job_id);
}

void db_notify_accelerator(struct txn *t, const char *name)
{
	db_notify(t, STORE_CHANGES);
	touched_add_accelerator(&t->view->db->touched, name);
}

struct store_touched *db_touched(struct db *d) { return &d->touched; }

int64_t *db_counts(struct txn *t) { return t->view->db->counts; }

struct compressor *db_compressor(struct txn *t)
{
	struct db *d = t->view->db;

	if (!d->compressor)
		d->compressor = compressor_new(1);
	return d->compressor;
}

struct body_bases **db_body_bases(const struct view *v) { return &v->db->bases; }

struct buf *db_scratch(struct txn *t) { return &t->view->db->scratch; }
