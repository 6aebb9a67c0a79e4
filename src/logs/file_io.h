/* read(2) and write(2) to their end, with this program's error codes. Blocking. */
#ifndef LOGS_FILE_IO_H
#define LOGS_FILE_IO_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* At the file's own position. errno says more. */
int file_io_write(int fd, const void *p, size_t n) MUST_CHECK;
int file_io_write_at(int fd, const void *p, size_t n, int64_t at) MUST_CHECK;
/* *ret_n < n only at the end of the file. */
int file_io_read(int fd, void *p, size_t n, int64_t at, size_t *ret_n) MUST_CHECK;
/* ERR_FULL for a full disk, quota or size limit, else ERR_IO. */
int file_io_code(int errno_value);

#endif
