/* outpostctl nightly: periodic runs. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "ctl/arguments.h"
#include "ctl/server.h"
#include "ctl/table.h"

enum { TEXT_BYTES = 96, CRON_BYTES = 256 };

/* ---- the list ---- */

static const char *crons_text(const json_t *row, char out[CRON_BYTES])
{
	json_t *cron;
	size_t i, n = 0;

	out[0] = '\0';
	json_array_foreach(json_object_get(row, "cron"), i, cron) if (n < CRON_BYTES) n +=
	    (size_t)snprintf(
		out + n, CRON_BYTES - n, "%s%s", i ? ", " : "", json_string_value(cron));
	return out;
}

static const char *next_text(const json_t *row, char out[TEXT_BYTES])
{
	const char *next = json_get_str(row, "next");

	snprintf(out, TEXT_BYTES, "%s%s", next ? next : "never",
	    json_get_bool(row, "skip_next", false) ? ", left out" : "");
	return out;
}

/* What came of it, or how far it is. */
static const char *outcome_of(const json_t *last)
{
	const char *outcome = json_get_str(last, "outcome");

	return outcome ? outcome : json_get_str(last, "state");
}

static const char *note_of(const json_t *last)
{
	const char *cause = json_get_str(last, "cause"), *reason = json_get_str(last, "reason");

	if (reason)
		return reason;
	if (str_eq(cause, "caught_up"))
		return "was missed, and made up for";
	if (str_eq(cause, "operator"))
		return "asked for by an operator";
	return str_eq(cause, "self_report") ? "the vendor's own" : "";
}

static int list(const struct ctl *ctl)
{
	static const char *const headings[] = {
	    "ACCELERATOR", "CRON", "NEXT", "LAST", "OUTCOME", "NOTE", NULL};
	char crons[CRON_BYTES], next[TEXT_BYTES];
	int64_t now_ms = clock_wall_ms();
	json_t *v, *row;
	struct table *t;
	size_t i;

	if (server_ask(ctl, "GET", "/control/nightly", NULL, &v))
		return EXIT_FAILED;
	if (ctl->is_json)
		return server_print_json(v);
	t = table_new(headings);
	json_array_foreach(json_object_get(v, "schedules"), i, row)
	{
		const json_t *last = json_object_get(row, "last");

		table_add(t, json_get_str(row, "accelerator"));
		table_add(t, crons_text(row, crons));
		table_add(t, next_text(row, next));
		table_add_age(t, json_get_str(last, "due_at"), now_ms);
		table_add(t, outcome_of(last));
		table_add(t, note_of(last));
	}
	table_print(t, ctl, "no accelerator has a schedule (triggers.schedule)");
	json_decref(v);
	return EXIT_DONE;
}

int cmd_nightly(const struct ctl *ctl, int argc, char **argv)
{
	return argc ? command_wrong("nightly", "what is '%s'?", argv[0]) : list(ctl);
}

/* ---- run and skip ---- */

static int ask(const struct ctl *ctl, const char *path, const char *accelerator, json_t **ret)
{
	json_t *body = json_object();
	int exit_code;

	json_set_str(body, "accelerator", accelerator);
	exit_code = server_ask(ctl, "POST", path, body, ret);
	json_decref(body);
	return exit_code;
}

static const struct argument_option none[] = {{.name = NULL}};

int cmd_nightly_run(const struct ctl *ctl, int argc, char **argv)
{
	const char *accelerator;
	json_t *v;
	int exit_code;

	if (!arguments_read("nightly run", argc, argv, none, &accelerator, 1, 1))
		return EXIT_USAGE;
	exit_code = ask(ctl, "/control/nightly/run", accelerator, &v);
	if (exit_code)
		return exit_code;
	if (ctl->is_json)
		return server_print_json(v);
	printf("%s: upstream's head, and its source's if it has one, are read now; then it is "
	       "dispatched\n",
	    accelerator);
	json_decref(v);
	return EXIT_DONE;
}

int cmd_nightly_skip(const struct ctl *ctl, int argc, char **argv)
{
	const char *accelerator;
	json_t *v;
	int exit_code;

	if (!arguments_read("nightly skip", argc, argv, none, &accelerator, 1, 1))
		return EXIT_USAGE;
	exit_code = ask(ctl, "/control/nightly/skip", accelerator, &v);
	if (exit_code)
		return exit_code;
	if (ctl->is_json)
		return server_print_json(v);
	printf("%s: the run of %s %s left out\n", accelerator, json_get_str(v, "next"),
	    json_get_bool(v, "was_skipped", false) ? "was already" : "is");
	json_decref(v);
	return EXIT_DONE;
}
