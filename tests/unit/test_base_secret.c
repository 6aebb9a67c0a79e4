/* Secrets are in locked memory that dumps leave out, in a single copy, and are erased after the last release; private
 * keys are parsed without leaving copies (finding 13). */
#include <setjmp.h>

#include <cmocka.h>
#include <openssl/crypto.h>

#include "test_keys.h"

static char dir[] = "/tmp/outpost-test-secret-XXXXXX";

static char *written(const char *name, const char *p, size_t n)
{
	char *path = path_join(dir, name);

	assert_int_equal(file_write_atomic(path, p, n, 0600, NULL), 0);
	return path;
}

static void reads(const char *content, size_t n, enum secret_form form, const char *expected)
{
	char *path = written("file", content, n);
	struct secret *s;

	assert_int_equal(secret_read("", path, form, 64, &s, NULL), 0);
	assert_int_equal(secret_bytes(s), strlen(expected));
	assert_memory_equal(secret_text(s), expected, strlen(expected) + 1);
	secret_unref(s);
	free(path);
}

static void test_world_readable_files_are_exposed(void **state)
{
	static const struct {
		mode_t mode;
		bool is_exposed;
	} all[] = {{0600, false}, {0640, false}, {0660, false}, {0604, true}, {0602, true}, {0644, true}};
	char *path = written("file", "word", 4);

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		struct secret *s;

		assert_int_equal(chmod(path, all[i].mode), 0);
		assert_int_equal(secret_read("", path, SECRET_TEXT, 64, &s, NULL), 0);
		assert_int_equal(secret_is_exposed(s), all[i].is_exposed);
		secret_unref(s);
	}
	free(path);
}

static void test_one_trailing_newline_is_ignored(void **state)
{
	(void)state;
	reads("word", 4, SECRET_TEXT, "word");
	reads("word\n", 5, SECRET_TEXT, "word");
	reads("word\r\n", 6, SECRET_TEXT, "word");
	reads("word\n\n", 6, SECRET_TEXT, "word\n");
	reads("word\r", 5, SECRET_TEXT, "word\r");
	reads("word\n", 5, SECRET_BYTES, "word\n");
	reads("", 0, SECRET_BYTES, "");
}

static void refuses(const char *path, size_t max, int code, const char *why)
{
	struct error e = {0};
	struct secret *s = (struct secret *)dir;

	assert_int_equal(secret_read("", path, SECRET_TEXT, max, &s, &e), code);
	assert_null(s);
	assert_non_null(strstr(e.text, why));
	assert_non_null(strstr(e.text, path));
}

static void test_errors_name_the_file(void **state)
{
	char *big = written("big", "0123456789", 10), *empty = written("empty", "\n", 1);
	char *pipe = path_join(dir, "pipe"), *missing = path_join(dir, "missing");

	(void)state;
	assert_int_equal(mkfifo(pipe, 0600), 0);
	refuses(big, 9, ERR_TOO_BIG, "larger than 9 bytes");
	refuses(empty, 9, ERR_INVALID, "empty");
	refuses(pipe, 9, ERR_INVALID, "not a regular file"); /* and does not wait for a writer */
	refuses(missing, 9, ERR_NOT_FOUND, "No such file");
	refuses(dir, 9, ERR_INVALID, "not a regular file");
	free(big);
	free(empty);
	free(pipe);
	free(missing);
}

static void test_prefix_and_equality(void **state)
{
	char *path = written("token", "abc\n", 4);
	struct secret *read, *same, *other, *longer;

	(void)state;
	assert_int_equal(secret_read("Bearer ", path, SECRET_TEXT, 64, &read, NULL), 0);
	assert_int_equal(secret_new("Bearer abc", 10, &same, NULL), 0);
	assert_int_equal(secret_new("Bearer abd", 10, &other, NULL), 0);
	assert_int_equal(secret_new("Bearer abcd", 11, &longer, NULL), 0);
	assert_true(secret_equal(read, same));
	assert_false(secret_equal(read, other));
	assert_false(secret_equal(read, longer));
	assert_false(secret_equal(read, NULL));
	assert_true(secret_equal(NULL, NULL));
	secret_unref(read);
	secret_unref(same);
	secret_unref(other);
	secret_unref(longer);
	free(path);
}

