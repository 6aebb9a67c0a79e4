/* Connections and statements on PostgreSQL. The server sends each result as a whole, as text. */
#include "db/db_postgres.h"

#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#include "db/key.h"
#include "db/postgres_text.h"
#include "model/test_result.h"

/* libpq's numbers */
enum { CONNECTION_OK = 0, PQTRANS_IDLE = 0, PQTRANS_UNKNOWN = 4 };
enum { PGRES_COMMAND_OK = 1, PGRES_TUPLES_OK = 2, PGRES_PIPELINE_SYNC = 10 };
enum { TYPE_UNKNOWN = 0, TYPE_BOOL = 16, TYPE_BYTEA = 17, TYPE_INT8 = 20, TYPE_TEXT = 25, TYPE_FLOAT8 = 701 };
enum { FIELD_CODE = 'C', FIELD_MESSAGE = 'M' };

#define MEMBER(type, name, args) type(*name) args;
#define NAME(type, name, args)   {#name, offsetof(struct libpq, name)},
static struct libpq {
	LIBPQ(MEMBER)
} pq;
static const struct {
	const char *name;
	size_t offset;
} PQ_NAMES[] = {LIBPQ(NAME)};
static bool is_pq_loaded;
static char why_not_loaded[256];

static void load_libpq(void)
{
	void *library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
	bool has_all = library != NULL;

	for (size_t i = 0; has_all && i < ARRAY_LEN(PQ_NAMES); i++) {
		void *function = dlsym(library, PQ_NAMES[i].name);

		memcpy((char *)&pq + PQ_NAMES[i].offset, &function, sizeof(function));
		has_all = function != NULL;
	}
	is_pq_loaded = has_all;
	if (!has_all)
		snprintf(why_not_loaded, sizeof(why_not_loaded), "%s", dlerror());
}

/* ---- failures ---- */

static int code_of_state(const char *state)
{
	static const struct {
		const char *prefix; /* of SQLSTATE */
		int err;
	} codes[] = {
	    {"53100", ERR_FULL},
	    {"53", ERR_BUSY},
	    {"40", ERR_BUSY},
	    {"55P03", ERR_BUSY},
	    {"57014", ERR_CANCELLED},
	    {"23", ERR_CONFLICT},
	    {"22", ERR_INVALID},
	    {"42501", ERR_DENIED},
	    {"25006", ERR_DENIED},
	    {"28", ERR_DENIED},
	    {"54", ERR_TOO_BIG},
	    {"XX001", ERR_CORRUPT},
	    {"XX002", ERR_CORRUPT},
	};

	for (size_t i = 0; i < ARRAY_LEN(codes); i++)
		if (strncmp(state, codes[i].prefix, strlen(codes[i].prefix)) == 0)
			return codes[i].err;
	return ERR_IO;
}

/* On one line, without the end of the last one. */
static void copy_message(const char *message, char *out, size_t out_bytes)
{
	size_t n = 0;

	for (; *message && n + 1 < out_bytes; message++) {
		bool is_space = *message == '\n' || *message == '\t' || *message == ' ';

		if (!is_space)
			out[n++] = *message;
		else if (n && out[n - 1] != ' ')
			out[n++] = ' ';
	}
	while (n && out[n - 1] == ' ')
		n--;
	out[n] = '\0';
}

static enum db_repeat repeat_of_state(const struct postgres *d, const char *state)
{
	/* The server ends the session, or the transaction. The end of the connection may come after the error. */
	static const char *const lost[] = {"08", "57P01", "57P02", "57P03", "57P05", "25P03"};
	/* A serialization failure or a deadlock; a lock that was not free in time. */
	static const char *const again[] = {"40", "55P03"};

	if (pq.PQstatus(d->conn) != CONNECTION_OK || d->must_reconnect)
		return DB_LOST;
	for (size_t i = 0; state && i < ARRAY_LEN(lost); i++)
		if (str_has_prefix(state, lost[i]))
			return DB_LOST;
	for (size_t i = 0; state && i < ARRAY_LEN(again); i++)
		if (str_has_prefix(state, again[i]))
			return DB_AGAIN;
	return DB_FINAL;
}

/* Records the explanation of a result that is no success, and returns the code. */
static int explain_failure(struct postgres *d, const PGresult *result, struct error *e)
{
	const char *state = result ? pq.PQresultErrorField(result, FIELD_CODE) : NULL;
	const char *message = result ? pq.PQresultErrorField(result, FIELD_MESSAGE) : NULL;
	char text[400];

	copy_message(message ? message : pq.PQerrorMessage(d->conn), text, sizeof(text));
	d->must_reconnect |= d->use == DB_WRITER && state && strcmp(state, "25006") == 0;
	d->may_repeat = repeat_of_state(d, state);
	if (pq.PQstatus(d->conn) != CONNECTION_OK)
		return error_set(e, ERR_IO, "%s: the connection was lost: %s", d->db.path, text);
	return error_set(
	    e, state ? code_of_state(state) : ERR_IO, "%s: %s (%s)", d->db.path, text, state ? state : "-");
}

