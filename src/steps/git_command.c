#include "steps/git_command.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/escape.h"
#include "base/str.h"
#include "base/strv.h"
#include "steps/environment.h"

enum { LINE_MAX_BYTES = 2000, PROGRESS_MS = 1000, ANSWER_MAX_BYTES = 1 << 20 };

/* The last of two settings counts, so these stand behind whatever the operator's file says. */
static const char *const settings[] = {"core.hooksPath=/dev/null",
    "init.templateDir=", "core.fsmonitor=false", "core.attributesFile=/dev/null",
    "advice.detachedHead=false", "gc.auto=0", "protocol.ext.allow=never", "fetch.fsckObjects=false",
    "http.followRedirects=false", "transfer.bundleURI=false",
    /* packs are synced to disk, single objects are not */
    "fetch.unpackLimit=1",
    /* a lock of its own that nobody would take away after a kill */
    "gc.writeCommitGraph=false", "fetch.writeCommitGraph=false", NULL};

/* git separates the states of a progress line by carriage returns. */
struct git_output {
	struct job *job;
	const struct git_remote *remote; /* NULL: no network */
	struct git_end *end;
	struct buf line;
	int64_t next_progress_ms;
	bool has_fatal;
	struct buf *answer; /* git_ask(): all of it goes here */
};

static const char *const missing[] = {
    "not our ref", "unadvertised object", "couldn't find remote ref", "no such remote ref", NULL};

static void remember(struct git_output *o, const char *line)
{
	bool is_fatal = str_has_prefix(line, "fatal: ") || str_has_prefix(line, "error: ");
	struct buf text = BUF_INIT(sizeof(o->end->message) * 4);
	char *masked;

	for (const char *const *p = missing; *p; p++)
		if (strstr(line, *p))
			o->end->is_missing = o->end->is_final = true;
	if (strstr(line, "The requested URL returned error: 30"))
		o->end->is_redirect = o->end->is_final = true;
	/* a clone's own reason comes before the line that says that it failed */
	if (!*line || (o->has_fatal && (!is_fatal || str_has_prefix(line, "fatal: clone of "))))
		return;
	o->has_fatal = is_fatal;
	masked = masks_text(o->job->masks, line);
	escape_line(&text, masked, sizeof(o->end->message) / 4);
	snprintf(o->end->message, sizeof(o->end->message), "%s", buf_str(&text));
	buf_release(&text);
	free(masked);
}

static void end_line(struct git_output *o, char how)
{
	int64_t now_ms = clock_mono_ms();

	if (how == '\n') {
		remember(o, buf_str(&o->line));
		buf_append_char(&o->line, '\n');
	}
	if (how == '\n' || now_ms >= o->next_progress_ms) {
		job_log_output(o->job->log, buf_str(&o->line), o->line.len);
		if (how != '\n')
			job_log_output(o->job->log, "\n", 1);
		o->next_progress_ms = now_ms + PROGRESS_MS;
	}
	buf_clear(&o->line);
}

static void on_output(void *ctx, const char *p, size_t n)
{
	struct git_output *o = ctx;

	if (o->answer) {
		buf_append(o->answer, p, n);
		return;
	}
	for (size_t i = 0; i < n; i++)
		if (p[i] == '\n' || p[i] == '\r')
			end_line(o, p[i]);
		else if (p[i])
			/* what is longer than a line may be is cut */
			buf_append_char(&o->line, p[i]);
}

static void add_setting(char ***argv, const char *setting)
{
	strv_add(argv, "-c");
	strv_add(argv, setting);
}

static void add_text_setting(char ***argv, const char *name, const char *value)
{
	char *setting = xasprintf("%s=%s", name, value);

	add_setting(argv, setting);
	free(setting);
}