static void test_full_heap_is_an_error(void **state)
{
	static char large[1 << 20];
	struct secret *s[8] = {NULL};
	struct error e = {0};
	size_t n = 0;
	int rc = 0;

	(void)state;
	while (n < ARRAY_LEN(s) && !rc) {
		rc = secret_new(large, sizeof(large) - 64, &s[n], &e);
		n += !rc;
	}
	assert_int_equal(rc, ERR_FULL);
	assert_non_null(strstr(e.text, "no room for a secret"));
	while (n > 0)
		secret_unref(s[--n]);
	assert_int_equal(secret_new(large, 100, &s[0], NULL), 0);
	secret_unref(s[0]);
}

/* The flags of the mapping that holds p, as /proc/self/smaps has them: " rd wr … " */
static char *flags_of(const void *p)
{
	struct buf maps = BUF_INIT(64 << 20);
	char *at, *end, *flags = NULL;

	assert_int_equal(file_read("/proc/self/smaps", &maps, NULL), 0);
	for (at = maps.data; at && !flags; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
		unsigned long low = 0, high = 0;

		if (sscanf(at, "%lx-%lx ", &low, &high) == 2 && (uintptr_t)p >= low && (uintptr_t)p < high) {
			at = strstr(at, "VmFlags:") + 8;
			end = strchr(at, '\n');
			flags = xstrndup(at, (size_t)(end - at));
		}
	}
	buf_release(&maps);
	assert_non_null(flags);
	return flags;
}

static void test_memory_is_locked_and_left_out_of_dumps(void **state)
{
	struct secret *s = secret_of("value");
	char *flags = flags_of(secret_text(s));

	(void)state;
	assert_non_null(strstr(flags, " dd"));
	assert_int_equal(strstr(flags, " lo") != NULL, secret_memory_is_locked());
	free(flags);
	secret_unref(s);
}

static char window[1 << 20]; /* the buffer for the search of memory; it is wiped */

/* Reads /proc/self/mem, which also has the bytes that a sanitizer forbids to touch. */
static size_t count_in_range(int fd, uintptr_t low, uintptr_t high, const uint8_t *what, size_t n)
{
	size_t n_found = 0;

	for (uintptr_t at = low; at < high; at += sizeof(window) - n + 1) {
		size_t n_left = high - at < sizeof(window) ? high - at : sizeof(window);
		ssize_t got = pread(fd, window, n_left, (off_t)at);
		const char *end = window + (got > 0 ? got : 0);

		for (const char *p = window; (p = memmem(p, (size_t)(end - p), what, n)); p++)
			n_found++;
	}
	OPENSSL_cleanse(window, sizeof(window));
	return n_found;
}

/* The number of copies of `what` in this process's writable memory. */
static size_t count_in_memory(const uint8_t *what, size_t n)
{
	struct buf maps = BUF_INIT(64 << 20);
	int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	size_t n_found = 0;

	assert_int_equal(file_read("/proc/self/maps", &maps, NULL), 0);
	for (char *at = maps.data; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
		unsigned long low = 0, high = 0;
		char mode[5] = "";

		/* A sanitizer's shadow is huge and holds no data. */
		if (sscanf(at, "%lx-%lx %4s", &low, &high, mode) != 3 || mode[1] != 'w' || high - low > 128ul << 20)
			continue;
		/* skip the window itself, which would contain each hit again */
		if ((uintptr_t)window >= low && (uintptr_t)window < high) {
			n_found += count_in_range(fd, low, (uintptr_t)window, what, n);
			low = (uintptr_t)window + sizeof(window);
		}
		n_found += count_in_range(fd, low, high, what, n);
	}
	close(fd);
	buf_release(&maps);
	return n_found;
}

/* The number sought is kept inverted, so that the test's own copy does not count. */
static void sought(const char *pem, const char *which, uint8_t inverted[32])
{
	BIO *bio = BIO_new_mem_buf(pem, -1);
	EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
	uint8_t number[512];
	size_t n = key_number(key, which, number, sizeof(number));

	for (size_t i = 0; i < 32; i++)
		inverted[i] = (uint8_t)~number[n / 2 - 16 + i];
	OPENSSL_cleanse(number, sizeof(number));
	EVP_PKEY_free(key);
	BIO_free(bio);
}

