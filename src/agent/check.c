/* `outpost-runner --check`: checks the configuration file and whether this machine can do what the file says. */
#include "agent/agent.h"

#include "config/source.h"
#include "http/client.h"
#include "model/runner_protocol.h"
#include "steps/steps.h"

enum {
	MESSAGES_MAX_BYTES = 1 << 20,
	ANSWER_WITHIN_MS = 30 * 1000,
	ANSWER_MAX_BYTES = 256 * 1024,
	SKEW_MAX_MS = 30 * 1000,
	TITLE_COLUMNS = 12,
	LINE_MAX_BYTES = 4096,
};

struct runner_config *agent_load_config(const char *config_path)
{
	struct buf messages = BUF_INIT(MESSAGES_MAX_BYTES);
	struct runner_config *c;
	int rc = runner_config_load(config_path, &c, &messages);

	fputs(buf_str(&messages), stderr);
	buf_release(&messages);
	return rc ? NULL : c;
}

struct report {
	bool has_colour, is_wrong;
};

enum mark { MARK_OK, MARK_NOTE, MARK_WRONG };

/* Prints a line of the table. hint: NULL, or the advice on a line of its own. */
static void PRINTF(5, 6)
    print_row(struct report *r, enum mark m, const char *title, const char *hint, const char *fmt, ...)
{
	static const char *const marks[] = {"✓", "–", "✗"}, *const colours[] = {"32", "33", "31"};
	struct buf clean = BUF_INIT(4 * LINE_MAX_BYTES);
	char text[LINE_MAX_BYTES];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* Parts of the text come from the server and must not control the terminal. */
	escape_line(&clean, text, 0);
	if (r->has_colour)
		printf("\033[%sm%s\033[0m", colours[m], marks[m]);
	else
		fputs(marks[m], stdout);
	printf(" %-*s%s\n", TITLE_COLUMNS, title, buf_str(&clean));
	if (hint)
		printf("  %-*s→ %s\n", TITLE_COLUMNS, "", hint);
	r->is_wrong |= m == MARK_WRONG;
	buf_release(&clean);
}

/* True if this machine has all labels that the runner needs. */
static bool fits_need(const struct runner_need *need, char *const *labels)
{
	for (char **label = need->labels; *label; label++)
		if (!strv_contains((const char *const *)labels, *label))
			return false;
	return true;
}

/* One row for each runner. A row is wrong if this machine can get work from no runner at all. */
static void report_labels(struct report *r, const struct runner_config *c, const struct runner_status *s)
{
	size_t n_fit = 0;

	for (size_t i = 0; i < s->n_runners; i++)
		n_fit += fits_need(&s->runners[i], c->labels);
	if (!s->n_runners)
		print_row(r, MARK_WRONG, "labels",
		    "the accelerator's file in the registry needs a runner with `pull: {labels: […]}`",
		    "%s has no pull runner", s->accelerator);
	for (size_t i = 0; i < s->n_runners; i++) {
		const struct runner_need *need = &s->runners[i];
		struct buf text = BUF_INIT(LINE_MAX_BYTES), missing = BUF_INIT(LINE_MAX_BYTES);
		bool is_fit = fits_need(need, c->labels);

		for (char **label = need->labels; *label; label++)
			buf_appendf(&text, "%s%s", label == need->labels ? "[" : ", ", *label);
		buf_append_str(&text, *need->labels ? "]" : "[]");
		for (char **label = need->labels; *label; label++)
			if (!strv_contains((const char *const *)c->labels, *label))
				buf_appendf(&missing, "%s%s", missing.len ? ", " : "", *label);
		if (is_fit)
			print_row(r, MARK_OK, "labels", NULL, "runner %s asks for %s", need->name, buf_str(&text));
		else
			print_row(r, n_fit ? MARK_NOTE : MARK_WRONG, "labels",
			    n_fit ? NULL : "add what is missing to `labels`, if this machine has it",
			    "runner %s asks for %s; missing here: %s", need->name, buf_str(&text), buf_str(&missing));
		buf_release(&text);
		buf_release(&missing);
	}
}

/* The server's time has whole seconds and lies between the request and the answer. */
static void report_clock_and_version(
    struct report *r, int64_t sent_ms, int64_t answered_ms, const struct runner_status *s)
{
	int64_t ahead_ms = sent_ms - (s->time_ms + 999), behind_ms = s->time_ms - answered_ms;
	int64_t off_ms = ahead_ms > 0 ? ahead_ms : 0;

