#include "agent/agent.h"

#include <signal.h>
#include <sys/prctl.h>

#include "config/source.h"
#include "steps/steps.h"

enum { TICK_MS = 300, HAND_BACK_WITHIN_MS = STEPS_KILL_AFTER_MS + 10 * 1000, RETURN_TRIES = 3 };

/* The job that waits or runs; NULL: there is room for one. */
static struct job *agent_busy_job(const struct agent *a)
{
	struct job *j;

	TAILQ_FOREACH (j, &a->jobs, link)
		if (j->stage == JOB_WAITING || j->stage == JOB_RUNNING)
			return j;
	return NULL;
}

void agent_next(struct agent *a)
{
	if (a->next_timer)
		timer_start(a->next_timer, 0);
}

void agent_on_timer(struct timer *t) { agent_next(timer_owner(t)); }

static void prune_folders(struct pool_work *w)
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
	if (a->is_room_needed)
		agent_prune(a);
	else if (is_room_made && a->stopping == NOT_STOPPING)
		claim_stop_waiting(a);
}

void agent_prune(struct agent *a)
{
	if (a->is_pruning || a->stopping == ENDING)
		return;
	a->is_pruning = true;
	/* While the disk is full, a job that has just ended may be what fills it: remove all again. */
	a->is_making_room = a->is_room_needed || a->claim.is_full_logged;
	a->is_room_needed = false;
	a->prune.work = prune_folders;
	a->prune.after = after_prune;
	pool_submit(a->loop, &a->prune);
}

/* ---- stopping ----
 * The first SIGTERM ends claims and gives the job `drain` to finish. After `drain`, or at a second SIGTERM, the job is
 * handed back. A third ends the agent at once. The journal keeps whatever is not sent by then. */

static void hand_back_jobs(struct agent *a, const char *why)
{
	struct job *next;

	a->stopping = HANDING_BACK;
	timer_start(a->stop_timer, HAND_BACK_WITHIN_MS);
	for (struct job *j = TAILQ_FIRST(&a->jobs); j; j = next) {
		next = TAILQ_NEXT(j, link);
		job_hand_back(j, why);
	}
}

static void on_stop_signal(int signum, void *owner)
{
	struct agent *a = owner;
	const struct job *busy = agent_busy_job(a);

	(void)signum;
	if (a->stopping == NOT_STOPPING) {
		log_event(LOG_INFO, "stopping", LOG_S("dispatch", busy ? busy->offer.dispatch_id : ""),
		    LOG_I("within_s", a->c->drain_ms / 1000));
		a->stopping = DRAINING;
		timer_start(a->stop_timer, a->c->drain_ms);
		claim_stop(a);
	} else if (a->stopping == DRAINING) {
		hand_back_jobs(a, "stopped a second time");
	} else {
		a->stopping = ENDING;
	}
	agent_next(a);
}

static void on_stop_timer(struct timer *t)
{
	struct agent *a = timer_owner(t);

	if (a->stopping == DRAINING)
		hand_back_jobs(a, "not finished within `drain`");
	else
		a->stopping = ENDING;
	agent_next(a);
}

/* True if the agent may end now. */
static bool is_ready_to_end(const struct agent *a)
{
	const struct job *j;

	if (a->stopping == ENDING)
		return true;
	if (a->stopping == NOT_STOPPING || a->claim.call.is_active || agent_busy_job(a))
		return false;
	TAILQ_FOREACH (j, &a->jobs, link)
		if (j->upload.call.is_active || (j->is_returning && j->upload.n_failures < RETURN_TRIES))
			return false;
	return true;
}

static void on_server_closed(void *owner)
{
	struct agent *a = owner;

	loop_stop(a->loop);
}

/* Sends the ended jobs, one at a time, oldest first. A job that has to wait lets others pass. */
static void send_ended_jobs(struct agent *a)
{
	int64_t now = clock_mono_ms(), due = INT64_MAX;
	struct job *j, *next;

	timer_stop(a->send_timer);
	TAILQ_FOREACH (j, &a->jobs, link)
		if (j->stage == JOB_ENDED && j->upload.call.is_active)
			return;
	for (j = TAILQ_FIRST(&a->jobs); j; j = next) {
		next = TAILQ_NEXT(j, link);
		if (j->stage != JOB_ENDED)
			continue;
		enum upload_state state = upload_next(j);
		if (state == UPLOAD_BUSY)
			return;
		if (state == UPLOAD_NOTHING)
			job_finish(j, PROGRESS_DIED, "its process ended without a result");
		else if (j->upload.due_mono_ms < due)
			due = j->upload.due_mono_ms;
	}
	if (due != INT64_MAX)
		timer_start(a->send_timer, due > now ? due - now : 0);
}

