/* Statements on PostgreSQL, and the engine's table. The server sends each result as a whole, as text. */
#include "db/db_postgres.h"

#include "db/key.h"
#include "db/postgres_text.h"
#include "model/test_result.h"

enum { TYPE_UNKNOWN = 0, TYPE_BOOL = 16, TYPE_BYTEA = 17, TYPE_INT8 = 20, TYPE_TEXT = 25, TYPE_FLOAT8 = 701 };
enum { TYPE_INT2 = 21, TYPE_INT4 = 23, TYPE_INT2_ARRAY = 1005, TYPE_INT4_ARRAY = 1007, TYPE_INT8_ARRAY = 1016 };

/* ---- statements ---- */

static struct postgres_rows *statement_of(const struct rows *r) { return (struct postgres_rows *)r; }

static struct rows *postgres_prepare(struct db *d, const char *sql)
{
	struct postgres_rows *r = xcalloc(1, sizeof(*r));

	(void)d;
	r->text = postgres_text(sql);
	return &r->rows;
}

/* The values as libpq wants them. */
struct parameters {
	int n;
	unsigned types[PARAMETERS_MAX];
	const char *texts[PARAMETERS_MAX];
	int bytes[PARAMETERS_MAX];
	int is_binary[PARAMETERS_MAX];
	char numbers[PARAMETERS_MAX][32];
};

/* The server refuses a text that is not UTF-8, and SQLite does not. */
static const char *text_of_value(struct arena *memory, const char *text)
{
	char *repaired, *copy;

	if (utf8_is_valid(text, strlen(text)))
		return text;
	repaired = utf8_repair(text);
	copy = arena_strdup(memory, repaired);
	free(repaired);
	return copy;
}

static void parameter_set(struct parameters *p, const struct value *v, struct arena *memory)
{
	int i = p->n++;

	p->texts[i] = NULL;
	p->bytes[i] = p->is_binary[i] = 0;
	p->types[i] = TYPE_UNKNOWN;
	switch (v->type) {
	case VALUE_INT:
		snprintf(p->numbers[i], sizeof(p->numbers[i]), "%lld", (long long)v->number);
		p->texts[i] = p->numbers[i];
		/* fallthrough */
	case VALUE_NULL_INT:
		p->types[i] = TYPE_INT8;
		break;
	case VALUE_REAL:
		snprintf(p->numbers[i], sizeof(p->numbers[i]), "%.17g", v->real);
		p->texts[i] = p->numbers[i];
		p->types[i] = TYPE_FLOAT8;
		break;
	case VALUE_TEXT:
		p->texts[i] = text_of_value(memory, v->p);
		/* fallthrough */
	case VALUE_NULL_TEXT:
		p->types[i] = TYPE_TEXT;
		break;
	case VALUE_GUID:
		p->texts[i] = ((const struct guid_key *)v->p)->text;
		p->types[i] = TYPE_TEXT;
		break;
	case VALUE_BLOB:
		p->texts[i] = v->p; /* NULL is SQL's NULL, as in SQLite */
		p->bytes[i] = (int)v->n;
		p->is_binary[i] = 1;
		p->types[i] = TYPE_BYTEA;
		break;
	case VALUE_ARRAY:
		p->texts[i] = v->p;
		p->bytes[i] = (int)v->n;
		p->is_binary[i] = 1;
		p->types[i] = (unsigned)v->number;
		break;
	case VALUE_NULL:
	case VALUE_END:
		break;
	}
}

/* Whether the prepared statement takes these values. A NULL without a type fits each type. */
static bool is_prepared(const struct postgres_rows *r, const struct postgres *d, const struct parameters *p)
{
	bool is = r->connection == d->connection && r->n_types == p->n;

	for (int i = 0; is && i < p->n; i++)
		is = p->types[i] == TYPE_UNKNOWN || p->types[i] == r->types[i];
	return is;
}

/* A NULL without a type gets that of an earlier value. */
static void parameters_complete(struct parameters *p, struct postgres_rows *r)
{
	for (int i = 0; i < p->n; i++)
		p->types[i] = r->types[i] = p->types[i] == TYPE_UNKNOWN ? r->types[i] : p->types[i];
}

static bool prepare_statement(struct postgres_rows *r, struct postgres *d, struct parameters *p)
{
	PGresult *result;
	bool is_good;

	if (r->connection == d->connection) {
		char text[40];

		snprintf(text, sizeof(text), "DEALLOCATE %s", r->name);
		pq.PQclear(postgres_run_texts(d, text));
	}
	parameters_complete(p, r);
	r->n_types = p->n;
	snprintf(r->name, sizeof(r->name), "s%u", ++d->n_prepared);
	result = postgres_only_answer(d, pq.PQsendPrepare(d->conn, r->name, r->text, p->n, r->types));
	is_good = postgres_has_succeeded(result);
	r->connection = is_good ? d->connection : 0;
	if (!is_good)
		postgres_explain(d, result, &d->db.why);
	pq.PQclear(result);
	return is_good;
}

