#include "agent/agent_internal.h"

#include <signal.h>
#include <sys/prctl.h>

#include "agent/check.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/version.h"
#include "config/source.h"
#include "steps/steps.h"

enum { TICK_MS = 300 };

/* ---- what is next ---- */

struct job *agent_busy(const struct agent *a)
{
	for (struct job *j = a->jobs; j; j = j->next)
		if (j->stage == JOB_WAITING || j->stage == JOB_RUNNING)
			return j;
	return NULL;
}

void agent_next(struct agent *a)
{
	if (a->next_timer)
		timer_start(a->next_timer, 0);
}

/* Those that run, each by itself. */
static void look_at_running(struct agent *a)
{
	struct job *next;

	for (struct job *j = a->jobs; j; j = next) {
		next = j->next;
		job_look(j);
	}
	for (struct job *j = a->jobs; j; j = j->next)
		if (j->stage == JOB_RUNNING)
			(void)upload_go(j);
	if (agent_busy(a))
		timer_start(a->tick, TICK_MS);
	else
		timer_stop(a->tick);
}

static bool is_sending(const struct agent *a)
{
	for (const struct job *j = a->jobs; j; j = j->next)
		if (j->stage == JOB_ENDED && j->upload.call.is_active)
			return true;
	return false;
}

/* Those that have ended, one at a time, oldest first; one that has to wait lets others pass. */
static void send_ended(struct agent *a)
{
	int64_t now = clock_mono_ms(), due = INT64_MAX;
	struct job *next;

	timer_stop(a->send_timer);
	if (is_sending(a))
		return;
	for (struct job *j = a->jobs; j; j = next) {
		enum upload_state state;

		next = j->next;
		if (j->stage != JOB_ENDED)
			continue;
		state = upload_go(j);
		if (state == UPLOAD_BUSY)
			return;
		if (state == UPLOAD_NOTHING)
			job_over(j, PROGRESS_DIED, "its process ended without a result");
		else if (j->upload.due_mono_ms < due)
			due = j->upload.due_mono_ms;
	}
	if (due != INT64_MAX)
		timer_start(a->send_timer, due > now ? due - now : 0);
}

static void on_server_closed(void *owner)
{
	struct agent *a = owner;

	loop_stop(a->loop);
}

/* From here on one more SIGTERM changes nothing: it must not end us half way. */
static void ignore_signals(struct loop *l)
{
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGHUP);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	loop_close_signals(l);
	signal(SIGTERM, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
}

static void close_all(struct agent *a)
{
	a->stopping = ENDING;
	while (a->jobs)
		job_forget(a->jobs);
	ignore_signals(a->loop);
	claim_close(a);
	timer_close(a->tick);
	timer_close(a->send_timer);
	timer_close(a->stop_timer);
	timer_close(a->next_timer);
	a->next_timer = NULL;
	server_close(&a->server, on_server_closed, a);
}

static void on_next(struct timer *t)
{
	struct agent *a = timer_owner(t);

	look_at_running(a);
	send_ended(a);
	if (a->end == AGENT_ONCE && a->n_taken > 0 && !a->jobs && a->stopping == NOT_STOPPING) {
		a->stopping = DRAINING;
		claim_stop(a);
	}
	if (stop_is_ready(a)) {
		close_all(a);
		return;
	}
	if (a->stopping == NOT_STOPPING && !agent_busy(a) &&
	    !(a->end == AGENT_ONCE && a->n_taken > 0))
		claim_go(a);
}

static void on_send_timer(struct timer *t)
{
	agent_next(timer_owner(t));
}

/* ---- old folders ---- */

static void prune_work(struct pool_work *w)
{
	const struct agent *a = CONTAINER_OF(w, struct agent, prune);

	journal_prune(a->journal.jobs_dir, a->is_making_room ? 0 : a->c->keep_jobs);
	if (a->is_making_room)
		steps_make_room(a->c->work_dir);
}

static void after_prune(struct pool_work *w)
{
	struct agent *a = CONTAINER_OF(w, struct agent, prune);
	bool is_room_made = a->is_making_room;

	a->is_pruning = false;
	if (a->is_room_wanted)
		agent_prune(a);
	else if (is_room_made && a->stopping == NOT_STOPPING)
		claim_hurry(a);
}

void agent_prune(struct agent *a)
{
	if (a->is_pruning || a->stopping == ENDING)
		return;
	a->is_pruning = true;
	/* also where a job is over only after its folder was in the way */
	a->is_making_room = a->is_room_wanted || a->claim.is_room_told;
	a->is_room_wanted = false;
	a->prune.work = prune_work;
	a->prune.after = after_prune;
	pool_submit(a->loop, &a->prune);
}

void agent_make_room(struct agent *a)
{
	a->is_room_wanted = true;
	agent_prune(a);
}

/* ---- signals ---- */

