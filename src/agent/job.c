/* One job from its grant to its end. Nothing runs twice: the file `started` is on disk before the job's
 * process is, and a folder that has `started` but no process and no result is never run again. */
#include "agent/agent.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include "steps/job_folder.h"
#include "steps/steps.h"

void job_log(const struct job *j, enum log_level level, const char *ev, const char *key, const char *text)
{
	struct log_field fields[7] = {
	    LOG_S("dispatch", j->offer.dispatch_id),
	    LOG_I("attempt", j->offer.attempt),
	};
	int n = 2;

	if (j->offer.job_id)
		fields[n++] = LOG_I("job", j->offer.job_id);
	if (j->offer.number)
		fields[n++] = LOG_I("pr", j->offer.number);
	if (j->offer.experiment)
		fields[n++] = LOG_S("experiment", experiment_side_name(j->offer.experiment->side));
	if (key)
		fields[n++] = LOG_S(key, text);
	fields[n].key = NULL;
	log_write(level, ev, fields);
}

struct job *job_new(struct agent *a, char *folder, struct lease_offer *offer)
{
	struct job *j = xcalloc(1, sizeof(*j));

	j->agent = a;
	j->folder = folder;
	j->offer = *offer;
	*offer = (struct lease_offer){0};
	j->lock_fd = -1;
	TAILQ_INSERT_TAIL(&a->jobs, j, link);
	return j;
}

static void write_progress(struct job *j, enum progress p, const char *reason)
{
	struct error e = {0};

	if (journal_set_progress(j->folder, p, reason, &e))
		job_log(j, LOG_ERROR, "journal_not_written", "why", e.text);
}

/* Starts `outpost-runner -c CONFIG --job FOLDER` from the file that this process runs, even if an update
 * has replaced it since. Its output goes to FOLDER/job-process.err. */
void job_start(struct job *j)
{
	/* The bundle starts the program through its own loader, and then /proc/self/exe is that loader; the
	 * bundle's script names itself in OUTPOST_RUNNER_SELF. */
	const char *script = getenv("OUTPOST_RUNNER_SELF");
	const char *program = script && script[0] == '/' ? script : "/proc/self/exe";
	char *err_path = path_join(j->folder, "job-process.err");
	char *const argv[] = {(char *)(uintptr_t) "outpost-runner", (char *)(uintptr_t) "-c", j->agent->c->path,
	    (char *)(uintptr_t) "--job", j->folder, NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t how;
	sigset_t none, all;
	struct error e = {0};
	int rc = job_folder_write(j->folder, "started", "", 0, &e);

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, err_path, O_WRONLY | O_CREAT | O_APPEND, 0600);
	posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
	posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
	posix_spawnattr_init(&how);
	/* The steps must not inherit the agent's signal settings: its loop ignores SIGPIPE. */
	posix_spawnattr_setsigdefault(&how, &all);
	posix_spawnattr_setsigmask(&how, &none);
	posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
	int failed = rc ? 0 : posix_spawn(&j->pid, program, &files, &how, argv, environ);
	if (failed)
		rc = error_set(&e, ERR_IO, "cannot start the job's process: %s", strerror(failed));
	posix_spawnattr_destroy(&how);
	posix_spawn_file_actions_destroy(&files);
	free(err_path);
	if (rc) {
		job_log(j, LOG_ERROR, "job_not_started", "why", e.text);
		j->stage = JOB_ENDED;
		j->is_returning = true;
		write_progress(j, PROGRESS_RETURNING, e.text);
	} else {
		j->stage = JOB_RUNNING;
		j->upload.is_offset_known = true;
		job_log(j, LOG_INFO, "job_started", "head_sha", j->offer.head_sha);
	}
	heartbeat_start(j);
}

/* The job was stopped before a process could write a result: makes one. */
static void set_cancelled_result(struct job *j, const char *message)
{
	int64_t now = clock_wall_ms();

	job_result_release(&j->result);
	j->result = (struct job_result){
	    .conclusion = xstrdup("cancelled"), .message = xstrdup(message), .started_ms = now, .completed_ms = now};
	j->has_result = true;
}

