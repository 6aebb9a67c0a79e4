#include "steps/job.h"

#include <signal.h>
#include <sys/signalfd.h>

#include "steps/mirror.h"
#include "steps/report_pickup.h"
#include "steps/sandbox.h"

enum { MESSAGE_MAX_CHARS = 500 };

int64_t job_time_left(const struct job *j)
{
	int64_t left = j->until_mono_ms - clock_mono_ms();

	return left > 0 ? left : 0;
}

void job_conclude(struct job *j, const char *conclusion, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	if (j->result.conclusion)
		return;
	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		abort();
	va_end(ap);
	j->result.conclusion = xstrdup(conclusion);
	j->result.message = masks_line(j->masks, text, MESSAGE_MAX_CHARS);
	free(text);
}

/* Makes a folder; one that is there is fine, a link or a file is not. */
static int make_real_folder(const char *path, struct error *e)
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

/* Secrets that must not reach the log: those of the configuration, the machine's token, and a password in
 * the URL of the checkout. */
static struct masks *make_masks(const struct runner_config *c)
{
	struct masks *m = masks_new();
	const char *host = c->git_url ? strstr(c->git_url, "://") : NULL;

	for (size_t i = 0; i < c->n_secrets; i++)
		masks_add(m, secret_text(c->secrets[i].value));
	if (c->authorization)
		masks_add(m, runner_config_token(c));
	const char *at = host ? strchr(host + 3, '@') : NULL;
	if (!at || memchr(host + 3, '/', (size_t)(at - host - 3)))
		return m;
	char *login = xstrndup(host + 3, (size_t)(at - host - 3));
	const char *colon = strchr(login, ':');
	masks_add(m, colon ? colon + 1 : login);
	explicit_bzero(login, strlen(login));
	free(login);
	return m;
}

/* Writes the tests of an experiment, one on each line, for steps that read lines. A name with a line break
 * would look like two tests, so such names are left out. */
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
		job_log_say(
		    j->log, "experiment: tests left out, because their names hold control characters: %zu", n_left_out);
	j->tests_file = path_join(j->folder, "tests");
	if (n == 0)
		rc = error_set(e, ERR_INVALID, "no test of the experiment has a name that fits into a line");
	else
		rc = job_folder_write(j->folder, "tests", buf_str(&lines), lines.len, e);
	buf_release(&lines);
	return rc;
}

/* Makes everything that the steps find. The order matters: a job that was begun is refused first, because
 * its steps may have done half of anything. The new keyring comes before any program is started, because
 * programs inherit it. The work folder is the sign that the job was begun. */
static int prepare_job(struct job *j, struct error *e)
{
	struct error why = {0};
	char *offer = NULL;
	size_t n;

	if (!access(j->work, F_OK))
		return error_set(e, ERR_EXISTS, "this job's process ended before the job did");
	int rc = keyring_start_session(e);
	if (!rc)
		rc = job_folder_read(j->folder, "offer.json", LEASE_OFFER_MAX_BYTES, &offer, &n, e);
	if (!rc && lease_offer_parse(offer, n, &j->offer, &why))
		rc = error_set(e, ERR_INVALID, "%s/offer.json: %s", j->folder, why.text);
	free(offer);
	if (!rc)
		rc = make_real_folder(j->work, e);
	if (!rc)
		rc = make_real_folder(j->temporary, e);
	if (rc)
		return rc;
	char *change = lease_offer_change_text(&j->offer);
	rc = job_folder_write(j->folder, "change.json", change, strlen(change), e);
	free(change);
	return rc ? rc : write_tests(j, e);
}

static void pick_up_report(struct job *j, const struct found_files *before)
{
	struct error e = {0};

	if (str_eq(j->result.conclusion, "cancelled") || str_eq(j->result.conclusion, "startup_failure") ||
	    !report_pickup(j, before, &j->result.has_report, &e))
		return;
	job_log_say(j->log, "%s", e.text);
	if (j->stop.is_requested)
		job_conclude(j, "cancelled", "cancelled while the report was read");
	if (!j->result.conclusion) {
		job_conclude(j, "action_required", "%s", e.text);
		return;
	}
	/* The job has failed for another reason: its message gets this one too. */
	char *first = j->result.message;
	char *second = masks_line(j->masks, e.text, MESSAGE_MAX_CHARS);
	j->result.message = xasprintf("%s%s%s", first ? first : "", first ? "; " : "", second);
	FREE_ALL(second, first);
}

