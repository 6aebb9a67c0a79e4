/* One step of a job: its program, inside or outside of the sandbox, and its lines in the log. */
#include "steps/job.h"

#include <pwd.h>

#include "steps/sandbox.h"

enum { STRAYS_WITHIN_MS = 10 * 1000, PROBE_TIMEOUT_MS = 10 * 1000, PROBES_MAX = 8 };

/* A basic system's variables, then `environment`, then `secrets`, then the job's own, so that the configuration
 * cannot replace those. */
static void step_environment(struct environment *v, const struct job *j)
{
	const struct passwd *user = getpwuid(geteuid());
	const struct runner_config *c = j->config;
	const struct lease_offer *o = &j->offer;
	const struct experiment_request *x = o->experiment;
	/* On the merge base nothing of the pull request is tested. */
	bool is_base = x && x->side == EXPERIMENT_BASE;
	char number[24] = "", attempt[16];

	environment_copy(v, "PATH", ENVIRONMENT_PATH);
	environment_copy(v, "LANG", "C.UTF-8");
	environment_copy(v, "TZ", NULL);
	environment_set(v, "HOME", j->work);
	environment_set(v, "USER", user ? user->pw_name : "nobody");
	environment_set(v, "TMPDIR", c->sandbox == SANDBOX_BUBBLEWRAP ? "/tmp" : j->temporary);
	for (size_t i = 0; i < c->n_environment; i++)
		environment_set(v, c->environment[i].name, c->environment[i].value);
	for (size_t i = 0; i < c->n_secrets; i++)
		environment_set(v, c->secrets[i].name, secret_text(c->secrets[i].value));
	if (o->number > 0 && !is_base)
		snprintf(number, sizeof(number), "%lld", (long long)o->number);
	snprintf(attempt, sizeof(attempt), "%d", o->attempt);
	environment_set(v, "CI", "true");
	environment_set(v, "OUTPOST_DISPATCH_ID", o->dispatch_id);
	environment_set(v, "OUTPOST_HEAD_SHA", o->head_sha);
	environment_set(v, "OUTPOST_PR", number);
	environment_set(v, "OUTPOST_CHANGE_JSON", j->change_file);
	environment_set(v, "OUTPOST_RESULTS", j->results);
	environment_set(v, "OUTPOST_SOURCE_SHA", o->source_sha ? o->source_sha : "");
	environment_set(v, "OUTPOST_REPOSITORY", o->repository);
	environment_set(v, "OUTPOST_KIND", change_kind_name(o->kind));
	environment_set(v, "OUTPOST_ACCELERATOR", o->accelerator);
	environment_set(v, "OUTPOST_ATTEMPT", attempt);
	if (x) {
		environment_set(v, "OUTPOST_TESTS", j->tests_file);
		environment_set(v, "OUTPOST_EXPERIMENT_SIDE", experiment_side_name(x->side));
	}
}

/* Runs a shell script as a step is run: in the sandbox if there is one, with the steps' environment.
 * As child_run(); on_text may be NULL. */
static int run_script(struct job *j, const char *run, int64_t timeout_ms,
    void (*on_text)(void *ctx, const char *p, size_t n), struct child_end *ret, struct error *e)
{
	const char *const plain[] = {"/bin/sh", "-c", run, NULL};
	const struct sandbox_places places = {.work = j->work,
	    .temporary = j->temporary,
	    .change_file = j->change_file,
	    .tests_file = j->tests_file,
	    .mirrors = j->mirrors};
	struct environment env = {.n = 0};
	struct sandbox sandbox = {.args_fd = -1, .filter_fd = -1};
	struct child_spec spec = {.argv = plain,
	    .folder = j->work,
	    .timeout_ms = timeout_ms,
	    .kill_after_ms = j->pace.kill_after_ms,
	    .stop = &j->stop,
	    .on_output = on_text,
	    .ctx = j};
	int rc = 0;

	if (j->config->sandbox == SANDBOX_BUBBLEWRAP) {
		rc = sandbox_open(j->config, &places, run, &sandbox, e);
		spec.argv = (const char *const *)sandbox.argv;
		spec.sandbox = &sandbox;
	}
	step_environment(&env, j);
	spec.env = (const char *const *)env.list;
	if (!rc)
		rc = child_run(&spec, ret, e);
	environment_release(&env);
	sandbox_close(&sandbox);
	return rc;
}

