#include "store/log_rows.h"

#include "db/record_rows.h"

enum {
	TAIL_BYTES =
	    8 * 1024, /* a shorter last piece grows, so that a log of single bytes has no row for each of them */
	OBJECT_ROW_BYTES = 256 * 1024,
	ROWS_OF_PART = 4, /* of log_object, in one transaction */
	PIECES_OF_PART = 256,
};

static const char *const PLACES[] = {"", "database", "elsewhere"};
static const struct words place_words = {PLACES, ARRAY_LEN(PLACES)};
#define RECORD_C_LOG_PLACE enum log_text_place
#define RECORD_T_LOG_PLACE RECORD_WORD, &place_words

#define LOG_ROW_RECORD(F, S)                                                                                           \
	F(S, BOOL, exists, NULL, "1", "")                                                                              \
	F(S, BOOL, is_complete, NULL, "is_complete", "")                                                               \
	F(S, INT, bytes, NULL, "bytes", "")                                                                            \
	F(S, LOG_PLACE, place, NULL, "COALESCE(place, '')", "")                                                        \
	F(S, INT, object_bytes, NULL, "object_bytes", "")                                                              \
	F(S, TIME, written_ms, NULL, "written_ms", "")
RECORD_DECLARE(log_row);
RECORD_DEFINE(log_row, LOG_ROW_RECORD)

#define LOG_PART_RECORD(F, S)                                                                                          \
	F(S, INT, at, NULL, "at", "")                                                                                  \
	F(S, BLOB, bytes, NULL, "bytes", "")
RECORD_LOCAL(log_part, LOG_PART_RECORD)

static struct log_row read_log_row(const struct view *d, int64_t job_id)
{
	struct log_row row = {0};

	RECORD_READ_FIRST(d, log_row, LOG_ROW_RECORD, &row, "FROM log WHERE job_id = ?1", V_INT(job_id));
	return row;
}

/* ---- appending ---- */

/* Moves the end of the log from `from` to `to`. False: another daemon did so first. */
static bool move_end(struct txn *d, const struct put_log_piece *o, int64_t from, int64_t to, int64_t tail_at)
{
	if (db_exec_count(d,
		"UPDATE log SET bytes = ?3, tail_at = ?4, is_complete = ?5, written_ms = ?6"
		" WHERE job_id = ?1 AND bytes = ?2 AND is_complete = 0",
		V_INT(o->job_id), V_INT(from), V_INT(to), V_INT(tail_at), V_INT(o->is_last), V_INT(o->now_ms)))
		return true;
	return from == 0 && db_exec_count(d,
				"INSERT INTO log (job_id, bytes, tail_at, is_complete, has_pieces, written_ms)"
				" VALUES (?1, ?2, ?3, ?4, 1, ?5) ON CONFLICT (job_id) DO NOTHING",
				V_INT(o->job_id), V_INT(to), V_INT(tail_at), V_INT(o->is_last), V_INT(o->now_ms));
}

/* The short last piece, to which `more` is added. */
static void grow_tail(struct txn *d, int64_t job_id, int64_t tail_at, const void *more, size_t n)
{
	struct buf text = BUF_INIT(SIZE_MAX / 2);
	struct log_part tail = {0};
	struct rows *r = db_rows(d, RECORD_QUERY(LOG_PART_RECORD, "FROM log_piece WHERE job_id = ?1 AND at = ?2"),
	    V_INT(job_id), V_INT(tail_at));

	if (rows_next(r)) {
		record_read(r, &log_part_record, &tail);
		buf_append(&text, tail.bytes.p, tail.bytes.n);
	}
	rows_end(r);
	buf_append(&text, more, n);
	db_exec(d, "UPDATE log_piece SET bytes = ?3 WHERE job_id = ?1 AND at = ?2", V_INT(job_id), V_INT(tail_at),
	    V_BLOB(text.data, text.len));
	buf_release(&text);
}

