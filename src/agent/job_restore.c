/* Jobs that an agent before us left: each goes on in the stage that its folder tells. */
#include "agent/agent_internal.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "base/strv.h"
#include "steps/job_lock.h"

static bool has_file(const char *folder, const char *name)
{
	char *text = NULL;
	size_t n;
	bool is_there = job_folder_read(folder, name, 1, &text, &n, NULL) != ERR_NOT_FOUND;

	free(text);
	return is_there;
}

/* Its process may have been started the moment before the agent died, and not be there yet. With
 * the lock in our hand it never will be. */
static enum job_stage stage_of_started(struct job *j)
{
	if (job_folder_is_locked(j->folder))
		return JOB_RUNNING;
	if (!has_file(j->folder, "result.json") &&
	    job_lock_take(j->folder, &j->lock_fd, NULL) == ERR_BUSY)
		return JOB_RUNNING;
	return JOB_ENDED;
}

static void restore_started(struct job *j, enum progress p)
{
	bool is_running = stage_of_started(j) == JOB_RUNNING;

	j->is_returning = p == PROGRESS_RETURNING;
	j->is_lost = p == PROGRESS_LOST;
	j->stage = JOB_RUNNING; /* job_look() reads what is there when it has ended */
	if (j->is_returning || j->is_lost)
		j->is_stop_wanted = true;
	else if (is_running || has_file(j->folder, "result.json"))
		heartbeat_start(j);
	j->agent->n_taken += is_running;
	job_log(
	    j, LOG_INFO, is_running ? "job_found_running" : "job_found_ended", "folder", j->folder);
}

static void restore(struct agent *a, const char *name)
{
	char *folder = path_join(a->journal.jobs_dir, name);
	enum progress p = journal_progress(folder);
	bool is_left = p != PROGRESS_NONE && p != PROGRESS_RETURNING;
	struct lease_offer offer;
	struct error e = {0};
	struct job *j;

	if (is_left && !(p == PROGRESS_LOST && job_folder_is_locked(folder))) {
		free(folder);
		return;
	}
	if (journal_read_offer(folder, &offer, &e)) {
		/* the agent died while it made the folder; or what is in it is damaged */
		log_event(LOG_WARN, "job_unreadable", LOG_S("why", e.text));
		if (journal_reject(&a->journal, folder, e.text, &e))
			log_event(LOG_ERROR, "journal_not_written", LOG_S("why", e.text));
		free(folder);
		return;
	}
	j = job_new(a, folder, &offer);
	if (has_file(folder, "started") || has_file(folder, "result.json")) {
		restore_started(j, p);
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
	int rc = journal_list(&a->journal, &names, e);

	if (rc)
		return rc;
	for (char **name = names; *name; name++)
		restore(a, *name);
	strv_free(names);
	return 0;
}
