/* The logs of jobs in the database. With PostgreSQL a log grows there in pieces, so that every daemon appends to it and reads it; a finished one
 * is moved to where `logs` says: into rows of 256 KiB of its compressed text (log_object), or elsewhere (a folder, S3). logs/log_rows.c uses
 * these operations. They work on both engines.
 *
 * The row of `log` has the length, and each append names it, so two daemons that get the same piece cause neither a gap nor a duplicate.
 *
 * Thread: loop. Ownership: the caller's structs, until done. */
#pragma once

#include "db/store.h"

enum log_text_place {
	LOG_IN_PIECES, /* also: there is no log */
	LOG_IN_OBJECT, /* compressed, in log_object */
	LOG_ELSEWHERE, /* compressed, in the folder or bucket of `logs` */
};
struct log_row {
	bool exists, is_complete;
	int64_t bytes; /* of the text */
	enum log_text_place place;
	int64_t object_bytes; /* of the compressed text, if it is in log_object */
	int64_t written_ms;
};

/* Appends the bytes behind the end of the log, unless the piece begins beyond it or the log is complete. The caller compares the two states
 * with its piece. */
struct put_log_piece {
	struct store_op op;
	int64_t job_id, offset;
	const void *bytes;
	size_t n;
	bool is_last;
	int64_t now_ms;
	struct log_row before, after; /* out */
};
int store_put_log_piece(struct store *s, struct put_log_piece *op) MUST_CHECK;

/* The row, and up to max bytes of the text from offset if it is in pieces: fewer only at its end. ERR_NOT_FOUND: there is no log. */
struct read_log_pieces {
	struct store_query q;
	int64_t job_id, offset;
	size_t max;
	struct log_row row; /* out */
	char *bytes;        /* out; free() */
	size_t n;
};
int store_read_log_pieces(struct store *s, struct read_log_pieces *q) MUST_CHECK;

/* The lengths of logs that somebody watches. */
struct read_log_ends {
	struct store_query q;
	const int64_t *job_ids; /* borrowed */
	size_t n;
	int64_t *ends; /* out, of the caller: the bytes of each log, plus one if it is complete */
};
int store_read_log_ends(struct store *s, struct read_log_ends *q) MUST_CHECK;

/* Gives the caller a finished log whose pieces are still here, the one that has waited longest, for hold_ms: then another daemon may get it.
 * job_id 0: there is none. */
struct claim_log {
	struct store_op op;
	int64_t hold_ms;
	int64_t job_id; /* out */
	struct log_row row;
};
int store_claim_log(struct store *s, struct claim_log *op) MUST_CHECK;

/* Writes the compressed text of a complete log from a file, and drops its pieces, in several transactions. Of two daemons that do the same at the
 * same time, the later one writes it and the other gets ERR_CONFLICT. */
struct put_log_object {
	struct store_op op;
	int64_t job_id;
	int fd; /* borrowed; the writer's thread reads it */
	int64_t object_bytes, text_bytes, written_ms;
	/* store's own */
	int64_t mover;
	bool is_there;
};
int store_put_log_object(struct store *s, struct put_log_object *op) MUST_CHECK;

/* Drops the pieces of a log; is_elsewhere: its compressed text is in the folder or bucket of `logs` now. */
struct finish_log {
	struct store_op op;
	int64_t job_id;
	bool is_elsewhere;
};
int store_finish_log(struct store *s, struct finish_log *op) MUST_CHECK;

/* n bytes of the compressed text from `at`; -1: the last n bytes, or all. ERR_NOT_FOUND; ERR_CORRUPT: it is shorter. */
struct read_log_object {
	struct store_query q;
	int64_t job_id, at; /* at: also out */
	size_t n;           /* also out */
	char *bytes;        /* out; free() */
	int64_t object_bytes;
};
int store_read_log_object(struct store *s, struct read_log_object *q) MUST_CHECK;

/* Drops the logs that were last written before that time, in several transactions. */
struct drop_logs {
	struct store_op op;
	int64_t before_ms;
	int64_t n_dropped; /* out: without those that are elsewhere */
};
int store_drop_logs(struct store *s, struct drop_logs *op) MUST_CHECK;

/* ---- for a copy from or into a folder (logs/copy_logs.h). Thread: the connection's ---- */

int64_t log_rows_count(const struct view *d);
/* The job of the next log behind that of `after`, and its row; 0: there is none. */
int64_t log_row_next(const struct view *d, int64_t after, struct log_row *ret);
struct log_row log_row_of(const struct view *d, int64_t job_id);
/* Up to n bytes from `at` of the stored form: of the pieces, or of the compressed text. Returns how many. */
size_t log_row_read(const struct view *d, int64_t job_id, const struct log_row *row, int64_t at, char *out, size_t n);
/* Writes the row, and what it stores from the file; replaces what is there. ERR_IO. */
int log_row_put(struct txn *d, int64_t job_id, const struct log_row *row, int fd) MUST_CHECK;