static void put_piece(struct txn *d, int64_t job_id, int64_t at, const void *bytes, size_t n)
{
	db_exec(d, "INSERT INTO log_piece (job_id, at, bytes) VALUES (?1, ?2, ?3)", V_INT(job_id), V_INT(at),
	    V_BLOB(bytes, n));
}

static int put_log_piece_run(struct store_op *op, struct txn *d)
{
	struct put_log_piece *o = CONTAINER_OF(op, struct put_log_piece, op);
	int64_t end, tail_at;
	size_t skip, n;

	do {
		o->before = read_log_row(d->view, o->job_id);
		end = o->before.bytes;
		o->after = o->before;
		if (db_status(d) || o->before.is_complete || o->offset > end ||
		    (!o->is_last && o->offset + (int64_t)o->n <= end))
			return 0;
		skip = (size_t)(end - o->offset) < o->n ? (size_t)(end - o->offset) : o->n;
		n = o->n - skip;
		tail_at = db_int(d, 0, "SELECT tail_at FROM log WHERE job_id = ?1", V_INT(o->job_id));
		if (end - tail_at >= TAIL_BYTES)
			tail_at = end;
	} while (!move_end(d, o, end, end + (int64_t)n, tail_at) && !db_status(d));
	if (n && tail_at < end)
		grow_tail(d, o->job_id, tail_at, (const char *)o->bytes + skip, n);
	else if (n)
		put_piece(d, o->job_id, end, (const char *)o->bytes + skip, n);
	o->after = (struct log_row){
	    .exists = true, .is_complete = o->is_last, .bytes = end + (int64_t)n, .written_ms = o->now_ms};
	return 0;
}
STORE_SUBMIT(put_log_piece, OP_INDEPENDENT, op->n)

/* ---- reading ---- */

/* Copies [at, at + max) of the parts, which follow each other, and stops at a gap. Returns how many bytes. */
static size_t copy_parts(struct rows *r, int64_t at, char *out, size_t max)
{
	size_t n = 0;

	while (n < max && rows_next(r)) {
		struct log_part part;
		int64_t from = at + (int64_t)n;

		record_read(r, &log_part_record, &part);
		if (part.at > from || part.at + (int64_t)part.bytes.n <= from)
			break;
		size_t skip = (size_t)(from - part.at), rest = part.bytes.n - skip;
		rest = rest < max - n ? rest : max - n;
		memcpy(out + n, (const char *)part.bytes.p + skip, rest);
		n += rest;
	}
	rows_end(r);
	return n;
}

/* The pieces, and the rows of the compressed text, that have [at, at + n). */
static struct rows *piece_parts(const struct view *d, int64_t job_id, int64_t at, size_t n)
{
	return db_rows(d,
	    RECORD_QUERY(LOG_PART_RECORD,
		"FROM log_piece WHERE job_id = ?1 AND at < ?3"
		" AND at >= (SELECT MAX(at) FROM log_piece WHERE job_id = ?1 AND at <= ?2) ORDER BY at"),
	    V_INT(job_id), V_INT(at), V_INT(at + (int64_t)n));
}

static struct rows *object_parts(const struct view *d, int64_t job_id, int64_t at, size_t n)
{
	return db_rows(d,
	    RECORD_QUERY(LOG_PART_RECORD, "FROM log_object WHERE job_id = ?1 AND at >= ?2 AND at < ?3 ORDER BY at"),
	    V_INT(job_id), V_INT(at - at % OBJECT_ROW_BYTES), V_INT(at + (int64_t)n));
}

static int read_log_pieces_run(struct store_query *q, const struct view *d)
{
	struct read_log_pieces *o = CONTAINER_OF(q, struct read_log_pieces, q);
	int64_t left;

	o->row = read_log_row(d, o->job_id);
	if (!o->row.exists)
		return ERR_NOT_FOUND;
	left = o->row.bytes - o->offset;
	if (o->row.place != LOG_IN_PIECES || o->offset < 0 || left <= 0 || o->max == 0)
		return 0;
	size_t max = left < (int64_t)o->max ? (size_t)left : o->max;
	o->bytes = xmalloc(max + 1);
	o->n = copy_parts(piece_parts(d, o->job_id, o->offset, max), o->offset, o->bytes, max);
	return o->n == max ? 0 : ERR_CORRUPT;
}