/* As big-endian bytes (in DER) and as libcrypto's numbers lie on a little-endian machine. */
static void count(const uint8_t inverted[32], size_t *ret_as_text, size_t *ret_as_number)
{
	uint8_t bytes[32], reversed[32];

	for (size_t i = 0; i < 32; i++) {
		bytes[i] = (uint8_t)~inverted[i];
		reversed[31 - i] = bytes[i];
	}
	/* each search finds its own pattern once */
	*ret_as_text = count_in_memory(bytes, 32) - 1;
	*ret_as_number = count_in_memory(reversed, 32) - 1;
	OPENSSL_cleanse(bytes, sizeof(bytes));
	OPENSSL_cleanse(reversed, sizeof(reversed));
}

static void test_signing_leaves_no_copy_of_the_key(void **state)
{
	EVP_PKEY *pair = EVP_RSA_gen(2048);
	char *pem = pem_pkcs8(pair);
	struct secret *secret = secret_of(pem);
	struct buf signature = BUF_INIT(1024);
	uint8_t inverted[3][32];
	static const char *const numbers[] = {
	    OSSL_PKEY_PARAM_RSA_D, OSSL_PKEY_PARAM_RSA_FACTOR1, OSSL_PKEY_PARAM_RSA_FACTOR2};
	size_t as_text, as_number;

	(void)state;
	for (size_t i = 0; i < 3; i++)
		sought(pem, numbers[i], inverted[i]);
	EVP_PKEY_free(pair);
	OPENSSL_cleanse(pem, strlen(pem));
	free(pem);
	assert_int_equal(rsa_private_key_check(secret, NULL), 0);
	assert_int_equal(rsa_sign(secret, "text", 4, &signature), 0);
	for (size_t i = 0; i < 3; i++) {
		count(inverted[i], &as_text, &as_number);
		assert_int_equal(as_text, 0);
		assert_int_equal(as_number, 0);
	}
	secret_unref(secret);
	buf_release(&signature);
}

static void test_a_parsed_key_is_in_memory_once(void **state)
{
	EVP_PKEY *pair = EVP_EC_gen("P-384");
	char *pem = pem_pkcs8(pair);
	struct secret *secret = secret_of(pem);
	struct private_key *key;
	uint8_t inverted[32];
	size_t as_text, as_number;

	(void)state;
	sought(pem, OSSL_PKEY_PARAM_PRIV_KEY, inverted);
	EVP_PKEY_free(pair);
	OPENSSL_cleanse(pem, strlen(pem));
	free(pem);
	assert_int_equal(private_key_parse(secret, &key, NULL), 0);
	secret_unref(secret);
	count(inverted, &as_text, &as_number);
	assert_int_equal(as_text, 0);
	assert_int_equal(as_number, 1);
	private_key_free(key);
	count(inverted, &as_text, &as_number);
	assert_int_equal(as_number, 0);
}

static void test_unusable_keys_are_refused(void **state)
{
	static const char *const texts[] = {"", "no key", "-----BEGIN PRIVATE KEY-----\n"};
	EVP_PKEY *pair = EVP_EC_gen("P-256");
	char *locked = pem_encrypted(pair);
	struct error e = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		assert_null(private_key_of(texts[i], &e));
		assert_non_null(strstr(e.text, "not a private key"));
		e = (struct error){0};
	}
	assert_null(private_key_of(locked, &e));
	assert_non_null(strstr(e.text, "encrypted"));
	free(locked);
	EVP_PKEY_free(pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_world_readable_files_are_exposed),
	    cmocka_unit_test(test_one_trailing_newline_is_ignored),
	    cmocka_unit_test(test_errors_name_the_file),
	    cmocka_unit_test(test_prefix_and_equality),
	    cmocka_unit_test(test_full_heap_is_an_error),
	    cmocka_unit_test(test_memory_is_locked_and_left_out_of_dumps),
	    cmocka_unit_test(test_signing_leaves_no_copy_of_the_key),
	    cmocka_unit_test(test_a_parsed_key_is_in_memory_once),
	    cmocka_unit_test(test_unusable_keys_are_refused),
	};
	char *command = xasprintf("rm -rf %s", mkdtemp(dir));
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	if (system(command))
		failed++;
	free(command);
	return failed;
}
