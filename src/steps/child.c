#include "steps/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "steps/supervisor.h"

enum { READ_BYTES = 64 * 1024, DRAIN_BYTES_MAX = 1 << 20 };

struct child {
	const struct child_spec *spec;
	struct child_end *end;
	pid_t supervisor;
	int socket, output_fd;
	int64_t next_ms; /* mono: when to send the next word; < 0: never */
	bool is_terminating;
	bool has_status, is_over;
	int start_errno;
};

static bool stop_check(struct stop *s)
{
	struct signalfd_siginfo info;

	if (!s->is_wanted && s->fd >= 0 && read(s->fd, &info, sizeof(info)) == sizeof(info))
		s->is_wanted = true;
	return s->is_wanted;
}

bool stop_wait(struct stop *s, int64_t ms)
{
	struct pollfd fd = {.fd = s->is_wanted ? -1 : s->fd, .events = POLLIN};

	if (s->is_wanted)
		return true;
	poll(&fd, 1, (int)ms);
	return stop_check(s);
}

static void send_word(struct child *c, char word)
{
	/* if it is gone already, its end is about to be read */
	if (send(c->socket, &word, 1, MSG_NOSIGNAL) < 0)
		c->next_ms = -1;
}

static void terminate(struct child *c)
{
	c->is_terminating = true;
	c->next_ms = clock_mono_ms() + c->spec->kill_after_ms;
	send_word(c, SUPERVISOR_TERMINATE);
}

static void on_time(struct child *c)
{
	if (c->is_terminating) {
		c->next_ms = -1;
		send_word(c, SUPERVISOR_KILL);
		return;
	}
	c->end->is_timeout = !c->has_status;
	terminate(c);
}

static void on_status(struct child *c, int status, bool is_set_up)
{
	c->has_status = true;
	c->end->is_set_up = is_set_up;
	if (WIFEXITED(status))
		c->end->exit_code = WEXITSTATUS(status);
	else if (WIFSIGNALED(status))
		c->end->signal = WTERMSIG(status);
}

static void on_supervisor(struct child *c)
{
	struct supervisor_word word;
	ssize_t n = recv(c->socket, &word, sizeof(word), 0);

	if (n < 0 && errno == EINTR)
		return;
	if (n != sizeof(word)) {
		/* somebody killed it; its children are ours now, or init's */
		c->is_over = true;
		return;
	}
	switch (word.kind) {
	case WORD_NOT_STARTED:
		c->start_errno = word.value;
		break;
	case WORD_ENDED:
		on_status(c, word.value, word.is_set_up);
		break;
	case WORD_ALL_GONE:
		c->end->n_left = word.value;
		c->end->has_survivors = word.has_survivors;
		c->is_over = true;
		break;
	}
}

/* False when there is nothing to read at present, or never again. */
static bool read_output(struct child *c, size_t *ret_n)
{
	char chunk[READ_BYTES];
	ssize_t n = read(c->output_fd, chunk, sizeof(chunk));

	if (n > 0 && c->spec->on_output)
		c->spec->on_output(c->spec->ctx, chunk, (size_t)n);
	if (n > 0) {
		*ret_n += (size_t)n;
		return true;
	}
	if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		close(c->output_fd);
		c->output_fd = -1;
	}
	return false;
}

static int time_left(const struct child *c)
{
	int64_t left;

	if (c->next_ms < 0)
		return -1;
	left = c->next_ms - clock_mono_ms();
	return left <= 0 ? 0 : left > 60000 ? 60000 : (int)left;
}

static void watch(struct child *c)
{
	struct stop *stop = c->spec->stop;
	size_t n_bytes = 0;

	while (!c->is_over) {
		struct pollfd fds[] = {{.fd = c->socket, .events = POLLIN},
		    {.fd = c->output_fd, .events = POLLIN},
		    {.fd = stop && !stop->is_wanted ? stop->fd : -1, .events = POLLIN}};

		if (stop && stop_check(stop) && !c->is_terminating) {
			c->end->is_cancelled = true;
			terminate(c);
		}
		if (poll(fds, ARRAY_LEN(fds), time_left(c)) < 0)
			continue;
		if (c->next_ms >= 0 && clock_mono_ms() >= c->next_ms)
			on_time(c);
		if (fds[1].revents)
			read_output(c, &n_bytes);
		if (fds[0].revents)
			on_supervisor(c);
	}
	/* what the pipe holds still; not more, should anybody have survived who writes on */
	n_bytes = 0;
	while (c->output_fd >= 0 && n_bytes < DRAIN_BYTES_MAX && read_output(c, &n_bytes))
		;
}

static int open_lines(int sockets[2], int output[2])
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
		return -1;
	if (pipe2(output, O_CLOEXEC)) {
		close(sockets[0]);
		close(sockets[1]);
		return -1;
	}
	return 0;
}

static int start_supervisor(struct child *c, struct error *e)
{
	int sockets[2], output[2];

	if (open_lines(sockets, output))
		return error_set(e, ERR_IO, "no descriptors: %s", strerror(errno));
	fflush(NULL);
	c->supervisor = fork();
	if (c->supervisor == 0) {
		close(sockets[0]);
		close(output[0]);
		supervisor_run(c->spec, sockets[1], output[1]);
	}
	close(sockets[1]);
	close(output[1]);
	if (c->supervisor < 0) {
		close(sockets[0]);
		close(output[0]);
		return error_set(e, ERR_IO, "no process to be had: %s", strerror(errno));
	}
	c->socket = sockets[0];
	c->output_fd = output[0];
	fcntl(c->output_fd, F_SETFL, O_NONBLOCK);
	return 0;
}

int child_run(const struct child_spec *s, struct child_end *ret, struct error *e)
{
	struct child c = {.spec = s, .end = ret, .next_ms = -1};
	int64_t started_ms = clock_mono_ms();
	int rc;

	*ret = (struct child_end){.exit_code = -1, .is_set_up = true};
	rc = start_supervisor(&c, e);
	if (rc)
		return rc;
	if (s->timeout_ms >= 0)
		c.next_ms = started_ms + s->timeout_ms;
	watch(&c);
	close(c.socket);
	if (c.output_fd >= 0)
		close(c.output_fd);
	while (waitpid(c.supervisor, NULL, 0) < 0 && errno == EINTR)
		;
	ret->duration_ms = clock_mono_ms() - started_ms;
	if (c.start_errno)
		return error_set(e, c.start_errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, "%s: %s",
		    s->argv[0], strerror(c.start_errno));
	if (!c.has_status)
		ret->signal = ret->signal ? ret->signal : SIGKILL;
	return 0;
}