void job_look(struct job *j)
{
	if (j->stage != JOB_RUNNING)
		return;
	/* Reaps our child if it has ended. Its own children may outlive it for a moment: they hold the folder's
	 * lock while they clean up, so the job has ended only when the lock is free too. */
	bool is_alive = j->pid > 0 && waitpid(j->pid, NULL, WNOHANG) == 0;
	if (!is_alive) {
		j->pid = 0;
		is_alive = j->lock_fd < 0 && job_folder_is_locked(j->folder);
	}
	if (!is_alive) {
		const struct job_result *r = &j->result;
		struct error e = {0};
		char *said = NULL;
		size_t n;
		int rc = job_result_read(j->folder, &j->result, &e);

		j->stage = JOB_ENDED;
		if (!j->upload.n_failures)
			j->upload.due_mono_ms = 0;
		j->has_result = rc == 0;
		if (rc) {
			job_result_release(&j->result);
			if (rc != ERR_NOT_FOUND)
				job_log(j, LOG_ERROR, "result_unreadable", "why", e.text);
		}
		if (rc && j->is_stop_requested) {
			set_cancelled_result(j, "stopped before it had written a result");
		} else if (rc) {
			/* The lease is not given back but runs out: that counts as an attempt, so a change that
			 * crashes its machines does not come back forever. */
			(void)!job_folder_read(j->folder, "job-process.err", 4096, &said, &n, NULL);
			job_log(j, LOG_ERROR, "job_died", "why",
			    "its process ended without a result; it is not run again here, and its lease runs out");
			if (said && *said)
				job_log(j, LOG_ERROR, "job_died", "said", said);
			free(said);
			heartbeat_stop(j);
		} else {
			log_event(strcmp(r->conclusion, "success") == 0 ? LOG_INFO : LOG_WARN, "job_ended",
			    LOG_S("dispatch", j->offer.dispatch_id), LOG_I("job", j->offer.job_id),
			    LOG_I("pr", j->offer.number), LOG_S("conclusion", r->conclusion),
			    LOG_I("seconds", (r->completed_ms - r->started_ms) / 1000),
			    LOG_S("step", r->n_steps ? r->steps[r->n_steps - 1].name : ""),
			    LOG_S("message", r->message));
		}
		/* A job that has finished is reported even if another machine has its lease by now. */
		if (j->is_lost && (!j->has_result || str_eq(r->conclusion, "cancelled")))
			job_finish(j, PROGRESS_LOST, "the lease was lost");
		return;
	}
	/* A process that has just been started has no lock yet and gets the signal at the next look. */
	if (j->is_stop_requested && !j->is_stop_sent)
		j->is_stop_sent = job_folder_cancel(j->folder, NULL) == 0;
}

static void stop_steps(struct job *j)
{
	j->is_stop_requested = true;
	job_look(j);
}

void job_hand_back(struct job *j, const char *reason)
{
	if (j->is_returning || j->stage > JOB_RUNNING)
		return;
	job_log(j, LOG_INFO, "job_handed_back", "why", reason);
	j->is_returning = true;
	write_progress(j, PROGRESS_RETURNING, reason);
	if (j->stage == JOB_RUNNING)
		stop_steps(j);
	else
		j->stage = JOB_ENDED;
}

void job_on_lease(struct job *j, enum lease_word word, const char *reason)
{
	struct agent *a = j->agent;

	if (word == LEASE_CANCELLED) {
		job_log(j, LOG_INFO, "job_cancelled", "why", log_text(reason));
		if (j->stage == JOB_RUNNING) {
			stop_steps(j);
		} else if (j->stage == JOB_WAITING) {
			set_cancelled_result(j, reason ? reason : "cancelled before it was started");
			j->stage = JOB_ENDED;
		}
	} else if (word == LEASE_LOST) {
		j->is_lost = true;
		/* After its end that is expected: the server may have just got the end. */
		if (j->stage != JOB_ENDED)
			job_log(j, LOG_WARN, "lease_lost", "why", log_text(reason));
		if (j->stage == JOB_WAITING) {
			job_finish(j, PROGRESS_LOST, reason);
		} else if (j->stage != JOB_ENDED) {
			write_progress(j, PROGRESS_LOST, reason);
			stop_steps(j);
		}
	} else if (j->stage == JOB_WAITING) {
		job_start(j);
	}
	agent_next(a);
}

static void release_job(void *p)
{
	struct job *j = p;

	server_call_release(&j->heartbeat.call);
	server_call_release(&j->upload.call);
	lease_offer_release(&j->offer);
	job_result_release(&j->result);
	if (j->lock_fd >= 0)
		close(j->lock_fd);
	FREE_ALL(j->folder, j);
}

void job_release_if_over(struct job *j)
{
	if (j->stage == JOB_OVER && !j->heartbeat.call.is_active && !j->upload.call.is_active)
		loop_reap(j->agent->loop, release_job, j);
}

void job_forget(struct job *j)
{
	TAILQ_REMOVE(&j->agent->jobs, j, link);
	j->stage = JOB_OVER;
	heartbeat_stop(j);
	timer_close(j->heartbeat.timer);
	j->heartbeat.timer = NULL;
	server_call_cancel(&j->upload.call);
	job_release_if_over(j);
}

