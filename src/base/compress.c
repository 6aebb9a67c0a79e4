#include "base/compress.h"

#include <zstd.h>

#include "base/alloc.h"

struct compressor {
	ZSTD_CCtx *ctx;
};

struct compressor *compressor_new(int level)
{
	struct compressor *c = xcalloc(1, sizeof(*c));

	c->ctx = ZSTD_createCCtx();
	if (!c->ctx)
		abort();
	/* zstd itself limits the level to its range: this cannot fail. */
	ZSTD_CCtx_setParameter(c->ctx, ZSTD_c_compressionLevel, level);
	return c;
}

void compressor_add_checksums(struct compressor *c)
{
	ZSTD_CCtx_setParameter(c->ctx, ZSTD_c_checksumFlag, 1);
}

void compressor_free(struct compressor *c)
{
	if (!c)
		return;
	ZSTD_freeCCtx(c->ctx);
	free(c);
}

int compress(struct compressor *c, const void *p, size_t n, struct buf *out)
{
	size_t got;
	int rc;

	buf_clear(out);
	rc = buf_reserve(out, ZSTD_compressBound(n));
	if (rc)
		return rc;
	got = ZSTD_compress2(c->ctx, out->data, out->cap - 1, p, n);
	if (ZSTD_isError(got))
		return ERR_TOO_BIG;
	out->len = got;
	out->data[got] = '\0';
	return 0;
}

int decompress(const void *p, size_t n, struct buf *out)
{
	ZSTD_DStream *stream = ZSTD_createDStream();
	ZSTD_inBuffer in = {p, n, 0};
	size_t left = 1;
	int rc = 0;

	if (!stream)
		abort();
	while (rc == 0 && left != 0) {
		ZSTD_outBuffer dst;
		size_t room = out->max - out->len < 65536 ? out->max - out->len : 65536;

		if (room == 0) {
			rc = ERR_TOO_BIG;
			break;
		}
		rc = buf_reserve(out, room);
		if (rc)
			break;
		dst = (ZSTD_outBuffer){out->data + out->len, room, 0};
		left = ZSTD_decompressStream(stream, &dst, &in);
		if (ZSTD_isError(left) || (left && in.pos == in.size && dst.pos == 0))
			rc = ERR_CORRUPT;
		out->len += dst.pos;
		out->data[out->len] = '\0';
	}
	ZSTD_freeDStream(stream);
	return rc;
}