/* Where the steps' PATH has the program outside of the sandbox. free(); NULL: nowhere. */
static char *find_in_path(const struct job *j, const char *program)
{
	struct environment env = {.n = 0};
	const char *list = NULL;
	char *found = NULL;

	step_environment(&env, j);
	for (size_t i = 0; i < env.n; i++)
		if (str_has_prefix(env.list[i], "PATH="))
			list = env.list[i] + strlen("PATH=");
	while (list && *list && !found) {
		size_t n = strcspn(list, ":");
		char *path = xasprintf("%.*s/%s", (int)n, list, program);

		if (*path == '/' && !strchr(path, '\'') && access(path, F_OK) == 0)
			found = path;
		else
			free(path);
		list += n + (list[n] ? 1 : 0);
	}
	environment_release(&env);
	return found;
}

/* If the step's last line of output complains about a path or program that the step's script names, and that exists on
 * this machine but not inside the sandbox: its path. free(); NULL: nothing of the kind. Looks up only words of the
 * operator's own script, so a change that prints a path learns nothing about the machine. Runs the sandbox. */
static char *find_hidden(struct job *j, const struct runner_step *step, const char *last_line)
{
	static const char separators[] = " \t\n;|&()<>\"'`=:,";
	char *script = xstrdup(step->run), *rest = NULL, *found = NULL;
	int n = 0;

	for (char *word = strtok_r(script, separators, &rest); word && !found && n < PROBES_MAX;
	     word = strtok_r(NULL, separators, &rest)) {
		char *path = NULL;
		struct child_end end;
		bool is_hidden = false;

		if (strlen(word) < 2 || strpbrk(word, "$*?[\\") || !strstr(last_line, word))
			continue;
		if (*word == '/')
			path = access(word, F_OK) == 0 ? xstrdup(word) : NULL;
		else if (!strchr(word, '/'))
			path = find_in_path(j, word);
		if (path) {
			/* A path also counts as shown if that cannot be found out. */
			n++;
			char *test = xasprintf("test -e '%s'", path);
			is_hidden = !run_script(j, test, PROBE_TIMEOUT_MS, NULL, &end, NULL) && end.is_set_up &&
				    end.exit_code == 1;
			free(test);
		}
		if (is_hidden)
			found = path;
		else
			free(path);
	}
	free(script);
	return found;
}

/* "3h", "10m", "1.5 s". The text is static: only one at a time. */
static const char *step_duration_text(int64_t ms)
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

static void on_step_output(void *ctx, const char *p, size_t n)
{
	struct job *j = ctx;

	job_log_output(j->log, p, n);
}

/* The meaning of the shell's own two exit codes, for readers who do not know them. */
static const char *exit_words(int code)
{
	return code == 127 ? " (a command was not found)" : code == 126 ? " (a command could not be executed)" : "";
}

static void say_step_end(struct job *j, const struct runner_step *step, const struct child_end *end)
{
	char how[64];

	if (end->signal)
		snprintf(how, sizeof(how), "signal %d (%s)", end->signal, strsignal(end->signal));
	else
		snprintf(how, sizeof(how), "exit %d%s", end->exit_code, exit_words(end->exit_code));
	job_log_say(j->log, "step %s: %s%s after %.1f s [%s]", step->name,
	    end->is_timeout     ? "timed out, "
	    : end->is_cancelled ? "cancelled, "
				: "",
	    how, (double)end->duration_ms / 1000, rfc3339_format(clock_wall_ms(), (char[RFC3339_BYTES]){0}));
	/* In the sandbox its first process outlives the step for a moment, so the number means nothing. */
	if (end->n_left > 0 && j->config->sandbox == SANDBOX_NONE)
		job_log_say(j->log, "step %s: ended %d processes that it left behind", step->name, end->n_left);
	if (end->has_survivors)
		job_log_say(j->log, "step %s: some of its processes could not be ended", step->name);
}

/* The last line of the step's output. free(). */
static char *last_output_line(const struct job *j)
{
	char *text = job_log_excerpt(j->log);
	size_t n = strlen(text);

	while (n > 0 && text[n - 1] == '\n')
		text[--n] = '\0';
	char *last = strrchr(text, '\n');
	last = xstrdup(last ? last + 1 : text);
	free(text);
	return last;
}

