/* `outpost-runner --check --online`. */
#include <stdarg.h>
#include <unistd.h>

#include "agent/check.h"
#include "agent/hint.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/escape.h"
#include "base/json.h"
#include "base/str.h"
#include "base/strv.h"
#include "base/version.h"
#include "http/client.h"
#include "model/runner_protocol.h"

enum {
	ANSWER_WITHIN_MS = 30 * 1000,
	ANSWER_MAX_BYTES = 256 * 1024,
	SKEW_MAX_MS = 30 * 1000,
	TITLE_COLUMNS = 12,
	LINE_MAX_BYTES = 4096,
};

/* ---- the table ---- */

struct report {
	bool has_colour, is_wrong;
};

enum mark { MARK_OK, MARK_NOTE, MARK_WRONG };

static void row(struct report *r, enum mark m, const char *title, const char *hint, const char *fmt,
    ...) PRINTF(5, 6);

/* hint: NULL or what to do, on a line of its own. */
static void row(
    struct report *r, enum mark m, const char *title, const char *hint, const char *fmt, ...)
{
	static const char *const marks[] = {"✓", "–", "✗"}, *const colours[] = {"32", "33", "31"};
	struct buf clean = BUF_INIT(4 * LINE_MAX_BYTES);
	char text[LINE_MAX_BYTES];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* Parts of it come from the server, and this is a terminal. */
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

static bool has_colour(void)
{
	const char *no_colour = getenv("NO_COLOR"), *terminal = getenv("TERM");

	return isatty(STDOUT_FILENO) && !(no_colour && *no_colour) && terminal &&
	       !str_eq(terminal, "dumb");
}

/* ---- the exchange ---- */

static void on_closed(void *owner)
{
	*(bool *)owner = true;
}

struct exchange {
	struct http_call call;
	bool is_done;
	int64_t sent_wall_ms, answered_wall_ms;
};

static void on_answer(struct http_call *call)
{
	struct exchange *x = CONTAINER_OF(call, struct exchange, call);

	x->answered_wall_ms = clock_wall_ms();
	x->is_done = true;
}

static void ask(const struct runner_config *c, struct exchange *x)
{
	const char *const headers[] = {secret_text(c->authorization), NULL};
	char *url = xasprintf("%s/api/v1/runner/status", c->server);
	struct loop *l = loop_new();
	struct http_client *client = http_client_new(l, "outpost-runner/" OUTPOST_VERSION);
	bool is_closed = false;

	if (c->ca_file)
		http_client_use_ca(client, c->ca_file);
	x->call = (struct http_call){
	    .method = "GET",
	    .url = url,
	    .headers = headers,
	    .max_answer_bytes = ANSWER_MAX_BYTES,
	    .total_timeout_ms = ANSWER_WITHIN_MS,
	    .done = on_answer,
	};
	x->sent_wall_ms = clock_wall_ms();
	http_call_start(client, &x->call);
	loop_run_until(l, &x->is_done);
	http_client_close(client, on_closed, &is_closed);
	loop_run_until(l, &is_closed);
	loop_free(l);
	free(url);
}

/* ---- what the answer says ---- */

static void report_refusal(struct report *r, const struct runner_config *c, struct exchange *x)
{
	int status = x->call.status;
	json_t *v = NULL;
	const char *detail;

	if (json_parse(buf_str(&x->call.answer), x->call.answer.len, &v, NULL))
		v = NULL;
	detail = json_get_str(v, "detail");
	if (status == 401 || status == 403 || status == 429) {
		row(r, MARK_OK, "server", NULL, "%s answers", c->server);
		row(r, MARK_WRONG, "token", hint_text(status, ""), "%s: %d%s%s", c->token_file,
		    status, detail ? ": " : "", detail ? detail : "");
	} else {
		row(r, MARK_WRONG, "server", hint_text(status, ""), "%s: %d%s%s", c->server, status,
		    detail ? ": " : "", detail ? detail : "");
	}
	json_decref(v);
}

static void report_identity(
    struct report *r, const struct runner_config *c, const struct runner_status *s)
{
	static const char hint[] =
	    "`name` and `accelerator` must be those of `outpostctl runner add`, or the token is "
	    "another machine's";

	if (str_eq(s->name, c->name) && str_eq(s->accelerator, c->accelerator))
		row(r, MARK_OK, "token", NULL, "good for %s of %s", s->name, s->accelerator);
	else
		row(r, MARK_WRONG, "token", hint, "it is for %s of %s, and not for %s of %s",
		    s->name, s->accelerator, c->name, c->accelerator);
}

static bool fits(const struct runner_need *need, char *const *labels)
{
	for (char **label = need->labels; *label; label++)
		if (!strv_contains((const char *const *)labels, *label))
			return false;
	return true;
}

static void add_labels(struct buf *out, char *const *labels)
{
	buf_append_str(out, "[");
	for (char *const *label = labels; *label; label++)
		buf_appendf(out, "%s%s", label == labels ? "" : ", ", *label);
	buf_append_str(out, "]");
}

/* One row a runner; it is wrong where this machine would never get work. */
static void report_labels(
    struct report *r, const struct runner_config *c, const struct runner_status *s)
{
	size_t n_fit = 0;

