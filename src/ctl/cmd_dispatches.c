#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "ctl/arguments.h"
#include "ctl/server.h"
#include "ctl/table.h"

/* Why it stands where it stands, as far as that is known. */
static const char *why_of(const json_t *d)
{
	const char *reason = json_get_str(d, "reason");

	if (!reason && str_eq(json_get_str(d, "state"), "queued") &&
	    str_eq(json_get_str(d, "kind"), "pull"))
		return "waits for a machine that has the runner's labels";
	return reason;
}

static void add_row(struct table *t, const json_t *d, int64_t now)
{
	const char *accelerator = json_get_str(d, "accelerator"),
		   *sha = json_get_str(d, "head_sha"), *side = json_get_str(d, "side");
	int64_t pr = json_get_int(d, "pr", 0);
	char change[64];

	if (str_eq(json_get_str(d, "event"), "experiment"))
		snprintf(change, sizeof(change), "#%lld experiment %.8s (%.4s)", (long long)pr,
		    sha ? sha : "", side ? side : "");
	else if (pr)
		snprintf(change, sizeof(change), "#%lld %.8s", (long long)pr, sha ? sha : "");
	else
		snprintf(change, sizeof(change), "%.8s", sha ? sha : "");
	table_add_age(t, json_get_str(d, "created"), now);
	table_add(t, json_get_str(d, "id"));
	table_add(t, change);
	table_add(t, accelerator && *accelerator ? accelerator : "(infra)");
	table_add(t, json_get_str(d, "runner"));
	table_add(t, json_get_str(d, "state"));
	table_add_int(t, json_get_int(d, "round", 0));
	table_add(t, why_of(d));
}

int cmd_dispatches(const struct ctl *ctl, int argc, char **argv)
{
	static const char *const headings[] = {"CREATED", "DISPATCH", "CHANGE", "ACCELERATOR",
	    "RUNNER", "STATE", "ROUND", "WHY", NULL};
	int64_t number = 0, limit = 50, now = clock_wall_ms();
	const struct argument_option options[] = {
	    {.name = "--pr", .number = &number, .min = 1}, ARGUMENT_LIMIT(&limit), {.name = NULL}};
	struct table *t;
	json_t *v, *d;
	char path[96];
	size_t i;

	if (!arguments_read("dispatches", argc, argv, options, NULL, 0, 0))
		return EXIT_USAGE;
	if (number)
		snprintf(path, sizeof(path), "/control/dispatches?pr=%lld&limit=%lld",
		    (long long)number, (long long)limit);
	else
		snprintf(path, sizeof(path), "/control/dispatches?limit=%lld", (long long)limit);
	if (server_ask(ctl, "GET", path, NULL, &v))
		return EXIT_FAILED;
	if (ctl->is_json)
		return server_print_json(v);
	t = table_new(headings);
	json_array_foreach(json_object_get(v, "dispatches"), i, d) add_row(t, d, now);
	table_print(t, ctl, number ? "no dispatches for that pull request" : "no dispatches yet");
	json_decref(v);
	return EXIT_DONE;
}
