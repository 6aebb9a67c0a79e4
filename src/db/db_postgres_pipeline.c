/* Statements that go to the server together, and their answers. libpq's pipeline has them until the next statement that has an answer,
 * so that all of them need one round trip. After the first failure the server skips the rest of the pipeline. */
#include <poll.h>
#include <sys/socket.h>

#include "db/db_postgres.h"

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

PGresult *postgres_only_answer(struct postgres *d, int is_sent)
{
	PGresult *result, *last = NULL;

	while (is_sent && (result = next_result(d)) != NULL) {
		pq.PQclear(last);
		last = result;
	}
	return last;
}

PGresult *postgres_run_texts(struct postgres *d, const char *sql)
{
	return postgres_only_answer(d, pq.PQsendQuery(d->conn, sql));
}

static void count_changes(struct postgres *d, PGresult *result)
{
	/* empty for a statement that only reads, and otherwise how many rows it changed */
	if (strncmp(pq.PQcmdStatus(result), "SELECT", 6) != 0) {
		d->n_changes = strtoll(pq.PQcmdTuples(result), NULL, 10);
		d->n_total_changes += d->n_changes;
	}
}

PGresult *postgres_read_answers(struct postgres *d)
{
	PGresult *result, *last = NULL;
	bool is_complete = false;
	int n_read = 0;
	/* NULL is the end of the answer to one statement. Two of them in a row: libpq has lost the connection, and waits for nothing. */
	int n_ends = pq.PQpipelineSync(d->conn) ? 0 : 2;

	while (!is_complete && n_ends < 2) {
		result = next_result(d);
		n_ends = result ? 0 : n_ends + 1;
		is_complete = result && pq.PQresultStatus(result) == PGRES_PIPELINE_SYNC;
		if (result && !is_complete && postgres_has_succeeded(result)) {
			struct answer *to = d->sent[n_read++];

			count_changes(d, result);
			if (to) {
				to->result = result;
				continue;
			}
			pq.PQclear(last);
			last = result;
			continue;
		}
		if (result && !is_complete && !d->db.why.code) /* the others were skipped because of it */
			postgres_explain(d, result, &d->db.why);
		if (result && !is_complete && pq.PQstatus(d->conn) != CONNECTION_OK)
			n_ends = 2; /* it would repeat its failure */
		pq.PQclear(result);
	}
	if (!is_complete) {
		d->must_reconnect = true;
		if (!d->db.why.code)
			postgres_explain(d, NULL, &d->db.why);
		d->may_repeat = DB_LOST;
	}
	d->n_sent = 0;
	pq.PQexitPipelineMode(d->conn);
	if (!d->db.why.code)
		return last;
	pq.PQclear(last);
	return NULL;
}

void postgres_wait(struct db *db)
{
	struct postgres *d = postgres_of(db);

	if (d->n_sent)
		pq.PQclear(postgres_read_answers(d));
}

void postgres_begin_pipeline(struct postgres *d)
{
	if (d->n_sent == SENT_MAX)
		postgres_wait(&d->db);
	if (d->n_sent == 0)
		pq.PQenterPipelineMode(d->conn);
	d->sent[d->n_sent++] = NULL;
}

/* ---- a pipeline of reads, and its answers ---- */

struct answer **postgres_find_answer(
    struct postgres *d, const struct postgres_rows *statement, const char *values, size_t n)
{
	uint64_t hash = (uintptr_t)statement;
	struct answer **a;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ (uint8_t)values[i]) * UINT64_C(1099511628211);
	a = &d->answers[hash % ANSWER_BUCKETS];
	while (*a && ((*a)->statement != statement || (*a)->n_bytes != n || memcmp((*a)->values, values, n) != 0))
		a = &(*a)->next;
	return a;
}

static void forget_answers(struct postgres *d)
{
	for (size_t i = 0; i < ANSWER_BUCKETS; i++)
		for (struct answer *a; (a = d->answers[i]) != NULL;) {
			d->answers[i] = a->next;
			pq.PQclear(a->result);
			FREE_ALL(a->values, a);
		}
}

void postgres_pipeline_begin(struct db *d)
{
	assert(!postgres_of(d)->is_pipelining); /* an inner one would end the outer one too early */
	postgres_of(d)->is_pipelining = true;
	postgres_of(d)->n_passes = 0;
}

/* If one answer after the other leads to the next statement, the last pass keeps the answers, and sends one statement at a time. */
bool postgres_pipeline_again(struct db *db)
{
	struct postgres *d = postgres_of(db);
	bool has_asked = d->has_asked;

	postgres_wait(db);
	d->has_asked = false;
	d->is_pipelining = has_asked && !db->why.code;
	d->n_passes += d->is_pipelining;
	if (!d->is_pipelining)
		forget_answers(d);
	return d->is_pipelining;
}

/* ---- transactions ---- */

void postgres_send_text(struct postgres *d, const char *sql)
{
	postgres_begin_pipeline(d);
	if (!d->db.why.code && !pq.PQsendQueryParams(d->conn, sql, 0, NULL, NULL, NULL, NULL, 0))
		postgres_explain(d, NULL, &d->db.why);
}

/* The end of a transaction waits for its answer, and the others go with the next statement. */
void postgres_run(struct db *db, const char *sql)
{
	struct postgres *d = postgres_of(db);
	bool is_begin = str_has_prefix(sql, "BEGIN"), is_commit = strcmp(sql, "COMMIT") == 0;
	PGresult *result;

	if (db->why.code || (is_begin && !postgres_reconnect(d)))
		return;
	if (is_begin)
		d->may_repeat = DB_FINAL;
	postgres_send_text(d, sql);
	if (is_begin && d->is_pooled)
		postgres_begin_pooled(d);
	if (!is_commit && strcmp(sql, "ROLLBACK") != 0)
		return;
	result = postgres_read_answers(d);
	if (result && is_commit && strcmp(pq.PQcmdStatus(result), "COMMIT") != 0)
		error_set(&db->why, ERR_IO, "%s: the transaction was rolled back", db->path);
	pq.PQclear(result);
}

int postgres_script(struct db *db, const char *sql, struct error *e)
{
	struct postgres *d = postgres_of(db);
	PGresult *result;
	int rc;

	postgres_wait(db);
	if (db->why.code)
		return error_set(e, db->why.code, "%s", db->why.text);
	result = postgres_run_texts(d, sql);
	rc = postgres_has_succeeded(result) ? 0 : postgres_explain(d, result, e);
	pq.PQclear(result);
	return rc;
}

bool postgres_is_in_transaction(const struct db *d)
{
	int status = pq.PQtransactionStatus(postgres_of(d)->conn);

	return status != PQTRANS_IDLE && status != PQTRANS_UNKNOWN;
}
