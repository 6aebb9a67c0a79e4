#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "ctl/arguments.h"
#include "ctl/server.h"
#include "ctl/table.h"

int cmd_deliveries(const struct ctl *ctl, int argc, char **argv)
{
	static const char *const headings[] = {
	    "RECEIVED", "DELIVERY", "EVENT", "STATE", "WHY", NULL};
	int64_t limit = 50, now = clock_wall_ms();
	bool only_failed = false;
	const struct argument_option options[] = {
	    {.name = "--failed", .flag = &only_failed}, ARGUMENT_LIMIT(&limit), {.name = NULL}};
	struct table *t;
	json_t *v, *d;
	char path[96];
	size_t i;

	if (!arguments_read("deliveries", argc, argv, options, NULL, 0, 0))
		return EXIT_USAGE;
	snprintf(path, sizeof(path), "/control/deliveries?failed=%d&limit=%lld", only_failed,
	    (long long)limit);
	if (server_ask(ctl, "GET", path, NULL, &v))
		return EXIT_FAILED;
	if (ctl->is_json)
		return server_print_json(v);
	t = table_new(headings);
	json_array_foreach(json_object_get(v, "deliveries"), i, d)
	{
		const char *action = json_get_str(d, "action"), *event = json_get_str(d, "event");
		char *what = xasprintf("%s%s%s", event ? event : "", action && *action ? "." : "",
		    action ? action : "");

		table_add_age(t, json_get_str(d, "received"), now);
		table_add(t, json_get_str(d, "guid"));
		table_add(t, what);
		table_add(t, json_get_str(d, "state"));
		table_add(t, json_get_str(d, "error"));
		free(what);
	}
	table_print(t, ctl, only_failed ? "no failed deliveries" : "no deliveries yet");
	json_decref(v);
	return EXIT_DONE;
}

int cmd_replay(const struct ctl *ctl, int argc, char **argv)
{
	static const struct argument_option none[] = {{.name = NULL}};
	const char *guid;
	char *path;
	json_t *v;
	int exit_code;

	if (!arguments_read("replay", argc, argv, none, &guid, 1, 1))
		return EXIT_USAGE;
	if (strspn(guid, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-") !=
	    strlen(guid))
		return command_wrong("replay", "'%s' is no delivery's GUID", guid);
	path = xasprintf("/control/deliveries/%s/replay", guid);
	exit_code = server_ask(ctl, "POST", path, NULL, &v);
	free(path);
	if (exit_code)
		return exit_code;
	if (ctl->is_json)
		return server_print_json(v);
	printf("%s is planned again\n", guid);
	json_decref(v);
	return EXIT_DONE;
}
