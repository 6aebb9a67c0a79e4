/* A long text as independent zstd frames of LOG_FRAME_BYTES with a table of them at the end, in zstd's seekable
 * format. Any part can be read without the text before it, and the zstd tool reads the whole. Each frame has
 * a checksum, so damage is an error and never a wrong text.
 *
 * Thread: any, one for each writer; blocking. */
#pragma once

/* ---- read(2) and write(2) to their end, with this program's error codes ---- */

/* After an error errno is set. */
int file_io_write_at(int fd, const void *p, size_t n, int64_t at) MUST_CHECK;
/* *ret_n < n only at the end of the file. */
int file_io_read(int fd, void *p, size_t n, int64_t at, size_t *ret_n) MUST_CHECK;
/* ERR_FULL for a full disk, quota or size limit, else ERR_IO. */
int file_io_code(int errno_value);

/* ---- the format ---- */

enum {
	LOG_FRAME_BYTES = 256 * 1024,
	SEEKABLE_END_BYTES = 9 * 1024, /* the table of the longest log fits into the end of the file */
};

struct seekable_writer {
	int fd;                /* borrowed; empty */
	struct compressor *by; /* borrowed; with checksums */
	struct buf frame, table;
	uint32_t n_frames;
	int64_t n_written;
};
void seekable_writer_init(struct seekable_writer *w, int fd, struct compressor *by);
/* Adds the next 1 to LOG_FRAME_BYTES bytes. ERR_FULL, ERR_IO. */
int seekable_add(struct seekable_writer *w, const char *p, size_t n) MUST_CHECK;
/* Writes the table; does not sync. */
int seekable_end(struct seekable_writer *w) MUST_CHECK;
void seekable_writer_release(struct seekable_writer *w);

struct seekable_index {
	struct seekable_frame {
		int64_t at, text_at; /* its beginning in the file, and in the whole text */
		uint32_t bytes, text_bytes;
	} * frames;
	size_t n_frames;
	int64_t text_bytes;
};
/* From the last bytes of the file, SEEKABLE_END_BYTES or all. ERR_CORRUPT: the file has another format or is damaged. Release
 * also after a failure. */
int seekable_index_parse(const char *end, size_t n, int64_t file_bytes, struct seekable_index *ret) MUST_CHECK;
/* The same from the file. */
int seekable_index_read(int fd, struct seekable_index *ret) MUST_CHECK;
void seekable_index_release(struct seekable_index *x);
/* The number of the frame that holds the offset; n_frames at the end of the text. */
size_t seekable_frame_with(const struct seekable_index *x, int64_t offset);

struct seekable_source {
	int fd;        /* the file; -1: the part of it in memory that follows */
	const char *p; /* borrowed */
	size_t n;
	int64_t at; /* its beginning in the file */
};
/* Reads n bytes of text from offset, which is not past the end; fewer only at the end of the text or of the last whole frame
 * in memory. */
int seekable_read(const struct seekable_source *from, const struct seekable_index *x, int64_t offset, char *out,
    size_t n, size_t *ret_n) MUST_CHECK;
