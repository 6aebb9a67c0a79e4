#include "logs/copy_logs.h"

#include "logs/log_file.h"
#include "logs/seekable.h"
#include "store/log_rows.h"

enum { PART_BYTES = 1 << 20 };

/* A log as a file, and as rows. The bytes are the same in both. */
static struct log_row row_of_file(const struct log_file *f)
{
	bool is_packed = f->form == LOG_FILE_PACKED, is_moved = f->form == LOG_FILE_MOVED;

	return (struct log_row){
	    .exists = true,
	    .is_complete = f->state.is_complete,
	    .bytes = f->state.end,
	    .place = is_moved    ? LOG_ELSEWHERE
		     : is_packed ? LOG_IN_OBJECT
				 : LOG_IN_PIECES,
	    .object_bytes = is_packed ? f->file_bytes : 0,
	    .written_ms = f->written_ms,
	};
}

static struct log_file file_of_row(const struct log_row *row)
{
	return (struct log_file){
	    .fd = -1,
	    .form = row->place == LOG_ELSEWHERE   ? LOG_FILE_MOVED
		    : row->place == LOG_IN_OBJECT ? LOG_FILE_PACKED
		    : row->is_complete            ? LOG_FILE_DONE
						  : LOG_FILE_OPEN,
	    .file_bytes = row->place == LOG_IN_OBJECT   ? row->object_bytes
			  : row->place == LOG_IN_PIECES ? row->bytes
							: 0,
	    .written_ms = row->written_ms,
	    .state = {row->bytes, row->is_complete},
	};
}

static bool is_equal(const struct log_row *a, const struct log_row *b)
{
	return a->exists == b->exists && a->is_complete == b->is_complete && a->bytes == b->bytes &&
	       a->place == b->place && a->object_bytes == b->object_bytes && a->written_ms == b->written_ms;
}

/* Reads the bytes from the rows into an empty file. */
static int write_rows(struct db *d, int64_t job_id, const struct log_row *row, int fd, struct error *e)
{
	struct log_file f = file_of_row(row);
	char *bytes = xmalloc(PART_BYTES);
	int rc = 0;

	for (int64_t at = 0; at < f.file_bytes && !rc; at += PART_BYTES) {
		size_t want = f.file_bytes - at < PART_BYTES ? (size_t)(f.file_bytes - at) : PART_BYTES;

		if (log_row_read(db_view(d), job_id, row, at, bytes, want) < want)
			rc = db_status(d) ? error_set(e, db_status(d), "%s", db_why(d)->text)
					  : error_set(e, ERR_CORRUPT, "the log of job %lld is damaged in the database",
						(long long)job_id);
		else if (file_io_write_at(fd, bytes, want, at))
			rc = error_set(e, file_io_code(errno), "the log of job %lld: %m", (long long)job_id);
	}
	free(bytes);
	return rc;
}

/* The digest of the length and of the bytes of a file; -1: none. */
static int digest_log(int fd, const struct log_row *row, struct copy_digest *ret, struct error *e)
{
	uint8_t digest[SHA256_BYTES] = {0};

	*ret = (struct copy_digest){.n_rows = 1};
	if (fd >= 0 && sha256_file(fd, digest))
		return error_set(e, ERR_IO, "a log cannot be read: %m");
	memcpy(ret->sum, digest, sizeof(ret->sum));
	ret->sum[0] += (uint64_t)row->bytes * 2 + row->is_complete;
	return 0;
}

static void add_log(struct logs_copy *c, const struct copy_digest *digest)
{
	c->n++;
	c->digest.n_rows++;
	for (size_t i = 0; i < ARRAY_LEN(c->digest.sum); i++)
		c->digest.sum[i] += digest->sum[i];
}

/* The bytes in the database are read back into a file and compared with those of the other file. */
static int compare_log(
    struct logs_copy *c, const struct log_folder *folder, int64_t job_id, const struct log_file *f, struct error *e)
{
	struct log_row row = log_row_of(db_view(c->db), job_id), expected = row_of_file(f);
	struct copy_digest in_rows, in_file;
	int fd = -1, rc = 0;