static bool has_succeeded(const PGresult *result)
{
	int status = result ? pq.PQresultStatus(result) : -1;

	return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/* ---- statements whose answers are read later ----
 *
 * libpq's pipeline has them: they go to the server with the next statement that has an answer, in one round trip. After the first
 * failure the server skips the rest of the pipeline. */

enum { SENT_MAX = 500 }; /* so that their answers need little memory */

/* The next result, as PQgetResult() returns it. A server that is silent for too long has lost the connection: see db_limit_silence(). */
static PGresult *next_result(struct postgres *d)
{
	int max_ms = d->db.silence_max_ms ? d->db.silence_max_ms : -1, n_unsent;

	while (
	    pq.PQstatus(d->conn) == CONNECTION_OK && ((n_unsent = pq.PQflush(d->conn)) > 0 || pq.PQisBusy(d->conn))) {
		struct pollfd p = {
		    .fd = pq.PQsocket(d->conn), .events = (short)(n_unsent > 0 ? POLLIN | POLLOUT : POLLIN)};

		if (poll(&p, 1, max_ms) == 0) {
			error_set(&d->db.why, ERR_TIMEOUT, "%s: the server has sent nothing for %d s", d->db.path,
			    max_ms / 1000);
			shutdown(p.fd, SHUT_RDWR); /* libpq finds that the connection has ended */
			break;
		}
		pq.PQconsumeInput(d->conn);
	}
	return pq.PQgetResult(d->conn);
}

/* The answer to what was sent outside a pipeline: of several statements, that of the last one or of the first that failed. NULL: it was
 * not sent. */
static PGresult *only_answer(struct postgres *d, int is_sent)
{
	PGresult *result, *last = NULL;

	while (is_sent && (result = next_result(d)) != NULL) {
		pq.PQclear(last);
		last = result;
	}
	return last;
}

static PGresult *run_texts(struct postgres *d, const char *sql) { return only_answer(d, pq.PQsendQuery(d->conn, sql)); }

static void count_changes(struct postgres *d, PGresult *result)
{
	/* empty for a statement that only reads, and otherwise how many rows it changed */
	if (strncmp(pq.PQcmdStatus(result), "SELECT", 6) != 0) {
		d->n_changes = strtoll(pq.PQcmdTuples(result), NULL, 10);
		d->n_total_changes += d->n_changes;
	}
}

/* Reads the answers to all statements in the pipeline, and returns that to the last one. NULL: one has failed. */
static PGresult *read_answers(struct postgres *d)
{
	PGresult *result, *last = NULL;
	bool is_complete = false;
	/* NULL is the end of the answer to one statement. Two of them in a row: libpq has lost the connection, and waits for nothing. */
	int n_ends = pq.PQpipelineSync(d->conn) ? 0 : 2;

	while (!is_complete && n_ends < 2) {
		result = next_result(d);
		n_ends = result ? 0 : n_ends + 1;
		is_complete = result && pq.PQresultStatus(result) == PGRES_PIPELINE_SYNC;
		if (result && !is_complete && has_succeeded(result)) {
			count_changes(d, result);
			pq.PQclear(last);
			last = result;
			continue;
		}
		if (result && !is_complete && !d->db.why.code) /* the others were skipped because of it */
			explain_failure(d, result, &d->db.why);
		if (result && !is_complete && pq.PQstatus(d->conn) != CONNECTION_OK)
			n_ends = 2; /* it would repeat its failure */
		pq.PQclear(result);
	}
	if (!is_complete) {
		d->must_reconnect = true;
		if (!d->db.why.code)
			explain_failure(d, NULL, &d->db.why);
		d->may_repeat = DB_LOST;
	}
	d->n_sent = 0;
	pq.PQexitPipelineMode(d->conn);
	if (!d->db.why.code)
		return last;
	pq.PQclear(last);
	return NULL;
}

static void postgres_wait(struct db *db)
{
	struct postgres *d = postgres_of(db);

	if (d->n_sent)
		pq.PQclear(read_answers(d));
}

/* Before a statement is sent. */
static void begin_pipeline(struct postgres *d)
{
	if (d->n_sent == SENT_MAX)
		postgres_wait(&d->db);
	if (d->n_sent++ == 0)
		pq.PQenterPipelineMode(d->conn);
}

/* ---- connections ---- */

static void ignore_notice(void *owner, const char *message)
{
	(void)owner;
	(void)message;
}

/* A connection that is cut ends within seconds on both sides. A transaction that stands still is ended by the server, because it
 * keeps all daemons waiting. The settings of the role and of the database do not apply where they would change a statement's meaning.
 * A plan never depends on the bound values, as on SQLite: otherwise the server plans a statement five times
 * at least, which takes longer than to run it. */
#define SESSION                                                                                                        \
	"SET jit = off; SET bytea_output = hex; SET plan_cache_mode = force_generic_plan;"                             \
	" SET statement_timeout = 0; SET default_transaction_isolation = 'read committed';"
static const char *const SESSIONS[] = {
    [DB_WRITER] =
	(SESSION " SET synchronous_commit = on; SET lock_timeout = '5s';"
		 " SET idle_in_transaction_session_timeout = '10s';"
		 " SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 3;"
		 " SET tcp_user_timeout = '10s'"),
    [DB_CHECKPOINTER] = SESSION,
    [DB_READER] = SESSION " SET default_transaction_read_only = on",
    [DB_LISTENER] = SESSION,
};

static int begin_session(struct postgres *d, struct error *e)
{
	PGresult *result;
	char text[400];
	int rc = 0;

	d->connection++;
	d->must_reconnect = false;
	if (pq.PQstatus(d->conn) != CONNECTION_OK) {
		d->may_repeat = DB_LOST;
		copy_message(pq.PQerrorMessage(d->conn), text, sizeof(text));
		return error_set(e, ERR_IO, "%s: %s", d->db.path, text);
	}
	pq.PQsetNoticeProcessor(d->conn, ignore_notice, NULL);
	pq.PQsetnonblocking(d->conn, 1);
	result = run_texts(d, SESSIONS[d->use]);
	if (!has_succeeded(result))
		rc = explain_failure(d, result, e);
	pq.PQclear(result);
	return rc;
}

static int postgres_open(
    const char *path, const struct secret *password, enum db_use use, struct db **ret, struct error *e)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	/* The URL comes after the defaults that it may replace. The first timeout is for each host: after a failover the
	 * first one may be a machine that is off. */
	static const char *const keywords[] = {"connect_timeout", "keepalives_idle", "keepalives_interval",
	    "keepalives_count", "tcp_user_timeout", "fallback_application_name", "dbname", "client_encoding",
	    "password", NULL};
	const char *const values[] = {
	    "2", "5", "2", "3", "10000", "outpost", path, "UTF8", password ? secret_text(password) : NULL, NULL};
	struct postgres *d;

	pthread_once(&once, load_libpq);
	if (!is_pq_loaded)
		return error_set(e, ERR_NOT_FOUND, "PostgreSQL's client library is missing: %s", why_not_loaded);
	d = xcalloc(1, sizeof(*d));
	db_init(&d->db, &postgres_driver, "PostgreSQL");
	d->no_rows.rows.db = &d->db;
	d->db.no_rows = &d->no_rows.rows;
	d->use = use;
	*ret = &d->db;
	d->conn = pq.PQconnectdbParams(keywords, values, 1);
	return begin_session(d, e);
}