int store_read_log_pieces(struct store *s, struct read_log_pieces *q)
{
	CLEAR_FROM(q, row);
	q->q.run = read_log_pieces_run;
	return store_query(s, &q->q);
}

static int read_log_ends_run(struct store_query *q, const struct view *d)
{
	struct read_log_ends *o = CONTAINER_OF(q, struct read_log_ends, q);

	for (size_t i = 0; i < o->n; i++)
		o->ends[i] =
		    db_int(d, 0, "SELECT bytes + is_complete FROM log WHERE job_id = ?1", V_INT(o->job_ids[i]));
	return 0;
}
STORE_QUERY(read_log_ends)

static int read_log_object_run(struct store_query *q, const struct view *d)
{
	struct read_log_object *o = CONTAINER_OF(q, struct read_log_object, q);
	struct log_row row = read_log_row(d, o->job_id);

	if (!row.exists || row.place != LOG_IN_OBJECT)
		return ERR_NOT_FOUND;
	o->object_bytes = row.object_bytes;
	if (o->at < 0) {
		o->n = row.object_bytes < (int64_t)o->n ? (size_t)row.object_bytes : o->n;
		o->at = row.object_bytes - (int64_t)o->n;
	}
	o->bytes = xmalloc(o->n + 1);
	size_t n = copy_parts(object_parts(d, o->job_id, o->at, o->n), o->at, o->bytes, o->n);
	return n == o->n ? 0 : ERR_CORRUPT;
}

int store_read_log_object(struct store *s, struct read_log_object *q)
{
	CLEAR_FROM(q, bytes);
	q->q.run = read_log_object_run;
	return store_query(s, &q->q);
}

/* ---- finished logs ---- */

static int claim_log_run(struct store_op *op, struct txn *d)
{
	struct claim_log *o = CONTAINER_OF(op, struct claim_log, op);
	int64_t now_ms = db_now_ms(d);

	CLEAR_FROM(o, job_id);
	o->job_id = db_exec_int(d, 0,
	    "UPDATE log SET moving_until_ms = ?2 WHERE job_id = (SELECT job_id FROM log WHERE is_complete = 1 AND "
	    "has_pieces = 1"
	    " AND moving_until_ms < ?1 ORDER BY moving_until_ms, job_id LIMIT 1) AND moving_until_ms < ?1 RETURNING "
	    "job_id",
	    V_INT(now_ms), V_INT(now_ms + o->hold_ms));
	if (o->job_id)
		o->row = read_log_row(d->view, o->job_id);
	return 0;
}
STORE_INDEPENDENT(claim_log)

/* Drops the next rows of a table of parts. True: there may be more of them. */
static bool drop_pieces(struct txn *d, int64_t job_id)
{
	return db_exec_count(d,
		   "DELETE FROM log_piece WHERE job_id = ?1 AND at <= (SELECT MAX(at) FROM"
		   " (SELECT at FROM log_piece WHERE job_id = ?1 ORDER BY at LIMIT ?2) p)",
		   V_INT(job_id), V_INT(PIECES_OF_PART)) == PIECES_OF_PART;
}

/* The text of this log is in its place: drops its pieces. */
static void drop_pieces_of_finished(struct store_op *op, struct txn *d, int64_t job_id)
{
	op->is_unfinished = drop_pieces(d, job_id);
	if (!op->is_unfinished)
		db_exec(d, "UPDATE log SET has_pieces = 0 WHERE job_id = ?1 AND place IS NOT NULL", V_INT(job_id));
}

/* Makes this operation the one that writes the compressed text. A log without a row has come from a file of state_dir. *ret_is_there: the
 * text is in its place already. */
