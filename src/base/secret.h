/* A secret (a key, a token, a password) in memory that is locked against swapping, excluded from core dumps and wiped
 * on release: OpenSSL's secure heap, which also guards both of its ends with unmapped pages. A secret is
 * reference-counted, so that the configuration and its users share one copy.
 *
 * Thread: any; the count is atomic and the content never changes. */
#pragma once

struct secret;

/* A copy of `n` bytes; the caller wipes the original. ERR_FULL: the secure heap has no room. */
int secret_new(const void *p, size_t n, struct secret **ret, struct error *e) MUST_CHECK;

enum secret_form {
	SECRET_BYTES, /* unchanged */
	SECRET_TEXT,  /* without one newline (LF or CRLF) at its end; not empty */
};
/* `prefix` and then a whole file, read straight into secret memory. ERR_NOT_FOUND, ERR_DENIED,
 * ERR_IO; ERR_INVALID: not a regular file, or an empty text; ERR_TOO_BIG: more than max_bytes;
 * ERR_FULL. The explanation names the path and holds nothing of the content. */
int secret_read(const char *prefix, const char *path, enum secret_form form, size_t max_bytes, struct secret **ret,
    struct error *e) MUST_CHECK;
struct secret *secret_ref(struct secret *s);
void secret_unref(struct secret *s); /* the last one wipes it; NULL is fine */

/* The content, with a NUL byte after it. Borrowed; valid while a reference is held. */
const char *secret_text(const struct secret *s);
size_t secret_bytes(const struct secret *s); /* without that NUL */
/* Whether every user of the machine could read or change the file that it was read from. */
bool secret_is_exposed(const struct secret *s);
/* The time that it takes does not depend on where they differ. NULL equals only NULL. */
bool secret_equal(const struct secret *a, const struct secret *b);

/* Sets up the secure heap; every other function here does so itself. Private keys that are
 * parsed afterwards lie there as well.
 * Returns whether the kernel keeps it out of swap: false where RLIMIT_MEMLOCK is too small. */
bool secret_memory_is_locked(void);
