/* outpostctl deliveries, replay, dispatches, retest, comment preview and nightly: these commands show and repeat
 * the work for pull requests, pushes and periodic runs. */

#include "ctl/server.h"

enum { LIST_ROWS = 50, SHA_CHARS = 40, SHA_MIN_CHARS = 7, CRON_BYTES = 256 };

static void add_delivery(struct table *t, const json_t *d)
{
	const char *action = json_get_str(d, "action"), *event = json_get_str(d, "event");
	char *name = xasprintf("%s%s%s", event ? event : "", action && *action ? "." : "", action ? action : "");

	table_add_age(t, d, "received");
	table_add(t, json_get_str(d, "guid"));
	table_add(t, name);
	table_add(t, json_get_str(d, "state"));
	table_add(t, json_get_str(d, "error"));
	free(name);
}

int cmd_deliveries(const struct ctl *ctl)
{
	struct server_list list = {
	    "deliveries", {"RECEIVED", "DELIVERY", "EVENT", "STATE", "WHY"}, add_delivery, "no deliveries yet"};
	int64_t limit = LIST_ROWS;
	bool only_failed = false;
	const struct argument_option options[] = {
	    {.name = "--failed", .flag = &only_failed}, ARGUMENT_LIMIT(&limit), {.name = NULL}};
	char path[96];

	if (!arguments_read(ctl, options, NULL, 0, 0))
		return EXIT_USAGE;
	if (only_failed)
		list.empty = "no failed deliveries";
	snprintf(path, sizeof(path), "/control/deliveries?failed=%d&limit=%lld", only_failed, (long long)limit);
	return server_print_list(ctl, path, &list);
}