static int begin_object(struct txn *d, struct put_log_object *o, bool *ret_is_there)
{
	random_bytes(&o->mover, sizeof(o->mover));
	o->mover &= INT64_MAX;
	*ret_is_there = false;
	if (db_exec_count(d,
		"INSERT INTO log (job_id, bytes, tail_at, is_complete, has_pieces, written_ms, mover) VALUES (?1, ?2, "
		"?2, 1, 1, ?3, ?4)"
		" ON CONFLICT (job_id) DO UPDATE SET mover = excluded.mover"
		" WHERE log.is_complete = 1 AND log.place IS NULL AND log.bytes = excluded.bytes",
		V_INT(o->job_id), V_INT(o->text_bytes), V_INT(o->written_ms), V_INT(o->mover))) {
		db_exec(d, "DELETE FROM log_object WHERE job_id = ?1", V_INT(o->job_id)); /* of one that did not end */
		return 0;
	}
	*ret_is_there = read_log_row(d->view, o->job_id).place != LOG_IN_PIECES;
	return *ret_is_there ? 0 : ERR_EXISTS;
}

static void put_object_row(struct txn *d, int64_t job_id, int64_t at, const void *bytes, size_t n)
{
	db_exec(d, "INSERT INTO log_object (job_id, at, bytes) VALUES (?1, ?2, ?3)", V_INT(job_id), V_INT(at),
	    V_BLOB(bytes, n));
}

/* One part of the compressed text. */
static int write_object_rows(struct txn *d, const struct put_log_object *o, int64_t at)
{
	char *bytes = xmalloc(OBJECT_ROW_BYTES);
	int rc = 0;

	for (int i = 0; i < ROWS_OF_PART && !rc && at < o->object_bytes; i++) {
		int64_t left = o->object_bytes - at;
		size_t n = left < OBJECT_ROW_BYTES ? (size_t)left : OBJECT_ROW_BYTES;

		if (pread(o->fd, bytes, n, at) != (ssize_t)n)
			rc = ERR_IO;
		else
			put_object_row(d, o->job_id, at, bytes, n);
		at += (int64_t)n;
	}
	free(bytes);
	return rc;
}

/* The part follows from the number of the parts before it, because a part that was not committed runs again. */
static int put_log_object_run(struct store_op *op, struct txn *d)
{
	struct put_log_object *o = CONTAINER_OF(op, struct put_log_object, op);
	int64_t at = (op->n_parts - 1) * ROWS_OF_PART * OBJECT_ROW_BYTES;
	int rc;

	op->is_unfinished = true;
	if (op->n_parts == 0)
		return begin_object(d, o, &o->is_there);
	if (o->is_there || at >= o->object_bytes) {
		drop_pieces_of_finished(op, d, o->job_id);
		return 0;
	}
	/* Locks the row, too: another daemon that does the same waits, and finds that it is not the mover any more. */
	if (!db_exec_count(d, "UPDATE log SET mover = ?2 WHERE job_id = ?1 AND mover = ?2 AND place IS NULL",
		V_INT(o->job_id), V_INT(o->mover)))
		return db_status(d) ? db_status(d) : ERR_CONFLICT;
	rc = write_object_rows(d, o, at);
	if (!rc && at + ROWS_OF_PART * OBJECT_ROW_BYTES >= o->object_bytes)
		db_exec(d, "UPDATE log SET place = 'database', object_bytes = ?2 WHERE job_id = ?1", V_INT(o->job_id),
		    V_INT(o->object_bytes));
	return rc;
}
STORE_SUBMIT(put_log_object, OP_INDEPENDENT, ROWS_OF_PART *OBJECT_ROW_BYTES)

static int finish_log_run(struct store_op *op, struct txn *d)
{
	struct finish_log *o = CONTAINER_OF(op, struct finish_log, op);

	if (op->n_parts == 0 && o->is_elsewhere)
		db_exec(d, "UPDATE log SET place = 'elsewhere' WHERE job_id = ?1 AND is_complete = 1 AND place IS NULL",
		    V_INT(o->job_id));
	drop_pieces_of_finished(op, d, o->job_id);
	return 0;
}
STORE_INDEPENDENT(finish_log)