static void do_work(struct job *j)
{
	const struct runner_config *c = j->config;
	struct found_files before;
	struct error e = {0};
	bool is_ok = true;
	int rc = c->has_checkout ? checkout(j, &e) : 0;

	if (!rc)
		rc = make_real_folder(j->results, &e);
	if (rc) {
		job_log_say(j->log, "checkout: %s", e.text);
		if (rc == ERR_CANCELLED || rc == ERR_TIMEOUT)
			job_conclude(j, rc == ERR_TIMEOUT ? "timed_out" : "cancelled", "%s", e.text);
		else
			job_conclude(j, "startup_failure", "checkout: %s", e.text);
		return;
	}
	report_find(j->work, c->report_globs, &before);
	/* Says what the sandbox shows and what the operator opened: a program that works in a shell may be missing
	 * in the sandbox. Names no path of the machine, because the log may be public. */
	if (c->sandbox == SANDBOX_NONE)
		job_log_say(j->log, "sandbox: none: the steps may do whatever the runner's user may");
	else
		job_log_say(j->log,
		    "sandbox: bubblewrap: %s network, %s devices; of files the system's, the work "
		    "folder's and those that `allow` names",
		    c->allow_network ? "the machine's" : "no",
		    c->allow_devices && *c->allow_devices ? "the listed" : "no");
	for (int i = 0; i < N_GUARDED_CALLS; i++)
		if (c->sandbox != SANDBOX_NONE && c->allow_calls[i])
			job_log_say(j->log, "sandbox: allow.syscalls: %s", guarded_call_name((enum guarded_call)i));
	for (size_t i = 0; i < c->n_steps; i++)
		if (!is_ok)
			job_log_say(j->log, "step %s: not run", c->steps[i].name);
		else if (j->stop.is_requested)
			job_conclude(j, "cancelled", "cancelled before step %s", c->steps[i].name);
		else
			step_run(j, &c->steps[i], &is_ok);
	pick_up_report(j, &before);
	found_files_release(&before);
}

static int run_locked(struct job *j, struct error *e)
{
	struct error why = {0};
	char *path = path_join(j->folder, "result.json");
	bool is_over = !access(path, F_OK);
	struct error trouble = {0};

	free(path);
	if (is_over)
		return 0;
	int rc = job_log_open(j->folder, j->config->log_max_bytes, j->masks, &j->log, e);
	if (rc)
		return rc;
	descendants_adopt();
	if (prepare_job(j, &why))
		job_conclude(j, "startup_failure", "%s", why.text);
	else
		do_work(j);
	/* A log or an excerpt that cannot be written (a full disk) does not keep the result from being written. */
	if (!j->result.conclusion) {
		j->result.conclusion = xstrdup("success");
	} else {
		char *excerpt = job_log_excerpt(j->log);

		if (job_folder_write(j->folder, "excerpt", excerpt, strlen(excerpt), &trouble))
			job_log_say(j->log, "excerpt: %s", trouble.text);
		free(excerpt);
	}
	job_log_say(j->log, "job: %s%s%s", j->result.conclusion, j->result.message ? ": " : "",
	    j->result.message ? j->result.message : "");
	trouble = (struct error){0};
	if (job_log_close(j->log, &trouble) && !j->result.message)
		j->result.message = xasprintf("the log is not complete: %s", trouble.text);
	j->log = NULL;
	j->result.completed_ms = clock_wall_ms();
	rc = job_result_write(j->folder, &j->result, e);
	if (!rc && j->mirrors && !j->stop.is_requested)
		mirror_tidy(j);
	return rc;
}

int job_run(const struct runner_config *c, const char *folder, const struct steps_pace *pace, struct error *e)
{
	struct job j = {.config = c, .pace = *pace, .stop = {.fd = -1}};
	int lock = -1, rc = 0;
	sigset_t set;

	j.folder = realpath(folder, NULL);
	if (!j.folder)
		return error_set(e, ERR_NOT_FOUND, "%s: %s", folder, strerror(errno));
	j.work = path_join(j.folder, "work");
	j.temporary = path_join(j.folder, "tmp");
	j.results = path_join(j.work, "results");
	j.change_file = path_join(j.folder, "change.json");
	j.git_home = path_join(j.folder, "git");
	j.masks = make_masks(c);
	j.until_mono_ms = clock_mono_ms() + c->timeout_ms;
	j.result.started_ms = clock_wall_ms();
	/* The descriptor that reports SIGTERM and SIGINT: both cancel the job. */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	j.stop.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (j.stop.fd < 0)
		rc = error_set(e, ERR_IO, "signalfd: %s", strerror(errno));
	if (!rc)
		rc = job_lock_acquire(j.folder, &lock, e);
	if (!rc)
		rc = run_locked(&j, e);
	if (lock >= 0)
		close(lock);
	FREE_ALL(j.folder, j.work, j.temporary, j.results, j.change_file, j.tests_file, j.git_home);
	strv_free(j.mirrors);
	lease_offer_release(&j.offer);
	masks_free(j.masks);
	job_result_release(&j.result);
	if (j.stop.fd >= 0)
		close(j.stop.fd);
	return rc;
}