/* Sets *ret, and prepares the statement for the types of these values. False: it failed. */
static bool parameters_prepare(struct parameters *ret, struct postgres_rows *r, const struct value *values)
{
	struct postgres *d = postgres_of(r->rows.db);

	ret->n = 0;
	for (int i = 0; values[i].type != VALUE_END; i++) {
		assert(i < PARAMETERS_MAX);
		parameter_set(ret, &values[i], &r->memory);
	}
	if (d->is_pooled)
		parameters_complete(ret, r);
	if (d->is_pooled || is_prepared(r, d, ret))
		return true;
	postgres_wait(&d->db);
	return !d->db.why.code && prepare_statement(r, d, ret);
}

static void send_statement(struct postgres_rows *r, const struct parameters *p)
{
	struct postgres *d = postgres_of(r->rows.db);
	int is_sent;

	postgres_begin_pipeline(d);
	if (d->db.why.code)
		return;
	is_sent = d->is_pooled
		      ? pq.PQsendQueryParams(d->conn, r->text, p->n, p->types, p->texts, p->bytes, p->is_binary, 0)
		      : pq.PQsendQueryPrepared(d->conn, r->name, p->n, p->texts, p->bytes, p->is_binary, 0);
	if (!is_sent)
		postgres_explain(d, NULL, &d->db.why);
}

static void postgres_send(struct rows *rows, const struct value *values)
{
	struct postgres_rows *r = statement_of(rows);
	struct parameters p;

	if (parameters_prepare(&p, r, values))
		send_statement(r, &p);
	arena_release(&r->memory);
}

/* Begins a walk over the answer. If it is not here yet, the walk has no rows, and the statement is sent. */
static bool bind_pipelined(struct postgres_rows *r, const struct parameters *p)
{
	struct postgres *d = postgres_of(r->rows.db);
	struct buf values = BUF_INIT(SIZE_MAX / 2);
	struct answer **a;

	buf_append_char(&values, ':'); /* for a statement without values */
	for (int i = 0; i < p->n; i++) {
		size_t n = !p->texts[i] ? 0 : p->is_binary[i] ? (size_t)p->bytes[i] : strlen(p->texts[i]);

		buf_appendf(&values, "%s%zu:", p->texts[i] ? "" : "-", n);
		if (n)
			buf_append(&values, p->texts[i], n);
	}
	a = postgres_find_answer(d, r, values.data, values.len);
	if (!*a) {
		*a = xcalloc(1, sizeof(**a));
		**a = (struct answer){.statement = r, .n_bytes = values.len};
		(*a)->values = buf_detach(&values);
		send_statement(r, p);
		d->sent[d->n_sent - 1] = *a;
		if (d->n_passes == PASSES_MAX)
			postgres_wait(&d->db);
		else
			d->has_asked = true;
	}
	buf_release(&values);
	r->result = (*a)->result;
	r->is_borrowed = true;
	r->rows.is_awaited = !r->result;
	return !d->db.why.code;
}

/* Runs the statement, so that the values need not live longer. */
static bool postgres_bind(struct rows *rows, const struct value *values, bool is_static)
{
	struct postgres_rows *r = statement_of(rows);
	struct parameters p;

	(void)is_static;
	r->row = -1;
	r->is_borrowed = false;
	if (!parameters_prepare(&p, r, values))
		return false;
	if (postgres_of(rows->db)->is_pipelining)
		return bind_pipelined(r, &p);
	send_statement(r, &p);
	r->result = postgres_read_answers(postgres_of(rows->db));
	return r->result != NULL;
}

static bool postgres_step(struct rows *rows)
{
	struct postgres_rows *r = statement_of(rows);

	arena_release(&r->memory);
	return ++r->row < pq.PQntuples(r->result);
}

static void postgres_reset(struct rows *rows)
{
	struct postgres_rows *r = statement_of(rows);

	arena_release(&r->memory);
	if (!r->is_borrowed)
		pq.PQclear(r->result);
	r->result = NULL;
}

static void postgres_finalize(struct rows *rows)
{
	struct postgres_rows *r = statement_of(rows);

	postgres_reset(rows);
	free(r->text);
	free(r);
}

static bool postgres_may_write(const struct rows *rows)
{
	const struct postgres_rows *r = statement_of(rows);

	return r->result && strncmp(pq.PQcmdStatus(r->result), "SELECT", 6) != 0;
}

static int64_t postgres_changes(struct db *d) { return postgres_of(d)->n_changes; }

static int64_t postgres_total_changes(const struct db *d) { return postgres_of(d)->n_total_changes; }

