#include <pthread.h>
#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_c_forceAttachDict */
#include <zstd.h>

static const char HEX[] = "0123456789abcdef";

char *hex_encode(const void *p, size_t n, char *out)
{
	const uint8_t *in = p;

	for (size_t i = 0; i < n; i++) {
		out[2 * i] = HEX[in[i] >> 4];
		out[2 * i + 1] = HEX[in[i] & 15];
	}
	out[2 * n] = '\0';
	return out;
}

int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

int hex_decode(const char *s, size_t len, uint8_t *out, size_t n)
{
	if (len != 2 * n)
		return ERR_INVALID;
	for (size_t i = 0; i < n; i++) {
		int hi = hex_digit(s[2 * i]), lo = hex_digit(s[2 * i + 1]);

		if (hi < 0 || lo < 0)
			return ERR_INVALID;
		out[i] = (uint8_t)(hi << 4 | lo);
	}
	return 0;
}

static const char BASE64URL[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void base64url_encode(const void *p, size_t n, struct buf *out)
{
	const uint8_t *in = p;

	for (size_t i = 0; i < n; i += 3) {
		size_t left = n - i < 3 ? n - i : 3;
		uint32_t v =
		    (uint32_t)in[i] << 16 | (left > 1 ? (uint32_t)in[i + 1] << 8 : 0) | (left > 2 ? in[i + 2] : 0);
		char group[4] = {
		    BASE64URL[v >> 18], BASE64URL[v >> 12 & 63], BASE64URL[v >> 6 & 63], BASE64URL[v & 63]};

		buf_append(out, group, left + 1);
	}
}

int base64url_decode(const char *s, size_t len, struct buf *out)
{
	uint32_t v = 0;
	int bits = 0;

	if (len % 4 == 1)
		return ERR_INVALID;
	for (size_t i = 0; i < len; i++) {
		const char *at = s[i] ? strchr(BASE64URL, s[i]) : NULL;

		if (!at)
			return ERR_INVALID;
		v = v << 6 | (uint32_t)(at - BASE64URL);
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			if (buf_append_char(out, (char)(v >> bits & 255)))
				return ERR_TOO_BIG;
		}
	}
	return v & ((1u << bits) - 1) ? ERR_INVALID : 0;
}

char *base32_encode(const void *p, size_t n, char *out)
{
	static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz234567";
	const uint8_t *in = p;
	uint32_t v = 0;
	int bits = 0;
	char *at = out;

	for (size_t i = 0; i < n; i++) {
		v = v << 8 | in[i];
		for (bits += 8; bits >= 5; bits -= 5)
			*at++ = alphabet[v >> (bits - 5) & 31];
	}
	if (bits)
		*at++ = alphabet[v << (5 - bits) & 31];
	*at = '\0';
	return out;
}