static void on_stop_signal(int signum, void *owner)
{
	(void)signum;
	stop_on_signal(owner);
}

static void on_hangup(int signum, void *owner)
{
	struct agent *a = owner;

	(void)signum;
	log_event(LOG_INFO, "token_read_again", LOG_S("token_file", a->c->token_file));
	server_reread_token(&a->server);
	claim_hurry(a);
}

static void on_child(int signum, void *owner)
{
	(void)signum;
	agent_next(owner);
}

/* ---- start ---- */

static int open_all(struct agent *a, struct error *e)
{
	int rc = agent_make_work_dir(a->c, e);

	if (!rc)
		rc = steps_check(a->c, e);
	if (!rc)
		rc = journal_open(&a->journal, a->c->work_dir, e);
	return rc;
}

static void log_relaxed(const char *key, const char *value)
{
	log_event(LOG_WARN, "sandbox_relaxed", LOG_S("key", key), LOG_S("value", value),
	    LOG_S("why", "the configuration opens this for the code of changes"));
}

/* A line for each thing that the configuration opens. */
static void log_allowed(const struct runner_config *c)
{
	if (c->allow_network)
		log_relaxed("allow.network", "true");
	for (char **p = c->allow_devices; p && *p; p++)
		log_relaxed("allow.devices", *p);
	for (char **p = c->allow_read; p && *p; p++)
		log_relaxed("allow.read", *p);
	for (char **p = c->allow_write; p && *p; p++)
		log_relaxed("allow.write", *p);
	for (int i = 0; i < N_GUARDED_CALLS; i++)
		if (c->allow_calls[i])
			log_relaxed("allow.syscalls", guarded_call_name((enum guarded_call)i));
	if (c->git_networks.n)
		log_event(LOG_WARN, "sandbox_relaxed", LOG_S("key", "checkout.allow_networks"),
		    LOG_I("networks", (int64_t)c->git_networks.n),
		    LOG_S("why", "submodules of changes reach these networks from this machine"));
	if (c->submodule_proxy)
		log_event(LOG_WARN, "sandbox_relaxed", LOG_S("key", "checkout.submodule_proxy"),
		    LOG_S("why", "the proxy decides what submodules of changes reach"));
}

static void warn(const struct runner_config *c)
{
	log_allowed(c);
	if (c->sandbox == SANDBOX_NONE)
		log_event(LOG_WARN, "no_sandbox",
		    LOG_S("why", "sandbox: none lets a change's code do whatever this user may do; "
				 "bubblewrap does not"));
	for (char **file = c->exposed_files; file && *file; file++)
		log_event(LOG_WARN, "exposed_file", LOG_S("file", *file),
		    LOG_S("why", EXPOSED_FILE_TEXT));
}

static void start(struct agent *a)
{
	struct error e = {0};

	a->tick = timer_new(a->loop, on_send_timer, a);
	a->send_timer = timer_new(a->loop, on_send_timer, a);
	a->stop_timer = timer_new(a->loop, stop_on_timer, a);
	a->next_timer = timer_new(a->loop, on_next, a);
	server_open(&a->server, a->loop, a->c);
	claim_open(a);
	loop_on_signal(a->loop, SIGTERM, on_stop_signal, a);
	loop_on_signal(a->loop, SIGINT, on_stop_signal, a);
	loop_on_signal(a->loop, SIGHUP, on_hangup, a);
	loop_on_signal(a->loop, SIGCHLD, on_child, a);
	warn(a->c);
	log_event(LOG_INFO, "ready", LOG_S("version", OUTPOST_VERSION), LOG_S("name", a->c->name),
	    LOG_S("accelerator", a->c->accelerator), LOG_S("server", a->c->server));
	if (job_restore_all(a, &e))
		log_event(LOG_ERROR, "journal_unreadable", LOG_S("why", e.text));
	agent_next(a);
}

int agent_run(const char *config_path, enum agent_end end)
{
	struct runner_config *c = agent_load_config(config_path);
	struct agent a = {.c = c, .end = end};
	struct error e = {0};
	int rc;

	if (!c)
		return 1;
	/* The token lives in this memory: no core dump, and no reading by the steps, which may be
	 * this user's programs. */
	prctl(PR_SET_DUMPABLE, 0);
	log_setup(c->log_level, log_format_on_terminal(c->log_format));
	rc = open_all(&a, &e);
	if (rc) {
		log_event(LOG_ERROR, "start_failed", LOG_S("why", *e.text ? e.text : err_text(rc)));
		runner_config_free(c);
		return 1;
	}
	a.loop = loop_new();
	start(&a);
	loop_run(a.loop);
	loop_free(a.loop);
	server_call_release(&a.claim.call);
	free(a.claim.id);
	journal_close(&a.journal);
	log_event(LOG_INFO, "stopped");
	runner_config_free(c);
	return end == AGENT_ONCE ? a.exit_code : 0;
}
