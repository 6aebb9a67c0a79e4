/* libpq, sessions, their failures, and notes between them. */
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>

#include "db/db_postgres.h"
#include "db/nodes.h"

#define NAME(type, name, args) {#name, offsetof(struct libpq, name)},
struct libpq pq;
static const struct {
	const char *name;
	size_t offset;
} PQ_NAMES[] = {LIBPQ(NAME)};
static bool is_pq_loaded;
static char why_not_loaded[256];

static void load_libpq_once(void)
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

static int load_libpq(struct error *e)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load_libpq_once);
	return is_pq_loaded ? 0
			    : error_set(e, ERR_NOT_FOUND, "PostgreSQL's client library is missing: %s", why_not_loaded);
}

/* ---- failures ---- */

enum { FIELD_CODE = 'C', FIELD_MESSAGE = 'M' };

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
	    {"25006", ERR_READ_ONLY},
	    {"28", ERR_LOGIN},
	    {"54", ERR_TOO_BIG},
	    {"XX001", ERR_CORRUPT},
	    {"XX002", ERR_CORRUPT},
	};

	for (size_t i = 0; i < ARRAY_LEN(codes); i++)
		if (strncmp(state, codes[i].prefix, strlen(codes[i].prefix)) == 0)
			return codes[i].err;
	return ERR_IO;
}

/* libpq gives no SQLSTATE for a connection that failed, so the text decides. With several addresses it has the cause of each: the one that
 * needs an operator comes first. A text in another language is ERR_AWAY. */
static int code_of_connection(const char *text)
{
	static const struct {
		const char *words;
		int err;
	} causes[] = {
	    {"authentication failed", ERR_LOGIN},
	    {"no password supplied", ERR_LOGIN},
	    {"no pg_hba.conf entry", ERR_LOGIN},
	    {"pg_hba.conf rejects", ERR_LOGIN},
	    {"too many connections for role", ERR_AWAY},
	    {"role \"", ERR_LOGIN}, /* it does not exist, or must not log in */
	    {"permission denied for database", ERR_LOGIN},
	    {"session is read-only", ERR_READ_ONLY},
	    {"server is in hot standby mode", ERR_READ_ONLY},
	    {"timeout expired", ERR_TIMEOUT},
	};

	for (size_t i = 0; i < ARRAY_LEN(causes); i++)
		if (strstr(text, causes[i].words))
			return causes[i].err;
	return ERR_AWAY;
}

/* The rest of an explanation: the meaning of the server's text for an operator of Outpost. A pooler may not say whether it is a standby. */
static const char *advice_for(const struct postgres *d, int code, const char *text)
{
	const char *in_standby = pq.PQparameterStatus(d->conn, "in_hot_standby");

	if (strstr(text, "no password supplied"))
		return "; give its file: store_password_file, or --password-file";
	if (code != ERR_READ_ONLY)
		return "";
	if (in_standby)
		return str_eq(in_standby, "on")
			   ? "; this server is a standby: promote it, or add the primary's address to the URL"
			   : "; this server or database is set to read-only";
	return "; this server is a standby, or it is set to read-only";
}