/* ---- retention ---- */

static int drop_logs_run(struct store_op *op, struct txn *d)
{
	struct drop_logs *o = CONTAINER_OF(op, struct drop_logs, op);
	int64_t job_id = db_int(
	    d, 0, "SELECT job_id FROM log WHERE written_ms < ?1 ORDER BY written_ms LIMIT 1", V_INT(o->before_ms));

	if (op->n_parts == 0)
		o->n_dropped = 0;
	if (!job_id)
		return 0;
	op->is_unfinished = true;
	if (drop_pieces(d, job_id) || db_exec_count(d,
					  "DELETE FROM log_object WHERE job_id = ?1 AND at <= (SELECT MAX(at) FROM"
					  " (SELECT at FROM log_object WHERE job_id = ?1 ORDER BY at LIMIT ?2) p)",
					  V_INT(job_id), V_INT(PIECES_OF_PART)) == PIECES_OF_PART)
		return 0;
	o->n_dropped += !db_has(d, "SELECT 1 FROM log WHERE job_id = ?1 AND place = 'elsewhere'", V_INT(job_id));
	db_exec(d, "DELETE FROM log WHERE job_id = ?1", V_INT(job_id));
	return 0;
}
STORE_INDEPENDENT(drop_logs)

/* ---- for a copy ---- */

int64_t log_rows_count(const struct view *d) { return db_int(d, 0, "SELECT COUNT(*) FROM log"); }

int64_t log_row_next(const struct view *d, int64_t after, struct log_row *ret)
{
	int64_t job_id = db_int(d, 0, "SELECT MIN(job_id) FROM log WHERE job_id > ?1", V_INT(after));

	*ret = read_log_row(d, job_id);
	return job_id;
}

struct log_row log_row_of(const struct view *d, int64_t job_id) { return read_log_row(d, job_id); }

size_t log_row_read(const struct view *d, int64_t job_id, const struct log_row *row, int64_t at, char *out, size_t n)
{
	return copy_parts(
	    row->place == LOG_IN_OBJECT ? object_parts(d, job_id, at, n) : piece_parts(d, job_id, at, n), at, out, n);
}

int log_row_put(struct txn *d, int64_t job_id, const struct log_row *row, int fd)
{
	bool is_packed = row->place == LOG_IN_OBJECT, has_pieces = row->place == LOG_IN_PIECES;
	int64_t n = is_packed ? row->object_bytes : has_pieces ? row->bytes : 0;
	char *bytes = xmalloc(OBJECT_ROW_BYTES);
	int rc = 0;

	db_exec(d, "DELETE FROM log_piece WHERE job_id = ?1", V_INT(job_id));
	db_exec(d, "DELETE FROM log_object WHERE job_id = ?1", V_INT(job_id));
	db_exec(d, "DELETE FROM log WHERE job_id = ?1", V_INT(job_id));
	db_exec(d,
	    "INSERT INTO log (job_id, bytes, tail_at, is_complete, has_pieces, place, object_bytes, written_ms)"
	    " VALUES (?1, ?2, ?2, ?3, ?4, ?5, ?6, ?7)",
	    V_INT(job_id), V_INT(row->bytes), V_INT(row->is_complete), V_INT(has_pieces),
	    V_TEXT(has_pieces ? NULL : PLACES[row->place]), V_INT(row->object_bytes), V_INT(row->written_ms));
	for (int64_t at = 0; at < n && !rc; at += OBJECT_ROW_BYTES) {
		size_t part = n - at < OBJECT_ROW_BYTES ? (size_t)(n - at) : OBJECT_ROW_BYTES;

		if (pread(fd, bytes, part, at) != (ssize_t)part)
			rc = ERR_IO;
		else if (is_packed)
			put_object_row(d, job_id, at, bytes, part);
		else
			put_piece(d, job_id, at, bytes, part);
	}
	free(bytes);
	return rc;
}