static int postgres_n_columns(const struct rows *r)
{
	return statement_of(r)->result ? pq.PQnfields(statement_of(r)->result) : 0;
}

static bool postgres_is_null(const struct rows *rows, int column)
{
	const struct postgres_rows *r = statement_of(rows);

	return !r->result || pq.PQgetisnull(r->result, r->row, column);
}

static bool postgres_is_blob(const struct rows *r, int column)
{
	return !postgres_is_null(r, column) && pq.PQftype(statement_of(r)->result, column) == TYPE_BYTEA;
}

/* NULL for NULL. A condition is a number, as in SQLite. */
static const char *postgres_text_at(const struct rows *rows, int column)
{
	const struct postgres_rows *r = statement_of(rows);
	const char *text;

	if (postgres_is_null(rows, column))
		return NULL;
	text = pq.PQgetvalue(r->result, r->row, column);
	if (pq.PQftype(r->result, column) != TYPE_BOOL)
		return text;
	return text[0] == 't' ? "1" : "0";
}

static int64_t postgres_int(const struct rows *r, int column)
{
	const char *text = postgres_text_at(r, column);

	return text ? strtoll(text, NULL, 10) : 0;
}

static double postgres_real(const struct rows *r, int column)
{
	const char *text = postgres_text_at(r, column);

	return text ? strtod(text, NULL) : 0;
}

static const void *postgres_blob(const struct rows *rows, int column, size_t *ret_bytes)
{
	struct postgres_rows *r = statement_of(rows);
	const char *text = postgres_text_at(rows, column);
	size_t n = text ? strlen(text) : 0;
	uint8_t *p;

	*ret_bytes = n;
	if (!postgres_is_blob(rows, column))
		return text;
	*ret_bytes = n / 2 - 1; /* behind "\x" */
	p = arena_alloc(&r->memory, *ret_bytes + 1);
	if (hex_decode(text + 2, n - 2, p, *ret_bytes))
		*ret_bytes = 0;
	return *ret_bytes ? p : NULL;
}

/* ---- several daemons ---- */

#define NOW_MS "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"

/* The number is "Outt". The server serves those who wait in their order. Each later statement of the transaction sees everything that
 * was committed before. */
static int64_t postgres_turn(struct db *d)
{
	struct rows *r = db_rows(d, "SELECT pg_advisory_xact_lock(1333097588), " NOW_MS);
	int64_t now_ms = rows_next(r) ? rows_int(r, 1) : 0;

	rows_end(r);
	return now_ms;
}

static int64_t postgres_now_ms(const struct view *v) { return db_int(v, 0, "SELECT " NOW_MS); }

static enum db_repeat postgres_may_repeat(const struct db *d) { return postgres_of(d)->may_repeat; }

/* ---- the space ---- */

static int64_t postgres_file_bytes(const struct view *v)
{
	return db_int(v, 0, "SELECT pg_database_size(current_database())");
}

/* The server fills and returns free pages by itself. */
static int64_t postgres_free_bytes(const struct view *v)
{
	(void)v;
	return 0;
}

static bool postgres_can_shrink(const struct view *v)
{
	(void)v;
	return true;
}

static bool postgres_shrink(struct txn *t)
{
	(void)t;
	return false;
}

static int postgres_measure(const struct view *v, bool (*go_on)(void *owner), void *owner, struct table_bytes **ret,
    size_t *ret_n, struct error *e)
{
	struct rows *r = db_rows(v, "SELECT relname, pg_total_relation_size(oid) FROM pg_class"
				    " WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY relname");

	(void)go_on;
	(void)owner;
	(void)e;
	while (rows_next(r)) {
		struct table_bytes *t = ARRAY_PUSH(*ret, *ret_n);

		*t = (struct table_bytes){.name = rows_dup(r, 0), .bytes = rows_int(r, 1)};
	}
	return v->db->why.code;
}

static int postgres_check(struct db *d, struct error *e)
{
	db_int(d, 0, "SELECT 1");
	return d->why.code ? error_set(e, d->why.code, "%s", d->why.text) : 0;
}

static int postgres_backup(const struct view *v, const char *path, bool (*go_on)(void *owner), void *owner,
    int64_t *ret_bytes, struct error *e)
{
	(void)go_on;
	(void)owner;
	*ret_bytes = 0;
	(void)v;
	return error_set(e, ERR_INVALID,
	    "%s is not written: a backup is a copy of SQLite's file. Use PostgreSQL's pg_dump or pg_basebackup", path);
}

/* ---- packed results ---- */

static void put_number(struct buf *out, int64_t number, size_t bytes)
{
	uint8_t big_endian[8];

	for (size_t i = sizeof(big_endian); i-- > 0; number >>= 8)
		big_endian[i] = (uint8_t)number;
	buf_append(out, big_endian + sizeof(big_endian) - bytes, bytes);
}

