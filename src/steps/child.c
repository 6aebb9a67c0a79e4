/* Two sides of a socket: the supervisor, forked for each program, and the job's process, which forks it.
 *
 * Job to supervisor, a byte each: terminate or kill; the end of the connection means kill.
 * Supervisor to job, one struct notice each: not started, ended, all gone. Then the supervisor exits. */
#include "steps/child.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum {
	READ_BYTES = 64 * 1024,
	DRAIN_BYTES_MAX = 1 << 20,
	END_WITHIN_MS = 10 * 1000,
	FDS_MAX = 1024,
	POLL_MAX_MS = 60 * 1000,
};

enum { COMMAND_TERMINATE = 'T', COMMAND_KILL = 'K' };

struct notice {
	enum { NOTICE_NOT_STARTED, NOTICE_ENDED, NOTICE_ALL_GONE } kind;
	int value;          /* errno; the status of waitpid(); the number of processes that were left */
	bool has_survivors; /* NOTICE_ALL_GONE */
	bool is_set_up;     /* NOTICE_ENDED: see struct child_end */
};

struct supervisor {
	const struct child_spec *spec;
	int socket, signal_fd;
	int status_fd; /* bubblewrap's; -1: none, or it was read to its end */
	char status_text[1024];
	size_t n_status;
	struct descendants d;
	pid_t group; /* gets SIGTERM; 0: not known yet */
	bool is_terminating;
	bool is_end_sent; /* the job knows how the program ended */
};

static void send_notice(const struct supervisor *s, const struct notice *notice)
{
	if (send(s->socket, notice, sizeof(*notice), MSG_NOSIGNAL) < 0)
		return; /* the job's process is gone; poll() reports that too */
}

static void __attribute__((noreturn)) exit_not_started(const struct supervisor *s)
{
	send_notice(s, &(struct notice){.kind = NOTICE_NOT_STARTED, .value = errno});
	_exit(127);
}

/* ---- the program's side: between fork() and exec() ---- */

/* Gives each descriptor the number that bubblewrap expects, without close-on-exec. Moves all out of the way first,
 * because one may have the number of another. */
static bool place_sandbox_fds(const struct supervisor *s, int status_fd)
{
	int from[] = {status_fd, s->spec->sandbox->args_fd, s->spec->sandbox->filter_fd};

	for (size_t i = 0; i < ARRAY_LEN(from); i++) {
		from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, CHILD_FILTER_FD + 1);
		if (from[i] < 0)
			return false;
	}
	for (size_t i = 0; i < ARRAY_LEN(from); i++)
		if (dup2(from[i], CHILD_STATUS_FD + (int)i) < 0)
			return false;
	return true;
}

/* Never returns. The order matters:
 * the session comes first, so that a signal to the program's group does not reach the supervisor; the
 * death signal is set before the parent is checked, so that its death is not missed in between; all
 * descriptors are marked close-on-exec before those for bubblewrap are placed, so that the program gets no
 * others; signals are reset last, because until then the blocked ones must not interrupt the setup. */
static void __attribute__((noreturn))
become_program(const struct supervisor *s, pid_t supervisor, int output_fd, int status_fd)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	sigset_t none;

	setsid();
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != supervisor)
		_exit(127);
	/* If memory runs out, the kernel ends the program and not the processes that look after it. */
	int oom_fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (oom_fd >= 0) {
		if (write(oom_fd, "500", 3) < 0)
			errno = 0; /* only a preference */
		close(oom_fd);
	}
	umask(022);
	if (null < 0 || dup2(null, 0) < 0 || dup2(output_fd, 1) < 0 || dup2(output_fd, 2) < 0 || chdir(s->spec->folder))
		exit_not_started(s);
	for (int fd = 3; fd < FDS_MAX; fd++) {
		int flags = fcntl(fd, F_GETFD);

		if (flags >= 0)
			fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
	}
	if (s->spec->sandbox && !place_sandbox_fds(s, status_fd))
		exit_not_started(s);
	for (int signal = 1; signal < NSIG; signal++)
		if (signal != SIGKILL && signal != SIGSTOP)
			sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execvpe(s->spec->argv[0], (char *const *)s->spec->argv, (char *const *)s->spec->env);
	exit_not_started(s);
}

