#include "daemon/daemon.h"

#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/secret.h"
#include "base/version.h"
#include "daemon/check.h"
#include "daemon/notify.h"
#include "daemon/reload.h"
#include "daemon/wire.h"

enum { STOP_DEADLINE_MS = 9000, MESSAGES_MAX_BYTES = 1 << 20 };

static void on_stop_deadline(struct timer *t)
{
	(void)t;
	/* What was promised is on disk; what was not goes on after the next start. */
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
	notify_stopping();
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
	notify_watchdog();
	timer_start(t, notify_watchdog_interval_ms());
}

/* Secrets live in this memory: no core dump, no reading by the same user's other programs. */
static void protect_memory(void)
{
	const struct rlimit none = {0, 0};

	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_DUMPABLE, 0);
}

/* Every connection is a descriptor; the soft limit is a default for programs that select(). */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max < 65536 ? limit.rlim_max : 65536;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static void start_serving(struct daemon *d)
{
	loop_on_signal(d->loop, SIGTERM, on_stop_signal, d);
	loop_on_signal(d->loop, SIGINT, on_stop_signal, d);
	loop_on_signal(d->loop, SIGHUP, on_reload_signal, d);
	d->watchdog = timer_new(d->loop, on_watchdog, d);
	if (notify_watchdog_interval_ms() > 0)
		timer_start(d->watchdog, notify_watchdog_interval_ms());
	log_event(LOG_INFO, "listening", LOG_S("address", d->address),
	    LOG_S("tls", d->config->tls_certificate_pem ? "yes" : "no"),
	    LOG_S("public_url", d->config->public_url));
	log_event(LOG_INFO, "ready", LOG_S("version", OUTPOST_VERSION),
	    LOG_S("upstream", d->config->upstream_repository),
	    LOG_I("accelerators", (int64_t)d->config->n_accelerators));
	notify_ready();
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

int daemon_run(const char *config_path)
{
	struct daemon d = {.config_path = config_path};
	struct error why = {0};
	int rc;

	/* Three threads of ours and the pool: more arenas only spread the heap out. */
	mallopt(M_ARENA_MAX, 2);
	protect_memory();
	raise_descriptor_limit();
	if (load_first_config(&d))
		return 1;
	d.loop = loop_new();
	d.stop_deadline = timer_new(d.loop, on_stop_deadline, &d);
	rc = wire_up(&d, &why);
	if (rc) {
		log_event(
		    LOG_ERROR, "start_failed", LOG_S("why", *why.text ? why.text : err_text(rc)));
		wire_down(&d);
	} else {
		start_serving(&d);
	}
	loop_run(d.loop);
	loop_free(d.loop);
	if (!rc)
		log_event(LOG_INFO, "stopped");
	config_unref(d.config);
	config_fixed_release(&d.running);
	free(d.config_error);
	free(d.wanted_commit_folder);
	free(d.address);
	secret_unref(d.callback_key);
	return rc ? 1 : 0;
}
