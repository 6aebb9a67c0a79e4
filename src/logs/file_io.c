#include "logs/file_io.h"

#include <errno.h>
#include <unistd.h>

int file_io_code(int errno_value)
{
	switch (errno_value) {
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
		return ERR_FULL;
	default:
		return ERR_IO;
	}
}

int file_io_write(int fd, const void *p, size_t n)
{
	const char *at = p;

	while (n > 0) {
		ssize_t done = write(fd, at, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return file_io_code(errno);
		at += done;
		n -= (size_t)done;
	}
	return 0;
}

int file_io_write_at(int fd, const void *p, size_t n, int64_t at)
{
	const char *from = p;

	while (n > 0) {
		ssize_t done = pwrite(fd, from, n, at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return file_io_code(errno);
		from += done;
		at += done;
		n -= (size_t)done;
	}
	return 0;
}

int file_io_read(int fd, void *p, size_t n, int64_t at, size_t *ret_n)
{
	char *to = p;

	*ret_n = 0;
	while (*ret_n < n) {
		ssize_t got = pread(fd, to + *ret_n, n - *ret_n, at + (int64_t)*ret_n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return file_io_code(errno);
		if (got == 0)
			break;
		*ret_n += (size_t)got;
	}
	return 0;
}
