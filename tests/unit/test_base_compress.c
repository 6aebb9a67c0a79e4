/* Compressed text is restored; invalid or too large frames are refused. */
#include <setjmp.h>

#include <cmocka.h>
#include <pthread.h>
#include <zstd.h>

#include "replaces.h"

enum { N = 300000 };

REPLACES(ZSTD_createDCtx);
extern ZSTD_DCtx *real_createDCtx(void) __asm__("__real_ZSTD_createDCtx");
static int n_contexts;
ZSTD_DCtx *ZSTD_createDCtx(void)
{
	n_contexts++;
	return real_createDCtx();
}

static void test_decompression_restores_the_text(void **state)
{
	struct compressor *c = compressor_new(1);
	struct buf packed = BUF_INIT(1 << 20), out = BUF_INIT(1 << 20);
	char *text = xmalloc(N);

	(void)state;
	random_bytes(text, N / 2);
	memset(text + N / 2, 'x', N - N / 2);
	for (size_t n = 0; n <= N; n = n ? 3 * n : 1) {
		assert_int_equal(compress(c, text, n, &packed), 0);
		buf_clear(&out);
		assert_int_equal(decompress(packed.data, packed.len, &out), 0);
		assert_int_equal(out.len, n);
		assert_memory_equal(out.data ? out.data : "", text, n);
	}
	free(text);
	buf_release(&packed);
	buf_release(&out);
	compressor_free(c);
	compressor_free(NULL);
}

static void test_ceiling(void **state)
{
	struct compressor *c = compressor_new(3);
	char *text = xcalloc(1, N);
	struct buf packed = BUF_INIT(1 << 20);

	(void)state;
	assert_int_equal(compress(c, text, N, &packed), 0);
	assert_true(packed.len < 1000);
	for (size_t max = N - 1; max <= N; max++) {
		struct buf out = BUF_INIT(max);

		assert_int_equal(decompress(packed.data, packed.len, &out), max < N ? ERR_TOO_BIG : 0);
		assert_true(out.len <= max);
		buf_release(&out);
	}
	buf_release(&packed);
	packed.max = 4;
	assert_int_equal(compress(c, text, N, &packed), ERR_TOO_BIG);
	buf_release(&packed);
	free(text);
	compressor_free(c);
}

static void test_damaged_input_is_refused(void **state)
{
	struct compressor *c = compressor_new(1);
	struct buf packed = BUF_INIT(4096), out = BUF_INIT(4096);

	(void)state;
	assert_int_equal(decompress("no frame at all", 15, &out), ERR_CORRUPT);
	assert_int_equal(decompress("", 0, &out), ERR_CORRUPT);
	assert_int_equal(compress(c, "some text, some text, some text", 31, &packed), 0);
	for (size_t n = 0; n < packed.len; n++) {
		buf_clear(&out);
		assert_int_equal(decompress(packed.data, n, &out), ERR_CORRUPT);
	}
	buf_release(&packed);
	buf_release(&out);
	compressor_free(c);
}

/* Decompresses small frames, also damaged ones and ones with a base. */
static void *decompress_small_frames(void *unused)
{
	static const char text[] = "some text, some text, some text", base[] = "other text, some text, other text";
	struct compressor *c = compressor_new(1);
	struct buf packed = BUF_INIT(4096), like = BUF_INIT(4096), out = BUF_INIT(4096);

	(void)unused;
	assert_int_equal(compress(c, text, sizeof(text), &packed), 0);
	assert_int_equal(compress_like(c, base, sizeof(base), text, sizeof(text), &like), 0);
	for (int i = 0; i < 3; i++) {
		buf_clear(&out);
		assert_int_equal(decompress(packed.data, packed.len, &out), 0);
		assert_string_equal(buf_str(&out), text);
		assert_int_equal(decompress_like(base, sizeof(base), like.data, like.len - 1, &out), ERR_CORRUPT);
		assert_int_equal(decompress_like(base, sizeof(base), like.data, like.len, &out), 0);
		assert_string_equal(buf_str(&out), text);
		assert_int_equal(decompress_like(NULL, 0, like.data, like.len, &out), ERR_CORRUPT); /* no base stays */
	}
	buf_release(&packed);
	buf_release(&like);
	buf_release(&out);
	compressor_free(c);
	return NULL;
}

static void test_each_thread_makes_one_context(void **state)
{
	pthread_t other;

	(void)state;
	decompress_small_frames(NULL);
	n_contexts = 0;
	decompress_small_frames(NULL);
	assert_int_equal(n_contexts, 0);
	assert_int_equal(pthread_create(&other, NULL, decompress_small_frames, NULL), 0);
	assert_int_equal(pthread_join(other, NULL), 0);
	assert_int_equal(n_contexts, 1); /* and the sanitizer finds it released with its thread */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_decompression_restores_the_text),
	    cmocka_unit_test(test_ceiling),
	    cmocka_unit_test(test_damaged_input_is_refused),
	    cmocka_unit_test(test_each_thread_makes_one_context),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