/* A step that ended by itself with an error. If its program or file was missing, that is the machine's
 * fault and not the change's, so the job has no result then. */
static void conclude_failure(struct job *j, const struct runner_step *step, const struct child_end *end)
{
	bool has_sandbox = j->config->sandbox == SANDBOX_BUBBLEWRAP;
	bool is_not_found = end->exit_code == 126 || end->exit_code == 127;
	char *line = last_output_line(j);
	char *hidden = has_sandbox ? find_hidden(j, step, line) : NULL;
	char *real = hidden ? realpath(hidden, NULL) : NULL;
	struct stat st;

	if (hidden && !real)
		real = xstrdup(hidden);
	/* The setting that shows the path in the sandbox, such as "allow: {read: [/opt/suite]}". */
	bool is_device = hidden && str_has_prefix(real, "/dev/");
	char *slash = hidden && !is_device ? strrchr(real, '/') : NULL;
	if (slash && slash > real && (stat(real, &st) || !S_ISDIR(st.st_mode)))
		*slash = '\0';

	if (hidden)
		job_conclude(j, "action_required",
		    "step %s: exit %d%s: the sandbox hides %s; in the runner's file allow: {%s: [%s]} shows it",
		    step->name, end->exit_code, exit_words(end->exit_code), hidden, is_device ? "devices" : "read",
		    real);
	else if (is_not_found)
		job_conclude(j, "action_required", "step %s: exit %d%s%s", step->name, end->exit_code,
		    exit_words(end->exit_code),
		    has_sandbox ? ": the sandbox shows the system, the work folder and what "
				  "`allow` in the runner's file lists"
				: "");
	else
		job_conclude(j, "failure", "step %s: exit %d", step->name, end->exit_code);
	FREE_ALL(real, hidden, line);
}

void step_run(struct job *j, const struct runner_step *step, bool *ret_ok)
{
	int64_t left = job_time_left(j);
	int64_t timeout_ms = step->timeout_ms < left ? step->timeout_ms : left;
	struct descendants strays = {.watched = 0};
	struct job_result *r = &j->result;
	struct child_end end;
	struct error e = {0};
	size_t n = strcspn(step->run, "\n");

	job_log_say(j->log, "step %s: %.*s%s [%s]", step->name, (int)(n < 200 ? n : 200), step->run,
	    step->run[n] || n > 200 ? " …" : "", rfc3339_format(clock_wall_ms(), (char[RFC3339_BYTES]){0}));
	job_log_begin_excerpt(j->log);
	if (run_script(j, step->run, timeout_ms, on_step_output, &end, &e)) {
		job_log_say(j->log, "step %s: %s", step->name, e.text);
		job_conclude(j, "startup_failure", "step %s: %s", step->name, e.text);
		*ret_ok = false;
		return;
	}
	/* If the supervisor was killed, its children are this process's now. */
	if (!descendants_end(&strays, STRAYS_WITHIN_MS))
		end.has_survivors = true;
	end.n_left += strays.n_killed;
	say_step_end(j, step, &end);
	*ARRAY_PUSH(r->steps, r->n_steps) = (struct step_outcome){.name = xstrdup(step->name),
	    .exit_code = end.exit_code,
	    .signal = end.signal,
	    .is_timeout = end.is_timeout,
	    .duration_ms = end.duration_ms};
	if (end.is_cancelled || j->stop.is_requested) {
		job_conclude(j, "cancelled", "cancelled during step %s", step->name);
	} else if (end.is_timeout && timeout_ms < step->timeout_ms) {
		job_conclude(j, "timed_out", "step %s: the job's time of %s was over", step->name,
		    step_duration_text(j->config->timeout_ms));
	} else if (end.is_timeout) {
		job_conclude(
		    j, "timed_out", "step %s: timed out after %s", step->name, step_duration_text(step->timeout_ms));
	} else if (!end.is_set_up && end.exit_code > 0) {
		char *line = last_output_line(j);

		job_conclude(j, "startup_failure", "sandbox: %s", line);
		free(line);
	} else if (end.signal) {
		job_conclude(j, "failure", "step %s: signal %d (%s)", step->name, end.signal, strsignal(end.signal));
	} else if (end.exit_code != 0) {
		conclude_failure(j, step, &end);
	}
	*ret_ok = !j->result.conclusion;
}
