/* A long text as independent zstd frames of LOG_FRAME_BYTES with a table of them at the end, in
 * zstd's seekable format: any part is read without what is before it, and the zstd tool reads
 * the whole. Each frame bears a checksum, so damage is an error and never other text.
 *
 * Blocking; thread: any, one a writer. */
#ifndef LOGS_SEEKABLE_H
#define LOGS_SEEKABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compress.h"
#include "base/err.h"

enum { LOG_FRAME_BYTES = 256 * 1024 };

struct seekable_writer {
	int fd;                /* borrowed */
	struct compressor *by; /* borrowed; with checksums */
	struct buf frame, table;
	uint32_t n_frames;
};
void seekable_writer_init(struct seekable_writer *w, int fd, struct compressor *by);
/* The next 1 to LOG_FRAME_BYTES bytes. ERR_FULL, ERR_IO. */
int seekable_add(struct seekable_writer *w, const char *p, size_t n) MUST_CHECK;
/* The table; nothing is synced. */
int seekable_end(struct seekable_writer *w) MUST_CHECK;
void seekable_writer_release(struct seekable_writer *w);

struct seekable_index {
	struct seekable_frame {
		int64_t at, text_at; /* where it begins in the file, and its text in the whole */
		uint32_t bytes, text_bytes;
	} * frames;
	size_t n_frames;
	int64_t text_bytes;
};
/* ERR_CORRUPT: no such file, or a damaged one. Release also after a failure. */
int seekable_index_read(int fd, struct seekable_index *ret) MUST_CHECK;
void seekable_index_release(struct seekable_index *x);
/* Text from offset, which is not past the end, at most n bytes; fewer only at the end. */
int seekable_read(int fd, const struct seekable_index *x, int64_t offset, char *out, size_t n,
    size_t *ret_n) MUST_CHECK;

#endif
