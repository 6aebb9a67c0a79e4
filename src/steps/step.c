#include "steps/step.h"

#include <stdarg.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/escape.h"
#include "base/strv.h"
#include "steps/descendants.h"
#include "steps/environment.h"
#include "steps/hidden.h"
#include "steps/sandbox.h"

enum { MESSAGE_MAX_CHARS = 500, STRAYS_WITHIN_MS = 10 * 1000 };

int64_t job_time_left(const struct job *j)
{
	int64_t left = j->until_mono_ms - clock_mono_ms();

	return left > 0 ? left : 0;
}

void job_conclude(struct job *j, const char *conclusion, const char *fmt, ...)
{
	struct buf line = BUF_INIT(MESSAGE_MAX_CHARS * 4 + 16);
	char *text = NULL, *masked;
	va_list ap;

	if (j->result.conclusion)
		return;
	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		abort();
	va_end(ap);
	masked = masks_text(j->masks, text);
	escape_line(&line, masked, MESSAGE_MAX_CHARS);
	j->result.conclusion = xstrdup(conclusion);
	j->result.message = xstrdup(buf_str(&line));
	buf_release(&line);
	free(masked);
	free(text);
}

void job_conclude_also(struct job *j, const char *conclusion, const char *text)
{
	struct buf line = BUF_INIT(MESSAGE_MAX_CHARS * 4 + 16);
	char *masked, *first = j->result.message;

	if (!j->result.conclusion) {
		job_conclude(j, conclusion, "%s", text);
		return;
	}
	masked = masks_text(j->masks, text);
	escape_line(&line, masked, MESSAGE_MAX_CHARS);
	j->result.message =
	    xasprintf("%s%s%s", first ? first : "", first ? "; " : "", buf_str(&line));
	buf_release(&line);
	free(masked);
	free(first);
}

/* "3h", "10m", "1.5 s": static, for one use at a time. */
static const char *duration_text(int64_t ms)
{
	static char text[32];

	if (ms >= 3600000 && ms % 3600000 == 0)
		snprintf(text, sizeof(text), "%lldh", (long long)(ms / 3600000));
	else if (ms >= 60000 && ms % 60000 == 0)
		snprintf(text, sizeof(text), "%lldm", (long long)(ms / 60000));
	else
		snprintf(text, sizeof(text), "%.1f s", (double)ms / 1000);
	return text;
}

static const char *const *plain_argv(const char *run)
{
	static const char *argv[] = {"/bin/sh", "-c", NULL, NULL};

	argv[2] = run;
	return argv;
}

static int open_sandbox(const struct job *j, const char *run, struct sandbox *ret, struct error *e)
{
	const struct sandbox_places places = {.work = j->work,
	    .temporary = j->temporary,
	    .change_file = j->change_file,
	    .tests_file = j->tests_file,
	    .mirrors = j->mirrors};

	return sandbox_open(j->config, &places, run, ret, e);
}

static void on_output(void *ctx, const char *p, size_t n)
{
	struct job *j = ctx;

	job_log_output(j->log, p, n);
}

static void say_begin(struct job *j, const struct runner_step *step)
{
	char now[RFC3339_BYTES];
	size_t n = strcspn(step->run, "\n");

	rfc3339_format(clock_wall_ms(), now);
	job_log_say(j->log, "step %s: %.*s%s [%s]", step->name, (int)(n < 200 ? n : 200), step->run,
	    step->run[n] || n > 200 ? " …" : "", now);
	job_log_begin_excerpt(j->log);
}

/* What the shell's own two codes mean, for those who read the comment and not the log. */
static const char *exit_words(int code)
{
	return code == 127   ? " (a command was not found)"
	       : code == 126 ? " (a command could not be executed)"
			     : "";
}

static void say_end(struct job *j, const struct runner_step *step, const struct child_end *end)
{
	char now[RFC3339_BYTES], how[64];

	rfc3339_format(clock_wall_ms(), now);
	if (end->signal)
		snprintf(how, sizeof(how), "signal %d (%s)", end->signal, strsignal(end->signal));
	else
		snprintf(how, sizeof(how), "exit %d%s", end->exit_code, exit_words(end->exit_code));
	job_log_say(j->log, "step %s: %s%s after %.1f s [%s]", step->name,
	    end->is_timeout     ? "timed out, "
	    : end->is_cancelled ? "cancelled, "
				: "",
	    how, (double)end->duration_ms / 1000, now);
	/* bubblewrap's own first process goes a moment after the step, with all that it saw */
	if (end->n_left > 0 && j->config->sandbox == SANDBOX_NONE)
		job_log_say(j->log, "step %s: ended %d processes that it left behind", step->name,
		    end->n_left);
	if (end->has_survivors)
		job_log_say(
		    j->log, "step %s: some of its processes could not be ended", step->name);
}