/* ---- the supervisor's side ---- */

static void start_program(struct supervisor *s, int output_fd)
{
	int status[2] = {-1, -1};
	pid_t me = getpid();

	if (s->spec->sandbox && pipe2(status, O_CLOEXEC))
		exit_not_started(s);
	s->d.watched = fork();
	if (s->d.watched == 0)
		become_program(s, me, output_fd, status[1]);
	if (s->d.watched < 0)
		exit_not_started(s);
	if (status[1] >= 0)
		close(status[1]);
	s->status_fd = status[0];
	if (s->status_fd >= 0)
		fcntl(s->status_fd, F_SETFL, O_NONBLOCK);
	s->group = s->spec->sandbox ? 0 : s->d.watched;
	close(output_fd);
}

/* Bubblewrap writes lines of JSON: { "child-pid": 1234, … }, the first process inside, which leads the
 * session there; and { "exit-code": 0 } if a program was run at all. */
static void read_sandbox_status(struct supervisor *s)
{
	size_t room = sizeof(s->status_text) - 1 - s->n_status;
	ssize_t n = room ? read(s->status_fd, s->status_text + s->n_status, room) : 0;

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		close(s->status_fd);
		s->status_fd = -1;
		return;
	}
	s->n_status += (size_t)n;
	const char *p = strstr(s->status_text, "\"child-pid\": ");
	if (!p || s->group || !strpbrk(p, ",}"))
		return;
	s->group = (pid_t)strtol(strchr(p, ':') + 1, NULL, 10);
	if (s->is_terminating && s->group > 1)
		kill(-s->group, SIGTERM);
}

static void send_end(struct supervisor *s)
{
	struct notice notice = {.kind = NOTICE_ENDED, .value = s->d.status};

	if (s->is_end_sent)
		return;
	s->is_end_sent = true;
	if (s->status_fd >= 0)
		read_sandbox_status(s);
	notice.is_set_up = !s->spec->sandbox || strstr(s->status_text, "\"exit-code\"");
	send_notice(s, &notice);
}

static void __attribute__((noreturn)) end_supervisor(struct supervisor *s)
{
	bool all_gone = descendants_end(&s->d, END_WITHIN_MS);

	if (s->d.is_ended)
		send_end(s);
	send_notice(s, &(struct notice){.kind = NOTICE_ALL_GONE, .value = s->d.n_killed, .has_survivors = !all_gone});
	_exit(0);
}

static void __attribute__((noreturn)) run_supervisor(const struct child_spec *spec, int socket, int output_fd)
{
	struct supervisor s = {.spec = spec, .socket = socket, .status_fd = -1};
	sigset_t all, children;

	descendants_adopt();
	prctl(PR_SET_NAME, "outpost-step");
	/* A signal to the whole process group is meant for the job, which sends a command then. */
	sigfillset(&all);
	sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
	sigprocmask(SIG_SETMASK, &all, NULL);
	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	s.signal_fd = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s.signal_fd < 0)
		exit_not_started(&s);
	start_program(&s, output_fd);
	for (;;) {
		struct pollfd fds[] = {{.fd = socket, .events = POLLIN}, {.fd = s.signal_fd, .events = POLLIN},
		    {.fd = s.status_fd, .events = POLLIN}};

		if (poll(fds, ARRAY_LEN(fds), -1) < 0)
			continue;
		if (fds[2].revents)
			read_sandbox_status(&s);
		if (fds[1].revents) {
			struct signalfd_siginfo info;

			while (read(s.signal_fd, &info, sizeof(info)) == sizeof(info))
				;
			bool none_left = descendants_reap(&s.d);
			if (s.d.is_ended)
				send_end(&s);
			/* After a terminate command the rest of the group may live until the kill command. Processes
			 * that a program left behind by itself get no time at all. */
			if (none_left || (s.d.is_ended && !s.is_terminating))
				end_supervisor(&s);
		}
		if (fds[0].revents) {
			char command;

			if (recv(s.socket, &command, 1, 0) != 1 || command == COMMAND_KILL)
				end_supervisor(&s);
			s.is_terminating = true;
			if (s.group > 1)
				kill(-s.group, SIGTERM);
		}
	}
}