/* On one line, without the end of the last one. Each address of the URL has a line of its own. */
static void copy_message(const char *message, char *out, size_t out_bytes)
{
	size_t n = 0;

	for (; *message && n + 2 < out_bytes; message++) {
		bool is_space = *message == '\n' || *message == '\t' || *message == ' ';

		if (*message == '\n' && message[1] > ' ')
			out[n++] = ';';
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
	/* Errors in the statement, or of the server in this statement. After a missing privilege (42501) a repetition may succeed, because the
	 * operator can grant it. */
	static const char *const refused[] = {"0A", "20", "21", "26", "34", "3D", "3F", "42", "44", "P0", "XX000"};

	if (pq.PQstatus(d->conn) != CONNECTION_OK || d->must_reconnect)
		return DB_LOST;
	for (size_t i = 0; state && i < ARRAY_LEN(lost); i++)
		if (str_has_prefix(state, lost[i]))
			return DB_LOST;
	for (size_t i = 0; state && i < ARRAY_LEN(again); i++)
		if (str_has_prefix(state, again[i]))
			return DB_AGAIN;
	for (size_t i = 0; state && i < ARRAY_LEN(refused); i++)
		if (str_has_prefix(state, refused[i]) && strcmp(state, "42501") != 0)
			return DB_REFUSED;
	return DB_FINAL;
}

int postgres_explain(struct postgres *d, const PGresult *result, struct error *e)
{
	const char *state = result ? pq.PQresultErrorField(result, FIELD_CODE) : NULL;
	const char *message = result ? pq.PQresultErrorField(result, FIELD_MESSAGE) : NULL;
	char text[400];
	int code;

	copy_message(message ? message : pq.PQerrorMessage(d->conn), text, sizeof(text));
	d->must_reconnect |= d->use == DB_WRITER && state && strcmp(state, "25006") == 0;
	d->may_repeat = repeat_of_state(d, state);
	if (pq.PQstatus(d->conn) != CONNECTION_OK)
		return error_set(e, ERR_IO, "%s: the connection was lost: %s", d->db.path, text);
	code = state ? code_of_state(state) : ERR_IO;
	return error_set(e, code, "%s: %s (%s)%s", d->db.path, text, state ? state : "-", advice_for(d, code, text));
}

bool postgres_has_succeeded(const PGresult *result)
{
	int status = result ? pq.PQresultStatus(result) : -1;

	return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
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
 * at least, which takes longer than to run it. It stays until the server gathers statistics again, so a writer finds rows by an index also in
 * a table that had few of them. */
enum { ALL_USES = ~0 };
static const struct setting {
	const char *name, *value; /* SQL */
	int uses;
} SETTINGS[] = {
    {"jit", "'off'", ALL_USES},
    {"bytea_output", "'hex'", ALL_USES},
    {"plan_cache_mode", "'force_generic_plan'", ALL_USES},
    {"statement_timeout", "'0'", ALL_USES},
    {"lock_timeout", "'5s'", ALL_USES},
    /* The server ends what a connection left behind that was given up. It can do so on few systems. */
    {"client_connection_check_interval", "CASE WHEN version() LIKE '%linux%' THEN '5s' ELSE '0' END", ALL_USES},
    {"default_transaction_read_only", "'on'", 1 << DB_READER},
    {"synchronous_commit", "'on'", 1 << DB_WRITER},
    {"synchronous_commit", "'local'", 1 << DB_LISTENER}, /* a note that is lost does no harm */
    {"enable_seqscan", "'off'", 1 << DB_WRITER},
    {"idle_in_transaction_session_timeout", "'10s'", 1 << DB_WRITER},
    {"tcp_keepalives_idle", "'5'", 1 << DB_WRITER},
    {"tcp_keepalives_interval", "'2'", 1 << DB_WRITER},
    {"tcp_keepalives_count", "'3'", 1 << DB_WRITER},
    {"tcp_user_timeout", "'10s'", 1 << DB_WRITER},
};

/* A statement that makes the settings of the session, or of the transaction only. */
static void append_settings(const struct postgres *d, bool is_local, struct buf *out)
{
	buf_append_str(out, "SELECT 1");
	for (size_t i = 0; i < ARRAY_LEN(SETTINGS); i++)
		if (SETTINGS[i].uses & 1 << d->use)
			buf_appendf(out, ", set_config('%s', %s, %s)", SETTINGS[i].name, SETTINGS[i].value,
			    is_local ? "true" : "false");
}

/* A pooler (pgbouncer) gives the connection a number of its own. It may run each transaction in another session of the server, so
 * that nothing of a session holds: settings, prepared statements, locks, LISTEN. 1: it is one; 0; -1: the question failed. */
static int ask_for_pooler(struct postgres *d, struct error *e)
{
	PGresult *result = postgres_run_texts(d, "SELECT pg_backend_pid()");
	int is = -1;

	if (postgres_has_succeeded(result))
		is = strtol(pq.PQgetvalue(result, 0, 0), NULL, 10) != pq.PQbackendPID(d->conn);
	else
		postgres_explain(d, result, e);
	pq.PQclear(result);
	return is;
}

static int begin_session(struct postgres *d, struct error *e)
{
	struct buf settings = BUF_INIT(4096);
	PGresult *result;
	char text[400];
	int is_pooled, rc = 0;

	d->connection++;
	d->must_reconnect = false;
	if (pq.PQstatus(d->conn) != CONNECTION_OK) {
		d->may_repeat = DB_LOST;
		rc = code_of_connection(pq.PQerrorMessage(d->conn));
		copy_message(pq.PQerrorMessage(d->conn), text, sizeof(text));
		return error_set(e, rc, "%s: %s%s", d->db.path, text, advice_for(d, rc, text));
	}
	pq.PQsetNoticeProcessor(d->conn, ignore_notice, NULL);
	pq.PQsetnonblocking(d->conn, 1);
	is_pooled = ask_for_pooler(d, e);
	d->is_pooled = is_pooled > 0;
	if (is_pooled)
		return is_pooled < 0 ? e->code : 0;
	append_settings(d, false, &settings);
	result = postgres_run_texts(d, settings.data);
	if (!postgres_has_succeeded(result))
		rc = postgres_explain(d, result, e);
	pq.PQclear(result);
	buf_release(&settings);
	return rc;
}

int postgres_open(const char *path, const struct secret *password, enum db_use use, struct db **ret, struct error *e)
{
	/* The URL comes after the defaults that it may replace. The first timeout is for each host: after a failover the
	 * first one may be a machine that is off. */
	static const char *const keywords[] = {"connect_timeout", "keepalives_idle", "keepalives_interval",
	    "keepalives_count", "tcp_user_timeout", "fallback_application_name", "dbname", "client_encoding",
	    "password", NULL};
	const char *const values[] = {
	    "2", "5", "2", "3", "10000", "outpost", path, "UTF8", password ? secret_text(password) : NULL, NULL};
	struct postgres *d;
	int rc = load_libpq(e);

	if (rc)
		return rc;
	d = xcalloc(1, sizeof(*d));
	db_init(&d->db, &postgres_driver, "PostgreSQL");
	d->no_rows.rows.db = &d->db;
	d->db.no_rows = &d->no_rows.rows;
	d->use = use;
	*ret = &d->db;
	d->conn = pq.PQconnectdbParams(keywords, values, 1);
	/* A limit from the first statement on: a pooler accepts the connection also while its server stands still. */
	d->db.silence_max_ms = NODE_ANSWER_MS;
	rc = begin_session(d, e);
	d->db.silence_max_ms = 0;
	return rc;
}

/* libpq checks words such as that of sslmode only when it connects. So it connects with all parameters but the server's address, in whose
 * place it gets a socket that does not exist. The environment may name an address that libpq prefers, so the attempt ends soon. */
static void check_values(const PQconninfoOption *options, char *out, size_t out_bytes)
{
	const char *keywords[PARAMETERS_MAX] = {"host", "port", "connect_timeout"};
	const char *values[PARAMETERS_MAX] = {"/nonexistent", "1", "2"};
	PGconn *conn;
	size_t n = 3;

	for (const PQconninfoOption *o = options; o->keyword && n + 1 < PARAMETERS_MAX; o++) {
		if (!o->val || str_eq(o->keyword, "host") || str_eq(o->keyword, "hostaddr") ||
		    str_eq(o->keyword, "port") || str_eq(o->keyword, "connect_timeout"))
			continue;
		keywords[n] = o->keyword;
		values[n++] = o->val;
	}
	conn = pq.PQconnectdbParams(keywords, values, 0);
	copy_message(pq.PQerrorMessage(conn), out, out_bytes);
	pq.PQfinish(conn);
	/* libpq 17 refuses encryption by GSSAPI on a socket before it connects. */
	if (str_has_prefix(out, "connection to server") || str_has_prefix(out, "GSSAPI encryption required"))
		*out = '\0';
}

/* libpq reads numbers only when it has found the server. The ports of several hosts are a list, in which a place may be empty. */
static void check_number(const PQconninfoOption *o, char *out, size_t out_bytes)
{
	static const char *const names[] = {"port", "connect_timeout", "keepalives", "keepalives_idle",
	    "keepalives_interval", "keepalives_count", "tcp_user_timeout", NULL};
	bool is_port = str_eq(o->keyword, "port");
	char *copy, *rest, *s;
	int64_t n;

	if (!o->val || !strv_contains(names, o->keyword))
		return;
	rest = copy = xstrdup(o->val);
	while ((s = strsep(&rest, is_port ? "," : ""))) {
		if (is_port && *s && (parse_int64(s, &n) || n < 1 || n > 65535))
			snprintf(out, out_bytes, "invalid port number: \"%.40s\"", s);
		else if (!is_port && (parse_int64(s, &n) || n < INT_MIN || n > INT_MAX))
			snprintf(out, out_bytes, "invalid number \"%.40s\" for \"%s\"", s, o->keyword);
	}
	free(copy);
}

int db_check_url(const char *path, struct error *e)
{
	int rc = db_is_server(path) ? load_libpq(e) : 0;
	PQconninfoOption *options;
	char *error = NULL, text[400];

	if (rc || !db_is_server(path))
		return rc;
	options = pq.PQconninfoParse(path, &error);
	if (options)
		check_values(options, text, sizeof(text));
	else
		copy_message(error ? error : "", text, sizeof(text));
	for (const PQconninfoOption *o = options; o && o->keyword && !*text; o++)
		check_number(o, text, sizeof(text));
	pq.PQconninfoFree(options);
	pq.PQfreemem(error);
	return *text || !options ? error_set(e, ERR_INVALID, "%s", text) : 0;
}

bool db_server_is_away(const char *path)
{
	static const char *const keywords[] = {"connect_timeout", "dbname", NULL};
	const char *const values[] = {"2", path, NULL};
	int answer = is_pq_loaded ? pq.PQpingParams(keywords, values, 1) : PQPING_NO_ATTEMPT;

	return answer != PQPING_OK && answer != PQPING_NO_ATTEMPT;
}

void postgres_close(struct db *db)
{
	struct postgres *d = postgres_of(db);

	pq.PQfinish(d->conn);
	free(d);
}

/* The number is "Outp". */
#define LOCK_SHARED_IN_TRANSACTION "pg_advisory_xact_lock_shared(1333097584)"
static const char LOCK_ALONE[] = "SELECT pg_advisory_lock(1333097584)";
static const char LOCK_SHARED[] = "SELECT pg_advisory_lock_shared(1333097584)";

/* ERR_BUSY: the lock is not free within lock_timeout, which is long enough for the end of a killed program's session. */
static int take_lock(struct postgres *d, const char *lock, struct error *e)
{
	PGresult *result = postgres_run_texts(d, lock);
	struct error why = {0};
	int rc = postgres_has_succeeded(result) ? 0 : postgres_explain(d, result, &why);

	pq.PQclear(result);
	if (rc == ERR_BUSY)
		return error_set(e, ERR_BUSY, "%s: another outpostd uses this database%s: stop it first", d->db.path,
		    lock == LOCK_ALONE ? "" : " alone, or `outpostctl store copy` does");
	return rc ? error_set(e, store_is_passing(rc) ? rc : ERR_IO, "%s", why.text) : 0;
}

int postgres_lock(struct db *db, bool with_others, struct error *e)
{
	const char *lock = with_others ? LOCK_SHARED : LOCK_ALONE;
	struct postgres *d = postgres_of(db);
	struct error why = {0};
	int rc;

	if (d->is_pooled && !with_others)
		return error_set(e, ERR_INVALID,
		    "%s: a pooler (pgbouncer) is in front of the server: give the server's own address", db->path);
	rc = d->is_pooled ? 0 : take_lock(d, lock, &why);
	d->lock = rc ? NULL : lock;
	return rc ? error_set(e, rc == ERR_BUSY ? ERR_EXISTS : rc, "%s", why.text) : 0;
}

void postgres_begin_pooled(struct postgres *d)
{
	struct buf text = BUF_INIT(4096);

	append_settings(d, true, &text);
	if (d->lock)
		buf_append_str(&text, ", " LOCK_SHARED_IN_TRANSACTION);
	postgres_send_text(d, text.data);
	buf_release(&text);
}

bool postgres_reconnect(struct postgres *d)
{
	int rc;

	if (pq.PQstatus(d->conn) == CONNECTION_OK && !d->must_reconnect)
		return true;
	pq.PQreset(d->conn);
	rc = begin_session(d, &d->db.why);
	if (!rc && d->lock && !d->is_pooled)
		rc = take_lock(d, d->lock, &d->db.why);
	/* Nothing runs in a session that is only half made. If a program has the database for itself, a repetition would only wait. */
	d->must_reconnect = rc != 0;
	d->may_repeat = rc == ERR_BUSY ? DB_FINAL : DB_LOST;
	return !rc;
}

/* ---- notes ---- */

void postgres_note(struct txn *t, const char *text)
{
	struct db *db = t->view->db;
	bool is_alone = postgres_of(db)->n_sent == 0 && !postgres_is_in_transaction(db);

	if (is_alone && postgres_of(db)->is_pooled) /* it is the listener's test, which it would not hear */
		return;
	db_exec(t, "SELECT pg_notify('outpost', ?1)", V_TEXT(text));
	if (is_alone)
		postgres_wait(db);
}

/* Through a pooler no note arrives, and db/notes.c asks for news instead. */
int postgres_listen(struct db *d)
{
	return postgres_of(d)->is_pooled ? 0 : postgres_script(d, "LISTEN outpost", &d->why);
}

int postgres_wait_notes(
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
		postgres_explain(d, NULL, &db->why);
	for (; note || (note = pq.PQnotifies(d->conn)) != NULL; note = NULL) {
		on_note(note->extra, owner);
		pq.PQfreemem(note);
	}
	return db->why.code;
}
