/* The connection to PostgreSQL. Private to db_postgres*.c.
 *
 * Thread: the connection's. libpq is loaded when the first connection is opened, so that a daemon on SQLite does without. */
#pragma once

#include "db/db_driver.h"

typedef struct pg_conn PGconn;
typedef struct pg_result PGresult;
typedef struct pg_notify {
	char *relname;
	int be_pid;
	char *extra; /* the text */
	struct pg_notify *next;
} PGnotify;

typedef struct pg_option {
	char *keyword, *envvar, *compiled;
	char *val; /* NULL: not given */
	char *label, *dispchar;
	int dispsize;
} PQconninfoOption;

/* The functions of libpq in use, as libpq-fe.h declares them; a build needs no header of PostgreSQL. */
#define LIBPQ(F)                                                                                                       \
	F(PGconn *, PQconnectdbParams, (const char *const *keywords, const char *const *values, int expand_dbname))    \
	F(int, PQpingParams, (const char *const *keywords, const char *const *values, int expand_dbname))              \
	F(PQconninfoOption *, PQconninfoParse, (const char *text, char **ret_error))                                   \
	F(void, PQconninfoFree, (PQconninfoOption * options))                                                          \
	F(void, PQreset, (PGconn * conn))                                                                              \
	F(void, PQfinish, (PGconn * conn))                                                                             \
	F(int, PQstatus, (const PGconn *conn))                                                                         \
	F(int, PQbackendPID, (const PGconn *conn))                                                                     \
	F(int, PQtransactionStatus, (const PGconn *conn))                                                              \
	F(const char *, PQparameterStatus, (const PGconn *conn, const char *name))                                     \
	F(char *, PQerrorMessage, (const PGconn *conn))                                                                \
	F(void *, PQsetNoticeProcessor, (PGconn * conn, void (*on_notice)(void *, const char *), void *owner))         \
	F(int, PQsetnonblocking, (PGconn * conn, int is_on))                                                           \
	F(int, PQsendQuery, (PGconn * conn, const char *text))                                                         \
	F(int, PQsendPrepare, (PGconn * conn, const char *name, const char *text, int n, const unsigned *types))       \
	F(int, PQenterPipelineMode, (PGconn * conn))                                                                   \
	F(int, PQexitPipelineMode, (PGconn * conn))                                                                    \
	F(int, PQpipelineSync, (PGconn * conn))                                                                        \
	F(int, PQflush, (PGconn * conn))                                                                               \
	F(int, PQisBusy, (PGconn * conn))                                                                              \
	F(PGresult *, PQgetResult, (PGconn * conn))                                                                    \
	F(int, PQsendQueryParams,                                                                                      \
	    (PGconn * conn, const char *text, int n, const unsigned *types, const char *const *values,                 \
		const int *lengths, const int *formats, int result_format))                                            \
	F(int, PQsendQueryPrepared,                                                                                    \
	    (PGconn * conn, const char *name, int n, const char *const *values, const int *lengths,                    \
		const int *formats, int result_format))                                                                \
	F(int, PQresultStatus, (const PGresult *result))                                                               \
	F(char *, PQresultErrorField, (const PGresult *result, int field))                                             \
	F(char *, PQcmdStatus, (PGresult * result))                                                                    \
	F(char *, PQcmdTuples, (PGresult * result))                                                                    \
	F(int, PQntuples, (const PGresult *result))                                                                    \
	F(int, PQnfields, (const PGresult *result))                                                                    \
	F(unsigned, PQftype, (const PGresult *result, int column))                                                     \
	F(char *, PQgetvalue, (const PGresult *result, int row, int column))                                           \
	F(int, PQgetisnull, (const PGresult *result, int row, int column))                                             \
	F(int, PQsocket, (const PGconn *conn))                                                                         \
	F(int, PQconsumeInput, (PGconn * conn))                                                                        \
	F(PGnotify *, PQnotifies, (PGconn * conn))                                                                     \
	F(void, PQfreemem, (void *p))                                                                                  \
	F(void, PQclear, (PGresult * result))

#define LIBPQ_MEMBER(type, name, args) type(*name) args;
extern struct libpq {
	LIBPQ(LIBPQ_MEMBER)
} pq;
/* libpq's numbers */
enum { CONNECTION_OK = 0, PQPING_OK = 0, PQPING_NO_ATTEMPT = 3, PQTRANS_IDLE = 0, PQTRANS_UNKNOWN = 4 };
enum { PGRES_COMMAND_OK = 1, PGRES_TUPLES_OK = 2, PGRES_PIPELINE_SYNC = 10 };

enum { PARAMETERS_MAX = 64 };

