/* outpostctl known: the issues that explain failures. */
#include "ctl/server.h"

enum { YOUNG_MS = 7 * 24 * 3600 * 1000 };

int cmd_known_add(const struct ctl *ctl)
{
	const char *test = NULL, *accelerator = NULL, *url = NULL, *until = NULL;
	const struct argument_option options[] = {
	    {.name = "--test", .text = &test},
	    {.name = "--accelerator", .text = &accelerator},
	    {.name = "--url", .text = &url},
	    {.name = "--until", .text = &until},
	    {.name = NULL},
	};
	json_t *v;

	if (!arguments_read(ctl, options, NULL, 0, 0))
		return EXIT_USAGE;
	if (!test || !url)
		return command_usage(ctl);
	int exit_code = server_show(ctl, "POST", "/control/known",
	    json_pack("{s:s, s:s?, s:s, s:s?}", "test", test, "accelerator", accelerator, "url", url, "until", until),
	    &v);
	until = json_get_str(v, "until");
	if (v)
		printf("%lld: red cells of %s%s%s are now KNOWN%s%s\n", (long long)json_get_int(v, "id", 0), test,
		    accelerator ? " on " : "", accelerator ? accelerator : "", until ? ", until " : "",
		    until ? until : "");
	json_decref(v);
	return exit_code;
}

int cmd_known_remove(const struct ctl *ctl)
{
	json_t *v;
	int64_t id;

	if (!argument_number(ctl, "ID", ctl->words[0], 1, 0, &id))
		return EXIT_USAGE;
	int exit_code = server_show(ctl, "POST", "/control/known/remove", json_pack("{s:I}", "id", (json_int_t)id), &v);
	if (v)
		printf("%lld removed: its red cells are classified again\n", (long long)id);
	json_decref(v);
	return exit_code;
}

static void add_known_issue(struct table *t, const json_t *known)
{
	const char *accelerator = json_get_str(known, "accelerator"), *until = json_get_str(known, "until"),
		   *created = json_get_str(known, "created");
	int64_t id = json_get_int(known, "id", 0), n_matches = json_get_int(known, "matches", 0);
	int64_t until_ms = 0, created_ms, now_ms = clock_wall_ms();
	bool has_end = until && !rfc3339_parse(until, &until_ms);
	/* `until` has whole seconds, so the service may still count the issue as valid. */
	bool is_expired = json_get_bool(known, "expired", false) || (has_end && until_ms <= now_ms);
	char left[64] = "", note[96] = "";
	int64_t minutes = (until_ms - now_ms) / 60000;

	if (has_end && is_expired)
		snprintf(left, sizeof(left), "expired");
	else if (has_end && minutes < 60)
		snprintf(left, sizeof(left), "in %lld min", (long long)minutes);
	else if (has_end && minutes < 48 * 60)
		snprintf(left, sizeof(left), "in %lld h", (long long)minutes / 60);
	else if (has_end)
		snprintf(left, sizeof(left), "in %lld days", (long long)minutes / (24 * 60));
	/* A new entry may await the failure; its pattern is not questioned yet. */
	if (json_get_bool(known, "used", false))
		note[0] = '\0';
	else if (!is_expired && created && !rfc3339_parse(created, &created_ms) && now_ms - created_ms < YOUNG_MS)
		snprintf(note, sizeof(note), "matches nothing yet");
	else
		snprintf(note, sizeof(note), "%s: outpostctl known remove %lld?",
		    n_matches ? "matches nothing any more" : "matches nothing", (long long)id);
	table_add_int(t, id);
	table_add(t, json_get_str(known, "test"));
	table_add(t, accelerator ? accelerator : "all");
	table_add(t, left);
	table_add_int(t, n_matches);
	table_add_age(t, known, "last_match");
	table_add(t, json_get_str(known, "url"));
	table_add(t, note);
}

int cmd_known_list(const struct ctl *ctl)
{
	static const struct server_list list = {"known",
	    {"ID", "TEST", "ACCELERATOR", "UNTIL", "MATCHES", "LAST", "ISSUE", "NOTE"}, add_known_issue,
	    "no known issues: outpostctl known add --test SUITE/TEST --url ISSUE"};

	return server_print_list(ctl, "/control/known", &list);
}