/* ---- the job's side ---- */

struct child {
	const struct child_spec *spec;
	struct child_end *end;
	pid_t supervisor;
	int socket, output_fd;
	int64_t next_ms; /* mono: when to send the next command; < 0: never */
	bool is_terminating;
	bool has_status, is_over;
	int start_errno;
};

static bool stop_check(struct stop *s)
{
	struct signalfd_siginfo info;

	if (!s->is_requested && s->fd >= 0 && read(s->fd, &info, sizeof(info)) == sizeof(info))
		s->is_requested = true;
	return s->is_requested;
}

bool stop_wait(struct stop *s, int64_t ms)
{
	struct pollfd fd = {.fd = s->is_requested ? -1 : s->fd, .events = POLLIN};

	if (s->is_requested)
		return true;
	poll(&fd, 1, (int)ms);
	return stop_check(s);
}

static void send_command(struct child *c, char command)
{
	/* If the supervisor is gone already, its end is about to be read. */
	if (send(c->socket, &command, 1, MSG_NOSIGNAL) < 0)
		c->next_ms = -1;
}

static void terminate_child(struct child *c)
{
	c->is_terminating = true;
	c->next_ms = clock_mono_ms() + c->spec->kill_after_ms;
	send_command(c, COMMAND_TERMINATE);
}

static void on_notice(struct child *c)
{
	struct notice notice;
	ssize_t n = recv(c->socket, &notice, sizeof(notice), 0);

	if (n < 0 && errno == EINTR)
		return;
	if (n != sizeof(notice)) {
		/* The supervisor was killed. Its children are this process's now, or init's. */
		c->is_over = true;
		return;
	}
	switch (notice.kind) {
	case NOTICE_NOT_STARTED:
		c->start_errno = notice.value;
		break;
	case NOTICE_ENDED:
		c->has_status = true;
		c->end->is_set_up = notice.is_set_up;
		if (WIFEXITED(notice.value))
			c->end->exit_code = WEXITSTATUS(notice.value);
		else if (WIFSIGNALED(notice.value))
			c->end->signal = WTERMSIG(notice.value);
		break;
	case NOTICE_ALL_GONE:
		c->end->n_left = notice.value;
		c->end->has_survivors = notice.has_survivors;
		c->is_over = true;
		break;
	}
}

/* False if there is nothing to read now, or never again. */
static bool read_child_output(struct child *c, size_t *ret_n)
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

