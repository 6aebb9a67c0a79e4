/* zstd, with a ceiling on what comes out. A context is reused, one per thread. */
#ifndef BASE_COMPRESS_H
#define BASE_COMPRESS_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

struct compressor;
struct compressor *compressor_new(int level);
/* Every frame from now on bears a checksum of its content, which decompress() checks. */
void compressor_add_checksums(struct compressor *c);
void compressor_free(struct compressor *c);
/* Replaces the content of out. */
int compress(struct compressor *c, const void *p, size_t n, struct buf *out) MUST_CHECK;
/* Appends to out; ERR_CORRUPT when it is no zstd frame, ERR_TOO_BIG past out->max. */
int decompress(const void *p, size_t n, struct buf *out) MUST_CHECK;

#endif
