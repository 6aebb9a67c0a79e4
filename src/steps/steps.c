/* The order of a job's life. result.json is written last, after everything that it speaks of is
 * on disk: whoever finds it may believe the rest. */
#include "steps/steps.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "base/strv.h"
#include "steps/checkout.h"
#include "steps/descendants.h"
#include "steps/job.h"
#include "steps/job_lock.h"
#include "steps/keyring.h"
#include "steps/mirror.h"
#include "steps/report_pickup.h"
#include "steps/step.h"

/* ---- before ---- */

static int make_folder(const char *path, struct error *e)
{
	struct stat st;

	if (!mkdir(path, 0700))
		return 0;
	if (errno != EEXIST)
		return error_set(e, ERR_IO, "%s: %s", path, strerror(errno));
	if (lstat(path, &st) || !S_ISDIR(st.st_mode))
		return error_set(e, ERR_INVALID, "%s: not a folder", path);
	return 0;
}

/* user:password@ in the URL of the checkout is as secret as any. */
static void mask_url(struct masks *m, const char *url)
{
	const char *host = url ? strstr(url, "://") : NULL, *at, *colon;
	char *text;

	at = host ? strchr(host + 3, '@') : NULL;
	if (!at || memchr(host + 3, '/', (size_t)(at - host - 3)))
		return;
	text = xstrndup(host + 3, (size_t)(at - host - 3));
	colon = strchr(text, ':');
	masks_add(m, colon ? colon + 1 : text);
	explicit_bzero(text, strlen(text));
	free(text);
}

static struct masks *make_masks(const struct runner_config *c)
{
	struct masks *m = masks_new();

	for (size_t i = 0; i < c->n_secrets; i++)
		masks_add(m, secret_text(c->secrets[i].value));
	if (c->authorization)
		masks_add(m, runner_config_token(c));
	mask_url(m, c->git_url);
	return m;
}

static int open_signals(struct error *e)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		error_set(e, ERR_IO, "signalfd: %s", strerror(errno));
	return fd;
}

static int read_offer(struct job *j, struct error *e)
{
	struct error why = {0};
	char *text = NULL;
	size_t n;
	int rc = job_folder_read(j->folder, "offer.json", LEASE_OFFER_MAX_BYTES, &text, &n, e);

	if (!rc && lease_offer_parse(text, n, &j->offer, &why))
		rc = error_set(e, ERR_INVALID, "%s/offer.json: %s", j->folder, why.text);
	free(text);
	return rc;
}

static int write_change(struct job *j, struct error *e)
{
	char *text = lease_offer_change_text(&j->offer);
	int rc = job_folder_write(j->folder, "change.json", text, strlen(text), e);

	free(text);
	return rc;
}

/* One test in a line, for steps that read lines. A name that would take several of them is no line of its own
 * and might be taken for another test, so it is left out. */
static int write_tests(struct job *j, struct error *e)
{
	const struct experiment_request *x = j->offer.experiment;
	struct buf lines = BUF_INIT(LEASE_OFFER_MAX_BYTES);
	size_t n = 0, n_left_out = 0;
	int rc = 0;

	if (!x)
		return 0;
	for (char **test = x->tests; *test; test++) {
		if (!experiment_test_is_line(*test)) {
			n_left_out++;
			continue;
		}
		n++;
		buf_appendf(&lines, "%s\n", *test);
	}
	job_log_say(j->log, "experiment: tests to run again: %zu, at %s, the %s", n, x->sha,
	    x->side == EXPERIMENT_HEAD ? "pull request's head" : "merge base");
	if (n_left_out > 0)
		job_log_say(j->log,
		    "experiment: tests left out, because their names hold control characters: %zu",
		    n_left_out);
	j->tests_file = job_folder_file(j->folder, "tests");
	if (n == 0)
		rc = error_set(
		    e, ERR_INVALID, "no test of the experiment has a name that fits into a line");
	else
		rc = job_folder_write(j->folder, "tests", buf_str(&lines), lines.len, e);
	buf_release(&lines);
	return rc;
}

/* Whatever was begun here once is not begun again: its steps may have done half of anything. */
static int prepare(struct job *j, struct error *e)
{
	int rc;

	if (!access(j->work, F_OK))
		return error_set(e, ERR_EXISTS, "this job's process ended before the job did");
	rc = keyring_start_session(e);
	if (!rc)
		rc = read_offer(j, e);
	if (!rc)
		rc = make_folder(j->work, e);
	if (!rc)
		rc = make_folder(j->temporary, e);
	if (!rc)
		rc = write_change(j, e);
	if (!rc)
		rc = write_tests(j, e);
	return rc;
}

/* ---- the work ---- */

static void conclude_checkout(struct job *j, int rc, const struct error *e)
{
	job_log_say(j->log, "checkout: %s", e->text);
	if (rc == ERR_CANCELLED)
		job_conclude(j, "cancelled", "%s", e->text);
	else if (rc == ERR_TIMEOUT)
		job_conclude(j, "timed_out", "%s", e->text);
	else
		job_conclude(j, "startup_failure", "checkout: %s", e->text);
}

static bool check_out(struct job *j)
{
	struct error e = {0};
	int rc = 0;

	if (j->config->has_checkout)
		rc = checkout(j, &e);
	if (!rc)
		rc = make_folder(j->results, &e);
	if (rc)
		conclude_checkout(j, rc, &e);
	return !rc;
}

/* Why something that works in a shell is not found here, and what the operator opened; no path of
 * the machine is named, the log may be public. */
