#include "web/process_metrics.h"

#include <dirent.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

enum { PROC_MAX_BYTES = 4096 };

static void put(struct buf *out, const char *name, const char *type, const char *help, double value)
{
	buf_appendf(
	    out, "# HELP %s %s\n# TYPE %s %s\n%s %.15g\n", name, help, name, type, name, value);
}

static void put_cpu(struct buf *out)
{
	struct rusage u;

	if (getrusage(RUSAGE_SELF, &u) == 0)
		put(out, "process_cpu_seconds_total", "counter",
		    "User and system CPU time that was used.",
		    (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
			(double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6);
}

static void put_memory(struct buf *out)
{
	struct buf text = BUF_INIT(PROC_MAX_BYTES);
	double page = (double)sysconf(_SC_PAGESIZE);
	long long virtual_pages, resident_pages;

	if (file_read("/proc/self/statm", &text, NULL) == 0 &&
	    sscanf(buf_str(&text), "%lld %lld", &virtual_pages, &resident_pages) == 2) {
		put(out, "process_virtual_memory_bytes", "gauge", "Size of the virtual memory.",
		    (double)virtual_pages * page);
		put(out, "process_resident_memory_bytes", "gauge", "Size of the resident memory.",
		    (double)resident_pages * page);
	}
	buf_release(&text);
}

static void put_fds(struct buf *out)
{
	DIR *dir = opendir("/proc/self/fd");
	struct rlimit limit;
	int n = -3; /* ".", ".." and the directory's own */

	if (dir) {
		while (readdir(dir))
			n++;
		closedir(dir);
		put(out, "process_open_fds", "gauge", "Open file descriptors.", n);
	}
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		put(out, "process_max_fds", "gauge", "How many file descriptors may be open.",
		    (double)limit.rlim_cur);
}

/* Field 22 of stat(5), in clock ticks since the machine's start; the name before it may hold
 * anything, also ")". */
static void put_start(struct buf *out)
{
	struct buf text = BUF_INIT(PROC_MAX_BYTES);
	unsigned long long ticks;
	struct timespec up;
	const char *p;

	if (file_read("/proc/self/stat", &text, NULL) == 0 &&
	    (p = strrchr(buf_str(&text), ')')) != NULL &&
	    sscanf(p + 1,
		" %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d"
		" %*d %llu",
		&ticks) == 1 &&
	    clock_gettime(CLOCK_BOOTTIME, &up) == 0) {
		double age_s = (double)up.tv_sec + (double)up.tv_nsec / 1e9 -
			       (double)ticks / (double)sysconf(_SC_CLK_TCK);

		put(out, "process_start_time_seconds", "gauge",
		    "When the process was started, since 1970.",
		    (double)(int64_t)((double)clock_wall_ms() / 1000 - age_s));
	}
	buf_release(&text);
}

static void put_disk(struct buf *out, const char *state_dir)
{
	struct statvfs v;

	if (statvfs(state_dir, &v) != 0)
		return;
	put(out, "outpost_disk_free_bytes", "gauge",
	    "Free for us on the disk that holds state_dir.",
	    (double)v.f_bavail * (double)v.f_frsize);
	put(out, "outpost_disk_size_bytes", "gauge", "Size of the disk that holds state_dir.",
	    (double)v.f_blocks * (double)v.f_frsize);
}

void process_metrics_write(struct buf *out, const char *state_dir)
{
	put_cpu(out);
	put_memory(out);
	put_fds(out);
	put_start(out);
	put_disk(out, state_dir);
}
