#include "registry/bounds.h"

#include <errno.h>
#include <poll.h>

#include "base/clock.h"

enum { WAIT_MAX_MS = 60000 };

static int wait_for(struct bounds *b, struct pollfd *fds, nfds_t n, int timeout_ms)
{
	int n_ready;

	do
		n_ready = poll(fds, n, timeout_ms);
	while (n_ready < 0 && errno == EINTR);
	if (n_ready < 0)
		return error_set(&b->why, ERR_IO, "cannot wait: %s", strerror(errno));
	if (fds[0].revents)
		return error_set(&b->why, ERR_CANCELLED, "broken off: shutting down");
	return n_ready;
}

int bounds_check(struct bounds *b)
{
	struct pollfd cancel = {.fd = b->cancel_fd, .events = POLLIN};
	int rc;

	if (b->why.code)
		return b->why.code;
	rc = wait_for(b, &cancel, 1, 0);
	if (rc < 0)
		return rc;
	if (clock_mono_ms() >= b->deadline_mono_ms)
		return error_set(&b->why, ERR_TIMEOUT, "took too long, broken off");
	return 0;
}

int bounds_wait(struct bounds *b, int fd, short events)
{
	struct pollfd fds[] = {
	    {.fd = b->cancel_fd, .events = POLLIN}, {.fd = fd, .events = events}};
	int64_t left_ms;
	int rc = bounds_check(b);

	if (rc)
		return rc;
	left_ms = b->deadline_mono_ms - clock_mono_ms();
	rc = wait_for(b, fds, 2,
	    left_ms < 0             ? 0
	    : left_ms > WAIT_MAX_MS ? WAIT_MAX_MS
				    : (int)left_ms);
	if (rc == 0)
		return error_set(&b->why, ERR_TIMEOUT, "the server is silent, broken off");
	return rc < 0 ? rc : 0;
}

int bounds_count(struct bounds *b, size_t n_bytes)
{
	b->n_bytes_left -= (int64_t)n_bytes;
	if (b->n_bytes_left < 0)
		return error_set(&b->why, ERR_TOO_BIG, "the server sends too much, broken off");
	return b->why.code;
}