static void postgres_close(struct db *db)
{
	struct postgres *d = postgres_of(db);

	pq.PQfinish(d->conn);
	free(d);
}

/* The number is "Outp". */
static const char LOCK_ALONE[] = "SELECT pg_advisory_lock(1333097584)";
static const char LOCK_SHARED[] = "SELECT pg_advisory_lock_shared(1333097584)";

/* ERR_BUSY: the lock is not free within lock_timeout, which is long enough for the end of a killed program's session. */
static int take_lock(struct postgres *d, const char *lock, struct error *e)
{
	PGresult *result = run_texts(d, lock);
	struct error why = {0};
	int rc = has_succeeded(result) ? 0 : explain_failure(d, result, &why);

	pq.PQclear(result);
	if (rc == ERR_BUSY)
		return error_set(e, ERR_BUSY, "%s: another outpostd uses this database%s: stop it first", d->db.path,
		    lock == LOCK_ALONE ? "" : " alone, or `outpostctl store copy` does");
	return rc ? error_set(e, ERR_IO, "%s", why.text) : 0;
}

static int postgres_lock(struct db *db, bool with_others, struct error *e)
{
	const char *lock = with_others ? LOCK_SHARED : LOCK_ALONE;
	struct postgres *d = postgres_of(db);
	struct error why = {0};
	int rc = take_lock(d, lock, &why);

	d->lock = rc ? NULL : lock;
	return rc ? error_set(e, rc == ERR_BUSY ? ERR_EXISTS : rc, "%s", why.text) : 0;
}