void percent_encode(struct buf *out, const char *s, size_t n, const char *kept)
{
	static const char unreserved[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

	for (size_t i = 0; i < n; i++) {
		if (s[i] && (strchr(unreserved, s[i]) || strchr(kept, s[i])))
			buf_append_char(out, s[i]);
		else
			buf_appendf(out, "%%%02X", (unsigned char)s[i]);
	}
}

void varint_put(struct buf *out, uint64_t v)
{
	while (v >= 0x80) {
		buf_append_char(out, (char)(v | 0x80));
		v >>= 7;
	}
	buf_append_char(out, (char)v);
}

bool varint_get_long(const uint8_t **p, const uint8_t *end, int64_t *ret)
{
	uint64_t v = 0;

	for (int shift = 0; *p < end && shift < 56; shift += 7) {
		uint8_t b = *(*p)++;

		v |= (uint64_t)(b & 0x7f) << shift;
		if (b < 0x80) {
			*ret = (int64_t)v;
			return true;
		}
	}
	return false;
}

struct compressor {
	ZSTD_CCtx *ctx;
	bool has_checksums;
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
	c->has_checksums = true;
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
	buf_clear(out);
	int rc = buf_reserve(out, ZSTD_compressBound(n));
	if (rc)
		return rc;
	size_t got = ZSTD_compress2(c->ctx, out->data, out->cap - 1, p, n);
	if (ZSTD_isError(got))
		return ERR_TOO_BIG;
	out->len = got;
	out->data[got] = '\0';
	return 0;
}

int compress_like(struct compressor *c, const void *base, size_t n_base, const void *p, size_t n, struct buf *out)
{
	int rc;

	ZSTD_CCtx_setParameter(c->ctx, ZSTD_c_checksumFlag, 1);
	if (n_base) /* it counts for the next frame only */
		ZSTD_CCtx_refPrefix(c->ctx, base, n_base);
	rc = compress(c, p, n, out);
	ZSTD_CCtx_setParameter(c->ctx, ZSTD_c_checksumFlag, c->has_checksums);
	return rc;
}

struct compress_base {
	ZSTD_CDict *dict;
};

struct compress_base *compress_base_new(const void *p, size_t n, int level)
{
	struct compress_base *b = xcalloc(1, sizeof(*b));

	b->dict = ZSTD_createCDict(p, n, level);
	if (!b->dict)
		abort();
	return b;
}

void compress_base_free(struct compress_base *b)
{
	if (!b)
		return;
	ZSTD_freeCDict(b->dict);
	free(b);
}

int compress_with_base(struct compressor *c, const struct compress_base *b, const void *p, size_t n, struct buf *out)
{
	int rc;

	ZSTD_CCtx_setParameter(c->ctx, ZSTD_c_checksumFlag, 1);
	/* Uses the tables of the base where they are. zstd would copy them for a text of more than 8 KiB, which takes longer than
	 * the text if it is like its base. A library that does not know the parameter copies them. */
	ZSTD_CCtx_setParameter(c->ctx, ZSTD_c_forceAttachDict, ZSTD_dictForceAttach);
	ZSTD_CCtx_refCDict(c->ctx, b->dict);
	rc = compress(c, p, n, out);
	ZSTD_CCtx_refCDict(c->ctx, NULL);
	ZSTD_CCtx_setParameter(c->ctx, ZSTD_c_checksumFlag, c->has_checksums);
	return rc;
}

static pthread_key_t decompressor_key;

static void free_decompressor(void *ctx) { ZSTD_freeDCtx(ctx); }

static void make_decompressor_key(void)
{
	if (pthread_key_create(&decompressor_key, free_decompressor))
		abort();
}

/* Each thread keeps one: making it takes four times as long as the frame of a packed report. */
static ZSTD_DCtx *decompressor_of_thread(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	ZSTD_DCtx *ctx;

	pthread_once(&once, make_decompressor_key);
	ctx = pthread_getspecific(decompressor_key);
	if (!ctx) {
		ctx = ZSTD_createDCtx();
		if (!ctx || pthread_setspecific(decompressor_key, ctx))
			abort();
	}
	ZSTD_DCtx_reset(ctx, ZSTD_reset_session_and_parameters); /* also forgets the base of a frame that was refused */
	return ctx;
}

int decompress_like(const void *base, size_t n_base, const void *p, size_t n, struct buf *out)
{
	unsigned long long size = ZSTD_getFrameContentSize(p, n);
	ZSTD_DCtx *ctx;
	size_t got;

	buf_clear(out);
	if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR)
		return ERR_CORRUPT;
	if (size > out->max || buf_reserve(out, (size_t)size))
		return ERR_TOO_BIG;
	ctx = decompressor_of_thread();
	if (n_base)
		ZSTD_DCtx_refPrefix(ctx, base, n_base);
	got = ZSTD_decompressDCtx(ctx, out->data, (size_t)size, p, n);
	if (ZSTD_isError(got) || got != size)
		return ERR_CORRUPT;
	out->len = got;
	out->data[got] = '\0';
	return 0;
}

enum { AT_ONCE_MAX_BYTES = 1 << 20 };

/* In one piece, for a frame that states a moderate size: without the memory of a stream. False: it is another frame. */
static bool decompress_at_once(const void *p, size_t n, struct buf *out, int *ret_rc)
{
	unsigned long long size = ZSTD_getFrameContentSize(p, n);

	if (out->len || size > AT_ONCE_MAX_BYTES || ZSTD_findFrameCompressedSize(p, n) != n)
		return false;
	*ret_rc = buf_reserve(out, (size_t)size);
	if (*ret_rc)
		return true;
	size_t got = ZSTD_decompressDCtx(decompressor_of_thread(), out->data, (size_t)size, p, n);
	*ret_rc = ZSTD_isError(got) ? ERR_CORRUPT : 0;
	out->len = *ret_rc ? 0 : got;
	out->data[out->len] = '\0';
	return true;
}

int decompress(const void *p, size_t n, struct buf *out)
{
	ZSTD_inBuffer in = {p, n, 0};
	size_t left = 1;
	int rc = 0;

	if (decompress_at_once(p, n, out, &rc))
		return rc;
	ZSTD_DStream *stream = ZSTD_createDStream();
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
