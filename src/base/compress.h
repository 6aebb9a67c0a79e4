/* zstd compression; the output has a ceiling. A compressor keeps its memory from one call to the next.
 *
 * Thread: a compressor belongs to one thread at a time; decompress() runs on any.
 * Owns: the caller, with compressor_free(). */
#ifndef BASE_COMPRESS_H
#define BASE_COMPRESS_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

struct compressor;
/* A level outside zstd's range is set to the nearest one. */
struct compressor *compressor_new(int level);
/* Adds a checksum of the content to each frame from now on; decompress() checks it. */
void compressor_add_checksums(struct compressor *c);
void compressor_free(struct compressor *c); /* NULL is fine */
/* Replaces the content of out. ERR_TOO_BIG: out->max is under the largest size that zstd may need. */
int compress(struct compressor *c, const void *p, size_t n, struct buf *out) MUST_CHECK;
/* Appends to out. ERR_CORRUPT: not a whole zstd frame; ERR_TOO_BIG: longer than out->max. */
int decompress(const void *p, size_t n, struct buf *out) MUST_CHECK;

#endif