int cmd_replay(const struct ctl *ctl)
{
	const char *guid = ctl->words[0];
	json_t *v;

	if (strspn(guid, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-") != strlen(guid))
		return command_wrong(ctl, "'%s' is not the GUID of a delivery", guid);
	char *path = xasprintf("/control/deliveries/%s/replay", guid);
	int exit_code = server_show(ctl, "POST", path, NULL, &v);
	if (v)
		printf("%s is processed again\n", guid);
	json_decref(v);
	free(path);
	return exit_code;
}

static void add_dispatch(struct table *t, const json_t *d)
{
	const char *accelerator = json_get_str(d, "accelerator"), *sha = json_get_str(d, "head_sha"),
		   *side = json_get_str(d, "side"), *state = json_get_str(d, "state"),
		   *reason = json_get_str(d, "reason");
	int64_t pr = json_get_int(d, "pr", 0);
	char change[64];

	if (str_eq(json_get_str(d, "event"), "experiment"))
		snprintf(change, sizeof(change), "#%lld experiment %.8s (%.4s)", (long long)pr, sha ? sha : "",
		    side ? side : "");
	else if (pr)
		snprintf(change, sizeof(change), "#%lld %.8s", (long long)pr, sha ? sha : "");
	else
		snprintf(change, sizeof(change), "%.8s", sha ? sha : "");
	if (!reason && str_eq(state, "queued") && str_eq(json_get_str(d, "kind"), "pull"))
		reason = "waits for a machine that has the runner's labels";
	table_add_age(t, d, "created");
	table_add(t, json_get_str(d, "id"));
	table_add(t, change);
	table_add(t, accelerator && *accelerator ? accelerator : "(infra)");
	table_add(t, json_get_str(d, "runner"));
	table_add(t, state);
	table_add_int(t, json_get_int(d, "round", 0));
	table_add(t, reason);
}

int cmd_dispatches(const struct ctl *ctl)
{
	struct server_list list = {"dispatches",
	    {"CREATED", "DISPATCH", "CHANGE", "ACCELERATOR", "RUNNER", "STATE", "ROUND", "WHY"}, add_dispatch,
	    "no dispatches yet"};
	int64_t pr = 0, limit = LIST_ROWS;
	const struct argument_option options[] = {
	    {.name = "--pr", .number = &pr, .min = 1}, ARGUMENT_LIMIT(&limit), {.name = NULL}};
	char path[96];

	if (!arguments_read(ctl, options, NULL, 0, 0))
		return EXIT_USAGE;
	int n = snprintf(path, sizeof(path), "/control/dispatches?limit=%lld", (long long)limit);
	if (pr) {
		snprintf(path + n, sizeof(path) - (size_t)n, "&pr=%lld", (long long)pr);
		list.empty = "no dispatches for that pull request";
	}
	return server_print_list(ctl, path, &list);
}

int cmd_retest(const struct ctl *ctl)
{
	static const char *const headings[] = {"ACCELERATOR", "RUNNER", "RESULT", "DISPATCH", NULL};
	const char *change = ctl->words[0];
	size_t i;
	json_t *v, *one;

	/* A number or a SHA; the service decides between the two. */
	size_t n = strlen(change);
	size_t n_digits = strspn(change, "0123456789");
	if (n > SHA_CHARS || strspn(change, "0") == n ||
	    (n_digits < n && (n < SHA_MIN_CHARS || strspn(change, "0123456789abcdefABCDEF") != n)))
		return command_wrong(
		    ctl, "'%s' is neither a pull request's number nor a SHA of at least 7 digits", change);
	int exit_code = server_show(ctl, "POST", "/control/retest",
	    json_pack("{s:s, s:s?}", "change", change, "accelerator", ctl->words[1]), &v);
	if (!v)
		return exit_code;
	const char *sha = json_get_str(v, "head_sha");
	int64_t pr = json_get_int(v, "pr", 0);
	if (pr)
		printf("#%lld ", (long long)pr);
	printf("%.8s\n", sha ? sha : "");
	struct table *t = table_new(headings);
	json_array_foreach(json_object_get(v, "runners"), i, one)
	{
		table_add(t, json_get_str(one, "accelerator"));
		table_add(t, json_get_str(one, "runner"));
		table_add(t, json_get_str(one, "result"));
		table_add(t, json_get_str(one, "dispatch"));
	}
	table_print(t, ctl, "no accelerator tests it");
	json_decref(v);
	return exit_code;
}

int cmd_comment_preview(const struct ctl *ctl)
{
	/* A terminal gets rendered text, a pipe the Markdown that GitHub would get. */
	const char *format = ctl->has_colour ? "colour" : ctl->is_terminal ? "terminal" : "markdown";
	bool is_markdown = false;
	const struct argument_option options[] = {{.name = "--markdown", .flag = &is_markdown}, {.name = NULL}};
	const char *pr;
	int64_t number;
	char path[96];
	json_t *v;

	if (!arguments_read(ctl, options, &pr, 1, 1) || !argument_number(ctl, "PR", pr, 1, 0, &number))
		return EXIT_USAGE;
	if (ctl->is_json || is_markdown)
		format = "markdown";
	snprintf(
	    path, sizeof(path), "/control/comments/%lld?format=%s&width=%d", (long long)number, format, ctl->width);
	int exit_code = server_show(ctl, "GET", path, NULL, &v);
	if (json_get_str(v, "text"))
		fputs(json_get_str(v, "text"), stdout);
	json_decref(v);
	return exit_code;
}

static void add_schedule(struct table *t, const json_t *row)
{
	const json_t *last = json_object_get(row, "last");
	const char *next = json_get_str(row, "next"), *outcome = json_get_str(last, "outcome"),
		   *cause = json_get_str(last, "cause"), *note = json_get_str(last, "reason");
	char crons[CRON_BYTES] = "", due[96];
	json_t *cron;
	size_t i, n = 0;

	json_array_foreach(json_object_get(row, "cron"), i, cron) if (n < CRON_BYTES) n +=
	    (size_t)snprintf(crons + n, CRON_BYTES - n, "%s%s", i ? ", " : "", json_string_value(cron));
	snprintf(
	    due, sizeof(due), "%s%s", next ? next : "never", json_get_bool(row, "skip_next", false) ? ", skipped" : "");
	if (!note && str_eq(cause, "caught_up"))
		note = "catches up on a missed run";
	else if (!note && str_eq(cause, "operator"))
		note = "started by an operator";
	else if (!note && str_eq(cause, "self_report"))
		note = "started by the vendor";
	table_add(t, json_get_str(row, "accelerator"));
	table_add(t, crons);
	table_add(t, due);
	table_add_age(t, last, "due_at");
	table_add(t, outcome ? outcome : json_get_str(last, "state"));
	table_add(t, note);
}

int cmd_nightly(const struct ctl *ctl)
{
	static const struct server_list list = {"schedules", {"ACCELERATOR", "CRON", "NEXT", "LAST", "OUTCOME", "NOTE"},
	    add_schedule, "no accelerator has a schedule (triggers.schedule)"};

	return server_print_list(ctl, "/control/nightly", &list);
}

int cmd_nightly_run(const struct ctl *ctl)
{
	const char *accelerator = ctl->words[0];
	json_t *v;
	int exit_code =
	    server_show(ctl, "POST", "/control/nightly/run", json_pack("{s:s}", "accelerator", accelerator), &v);
	if (v)
		printf("%s: the run starts once the heads of upstream and of its own source are read\n", accelerator);
	json_decref(v);
	return exit_code;
}

int cmd_nightly_skip(const struct ctl *ctl)
{
	const char *accelerator = ctl->words[0];
	json_t *v;
	int exit_code =
	    server_show(ctl, "POST", "/control/nightly/skip", json_pack("{s:s}", "accelerator", accelerator), &v);
	if (v)
		printf("%s: the run of %s %s skipped\n", accelerator, json_get_str(v, "next"),
		    json_get_bool(v, "was_skipped", false) ? "was already" : "is");
	json_decref(v);
	return exit_code;
}