void job_finish(struct job *j, enum progress p, const char *reason)
{
	struct agent *a = j->agent;
	struct error e = {0};

	if (p == PROGRESS_REJECTED) {
		job_log(j, LOG_ERROR, "job_rejected", "why", log_text(reason));
		if (journal_reject(&a->journal, j->folder, reason, &e))
			job_log(j, LOG_ERROR, "journal_not_written", "why", e.text);
	} else {
		write_progress(j, p, reason);
		log_event(LOG_INFO, "job_over", LOG_S("dispatch", j->offer.dispatch_id), LOG_I("job", j->offer.job_id),
		    LOG_S("as", progress_name(p)));
	}
	a->exit_code = p == PROGRESS_SENT ? 0 : 1;
	job_forget(j);
	agent_prune(a);
	agent_next(a);
}

static bool folder_has(const char *folder, const char *name)
{
	char *text = NULL;
	size_t n;
	bool is_there = job_folder_read(folder, name, 1, &text, &n, NULL) != ERR_NOT_FOUND;

	free(text);
	return is_there;
}

static void restore_job(struct agent *a, const char *name)
{
	char *folder = path_join(a->journal.jobs_dir, name);
	enum progress p = journal_progress(folder);
	bool is_over = p != PROGRESS_NONE && p != PROGRESS_RETURNING;
	struct lease_offer offer;
	struct error e = {0};

	if (is_over && !(p == PROGRESS_LOST && job_folder_is_locked(folder))) {
		free(folder);
		return;
	}
	if (journal_read_offer(folder, &offer, &e)) {
		/* The agent died while it made the folder, or the folder is damaged. */
		log_event(LOG_WARN, "job_unreadable", LOG_S("why", e.text));
		if (journal_reject(&a->journal, folder, e.text, &e))
			log_event(LOG_ERROR, "journal_not_written", LOG_S("why", e.text));
		free(folder);
		return;
	}
	struct job *j = job_new(a, folder, &offer);
	if (folder_has(folder, "started") || folder_has(folder, "result.json")) {
		bool is_running =
		    job_folder_is_locked(j->folder) || (!folder_has(j->folder, "result.json") &&
							   job_lock_acquire(j->folder, &j->lock_fd, NULL) == ERR_BUSY);

		/* The folder of a job whose process was started. If neither a process nor a result is found, the process
		 * may still be on its way, because the agent may have died the moment after it started it. Then the agent
		 * takes the folder's lock, so that such a process ends at once, and the job counts as ended. */
		j->is_returning = p == PROGRESS_RETURNING;
		j->is_lost = p == PROGRESS_LOST;
		j->stage = JOB_RUNNING; /* also if it has ended: then job_look() reads its result */
		if (j->is_returning || j->is_lost)
			j->is_stop_requested = true;
		else if (is_running || folder_has(j->folder, "result.json"))
			heartbeat_start(j);
		j->agent->n_taken += is_running;
		job_log(j, LOG_INFO, is_running ? "job_found_running" : "job_found_ended", "folder", j->folder);
	} else if (p == PROGRESS_RETURNING) {
		j->is_returning = true;
		j->stage = JOB_ENDED;
	} else {
		job_log(j, LOG_INFO, "job_found_waiting", "folder", folder);
		a->n_taken++;
		heartbeat_start(j);
	}
}

int job_restore_all(struct agent *a, struct error *e)
{
	char **names;
	int rc = journal_list(a->journal.jobs_dir, &names, e);

	if (rc)
		return rc;
	for (char **name = names; *name; name++)
		restore_job(a, *name);
	strv_free(names);
	return 0;
}

int job_process_main(const char *config_path, const char *folder)
{
	struct runner_config *c = agent_load_config(config_path);
	struct error e = {0};
	int rc;

	if (c) {
		rc = steps_run(c, folder, &e);
	} else {
		/* The configuration was right when the agent read it and is wrong now: the result says so. */
		int64_t now = clock_wall_ms();
		struct job_result r = {
		    .conclusion = xstrdup("startup_failure"),
		    .message = xasprintf("%s has mistakes; `outpost-runner --check` lists them", config_path),
		    .started_ms = now,
		    .completed_ms = now,
		};

		rc = job_result_write(folder, &r, &e);
		job_result_release(&r);
	}
	if (rc)
		fprintf(stderr, "%s\n", *e.text ? e.text : err_text(rc));
	if (!c)
		return 1;
	runner_config_free(c);
	return rc ? 1 : 0;
}
