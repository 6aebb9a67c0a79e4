#include "steps/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "steps/descendants.h"

enum { END_WITHIN_MS = 10 * 1000, FDS_MAX = 1024 };

struct supervisor {
	const struct child_spec *spec;
	int socket, signal_fd;
	int status_fd; /* bubblewrap's; -1: none, or nothing more is coming */
	char status_text[1024];
	size_t n_status;
	struct descendants d;
	pid_t group; /* what SIGTERM goes to; 0: not known yet */
	bool is_terminating;
	bool is_told; /* the job knows how the program ended */
};

static void say(const struct supervisor *s, const struct supervisor_word *word)
{
	if (send(s->socket, word, sizeof(*word), MSG_NOSIGNAL) < 0)
		return; /* nobody listens: the job's process is gone, which poll() says too */
}

static void fail(const struct supervisor *s) __attribute__((noreturn));
static void fail(const struct supervisor *s)
{
	say(s, &(struct supervisor_word){.kind = WORD_NOT_STARTED, .value = errno});
	_exit(127);
}

/* ---- the program's side, between fork() and exec() ---- */

static void close_all_at_exec(void)
{
	for (int fd = 3; fd < FDS_MAX; fd++) {
		int flags = fcntl(fd, F_GETFD);

		if (flags >= 0)
			fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
	}
}

static void default_signals(void)
{
	sigset_t none;

	for (int signal = 1; signal < NSIG; signal++)
		if (signal != SIGKILL && signal != SIGSTOP)
			sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Where memory runs out the program goes, not those who look after it. */
static void be_the_first_to_go(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, "500", 3) < 0)
		errno = 0; /* only a preference */
	close(fd);
}

/* Each descriptor under the number that bubblewrap was told, kept open by exec(). */
static bool place_fds(const struct supervisor *s, int status_fd)
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

static void become_program(
    const struct supervisor *s, pid_t supervisor, int output_fd, int status_fd)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	setsid();
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getppid() != supervisor)
		_exit(127);
	be_the_first_to_go();
	umask(022);
	if (null < 0 || dup2(null, 0) < 0 || dup2(output_fd, 1) < 0 || dup2(output_fd, 2) < 0 ||
	    chdir(s->spec->folder))
		goto failed;
	close_all_at_exec();
	if (s->spec->sandbox && !place_fds(s, status_fd))
		goto failed;
	default_signals();
	execvpe(s->spec->argv[0], (char *const *)s->spec->argv, (char *const *)s->spec->env);
failed:
	fail(s);
}

/* ---- the supervisor's side ---- */

static void start_program(struct supervisor *s, int output_fd)
{
	int status[2] = {-1, -1};
	pid_t me = getpid();

	if (s->spec->sandbox && pipe2(status, O_CLOEXEC))
		fail(s);
	s->d.watched = fork();
	if (s->d.watched == 0)
		become_program(s, me, output_fd, status[1]);
	if (s->d.watched < 0)
		fail(s);
	if (status[1] >= 0)
		close(status[1]);
	s->status_fd = status[0];
	if (s->status_fd >= 0)
		fcntl(s->status_fd, F_SETFL, O_NONBLOCK);
	s->group = s->spec->sandbox ? 0 : s->d.watched;
	close(output_fd);
}

/* Lines of JSON: { "child-pid": 1234, … }, the first process inside, which leads the session
 * there; and { "exit-code": 0 } if a program was run at all. */
static void read_status(struct supervisor *s)
{
	size_t room = sizeof(s->status_text) - 1 - s->n_status;
	ssize_t n = room ? read(s->status_fd, s->status_text + s->n_status, room) : 0;
	const char *p;

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		close(s->status_fd);
		s->status_fd = -1;
		return;
	}
	s->n_status += (size_t)n;
	p = strstr(s->status_text, "\"child-pid\": ");
	if (!p || s->group || !strpbrk(p, ",}"))
		return;
	s->group = (pid_t)strtol(strchr(p, ':') + 1, NULL, 10);
	if (s->is_terminating && s->group > 1)
		kill(-s->group, SIGTERM);
}

static void tell_status(struct supervisor *s)
{
	struct supervisor_word word = {.kind = WORD_ENDED, .value = s->d.status};

	if (s->is_told)
		return;
	s->is_told = true;
	if (s->status_fd >= 0)
		read_status(s);
	word.is_set_up = !s->spec->sandbox || strstr(s->status_text, "\"exit-code\"");
	say(s, &word);
}

static void finish(struct supervisor *s)
{
	bool all_gone = descendants_end(&s->d, END_WITHIN_MS);

	if (s->d.is_ended)
		tell_status(s);
	say(s, &(struct supervisor_word){
		   .kind = WORD_ALL_GONE, .value = s->d.n_killed, .has_survivors = !all_gone});
	_exit(0);
}

static void on_child_signal(struct supervisor *s)
{
	struct signalfd_siginfo info;
	bool none_left;

	while (read(s->signal_fd, &info, sizeof(info)) == sizeof(info))
		;
	none_left = descendants_reap(&s->d);
	if (s->d.is_ended)
		tell_status(s);
	/* Asked to end, what is left of the group has until the job says SUPERVISOR_KILL; left
	 * behind by a program that ended of itself it has no time at all. */
	if (none_left || (s->d.is_ended && !s->is_terminating))
		finish(s);
}

static void on_job(struct supervisor *s)
{
	char word;

	if (recv(s->socket, &word, 1, 0) != 1 || word == SUPERVISOR_KILL)
		finish(s);
	s->is_terminating = true;
	if (s->group > 1)
		kill(-s->group, SIGTERM);
}

static int watch_children(void)
{
	sigset_t all, children;

	/* whoever sends a signal to our whole group means the job, which tells us */
	sigfillset(&all);
	sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
	sigprocmask(SIG_SETMASK, &all, NULL);
	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	return signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
}

void supervisor_run(const struct child_spec *spec, int socket, int output_fd)
{
	struct supervisor s = {.spec = spec, .socket = socket, .status_fd = -1};

	descendants_adopt();
	prctl(PR_SET_NAME, "outpost-step");
	s.signal_fd = watch_children();
	if (s.signal_fd < 0)
		fail(&s);
	start_program(&s, output_fd);
	for (;;) {
		struct pollfd fds[] = {{.fd = socket, .events = POLLIN},
		    {.fd = s.signal_fd, .events = POLLIN}, {.fd = s.status_fd, .events = POLLIN}};

		if (poll(fds, ARRAY_LEN(fds), -1) < 0)
			continue;
		if (fds[2].revents)
			read_status(&s);
		if (fds[1].revents)
			on_child_signal(&s);
		if (fds[0].revents)
			on_job(&s);
	}
}
