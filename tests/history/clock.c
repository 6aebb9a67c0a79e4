/* Preloaded into the daemon: its clocks run ahead of the machine's by the values in a file (nanoseconds), one for the wall
 * clock and one for the monotonic clock. libfaketime would make each reading of a clock a hundred times slower. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { WALL, MONO, N_CLOCKS };
static const volatile int64_t *ahead_ns;
static int (*real_gettime)(clockid_t, struct timespec *); /* needs no system call */
static int (*real_timedwait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("HISTORY_CLOCK");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *map = fd < 0 ? MAP_FAILED : mmap(NULL, N_CLOCKS * sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);

	if (map == MAP_FAILED)
		abort();
	close(fd);
	*(void **)&real_gettime = dlsym(RTLD_NEXT, "clock_gettime");
	*(void **)&real_timedwait = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
	ahead_ns = map;
}

static void add(struct timespec *t, int64_t ns)
{
	int64_t sum = t->tv_sec * INT64_C(1000000000) + t->tv_nsec + ns;

	t->tv_sec = sum / 1000000000;
	t->tv_nsec = sum % 1000000000;
}

int clock_gettime(clockid_t id, struct timespec *t)
{
	int rc = real_gettime ? real_gettime(id, t) : (int)syscall(SYS_clock_gettime, id, t);

	if (rc || !ahead_ns)
		return rc;
	if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)
		add(t, ahead_ns[WALL]);
	else if (id == CLOCK_MONOTONIC || id == CLOCK_MONOTONIC_COARSE || id == CLOCK_BOOTTIME)
		add(t, ahead_ns[MONO]);
	return 0;
}

/* All conditions of the daemon wait by the monotonic clock, and the kernel's clock is not ahead. */
int pthread_cond_timedwait(
    pthread_cond_t *restrict cond, pthread_mutex_t *restrict lock, const struct timespec *restrict until)
{
	struct timespec t = *until;

	add(&t, -ahead_ns[MONO]);
	return real_timedwait(cond, lock, &t);
}

int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
	struct timespec t;
	int rc = clock_gettime(CLOCK_REALTIME, &t);

	(void)zone;
	*ret = (struct timeval){.tv_sec = t.tv_sec, .tv_usec = t.tv_nsec / 1000};
	return rc;
}

time_t time(time_t *ret)
{
	struct timespec t;
	int rc = clock_gettime(CLOCK_REALTIME, &t);
	time_t now = rc ? (time_t)-1 : t.tv_sec;

	if (ret)
		*ret = now;
	return now;
}

/* The daemon's readers have a lower priority than its other threads. On a busy machine they would hardly run, and each query of
 * the test waits for one. */
int setpriority(__priority_which_t which, id_t who, int priority)
{
	(void)which;
	(void)who;
	(void)priority;
	return 0;
}

int fsync(int fd)
{
	(void)fd;
	return 0;
}

int fdatasync(int fd)
{
	(void)fd;
	return 0;
}