	if (db_status(c->db))
		return error_set(e, db_status(c->db), "%s", db_why(c->db)->text);
	if (f->fd >= 0)
		rc = log_file_open_unnamed(folder, &fd, e);
	if (!rc && f->fd >= 0)
		rc = write_rows(c->db, job_id, &row, fd, e);
	if (!rc)
		rc = digest_log(fd, &row, &in_rows, e);
	if (!rc)
		rc = digest_log(f->fd, &expected, &in_file, e);
	if (!rc && (!is_equal(&row, &expected) || memcmp(&in_rows, &in_file, sizeof(in_rows)) != 0))
		rc = error_set(e, ERR_CORRUPT, "the log of job %lld differs after it was copied", (long long)job_id);
	if (!rc)
		add_log(c, &in_file);
	if (fd >= 0)
		close(fd);
	return rc;
}

/* ---- to the database ---- */

static int put_in_database(struct logs_copy *c, int64_t job_id, const struct log_file *f, struct error *e)
{
	struct log_row row = row_of_file(f), there = log_row_of(db_view(c->db), job_id);
	int rc;

	if (is_equal(&row, &there))
		return 0;
	if (db_begin(c->db, DB_WRITER) == 0 && log_row_put(db_txn(c->db), job_id, &row, f->fd))
		db_fail(c->db, ERR_IO, "the log of job %lld cannot be read", (long long)job_id);
	rc = db_status(c->db) ? db_status(c->db) : db_commit(c->db);
	if (rc) {
		error_set(e, rc, "%s", db_why(c->db)->text);
		db_rollback(c->db);
	}
	return rc;
}

int logs_copy_to_database(struct logs_copy *c, struct error *e)
{
	struct log_folder folder;
	struct log_ids ids = {0};
	int rc = log_folder_open(c->state_dir, &folder, e);

	for (int i = 0; i < LOG_SUBFOLDERS && !rc; i++)
		rc = log_folder_list(&folder, i, INT64_MAX, &ids, e);
	for (size_t i = 0; i < ids.n && !rc; i++) {
		struct log_file f;

		if (c->on_step)
			c->on_step((int64_t)i, (int64_t)ids.n, c->owner);
		if (i > 0 && ids.list[i] == ids.list[i - 1]) /* a daemon died between two forms of it */
			continue;
		rc = log_file_open_form(&folder, ids.list[i], &f, e);
		if (!rc)
			rc = put_in_database(c, ids.list[i], &f, e);
		if (!rc)
			rc = compare_log(c, &folder, ids.list[i], &f, e);
		if (f.fd >= 0)
			close(f.fd);
	}
	free(ids.list);
	log_folder_close(&folder);
	return rc;
}

/* ---- to the folder ---- */

static int put_in_folder(
    struct logs_copy *c, const struct log_folder *folder, int64_t job_id, const struct log_row *row, struct error *e)
{
	struct log_file f = file_of_row(row), there;
	int rc = log_file_open_form(folder, job_id, &there, e);
	struct log_row row_there = row_of_file(&there);
	bool is_there = !rc && is_equal(&row_there, row);

	if (there.fd >= 0)
		close(there.fd);
	if (is_there || (rc && rc != ERR_NOT_FOUND))
		return is_there ? 0 : rc;
	rc = f.form == LOG_FILE_MOVED ? 0 : log_file_open_copying(folder, &f.fd, e);
	if (!rc && f.fd >= 0)
		rc = write_rows(c->db, job_id, row, f.fd, e);
	if (!rc)
		rc = log_file_put_form(folder, job_id, &f, e);
	if (f.fd >= 0)
		close(f.fd);
	return rc;
}

int logs_copy_to_folder(struct logs_copy *c, struct error *e)
{
	struct log_folder folder;
	struct log_row row;
	int rc = log_folder_open(c->state_dir, &folder, e);
	int64_t total = rc ? 0 : log_rows_count(db_view(c->db)), job_id = 0;

	while (!rc && (job_id = log_row_next(db_view(c->db), job_id, &row)) > 0) {
		struct log_file f = {.fd = -1};

		if (c->on_step)
			c->on_step(c->n, total, c->owner);
		rc = put_in_folder(c, &folder, job_id, &row, e);
		if (!rc)
			rc = log_file_open_form(&folder, job_id, &f, e);
		if (!rc)
			rc = compare_log(c, &folder, job_id, &f, e);
		if (f.fd >= 0)
			close(f.fd);
	}
	if (!rc && db_status(c->db))
		rc = error_set(e, db_status(c->db), "%s", db_why(c->db)->text);
	log_folder_close(&folder);
	return rc;
}