static char **full_argv(const struct git_output *o, const char *const *args)
{
	const struct git_remote *r = o->remote;
	char **argv = NULL;

	strv_add(&argv, "git");
	if (r && r->kind == GIT_OPERATORS_URL) {
		add_setting(&argv, "core.sshCommand=ssh -oBatchMode=yes");
		if (o->job->config->git_config)
			add_text_setting(&argv, "include.path", o->job->config->git_config);
	} else {
		add_setting(&argv, "protocol.allow=never");
	}
	for (const char *const *p = settings; *p; p++)
		add_setting(&argv, *p);
	if (r && r->kind == GIT_CHANGES_URL) {
		add_setting(&argv,
		    r->is_plain ? "protocol.http.allow=always" : "protocol.https.allow=always");
		add_setting(&argv, "http.emptyAuth=false");
		add_setting(&argv, "http.sslVerify=true");
	}
	for (; *args; args++)
		strv_add(&argv, *args);
	return argv;
}

static int run(struct git_output *o, const char *folder, const char *const *args, struct error *e)
{
	struct job *j = o->job;
	struct environment env = {.n = 0};
	char **argv = full_argv(o, args);
	struct child_spec spec = {.argv = (const char *const *)argv,
	    .folder = folder,
	    .timeout_ms = job_time_left(j),
	    .kill_after_ms = j->pace.kill_after_ms,
	    .stop = &j->stop,
	    .on_output = on_output,
	    .ctx = o};
	struct child_end end;
	int rc;

	environment_of_git(&env, j->git_home,
	    o->remote && o->remote->kind == GIT_OPERATORS_URL ? GIT_FOR_OPERATOR : GIT_FOR_NOBODY,
	    o->remote ? o->remote->proxy : NULL);
	spec.env = (const char *const *)env.list;
	rc = child_run(&spec, &end, e);
	if (!rc && o->line.len > 0)
		end_line(o, '\n');
	if (!rc && (end.is_cancelled || j->stop.is_wanted))
		rc = error_set(e, ERR_CANCELLED, "cancelled during the checkout");
	else if (!rc && end.is_timeout)
		rc = error_set(e, ERR_TIMEOUT, "the job's time was over during the checkout");
	o->end->is_done = !rc && end.exit_code == 0;
	if (!o->end->is_done && !o->end->message[0])
		snprintf(o->end->message, sizeof(o->end->message), "git %s: exit %d, signal %d",
		    args[0], end.exit_code, end.signal);
	environment_release(&env);
	strv_free(argv);
	return rc;
}

int git_fetch(struct job *j, const char *folder, const struct git_remote *remote,
    const char *const *args, struct git_end *ret, struct error *e)
{
	struct git_output o = {
	    .job = j, .remote = remote, .end = ret, .line = BUF_INIT(LINE_MAX_BYTES)};
	int rc;

	*ret = (struct git_end){.is_done = false};
	o.next_progress_ms = clock_mono_ms() + PROGRESS_MS;
	rc = run(&o, folder, args, e);
	if (ret->is_done)
		ret->message[0] = '\0';
	buf_release(&o.line);
	return rc;
}

int git_run(struct job *j, const char *folder, const char *const *args, struct git_end *ret,
    struct error *e)
{
	return git_fetch(j, folder, NULL, args, ret, e);
}

int git_must(struct job *j, const char *folder, const char *const *args, struct error *e)
{
	struct git_end end;
	int rc = git_run(j, folder, args, &end, e);

	if (!rc && !end.is_done)
		rc = error_set(e, ERR_IO, "%s", end.message);
	return rc;
}

int git_ask_bytes(struct job *j, const char *folder, const char *const *args, char **ret,
    size_t *ret_n, struct error *e)
{
	struct git_end end = {.is_done = false};
	struct buf answer = BUF_INIT(ANSWER_MAX_BYTES);
	struct git_output o = {
	    .job = j, .end = &end, .line = BUF_INIT(LINE_MAX_BYTES), .answer = &answer};
	int rc = run(&o, folder, args, e);

	*ret = NULL;
	*ret_n = 0;
	if (!rc) {
		*ret_n = end.is_done ? answer.len : 0;
		*ret = end.is_done && answer.data ? buf_take(&answer) : xstrdup("");
	}
	buf_release(&answer);
	return rc;
}

int git_ask(struct job *j, const char *folder, const char *const *args, char **ret, struct error *e)
{
	size_t n;
	int rc = git_ask_bytes(j, folder, args, ret, &n, e);

	while (n > 0 && (*ret)[n - 1] == '\n')
		(*ret)[--n] = '\0';
	return rc;
}