static int start_supervisor(struct child *c, struct error *e)
{
	int sockets[2], output[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
		return error_set(e, ERR_IO, "no descriptors: %s", strerror(errno));
	if (pipe2(output, O_CLOEXEC)) {
		error_set(e, ERR_IO, "no descriptors: %s", strerror(errno));
		close(sockets[0]);
		close(sockets[1]);
		return ERR_IO;
	}
	fflush(NULL);
	c->supervisor = fork();
	if (c->supervisor == 0) {
		close(sockets[0]);
		close(output[0]);
		run_supervisor(c->spec, sockets[1], output[1]);
	}
	close(sockets[1]);
	close(output[1]);
	if (c->supervisor < 0) {
		close(sockets[0]);
		close(output[0]);
		return error_set(e, ERR_IO, "no new process: %s", strerror(errno));
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
	size_t n_bytes = 0;

	*ret = (struct child_end){.exit_code = -1, .is_set_up = true};
	int rc = start_supervisor(&c, e);
	if (rc)
		return rc;
	if (s->timeout_ms >= 0)
		c.next_ms = started_ms + s->timeout_ms;
	/* Until the supervisor says that all processes are gone, or is gone itself. */
	struct stop *stop = s->stop;
	while (!c.is_over) {
		struct pollfd fds[] = {{.fd = c.socket, .events = POLLIN}, {.fd = c.output_fd, .events = POLLIN},
		    {.fd = stop && !stop->is_requested ? stop->fd : -1, .events = POLLIN}};
		int64_t left_ms = -1;

		if (stop && stop_check(stop) && !c.is_terminating) {
			c.end->is_cancelled = true;
			terminate_child(&c);
		}
		if (c.next_ms >= 0) {
			left_ms = c.next_ms - clock_mono_ms();
			left_ms = left_ms <= 0 ? 0 : left_ms > POLL_MAX_MS ? POLL_MAX_MS : left_ms;
		}
		if (poll(fds, ARRAY_LEN(fds), (int)left_ms) < 0)
			continue;
		if (c.next_ms >= 0 && clock_mono_ms() >= c.next_ms) {
			if (c.is_terminating) {
				c.next_ms = -1;
				send_command(&c, COMMAND_KILL);
			} else {
				c.end->is_timeout = !c.has_status;
				terminate_child(&c);
			}
		}
		if (fds[1].revents)
			read_child_output(&c, &n_bytes);
		if (fds[0].revents)
			on_notice(&c);
	}
	/* The pipe may still hold output. The bound is for a survivor that goes on writing. */
	n_bytes = 0;
	while (c.output_fd >= 0 && n_bytes < DRAIN_BYTES_MAX && read_child_output(&c, &n_bytes))
		;
	close(c.socket);
	if (c.output_fd >= 0)
		close(c.output_fd);
	while (waitpid(c.supervisor, NULL, 0) < 0 && errno == EINTR)
		;
	ret->duration_ms = clock_mono_ms() - started_ms;
	if (c.start_errno)
		return error_set(
		    e, c.start_errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, "%s: %s", s->argv[0], strerror(c.start_errno));
	if (!c.has_status)
		ret->signal = ret->signal ? ret->signal : SIGKILL;
	return 0;
}

/* ---- the program's variables ---- */

static void wipe_and_free(char *s)
{
	explicit_bzero(s, strlen(s));
	free(s);
}

void environment_set(struct environment *v, const char *name, const char *value)
{
	char *text = xasprintf("%s=%s", name, value);
	size_t n = strlen(name) + 1;

	for (size_t i = 0; i < v->n; i++)
		if (!strncmp(v->list[i], text, n)) {
			wipe_and_free(v->list[i]);
			v->list[i] = text;
			return;
		}
	v->list = xrealloc(v->list, (v->n + 2) * sizeof(*v->list));
	v->list[v->n++] = text;
	v->list[v->n] = NULL;
}

void environment_release(struct environment *v)
{
	for (size_t i = 0; i < v->n; i++)
		wipe_and_free(v->list[i]);
	free(v->list);
	*v = (struct environment){.n = 0};
}

void environment_copy(struct environment *v, const char *name, const char *fallback)
{
	const char *value = getenv(name);

	if (value || fallback)
		environment_set(v, name, value ? value : fallback);
}

void environment_copy_all(struct environment *v, const char *const *names)
{
	for (; *names; names++)
		environment_copy(v, *names, NULL);
}

int child_run_check(const struct child_spec *s, struct child_end *ret, struct error *e)
{
	static const char *const names[] = {"HOME", "LANG", "TZ", "USER", NULL};
	struct environment env = {.n = 0};
	struct child_spec own = *s;

	environment_copy(&env, "PATH", ENVIRONMENT_PATH);
	environment_copy_all(&env, names);
	own.env = (const char *const *)env.list;
	int rc = child_run(&own, ret, e);
	environment_release(&env);
	return rc;
}