/* An array in the binary form of the protocol, which neither side has to parse: this, and n times its length and the number. */
static struct buf array_begin(size_t n, unsigned type, size_t bytes)
{
	const int64_t header[] = {
	    1 /* dimension */, 1 /* it may have NULLs */, type, (int64_t)n, 1 /* the first index */};
	struct buf out = BUF_INIT(4 * ARRAY_LEN(header) + n * (4 + bytes));

	for (size_t i = 0; i < ARRAY_LEN(header); i++)
		put_number(&out, header[i], 4);
	return out;
}

static void array_add(struct buf *out, int64_t number, size_t bytes)
{
	put_number(out, (int64_t)bytes, 4);
	put_number(out, number, bytes);
}

#define V_ARRAY(b, array_type)                                                                                         \
	((struct value){.type = VALUE_ARRAY, .number = (array_type), .p = (b).data, .n = (b).len})

static void postgres_unpack_list(struct txn *t, int64_t list_id, const int64_t *ids, size_t n)
{
	struct buf array = array_begin(n, TYPE_INT8, 8);

	for (size_t i = 0; i < n; i++)
		array_add(&array, ids[i], 8);
	db_exec(t, "UPDATE test_list SET ids = ?2 WHERE id = ?1", V_INT(list_id), V_ARRAY(array, TYPE_INT8_ARRAY));
	buf_release(&array);
}

static void postgres_unpack_job(struct txn *t, int64_t job_id, int64_t first, const struct test_result *tests, size_t n)
{
	struct buf statuses = array_begin(n, TYPE_INT2, 2), durations = array_begin(n, TYPE_INT4, 4);
	bool has_any = false;

	for (size_t i = 0; i < n; i++) {
		int64_t ms = tests[i].duration_ms;

		has_any |= ms >= 0;
		array_add(&statuses, tests[i].status, 2);
		if (ms < 0)
			put_number(&durations, -1, 4); /* NULL */
		else
			array_add(&durations, ms > INT32_MAX ? INT32_MAX : ms, 4);
	}
	db_exec(t, "UPDATE packed_job SET statuses = ?3, durations = ?4 WHERE job_id = ?1 AND first = ?2",
	    V_INT(job_id), V_INT(first), V_ARRAY(statuses, TYPE_INT2_ARRAY),
	    has_any ? V_ARRAY(durations, TYPE_INT4_ARRAY) : V_NULL);
	buf_release(&statuses);
	buf_release(&durations);
}

#define BEGIN_TO_WRITE "BEGIN ISOLATION LEVEL READ COMMITTED"
const struct db_driver postgres_driver = {
    .open = postgres_open,
    .close = postgres_close,
    .prepare = postgres_prepare,
    .bind = postgres_bind,
    .send = postgres_send,
    .wait = postgres_wait,
    .pipeline_begin = postgres_pipeline_begin,
    .pipeline_again = postgres_pipeline_again,
    .step = postgres_step,
    .reset = postgres_reset,
    .finalize = postgres_finalize,
    .may_write = postgres_may_write,
    .changes = postgres_changes,
    .total_changes = postgres_total_changes,
    .n_columns = postgres_n_columns,
    .column_int = postgres_int,
    .column_real = postgres_real,
    .column_text = postgres_text_at,
    .column_blob = postgres_blob,
    .is_null = postgres_is_null,
    .is_blob = postgres_is_blob,
    .begin = {[DB_WRITER] = BEGIN_TO_WRITE,
	[DB_CHECKPOINTER] = BEGIN_TO_WRITE,
	[DB_LISTENER] = BEGIN_TO_WRITE,
	[DB_READER] = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"},
    .run = postgres_run,
    .script = postgres_script,
    .is_in_transaction = postgres_is_in_transaction,
    .lock = postgres_lock,
    .turn = postgres_turn,
    .now_ms = postgres_now_ms,
    .may_repeat = postgres_may_repeat,
    .note = postgres_note,
    .listen = postgres_listen,
    .wait_notes = postgres_wait_notes,
    .migrate = postgres_migrate,
    .check_version = postgres_check_version,
    .survives_failure = false,
    .batch_max_ops = 60, /* the server remembers 64 savepoints of a transaction at no cost */
    .file_bytes = postgres_file_bytes,
    .free_bytes = postgres_free_bytes,
    .can_shrink = postgres_can_shrink,
    .shrink = postgres_shrink,
    .measure = postgres_measure,
    .version = postgres_version,
    .set_sequences = postgres_set_sequences,
    .sequence = postgres_sequence,
    .set_sequence = postgres_set_sequence,
    .check = postgres_check,
    .backup = postgres_backup,
    .unpack_list = postgres_unpack_list,
    .unpack_job = postgres_unpack_job,
};