	if (behind_ms > 0)
		off_ms = behind_ms;
	if (off_ms <= SKEW_MAX_MS)
		print_row(r, MARK_OK, "clock", NULL, "as the server's");
	else
		print_row(r, MARK_WRONG, "clock", "set this machine's clock, for example with timedatectl set-ntp true",
		    "%lld s %s the server's", (long long)(off_ms / 1000), ahead_ms > 0 ? "ahead of" : "behind");
	if (str_eq(s->version, OUTPOST_VERSION))
		print_row(r, MARK_OK, "version", NULL, "%s", OUTPOST_VERSION);
	else
		print_row(r, MARK_NOTE, "version", "install the server's version here", "%s; the server has %s",
		    OUTPOST_VERSION, s->version);
}

/* Prints a line for each thing that was checked. False if one is wrong. */
static bool check_online(const struct runner_config *c)
{
	static const char hint[] = "`name` and `accelerator` must be those of `outpostctl runner "
				   "add`, or the token is another machine's";
	const char *const headers[] = {secret_text(c->authorization), NULL};
	char *url = xasprintf("%s/api/v1/runner/status", c->server);
	struct http_call call = {
	    .method = "GET",
	    .url = url,
	    .headers = headers,
	    .max_answer_bytes = ANSWER_MAX_BYTES,
	    .total_timeout_ms = ANSWER_WITHIN_MS,
	};
	const char *no_colour = getenv("NO_COLOR"), *terminal = getenv("TERM");
	struct report r = {
	    .has_colour = isatty(STDOUT_FILENO) && !(no_colour && *no_colour) && terminal && !str_eq(terminal, "dumb")};
	int64_t sent_ms = clock_wall_ms(), n_waiting = 0, n_other = 0;
	struct runner_status s;
	struct error e = {0};

	(void)!http_call_blocking(&call, "outpost-runner/" OUTPOST_VERSION, c->ca_file);
	int64_t answered_ms = clock_wall_ms();
	if (call.err) {
		print_row(&r, MARK_WRONG, "server", hint_text(0, call.why.text), "%s: %s", c->server,
		    *call.why.text ? call.why.text : err_text(call.err));
	} else if (call.status != 200) {
		bool is_token = call.status == 401 || call.status == 403 || call.status == 429;
		json_t *v = NULL;

		if (json_parse(buf_str(&call.answer), call.answer.len, &v, NULL))
			v = NULL;
		const char *detail = json_get_str(v, "detail");
		if (is_token)
			print_row(&r, MARK_OK, "server", NULL, "%s answers", c->server);
		print_row(&r, MARK_WRONG, is_token ? "token" : "server", hint_text(call.status, ""), "%s: %d%s%s",
		    is_token ? c->token_file : c->server, call.status, detail ? ": " : "", detail ? detail : "");
		json_decref(v);
	} else if (runner_status_parse(buf_str(&call.answer), call.answer.len, &s, &e)) {
		print_row(&r, MARK_WRONG, "server", hint_text(404, ""), "%s: %s", c->server, e.text);
	} else {
		print_row(&r, MARK_OK, "server", NULL, "%s answers", c->server);
		if (str_eq(s.name, c->name) && str_eq(s.accelerator, c->accelerator))
			print_row(&r, MARK_OK, "token", NULL, "good for %s of %s", s.name, s.accelerator);
		else
			print_row(&r, MARK_WRONG, "token", hint, "it is for %s of %s, and not for %s of %s", s.name,
			    s.accelerator, c->name, c->accelerator);
		report_labels(&r, c, &s);
		for (size_t i = 0; i < s.n_runners; i++) {
			const struct runner_need *need = &s.runners[i];

			*(fits_need(need, c->labels) ? &n_waiting : &n_other) += need->n_waiting;
			if (fits_need(need, c->labels) && need->n_active >= need->max_parallel)
				print_row(&r, MARK_NOTE, "work", NULL,
				    "runner %s has no room now: %lld of %lld jobs run", need->name,
				    (long long)need->n_active, (long long)need->max_parallel);
		}
		print_row(&r, MARK_OK, "work", NULL, "%lld waiting for this machine, %lld for others",
		    (long long)n_waiting, (long long)n_other);
		report_clock_and_version(&r, sent_ms, answered_ms, &s);
		runner_status_release(&s);
	}
	http_call_release(&call);
	free(url);
	return !r.is_wrong;
}

int agent_check(const char *config_path, bool is_online)
{
	struct runner_config *c = agent_load_config(config_path);
	struct error e = {0};

	if (!c)
		return 1;
	for (char **file = c->exposed_files; file && *file; file++)
		fprintf(stderr, "warning: %s: " EXPOSED_FILE_TEXT "\n", *file);
	int rc = steps_check(c, &e);
	if (rc)
		fprintf(stderr, "%s: %s\n", config_path, *e.text ? e.text : err_text(rc));
	else
		printf("%s has no mistakes: %s, for %s at %s\n", config_path, c->name, c->accelerator, c->server);
	if (!rc && is_online && !check_online(c))
		rc = ERR_INVALID;
	runner_config_free(c);
	return rc ? 1 : 0;
}
