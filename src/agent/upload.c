/* What came of a job, in the order that the server wants: its log, its report, its end. Each may
 * be sent again until it was answered. */
#include "agent/agent_internal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"

enum {
	REPORT_MAX_BYTES = 32 << 20,
	WITHIN_MS = 30 * 1000,
	BIG_WITHIN_MS = 10 * 60 * 1000,
	LONGEST_WAIT_MS = 60 * 1000,
};

static void on_done(struct server_call *c);

void upload_start(struct job *j, int part, const char *method, const char *content_type, char *path,
    char *body, size_t n)
{
	struct upload *u = &j->upload;

	u->part = part;
	u->call.done = on_done;
	u->call.owner = j;
	server_call_start(&j->agent->server, &u->call, method, content_type, path, body, n,
	    n > 65536 ? BIG_WITHIN_MS : WITHIN_MS);
}

void upload_failed(struct job *j)
{
	struct upload *u = &j->upload;

	u->n_failures++;
	u->due_mono_ms =
	    clock_mono_ms() + server_delay_ms(&u->call, u->n_failures, LONGEST_WAIT_MS);
}

/* ---- report ---- */

static void note_report_refused(struct job *j, const char *why)
{
	snprintf(j->upload.report_refused, sizeof(j->upload.report_refused), "%.*s",
	    (int)sizeof(j->upload.report_refused) - 1, why);
	j->upload.is_report_done = true;
	job_log(j, LOG_ERROR, "report_refused", "why", why);
}

static bool send_report(struct job *j)
{
	struct error e = {0};
	char *text = NULL;
	size_t n = 0;

	if (j->upload.is_report_done || !j->has_result || !j->result.has_report)
		return false;
	if (job_folder_read(j->folder, "report.json", REPORT_MAX_BYTES, &text, &n, &e)) {
		note_report_refused(j, e.text);
		return false;
	}
	upload_start(j, UPLOAD_REPORT, "PUT", "application/json",
	    xasprintf("/api/v1/jobs/%lld/report", (long long)j->offer.job_id), text, n);
	return true;
}

static void on_report(struct job *j)
{
	struct upload *u = &j->upload;

	if (u->call.word == SERVER_OK) {
		u->is_report_done = true;
		u->n_failures = 0;
	} else if (u->call.status == 409) {
		job_log(j, LOG_WARN, "report_known", "why", u->call.detail);
		u->is_report_done = true;
	} else if (u->call.word == SERVER_REFUSED) {
		note_report_refused(j, u->call.detail);
	} else {
		upload_failed(j);
	}
}

/* ---- the end ---- */

/* Never green without the report that was promised. */
static const char *conclusion(const struct job *j)
{
	bool is_refused = *j->upload.report_refused != '\0';

	return is_refused && str_eq(j->result.conclusion, "success") ? "action_required"
								     : j->result.conclusion;
}

static void set_message(json_t *v, const struct job *j)
{
	char *text = NULL;

	if (j->result.message)
		json_set_str(v, "message", j->result.message);
	if (!*j->upload.report_refused)
		return;
	text = xasprintf("%s%sthe report was refused: %s", log_text(j->result.message),
	    j->result.message ? "; " : "", j->upload.report_refused);
	json_set_str(v, "message", text);
	free(text);
}

static bool send_end(struct job *j)
{
	json_t *v;
	char *text;

	if (!j->has_result)
		return false;
	v = json_object();
	json_set_str(v, "status", "completed");
	json_set_str(v, "conclusion", conclusion(j));
	json_set_str(v, "name", j->offer.runner);
	json_set_str(v, "job_name", "tests");
	json_set_str(v, "run_id", j->offer.run_id);
	json_set_int(v, "run_attempt", j->offer.attempt);
	json_set_str(v, "accelerator", j->offer.accelerator);
	json_set_time(v, "started_at", j->result.started_ms);
	json_set_time(v, "completed_at", j->result.completed_ms);
	set_message(v, j);
	text = json_text(v);
	json_decref(v);
	upload_start(j, UPLOAD_END, "POST", "application/json",
	    xasprintf("/api/v1/dispatches/%s/jobs", j->offer.dispatch_id), text, strlen(text));
	return true;
}

static void on_end(struct job *j)
{
	struct upload *u = &j->upload;
	json_t *v = server_call_json(&u->call);

	if (u->call.word == SERVER_OK && json_get_bool(v, "ok", false))
		job_over(j, PROGRESS_SENT, conclusion(j));
	else if (u->call.word == SERVER_REFUSED)
		job_over(j, PROGRESS_REJECTED, u->call.detail);
	else
		upload_failed(j);
	json_decref(v);
}

/* ---- handing back ---- */

static bool send_return(struct job *j)
{
	static const char body[] = "{\"reason\":\"drained\"}";

	upload_start(j, UPLOAD_RETURN, "POST", "application/json",
	    xasprintf("/api/v1/runner/leases/%s/return", j->offer.lease_id), xstrdup(body),
	    strlen(body));
	return true;
}

static void on_return(struct job *j)
{
	if (j->upload.call.word == SERVER_OK)
		job_over(j, PROGRESS_RETURNED, "handed back");
	else if (j->upload.call.word == SERVER_REFUSED)
		job_over(j, PROGRESS_RETURNED, j->upload.call.detail);
	else
		upload_failed(j);
}

/* ---- what is next ---- */

enum upload_state upload_go(struct job *j)
{
	struct upload *u = &j->upload;
	bool is_kept = j->offer.job_id != 0; /* of a silent accelerator only the end is told */

	if (u->call.is_active)
		return UPLOAD_BUSY;
	if (clock_mono_ms() < u->due_mono_ms)
		return UPLOAD_IDLE;
	if (j->is_returning)
		return j->stage == JOB_ENDED && send_return(j) ? UPLOAD_BUSY : UPLOAD_IDLE;
	if (j->is_lost && j->stage != JOB_ENDED)
		return UPLOAD_IDLE;
	if (is_kept && upload_log(j))
		return UPLOAD_BUSY;
	if (j->stage != JOB_ENDED)
		return UPLOAD_IDLE;
	if ((is_kept && send_report(j)) || send_end(j))
		return UPLOAD_BUSY;
	return UPLOAD_NOTHING;
}

static void on_done(struct server_call *c)
{
	struct job *j = c->owner;
	struct agent *a = j->agent;

	if (j->stage == JOB_OVER) {
		job_release_if_over(j);
		return;
	}
	switch (j->upload.part) {
	case UPLOAD_LOG:
		upload_on_log(j);
		break;
	case UPLOAD_REPORT:
		on_report(j);
		break;
	case UPLOAD_END:
		on_end(j);
		break;
	case UPLOAD_RETURN:
	default:
		on_return(j);
	}
	agent_next(a);
}