static void on_next_timer(struct timer *t)
{
	struct agent *a = timer_owner(t);
	bool has_had_its_job = a->end == AGENT_ONCE && a->n_taken > 0;
	struct job *j;
	struct job *next;

	/* Every running job sends more of its log, each on its own. */
	for (j = TAILQ_FIRST(&a->jobs); j; j = next) {
		next = TAILQ_NEXT(j, link);
		job_look(j);
	}
	TAILQ_FOREACH (j, &a->jobs, link)
		if (j->stage == JOB_RUNNING)
			(void)upload_next(j);
	if (agent_busy_job(a))
		timer_start(a->tick, TICK_MS);
	else
		timer_stop(a->tick);
	send_ended_jobs(a);
	if (has_had_its_job && TAILQ_EMPTY(&a->jobs) && a->stopping == NOT_STOPPING) {
		a->stopping = DRAINING;
		claim_stop(a);
	}
	if (is_ready_to_end(a)) {
		static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
		sigset_t set;

		a->stopping = ENDING;
		while (!TAILQ_EMPTY(&a->jobs))
			job_forget(TAILQ_FIRST(&a->jobs));
		/* Another SIGTERM changes nothing from here on: it must not end the process half way. The
		 * signals are blocked until they are ignored, because closing restores their defaults. */
		sigemptyset(&set);
		for (size_t i = 0; i < ARRAY_LEN(signals); i++)
			sigaddset(&set, signals[i]);
		sigprocmask(SIG_BLOCK, &set, NULL);
		loop_close_signals(a->loop);
		for (size_t i = 0; i < ARRAY_LEN(signals); i++)
			signal(signals[i], SIG_IGN);
		sigprocmask(SIG_UNBLOCK, &set, NULL);
		claim_close(a);
		timer_close(a->tick);
		timer_close(a->send_timer);
		timer_close(a->stop_timer);
		timer_close(a->next_timer);
		a->next_timer = NULL;
		server_close(&a->server, on_server_closed, a);
	} else if (a->stopping == NOT_STOPPING && !agent_busy_job(a) && !has_had_its_job) {
		claim_send(a);
	}
}

static void on_hangup(int signum, void *owner)
{
	struct agent *a = owner;

	(void)signum;
	log_event(LOG_INFO, "token_read_again", LOG_S("token_file", a->c->token_file));
	server_reread_token(&a->server);
	claim_stop_waiting(a);
}

static void on_child(int signum, void *owner)
{
	(void)signum;
	agent_next(owner);
}

static void log_relaxed(const char *key, const char *value)
{
	log_event(LOG_WARN, "sandbox_relaxed", LOG_S("key", key), LOG_S("value", value),
	    LOG_S("why", "the configuration opens this for the code of changes"));
}

static void start_agent(struct agent *a)
{
	struct error e = {0};

	a->loop = loop_new();
	a->tick = timer_new(a->loop, agent_on_timer, a);
	a->send_timer = timer_new(a->loop, agent_on_timer, a);
	a->stop_timer = timer_new(a->loop, on_stop_timer, a);
	a->next_timer = timer_new(a->loop, on_next_timer, a);
	server_open(&a->server, a->loop, a->c);
	claim_open(a);
	loop_on_signal(a->loop, SIGTERM, on_stop_signal, a);
	loop_on_signal(a->loop, SIGINT, on_stop_signal, a);
	loop_on_signal(a->loop, SIGHUP, on_hangup, a);
	loop_on_signal(a->loop, SIGCHLD, on_child, a);
	/* A line for each thing that the configuration opens to the code of changes. */
	const struct runner_config *c = a->c;
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
	if (c->sandbox == SANDBOX_NONE)
		log_event(LOG_WARN, "no_sandbox",
		    LOG_S("why", "the sandbox is off: code under test runs with all rights of this user"));
	for (char **file = c->exposed_files; file && *file; file++)
		log_event(LOG_WARN, "exposed_file", LOG_S("file", *file), LOG_S("why", EXPOSED_FILE_TEXT));
	log_event(LOG_INFO, "ready", LOG_S("version", OUTPOST_VERSION), LOG_S("name", a->c->name),
	    LOG_S("accelerator", a->c->accelerator), LOG_S("server", a->c->server));
	if (job_restore_all(a, &e))
		log_event(LOG_ERROR, "journal_unreadable", LOG_S("why", e.text));
	agent_next(a);
}

int agent_run(const char *config_path, enum agent_end end)
{
	struct runner_config *c = agent_load_config(config_path);
	struct agent a = {.c = c, .end = end, .jobs = TAILQ_HEAD_INITIALIZER(a.jobs)};
	struct error e = {0};

	if (!c)
		return 1;
	/* The token is in this process's memory. The steps may be programs of the same user, so they must not read it,
	 * and there must be no core dump. This comes before anything else is started. */
	prctl(PR_SET_DUMPABLE, 0);
	log_setup(c->log_level, log_format_on_terminal(c->log_format));
	int rc = steps_check(c, &e);
	if (!rc)
		rc = journal_open(&a.journal, c->work_dir, &e);
	if (rc) {
		log_event(LOG_ERROR, "start_failed", LOG_S("why", *e.text ? e.text : err_text(rc)));
		runner_config_free(c);
		return 1;
	}
	start_agent(&a);
	loop_run(a.loop);
	loop_free(a.loop);
	server_call_release(&a.claim.call);
	free(a.claim.id);
	journal_close(&a.journal);
	log_event(LOG_INFO, "stopped");
	runner_config_free(c);
	return end == AGENT_ONCE ? a.exit_code : 0;
}