/* Connects again after the connection was lost. The first failure sticks. */
static bool is_connected(struct postgres *d)
{
	int rc;

	if (pq.PQstatus(d->conn) == CONNECTION_OK && !d->must_reconnect)
		return true;
	pq.PQreset(d->conn);
	rc = begin_session(d, &d->db.why);
	if (!rc && d->lock)
		rc = take_lock(d, d->lock, &d->db.why);
	/* Nothing runs in a session that is only half made. If a program has the database for itself, a repetition would only wait. */
	d->must_reconnect = rc != 0;
	d->may_repeat = rc == ERR_BUSY ? DB_FINAL : DB_LOST;
	return !rc;
}

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

static void parameter_set(struct parameters *p, const struct value *v)
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
		p->texts[i] = v->p;
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

static bool prepare_statement(struct postgres_rows *r, struct postgres *d, const struct parameters *p)
{
	PGresult *result;
	bool is_good;

	if (r->connection == d->connection) {
		char text[40];

		snprintf(text, sizeof(text), "DEALLOCATE %s", r->name);
		pq.PQclear(run_texts(d, text));
	}
	for (int i = 0; i < p->n; i++)
		r->types[i] = p->types[i] == TYPE_UNKNOWN ? r->types[i] : p->types[i];
	r->n_types = p->n;
	snprintf(r->name, sizeof(r->name), "s%u", ++d->n_prepared);
	result = only_answer(d, pq.PQsendPrepare(d->conn, r->name, r->text, p->n, r->types));
	is_good = has_succeeded(result);
	r->connection = is_good ? d->connection : 0;
	if (!is_good)
		explain_failure(d, result, &d->db.why);
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
		parameter_set(ret, &values[i]);
	}
	if (is_prepared(r, d, ret))
		return true;
	postgres_wait(&d->db);
	return !d->db.why.code && prepare_statement(r, d, ret);
}

static void send_prepared(struct postgres_rows *r, const struct parameters *p)
{
	struct postgres *d = postgres_of(r->rows.db);

	begin_pipeline(d);
	if (!d->db.why.code && !pq.PQsendQueryPrepared(d->conn, r->name, p->n, p->texts, p->bytes, p->is_binary, 0))
		explain_failure(d, NULL, &d->db.why);
}

static void postgres_send(struct rows *rows, const struct value *values)
{
	struct postgres_rows *r = statement_of(rows);
	struct parameters p;

	if (parameters_prepare(&p, r, values))
		send_prepared(r, &p);
}

/* Runs the statement, so that the values need not live longer. */
static bool postgres_bind(struct rows *rows, const struct value *values, bool is_static)
{
	struct postgres_rows *r = statement_of(rows);
	struct parameters p;

	(void)is_static;
	r->row = -1;
	if (!parameters_prepare(&p, r, values))
		return false;
	send_prepared(r, &p);
	r->result = read_answers(postgres_of(rows->db));
	return r->result != NULL;
}

static bool postgres_step(struct rows *rows)
{
	struct postgres_rows *r = statement_of(rows);

	arena_release(&r->blobs);
	return ++r->row < pq.PQntuples(r->result);
}

static void postgres_reset(struct rows *rows)
{
	struct postgres_rows *r = statement_of(rows);

	arena_release(&r->blobs);
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
	p = arena_alloc(&r->blobs, *ret_bytes + 1);
	if (hex_decode(text + 2, n - 2, p, *ret_bytes))
		*ret_bytes = 0;
	return *ret_bytes ? p : NULL;
}

/* ---- transactions ---- */

/* The end of a transaction waits for its answer, and the others go with the next statement. */
static void postgres_run(struct db *db, const char *sql)
{
	struct postgres *d = postgres_of(db);
	bool is_commit = strcmp(sql, "COMMIT") == 0;
	PGresult *result;

	if (db->why.code || (strncmp(sql, "BEGIN", 5) == 0 && !is_connected(d)))
		return;
	if (strncmp(sql, "BEGIN", 5) == 0)
		d->may_repeat = DB_FINAL;
	begin_pipeline(d);
	if (!db->why.code && !pq.PQsendQueryParams(d->conn, sql, 0, NULL, NULL, NULL, NULL, 0))
		explain_failure(d, NULL, &db->why);
	if (!is_commit && strcmp(sql, "ROLLBACK") != 0)
		return;
	result = read_answers(d);
	if (result && is_commit && strcmp(pq.PQcmdStatus(result), "COMMIT") != 0)
		error_set(&db->why, ERR_IO, "%s: the transaction was rolled back", db->path);
	pq.PQclear(result);
}