	for (size_t i = 0; i < s->n_runners; i++)
		n_fit += fits(&s->runners[i], c->labels);
	if (!s->n_runners)
		row(r, MARK_WRONG, "labels",
		    "the accelerator's file in the registry needs a runner with `pull: {labels: "
		    "[…]}`",
		    "%s has no pull runner", s->accelerator);
	for (size_t i = 0; i < s->n_runners; i++) {
		const struct runner_need *need = &s->runners[i];
		struct buf text = BUF_INIT(LINE_MAX_BYTES), missing = BUF_INIT(LINE_MAX_BYTES);
		bool is_fit = fits(need, c->labels);

		add_labels(&text, need->labels);
		for (char **label = need->labels; *label; label++)
			if (!strv_contains((const char *const *)c->labels, *label))
				buf_appendf(&missing, "%s%s", missing.len ? ", " : "", *label);
		if (is_fit)
			row(r, MARK_OK, "labels", NULL, "runner %s asks for %s", need->name,
			    buf_str(&text));
		else
			row(r, n_fit ? MARK_NOTE : MARK_WRONG, "labels",
			    n_fit ? NULL
				  : "add what is missing to `labels`, if this machine has it",
			    "runner %s asks for %s; missing here: %s", need->name, buf_str(&text),
			    buf_str(&missing));
		buf_release(&text);
		buf_release(&missing);
	}
}

static void report_work(
    struct report *r, const struct runner_config *c, const struct runner_status *s)
{
	int64_t n_waiting = 0, n_other = 0;

	for (size_t i = 0; i < s->n_runners; i++) {
		const struct runner_need *need = &s->runners[i];

		*(fits(need, c->labels) ? &n_waiting : &n_other) += need->n_waiting;
		if (fits(need, c->labels) && need->n_active >= need->max_parallel)
			row(r, MARK_NOTE, "work", NULL,
			    "runner %s has no room now: %lld of %lld jobs run", need->name,
			    (long long)need->n_active, (long long)need->max_parallel);
	}
	row(r, MARK_OK, "work", NULL, "%lld waiting for this machine, %lld for others",
	    (long long)n_waiting, (long long)n_other);
}

/* The server's time has whole seconds and is from between the request and the answer. */
static void report_clock(struct report *r, const struct exchange *x, int64_t server_ms)
{
	int64_t ahead_ms = x->sent_wall_ms - (server_ms + 999), behind_ms;
	int64_t off_ms = ahead_ms > 0 ? ahead_ms : 0;

	behind_ms = server_ms - x->answered_wall_ms;
	if (behind_ms > 0)
		off_ms = behind_ms;
	if (off_ms <= SKEW_MAX_MS)
		row(r, MARK_OK, "clock", NULL, "as the server's");
	else
		row(r, MARK_WRONG, "clock",
		    "set this machine's clock, for example with timedatectl set-ntp true",
		    "%lld s %s the server's", (long long)(off_ms / 1000),
		    ahead_ms > 0 ? "ahead of" : "behind");
}

static void report_version(struct report *r, const struct runner_status *s)
{
	if (str_eq(s->version, OUTPOST_VERSION))
		row(r, MARK_OK, "version", NULL, "%s", OUTPOST_VERSION);
	else
		row(r, MARK_NOTE, "version", "install the server's version here",
		    "%s; the server has %s", OUTPOST_VERSION, s->version);
}

bool agent_check_online(const struct runner_config *c)
{
	struct report r = {.has_colour = has_colour()};
	struct exchange x = {0};
	struct runner_status s;
	struct error e = {0};

	ask(c, &x);
	if (x.call.err) {
		row(&r, MARK_WRONG, "server", hint_text(0, x.call.why.text), "%s: %s", c->server,
		    *x.call.why.text ? x.call.why.text : err_text(x.call.err));
	} else if (x.call.status != 200) {
		report_refusal(&r, c, &x);
	} else if (runner_status_parse(buf_str(&x.call.answer), x.call.answer.len, &s, &e)) {
		row(&r, MARK_WRONG, "server", hint_text(404, ""), "%s: %s", c->server, e.text);
	} else {
		row(&r, MARK_OK, "server", NULL, "%s answers", c->server);
		report_identity(&r, c, &s);
		report_labels(&r, c, &s);
		report_work(&r, c, &s);
		report_clock(&r, &x, s.time_ms);
		report_version(&r, &s);
		runner_status_release(&s);
	}
	http_call_release(&x.call);
	return !r.is_wrong;
}