static void say_sandbox(const struct job *j)
{
	const struct runner_config *c = j->config;

	if (c->sandbox == SANDBOX_NONE) {
		job_log_say(
		    j->log, "sandbox: none: the steps may do whatever the runner's user may");
		return;
	}
	job_log_say(j->log,
	    "sandbox: bubblewrap: %s network, %s devices; of files the system's, the work "
	    "folder's and those that `allow` names",
	    c->allow_network ? "the machine's" : "no",
	    c->allow_devices && *c->allow_devices ? "the listed" : "no");
	for (int i = 0; i < N_GUARDED_CALLS; i++)
		if (c->allow_calls[i])
			job_log_say(j->log, "sandbox: allow.syscalls: %s",
			    guarded_call_name((enum guarded_call)i));
}

static void run_steps(struct job *j)
{
	const struct runner_config *c = j->config;
	bool is_ok = true;

	say_sandbox(j);
	for (size_t i = 0; i < c->n_steps; i++)
		if (!is_ok)
			job_log_say(j->log, "step %s: not run", c->steps[i].name);
		else if (j->stop.is_wanted)
			job_conclude(j, "cancelled", "cancelled before step %s", c->steps[i].name);
		else
			step_run(j, &c->steps[i], &is_ok);
}

static void pick_up_report(struct job *j, const struct found_files *before)
{
	struct error e = {0};

	if (str_eq(j->result.conclusion, "cancelled") ||
	    str_eq(j->result.conclusion, "startup_failure"))
		return;
	if (report_pickup(j, before, &j->result.has_report, &e)) {
		job_log_say(j->log, "%s", e.text);
		if (j->stop.is_wanted)
			job_conclude(j, "cancelled", "cancelled while the report was read");
		job_conclude_also(j, "action_required", e.text);
	}
}

static void do_work(struct job *j)
{
	struct found_files before;

	if (!check_out(j))
		return;
	report_find(j->work, j->config->report_globs, &before);
	run_steps(j);
	pick_up_report(j, &before);
	found_files_release(&before);
}

/* ---- after ---- */

static int write_excerpt(struct job *j, struct error *e)
{
	char *text = job_log_excerpt(j->log);
	int rc = job_folder_write(j->folder, "excerpt", text, strlen(text), e);

	free(text);
	return rc;
}

/* A log or an excerpt that cannot be written (a full disk) is a pity; a result that says so is
 * worth more than none. */
static int finish(struct job *j, struct error *e)
{
	struct error trouble = {0};

	if (!j->result.conclusion)
		j->result.conclusion = xstrdup("success");
	else if (write_excerpt(j, &trouble))
		job_log_say(j->log, "excerpt: %s", trouble.text);
	job_log_say(j->log, "job: %s%s%s", j->result.conclusion, j->result.message ? ": " : "",
	    j->result.message ? j->result.message : "");
	trouble = (struct error){0};
	if (job_log_close(j->log, &trouble) && !j->result.message)
		j->result.message = xasprintf("the log is not complete: %s", trouble.text);
	j->log = NULL;
	j->result.completed_ms = clock_wall_ms();
	return job_result_write(j->folder, &j->result, e);
}

static void job_release(struct job *j)
{
	free(j->folder);
	free(j->work);
	free(j->temporary);
	free(j->results);
	free(j->change_file);
	free(j->tests_file);
	free(j->git_home);
	strv_free(j->mirrors);
	lease_offer_release(&j->offer);
	masks_free(j->masks);
	job_result_release(&j->result);
	if (j->stop.fd >= 0)
		close(j->stop.fd);
}

static int job_init(struct job *j, const char *folder, struct error *e)
{
	j->folder = realpath(folder, NULL);
	if (!j->folder)
		return error_set(e, ERR_NOT_FOUND, "%s: %s", folder, strerror(errno));
	j->work = job_folder_file(j->folder, "work");
	j->temporary = job_folder_file(j->folder, "tmp");
	j->results = job_folder_file(j->work, "results");
	j->change_file = job_folder_file(j->folder, "change.json");
	j->git_home = job_folder_file(j->folder, "git");
	j->masks = make_masks(j->config);
	j->until_mono_ms = clock_mono_ms() + j->config->timeout_ms;
	j->result.started_ms = clock_wall_ms();
	j->stop.fd = open_signals(e);
	return j->stop.fd < 0 ? e->code : 0;
}

static int run_locked(struct job *j, struct error *e)
{
	struct error why = {0};
	char *path = job_folder_file(j->folder, "result.json");
	bool is_over = !access(path, F_OK);
	int rc;

	free(path);
	if (is_over)
		return 0;
	rc = job_log_open(j->folder, j->config->log_max_bytes, j->masks, &j->log, e);
	if (rc)
		return rc;
	descendants_adopt();
	if (prepare(j, &why))
		job_conclude(j, "startup_failure", "%s", why.text);
	else
		do_work(j);
	rc = finish(j, e);
	if (!rc && j->mirrors && !j->stop.is_wanted)
		mirror_tidy(j);
	return rc;
}

int job_run(const struct runner_config *c, const char *folder, const struct steps_pace *pace,
    struct error *e)
{
	struct job j = {.config = c, .pace = *pace, .stop = {.fd = -1}};
	int lock = -1, rc = job_init(&j, folder, e);

	if (!rc)
		rc = job_lock_take(j.folder, &lock, e);
	if (!rc)
		rc = run_locked(&j, e);
	if (lock >= 0)
		close(lock);
	job_release(&j);
	return rc;
}

int steps_run(const struct runner_config *c, const char *folder, struct error *e)
{
	struct steps_pace pace = {.kill_after_ms = STEPS_KILL_AFTER_MS, .retry_ms = 2000};

	return job_run(c, folder, &pace, e);
}
