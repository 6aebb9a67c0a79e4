#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>

#include <openssl/crypto.h>

enum {
	HEAP_BYTES = 2 << 20, /* RLIMIT_MEMLOCK is usually 8 MiB; only touched pages count */
	SMALLEST_BYTES = 64,
};

struct secret {
	atomic_int n_refs;
	size_t n_bytes;
	bool is_exposed;
	char data[];
};

static bool is_locked;

/* ---- libcrypto's own memory ----
 *
 * Its parsers read secrets (a PEM file's content, a key's numbers) into ordinary buffers that they free without
 * overwriting them, so each freed block is overwritten here. */

static void *libcrypto_allocate(size_t n, const char *file, int line)
{
	(void)file;
	(void)line;
	return malloc(n);
}

static void libcrypto_wipe_and_free(void *p, const char *file, int line)
{
	(void)file;
	(void)line;
	if (p)
		OPENSSL_cleanse(p, malloc_usable_size(p));
	free(p);
}

static void *libcrypto_reallocate(void *p, size_t n, const char *file, int line)
{
	size_t old = p ? malloc_usable_size(p) : 0;

	if (n <= old && n > 0)
		return p;
	void *bigger = n > 0 ? malloc(n) : NULL;
	if (n > 0 && !bigger)
		return NULL;
	if (bigger && p)
		memcpy(bigger, p, old < n ? old : n);
	libcrypto_wipe_and_free(p, file, line);
	return bigger;
}

/* libcrypto accepts other allocators only before its first allocation, which any code may make. So this
 * runs before main(). */
__attribute__((constructor)) static void wipe_what_libcrypto_frees(void)
{
	if (!CRYPTO_set_mem_functions(libcrypto_allocate, libcrypto_reallocate, libcrypto_wipe_and_free))
		abort();
}

/* ---- the secure heap ---- */

static void secure_heap_set_up(void)
{
	/* 1: locked; 2: mapped, but not locked; 0: OpenSSL then uses its ordinary heap */
	is_locked = CRYPTO_secure_malloc_init(HEAP_BYTES, SMALLEST_BYTES) == 1;
}

bool secret_memory_is_locked(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, secure_heap_set_up);
	return is_locked;
}

static int secret_reserve(size_t n, struct secret **ret, struct error *e)
{
	secret_memory_is_locked();
	*ret = OPENSSL_secure_zalloc(sizeof(**ret) + n + 1);
	if (!*ret)
		return error_set(e, ERR_FULL,
		    "no room for a secret of %zu bytes: all secrets together may use %d bytes", n, HEAP_BYTES);
	atomic_init(&(*ret)->n_refs, 1);
	(*ret)->n_bytes = n;
	return 0;
}

int secret_new(const void *p, size_t n, struct secret **ret, struct error *e)
{
	int rc = secret_reserve(n, ret, e);

	if (!rc)
		memcpy((*ret)->data, p, n);
	return rc;
}

/* Asks for the size of the file first, so that the memory is bounded and the content never moves. */
static int secret_read_fd(int fd, const char *prefix, const char *path, enum secret_form form, size_t max_bytes,
    struct secret **ret, struct error *e)
{
	size_t n_prefix = strlen(prefix), n = 0;
	ssize_t got = 1;
	struct stat st;

	if (fstat(fd, &st))
		return error_set(e, ERR_IO, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return error_set(e, ERR_INVALID, "%s: not a regular file", path);
	if (st.st_size > (off_t)max_bytes)
		return error_set(e, ERR_TOO_BIG, "%s: larger than %zu bytes", path, max_bytes);
	int rc = secret_reserve(n_prefix + (size_t)st.st_size, ret, e);
	if (rc)
		return rc;
	(*ret)->is_exposed = st.st_mode & (S_IROTH | S_IWOTH);
	memcpy((*ret)->data, prefix, n_prefix);
	while (n < (size_t)st.st_size && got > 0) {
		got = read(fd, (*ret)->data + n_prefix + n, (size_t)st.st_size - n);
		if (got < 0 && errno == EINTR)
			got = 1;
		else if (got < 0)
			rc = error_set(e, ERR_IO, "%s: %s", path, strerror(errno));
		else
			n += (size_t)got;
	}
	if (form == SECRET_TEXT && n > 0 && (*ret)->data[n_prefix + n - 1] == '\n')
		n -= n > 1 && (*ret)->data[n_prefix + n - 2] == '\r' ? 2 : 1;
	if (!rc && n == 0 && form == SECRET_TEXT)
		rc = error_set(e, ERR_INVALID, "%s: empty", path);
	(*ret)->n_bytes = n_prefix + n;
	(*ret)->data[(*ret)->n_bytes] = '\0';
	if (rc) {
		secret_unref(*ret);
		*ret = NULL;
	}
	return rc;
}

int secret_read(
    const char *prefix, const char *path, enum secret_form form, size_t max_bytes, struct secret **ret, struct error *e)
{
	int fd = -1;

	*ret = NULL;
	/* O_NONBLOCK: a pipe without a writer must not make the caller wait. */
	int rc = file_open(path, O_RDONLY | O_NONBLOCK, &fd, e);
	if (rc)
		return rc;
	rc = secret_read_fd(fd, prefix, path, form, max_bytes, ret, e);
	close(fd);
	return rc;
}

struct secret *secret_ref(struct secret *s)
{
	atomic_fetch_add(&s->n_refs, 1);
	return s;
}

void secret_unref(struct secret *s)
{
	if (s && atomic_fetch_sub(&s->n_refs, 1) == 1)
		OPENSSL_secure_clear_free(s, sizeof(*s) + s->n_bytes + 1);
}

const char *secret_text(const struct secret *s) { return s->data; }

size_t secret_bytes(const struct secret *s) { return s->n_bytes; }

bool secret_is_exposed(const struct secret *s) { return s->is_exposed; }

bool secret_equal(const struct secret *a, const struct secret *b)
{
	if (!a || !b)
		return a == b;
	return a->n_bytes == b->n_bytes && CRYPTO_memcmp(a->data, b->data, a->n_bytes) == 0;
}