static int postgres_script(struct db *db, const char *sql, struct error *e)
{
	struct postgres *d = postgres_of(db);
	PGresult *result;
	int rc;

	postgres_wait(db);
	if (db->why.code)
		return error_set(e, db->why.code, "%s", db->why.text);
	result = run_texts(d, sql);
	rc = has_succeeded(result) ? 0 : explain_failure(d, result, e);
	pq.PQclear(result);
	return rc;
}

static bool postgres_is_in_transaction(const struct db *d)
{
	int status = pq.PQtransactionStatus(postgres_of(d)->conn);

	return status != PQTRANS_IDLE && status != PQTRANS_UNKNOWN;
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

/* ---- notes ---- */

static void postgres_note(struct txn *t, const char *text)
{
	if (!db_has(t, "SELECT 1 FROM pg_notify('outpost', ?1)", V_TEXT(text)) && !db_status(t))
		db_fail(t, ERR_IO, "the note was not sent");
}

static int postgres_listen(struct db *d) { return postgres_script(d, "LISTEN outpost", &d->why); }

static int postgres_wait_notes(
    struct db *db, int wake_fd, int64_t ms, void (*on_note)(const char *text, void *owner), void *owner)
{
	struct postgres *d = postgres_of(db);
	PGnotify *note = pq.PQnotifies(d->conn); /* that came with the answer to a statement */
	struct pollfd fds[] = {
	    {.fd = pq.PQsocket(d->conn), .events = POLLIN},
	    {.fd = wake_fd, .events = POLLIN},
	};

	if (!note)
		poll(fds, ARRAY_LEN(fds), (int)ms);
	if (!pq.PQconsumeInput(d->conn))
		explain_failure(d, NULL, &db->why);
	for (; note || (note = pq.PQnotifies(d->conn)) != NULL; note = NULL) {
		on_note(note->extra, owner);
		pq.PQfreemem(note);
	}
	return db->why.code;
}

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
	return error_set(e, ERR_INVALID, "%s: the database is a server's: use pg_basebackup or pg_dump instead of %s",
	    v->db->path, path);
}

/* ---- packed results ---- */

static const char *array_text(struct buf *text)
{
	if (text->len)
		text->data[text->len - 1] = '}'; /* in place of the last comma */
	else
		buf_append_str(text, "{}");
	return text->data;
}

static void postgres_unpack_list(struct txn *t, int64_t list_id, const int64_t *ids, size_t n)
{
	struct buf text = BUF_INIT(n * 24 + 8);

	for (size_t i = 0; i < n; i++)
		buf_appendf(&text, "%s%lld,", i ? "" : "{", (long long)ids[i]);
	db_exec(t, "UPDATE test_list SET ids = ?2::BIGINT[] WHERE id = ?1", V_INT(list_id), V_TEXT(array_text(&text)));
	buf_release(&text);
}

static void postgres_unpack_job(struct txn *t, int64_t job_id, int64_t first, const struct test_result *tests, size_t n)
{
	struct buf statuses = BUF_INIT(n * 8 + 8), durations = BUF_INIT(n * 16 + 8);
	bool has_any = false;

	for (size_t i = 0; i < n; i++) {
		int64_t ms = tests[i].duration_ms;

		buf_appendf(&statuses, "%s%d,", i ? "" : "{", (int)tests[i].status);
		has_any |= ms >= 0;
		if (ms < 0)
			buf_append_str(&durations, i ? "NULL," : "{NULL,");
		else
			buf_appendf(&durations, "%s%d,", i ? "" : "{", (int)(ms > INT32_MAX ? INT32_MAX : ms));
	}
	db_exec(t,
	    "UPDATE packed_job SET statuses = ?3::SMALLINT[], durations = ?4::INT[]"
	    " WHERE job_id = ?1 AND first = ?2",
	    V_INT(job_id), V_INT(first), V_TEXT(array_text(&statuses)),
	    V_TEXT(has_any ? array_text(&durations) : NULL));
	buf_release(&statuses);
	buf_release(&durations);
}

const struct db_driver postgres_driver = {
    .open = postgres_open,
    .close = postgres_close,
    .prepare = postgres_prepare,
    .bind = postgres_bind,
    .send = postgres_send,
    .wait = postgres_wait,
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
    .begin = {[DB_WRITER] = "BEGIN",
	[DB_CHECKPOINTER] = "BEGIN",
	[DB_LISTENER] = "BEGIN",
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
