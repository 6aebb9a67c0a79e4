/* For tests of long histories: SQLite's memory comes from the C library and not from the sanitizer, which would take half of the
 * test's time for it. The product's own memory is checked as in every test. A use of a row's text after its end is not
 * found here, but in the other tests of the same functions. */
#pragma once

#include <sqlite3.h>

#ifdef __SANITIZE_ADDRESS__

void *__libc_malloc(size_t n);
void *__libc_realloc(void *p, size_t n);
void __libc_free(void *p);

enum { PLAIN_HEAD_BYTES = 16 }; /* before each piece: its size */

static int plain_size(void *p) { return p ? *(int *)(void *)((char *)p - PLAIN_HEAD_BYTES) : 0; }

static void *plain_with_head(char *whole, int bytes)
{
	if (!whole)
		return NULL;
	*(int *)(void *)whole = bytes;
	return whole + PLAIN_HEAD_BYTES;
}

static void *plain_malloc(int bytes) { return plain_with_head(__libc_malloc((size_t)bytes + PLAIN_HEAD_BYTES), bytes); }

static void *plain_realloc(void *p, int bytes)
{
	return plain_with_head(__libc_realloc((char *)p - PLAIN_HEAD_BYTES, (size_t)bytes + PLAIN_HEAD_BYTES), bytes);
}

static void plain_free(void *p)
{
	if (p)
		__libc_free((char *)p - PLAIN_HEAD_BYTES);
}

static int plain_roundup(int bytes) { return (bytes + 7) & ~7; }

static int plain_init(void *data)
{
	(void)data;
	return SQLITE_OK;
}

static void plain_shutdown(void *data) { (void)data; }

/* Before main(), because SQLite accepts it only before its first use. */
__attribute__((constructor)) static void plain_sqlite_memory(void)
{
	static const sqlite3_mem_methods methods = {.xMalloc = plain_malloc,
	    .xFree = plain_free,
	    .xRealloc = plain_realloc,
	    .xSize = plain_size,
	    .xRoundup = plain_roundup,
	    .xInit = plain_init,
	    .xShutdown = plain_shutdown};
	int rc = sqlite3_config(SQLITE_CONFIG_MALLOC, &methods);

	assert(rc == SQLITE_OK);
}

#endif
