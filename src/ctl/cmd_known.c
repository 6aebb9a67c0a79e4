/* outpostctl known: the issues that explain red tests. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "ctl/arguments.h"
#include "ctl/server.h"
#include "ctl/table.h"

enum { TIME_TEXT_BYTES = 64, NOTE_BYTES = 96, YOUNG_MS = 7 * 24 * 3600 * 1000 };

/* ---- add ---- */

struct asked {
	const char *test, *accelerator, *url, *until;
};

static bool read_options(int argc, char **argv, struct asked *ret)
{
	const struct argument_option options[] = {
	    {.name = "--test", .text = &ret->test},
	    {.name = "--accelerator", .text = &ret->accelerator},
	    {.name = "--url", .text = &ret->url},
	    {.name = "--until", .text = &ret->until},
	    {.name = NULL},
	};

	*ret = (struct asked){0};
	if (!arguments_read("known add", argc, argv, options, NULL, 0, 0))
		return false;
	if (!ret->test || !ret->url)
		(void)command_usage("known add");
	return ret->test && ret->url;
}

int cmd_known_add(const struct ctl *ctl, int argc, char **argv)
{
	json_t *body = json_object(), *v;
	struct asked asked;
	int exit_code;

	if (!read_options(argc, argv, &asked)) {
		json_decref(body);
		return EXIT_USAGE;
	}
	json_set_str(body, "test", asked.test);
	json_set_str(body, "accelerator", asked.accelerator);
	json_set_str(body, "url", asked.url);
	json_set_str(body, "until", asked.until);
	exit_code = server_ask(ctl, "POST", "/control/known", body, &v);
	json_decref(body);
	if (exit_code)
		return exit_code;
	if (ctl->is_json)
		return server_print_json(v);
	printf("%lld: red cells of %s%s%s are known from now on%s%s\n",
	    (long long)json_get_int(v, "id", 0), asked.test, asked.accelerator ? " on " : "",
	    asked.accelerator ? asked.accelerator : "", json_get_str(v, "until") ? ", until " : "",
	    json_get_str(v, "until") ? json_get_str(v, "until") : "");
	json_decref(v);
	return EXIT_DONE;
}

/* ---- remove ---- */

int cmd_known_remove(const struct ctl *ctl, int argc, char **argv)
{
	static const struct argument_option none[] = {{.name = NULL}};
	const char *text;
	json_t *body, *v;
	int64_t id;
	int exit_code;

	if (!arguments_read("known remove", argc, argv, none, &text, 1, 1) ||
	    !argument_number("known remove", "ID", text, 1, 0, &id))
		return EXIT_USAGE;
	body = json_object();
	json_set_int(body, "id", id);
	exit_code = server_ask(ctl, "POST", "/control/known/remove", body, &v);
	json_decref(body);
	if (exit_code)
		return exit_code;
	if (ctl->is_json)
		return server_print_json(v);
	printf("%lld removed: what it explained is classified anew\n", (long long)id);
	json_decref(v);
	return EXIT_DONE;
}

/* ---- list ---- */

/* `until` has whole seconds here, so the service may think of it as good for a moment more. */
static bool is_expired(const json_t *known, int64_t now_ms)
{
	const char *until = json_get_str(known, "until");
	int64_t until_ms;

	return json_get_bool(known, "expired", false) ||
	       (until && !rfc3339_parse(until, &until_ms) && until_ms <= now_ms);
}

/* "in 3 days", "expired", "". */
static const char *until_text(const json_t *known, int64_t now_ms, char out[TIME_TEXT_BYTES])
{
	const char *until = json_get_str(known, "until");
	int64_t until_ms, minutes;

	out[0] = '\0';
	if (!until || rfc3339_parse(until, &until_ms))
		return out;
	minutes = (until_ms - now_ms) / 60000;
	if (is_expired(known, now_ms))
		return "expired";
	if (minutes < 60)
		snprintf(out, TIME_TEXT_BYTES, "in %lld min", (long long)minutes);
	else if (minutes < 48 * 60)
		snprintf(out, TIME_TEXT_BYTES, "in %lld h", (long long)minutes / 60);
	else
		snprintf(out, TIME_TEXT_BYTES, "in %lld days", (long long)minutes / (24 * 60));
	return out;
}

/* Registered ahead of the failure, or with a mistake in the pattern: the list cannot know. */
static bool is_young(const json_t *known, int64_t now_ms)
{
	const char *created = json_get_str(known, "created");
	int64_t created_ms;

	return created && !rfc3339_parse(created, &created_ms) && now_ms - created_ms < YOUNG_MS &&
	       !is_expired(known, now_ms);
}

static const char *note_text(const json_t *known, int64_t now_ms, char out[NOTE_BYTES])
{
	out[0] = '\0';
	if (json_get_bool(known, "used", false))
		return out;
	if (is_young(known, now_ms))
		snprintf(out, NOTE_BYTES, "matches nothing yet");
	else
		snprintf(out, NOTE_BYTES, "%s: outpostctl known remove %lld?",
		    json_get_int(known, "matches", 0) ? "matches nothing any more"
						      : "matches nothing",
		    (long long)json_get_int(known, "id", 0));
	return out;
}

static void add_row(struct table *t, const json_t *known, int64_t now_ms)
{
	char until[TIME_TEXT_BYTES], note[NOTE_BYTES];
	const char *accelerator = json_get_str(known, "accelerator");

	table_add_int(t, json_get_int(known, "id", 0));
	table_add(t, json_get_str(known, "test"));
	table_add(t, accelerator ? accelerator : "all");
	table_add(t, until_text(known, now_ms, until));
	table_add_int(t, json_get_int(known, "matches", 0));
	table_add_age(t, json_get_str(known, "last_match"), now_ms);
	table_add(t, json_get_str(known, "url"));
	table_add(t, note_text(known, now_ms, note));
}

int cmd_known_list(const struct ctl *ctl, int argc, char **argv)
{
	static const char *const headings[] = {
	    "ID", "TEST", "ACCELERATOR", "UNTIL", "MATCHES", "LAST", "ISSUE", "NOTE", NULL};
	int64_t now_ms = clock_wall_ms();
	json_t *v, *known;
	struct table *t;
	size_t i;

	if (argc > 0)
		return command_wrong("known list", "what is '%s'?", argv[0]);
	if (server_ask(ctl, "GET", "/control/known", NULL, &v))
		return EXIT_FAILED;
	if (ctl->is_json)
		return server_print_json(v);
	t = table_new(headings);
	json_array_foreach(json_object_get(v, "known"), i, known) add_row(t, known, now_ms);
	table_print(t, ctl, "no known issues: outpostctl known add --test SUITE/TEST --url ISSUE");
	json_decref(v);
	return EXIT_DONE;
}