struct postgres_rows {
	struct rows rows;
	char *text; /* PostgreSQL's form of rows.sql */
	/* the prepared statement, and the types of its parameters; a type 0 was not known then */
	char name[16];
	unsigned connection; /* the number of the connection that has it; 0: none */
	unsigned types[PARAMETERS_MAX];
	int n_types;
	PGresult *result; /* of the walk; NULL: none */
	bool is_borrowed; /* from an answer */
	int row;
	struct arena memory; /* until the next row */
};

enum { SENT_MAX = 500 /* so that their answers need little memory */, ANSWER_BUCKETS = 1024, PASSES_MAX = 20 };

/* Of a DB_PIPELINE(): the answer to a statement with these values. */
struct answer {
	struct answer *next; /* in the bucket */
	const struct postgres_rows *statement;
	char *values;
	size_t n_bytes;
	PGresult *result; /* NULL: it is not here yet */
};

struct postgres {
	struct db db;
	PGconn *conn;
	enum db_use use;
	const char *lock;          /* the statement of db_lock(), which has succeeded; NULL: none */
	enum db_repeat may_repeat; /* of the last failure */
	bool
	    must_reconnect; /* the connection is broken, or the server became a standby, so that another one is the primary */
	bool is_pooled;      /* through a pooler: no statement relies on its session */
	unsigned connection; /* rises with each connection */
	unsigned n_prepared;
	int n_sent;                    /* statements whose answers are not read yet */
	struct answer *sent[SENT_MAX]; /* where the answer to each goes; NULL: to the caller */
	struct answer *answers[ANSWER_BUCKETS];
	bool is_pipelining, has_asked; /* has_asked: a statement in this pass */
	int n_passes;
	int64_t n_changes, n_total_changes;
	struct postgres_rows no_rows;
};

static inline struct postgres *postgres_of(const struct db *d) { return (struct postgres *)d; }

/* ---- db_postgres_connection.c ---- */
int postgres_open(
    const char *path, const struct secret *password, enum db_use use, struct db **ret, struct error *e) MUST_CHECK;
void postgres_close(struct db *db);
int postgres_lock(struct db *db, bool with_others, struct error *e) MUST_CHECK;
/* Connects again after the connection was lost. False: it failed, which sticks. */
bool postgres_reconnect(struct postgres *d);
/* After a BEGIN through a pooler: sends the settings and the lock of the transaction, whose session may be another one than before. */
void postgres_begin_pooled(struct postgres *d);
bool postgres_has_succeeded(const PGresult *result);
/* Records the explanation of a result that is no success, and returns the code. */
int postgres_explain(struct postgres *d, const PGresult *result, struct error *e);
void postgres_note(struct txn *t, const char *text);
int postgres_listen(struct db *d) MUST_CHECK;
int postgres_wait_notes(
    struct db *db, int wake_fd, int64_t ms, void (*on_note)(const char *text, void *owner), void *owner) MUST_CHECK;

/* ---- db_postgres_pipeline.c ---- */
/* Before a statement is sent. */
void postgres_begin_pipeline(struct postgres *d);
/* Where the answer to a statement with these values is, or will be: *ret is NULL while it was not sent. */
struct answer **postgres_find_answer(
    struct postgres *d, const struct postgres_rows *statement, const char *values, size_t n);
/* See DB_PIPELINE(). */
void postgres_pipeline_begin(struct db *d);
bool postgres_pipeline_again(struct db *d);
/* Reads the answers to all statements in the pipeline, and returns that to the last one: PQclear(). NULL: one has failed. */
PGresult *postgres_read_answers(struct postgres *d);
void postgres_wait(struct db *db);
/* Outside the pipeline: the answer to what was sent, of several statements that of the last one or of the first that failed. NULL: it was
 * not sent. */
PGresult *postgres_only_answer(struct postgres *d, int is_sent);
/* Runs one statement or more without values. */
PGresult *postgres_run_texts(struct postgres *d, const char *sql);
/* Sends a statement without values. Its answer comes with that of a later one. */
void postgres_send_text(struct postgres *d, const char *sql);
void postgres_run(struct db *db, const char *sql);
int postgres_script(struct db *db, const char *sql, struct error *e) MUST_CHECK;
bool postgres_is_in_transaction(const struct db *d);

/* ---- db_postgres_schema.c ---- */
int postgres_migrate(struct db *d, struct error *e) MUST_CHECK;
int postgres_check_version(struct db *d, struct error *e) MUST_CHECK;
int64_t postgres_version(struct db *d);
int postgres_set_sequences(struct db *d, struct error *e) MUST_CHECK;
int64_t postgres_sequence(struct db *d, const char *table);
void postgres_set_sequence(struct txn *t, const char *table, int64_t last_id);