static void note_outcome(struct job *j, const struct runner_step *step, const struct child_end *end)
{
	struct job_result *r = &j->result;

	r->steps = xrealloc(r->steps, (r->n_steps + 1) * sizeof(*r->steps));
	r->steps[r->n_steps++] = (struct step_outcome){.name = xstrdup(step->name),
	    .exit_code = end->exit_code,
	    .signal = end->signal,
	    .is_timeout = end->is_timeout,
	    .duration_ms = end->duration_ms};
}

/* What the step wrote last. free(). */
static char *last_line(const struct job *j)
{
	char *text = job_log_excerpt(j->log), *last;
	size_t n = strlen(text);

	while (n > 0 && text[n - 1] == '\n')
		text[--n] = '\0';
	last = strrchr(text, '\n');
	last = xstrdup(last ? last + 1 : text);
	free(text);
	return last;
}

/* A step that ended by itself with an error. What was not there to be run is the machine's fault
 * and not the change's: the job has no result then. */
static void conclude_failure(
    struct job *j, const struct runner_step *step, const struct child_end *end)
{
	bool has_sandbox = j->config->sandbox == SANDBOX_BUBBLEWRAP;
	bool is_not_found = end->exit_code == 126 || end->exit_code == 127;
	char *line = last_line(j);
	char *hidden = has_sandbox ? hidden_find(j, step, line) : NULL;
	char *setting = hidden ? hidden_setting(hidden) : NULL;

	if (hidden)
		job_conclude(j, "action_required",
		    "step %s: exit %d%s: the sandbox hides %s; in the runner's file %s shows it",
		    step->name, end->exit_code, exit_words(end->exit_code), hidden, setting);
	else if (is_not_found)
		job_conclude(j, "action_required", "step %s: exit %d%s%s", step->name,
		    end->exit_code, exit_words(end->exit_code),
		    has_sandbox ? ": the sandbox shows the system, the work folder and what "
				  "`allow` in the runner's file lists"
				: "");
	else
		job_conclude(j, "failure", "step %s: exit %d", step->name, end->exit_code);
	free(setting);
	free(hidden);
	free(line);
}

static void conclude_step(
    struct job *j, const struct runner_step *step, const struct child_end *end, int64_t timeout_ms)
{
	if (end->is_cancelled || j->stop.is_wanted)
		job_conclude(j, "cancelled", "cancelled during step %s", step->name);
	else if (end->is_timeout && timeout_ms < step->timeout_ms)
		job_conclude(j, "timed_out", "step %s: the job's time of %s was over", step->name,
		    duration_text(j->config->timeout_ms));
	else if (end->is_timeout)
		job_conclude(j, "timed_out", "step %s: timed out after %s", step->name,
		    duration_text(step->timeout_ms));
	else if (!end->is_set_up && end->exit_code > 0) {
		char *line = last_line(j);

		job_conclude(j, "startup_failure", "sandbox: %s", line);
		free(line);
	} else if (end->signal)
		job_conclude(j, "failure", "step %s: signal %d (%s)", step->name, end->signal,
		    strsignal(end->signal));
	else if (end->exit_code != 0)
		conclude_failure(j, step, end);
}

/* Whoever killed the supervisor left us its children. */
static void end_strays(struct child_end *end)
{
	struct descendants d = {.watched = 0};

	if (!descendants_end(&d, STRAYS_WITHIN_MS))
		end->has_survivors = true;
	end->n_left += d.n_killed;
}

int step_run_script(struct job *j, const char *run, int64_t timeout_ms,
    void (*on_text)(void *ctx, const char *p, size_t n), struct child_end *ret, struct error *e)
{
	struct environment env = {.n = 0};
	struct sandbox sandbox = {.args_fd = -1, .filter_fd = -1};
	struct child_spec spec = {.argv = plain_argv(run),
	    .folder = j->work,
	    .timeout_ms = timeout_ms,
	    .kill_after_ms = j->pace.kill_after_ms,
	    .stop = &j->stop,
	    .on_output = on_text,
	    .ctx = j};
	int rc = 0;

	if (j->config->sandbox == SANDBOX_BUBBLEWRAP) {
		rc = open_sandbox(j, run, &sandbox, e);
		spec.argv = (const char *const *)sandbox.argv;
		spec.sandbox = &sandbox;
	}
	environment_of_step(&env, j);
	spec.env = (const char *const *)env.list;
	if (!rc)
		rc = child_run(&spec, ret, e);
	environment_release(&env);
	sandbox_close(&sandbox);
	return rc;
}

void step_run(struct job *j, const struct runner_step *step, bool *ret_ok)
{
	int64_t left = job_time_left(j);
	int64_t timeout_ms = step->timeout_ms < left ? step->timeout_ms : left;
	struct child_end end;
	struct error e = {0};

	say_begin(j, step);
	if (step_run_script(j, step->run, timeout_ms, on_output, &end, &e)) {
		job_log_say(j->log, "step %s: %s", step->name, e.text);
		job_conclude(j, "startup_failure", "step %s: %s", step->name, e.text);
	} else {
		end_strays(&end);
		say_end(j, step, &end);
		note_outcome(j, step, &end);
		conclude_step(j, step, &end, timeout_ms);
	}
	*ret_ok = !j->result.conclusion;
}
