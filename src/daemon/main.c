/* outpostd: the command line, and the service from start to clean stop. */
#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "daemon/notify.h"
#include "daemon/reload.h"
#include "daemon/wire.h"

enum { STOP_DEADLINE_MS = 9000, MESSAGES_MAX_BYTES = 1 << 20, HEAP_KEPT_BYTES = 8 << 20 };

static void on_stop_deadline(struct timer *t)
{
	(void)t;
	/* Every promise is on disk, and the next start continues the rest. */
	log_event(LOG_WARN, "stop_cut_short", LOG_I("after_ms", STOP_DEADLINE_MS));
	_exit(0);
}

static void on_stop_signal(int signum, void *owner)
{
	struct daemon *d = owner;

	if (d->is_stopping)
		return;
	d->is_stopping = true;
	log_event(LOG_INFO, "stopping", LOG_S("signal", strsignal(signum)));
	notify_send("STOPPING=1");
	timer_start(d->stop_deadline, STOP_DEADLINE_MS);
	wire_down(d);
}

static void on_reload_signal(int signum, void *owner)
{
	(void)signum;
	reload_start(owner);
}

static void on_watchdog(struct timer *t)
{
	notify_send("WATCHDOG=1");
	timer_start(t, notify_watchdog_interval_ms());
}

static int load_first_config(struct daemon *d)
{
	struct buf messages = BUF_INIT(MESSAGES_MAX_BYTES);
	int rc = daemon_load_first_config(d->config_path, &d->config, &messages);

	fputs(buf_str(&messages), stderr);
	buf_release(&messages);
	if (!rc) {
		d->config_loaded_wall_ms = clock_wall_ms();
		config_fixed_init(&d->running, d->config);
		log_setup(d->config->log_level, d->config->log_format);
		if (!secret_memory_is_locked())
			log_event(LOG_WARN, "secrets_not_locked",
			    LOG_S("why", "RLIMIT_MEMLOCK is too small: keys may reach swap"));
		daemon_log_warnings(d->config);
	}
	return rc;
}

/* Runs until SIGTERM or SIGINT. Returns the exit code: 0 after a clean stop, 1 after a failed start,
 * which stderr explains. */
static int run_daemon(const char *config_path)
{
	struct daemon d = {.config_path = config_path};
	struct error why = {0};
	const struct rlimit none = {0, 0};
	struct rlimit limit;

	/* Few threads allocate, so more arenas would only fragment the heap. */
	mallopt(M_ARENA_MAX, 2);
	/* The next report soon needs the memory of the last one. By default the C library returns that memory to the system each time, and the
	 * next report pays a page fault for every 4 KiB of it, up to half of its time. */
	mallopt(M_TRIM_THRESHOLD, HEAP_KEPT_BYTES);
	mallopt(M_MMAP_THRESHOLD, HEAP_KEPT_BYTES);
	/* This memory holds secrets: no core dump, and no access for the user's other programs. */
	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_DUMPABLE, 0);
	/* Every connection is a descriptor; the soft limit is a default for programs that select(). */
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max < 65536 ? limit.rlim_max : 65536;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (load_first_config(&d))
		return 1;
	d.loop = loop_new();
	d.stop_deadline = timer_new(d.loop, on_stop_deadline, &d);
	int rc = wire_up(&d, &why);
	if (rc) {
		log_event(LOG_ERROR, "start_failed", LOG_S("why", *why.text ? why.text : err_text(rc)));
		wire_down(&d);
	} else {
		loop_on_signal(d.loop, SIGTERM, on_stop_signal, &d);
		loop_on_signal(d.loop, SIGINT, on_stop_signal, &d);
		loop_on_signal(d.loop, SIGHUP, on_reload_signal, &d);
		d.watchdog = timer_new(d.loop, on_watchdog, &d);
		if (notify_watchdog_interval_ms() > 0)
			timer_start(d.watchdog, notify_watchdog_interval_ms());
		log_event(LOG_INFO, "listening", LOG_S("address", d.address),
		    LOG_S("tls", d.config->tls_certificate_pem ? "yes" : "no"),
		    LOG_S("public_url", d.config->public_url));
		log_event(LOG_INFO, "ready", LOG_S("version", OUTPOST_VERSION),
		    LOG_S("upstream", d.config->upstream_repository),
		    LOG_I("accelerators", (int64_t)d.config->n_accelerators));
		notify_send("READY=1");
	}
	loop_run(d.loop);
	loop_free(d.loop);
	if (!rc)
		log_event(LOG_INFO, "stopped");
	config_unref(d.config);
	config_fixed_release(&d.running);
	FREE_ALL(d.config_error, d.next_commit_folder, d.address);
	secret_unref(d.callback_key);
	return rc ? 1 : 0;
}

/* ---- the command line ---- */

static const char USAGE[] = "Usage: outpostd -c FILE [--check]\n"
			    "\n"
			    "Receives GitHub's webhooks, starts tests on every registered accelerator, and keeps one\n"
			    "results comment on each pull request. Runs in the foreground.\n"
			    "\n"
			    "  -c, --config FILE  the configuration, outpost.yml\n"
			    "      --check        read every configuration file, print what is wrong as\n"
			    "                     file:line: text, and exit 0 or 1; touches nothing\n"
			    "      --version      print the version\n"
			    "      --help         print this\n"
			    "\n"
			    "SIGHUP reads the configuration again, all or nothing. SIGTERM ends cleanly.\n";

static void print_help(FILE *out) { fputs(USAGE, out); }

int main(int argc, char **argv)
{
	const char *config_path = NULL;
	bool is_check = false; /* read every file, change nothing */
	const struct program program = {"outpostd", print_help,
	    (const struct program_option[]){
		{"--config", "-c", .text = &config_path, .value = "file"},
		{"--check", .flag = &is_check},
		{NULL},
	    }};

	int i = options_read(&program, argc, argv);
	if (i < argc)
		options_refuse(&program, "unexpected argument '%s'", argv[i]);
	if (!config_path)
		options_refuse(&program, "no configuration: give -c FILE");
	return is_check ? daemon_check(config_path) : run_daemon(config_path);
}
