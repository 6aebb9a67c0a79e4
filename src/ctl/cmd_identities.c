/* outpostctl identities: which repository is behind each name that reports. */
#include "base/clock.h"
#include "ctl/arguments.h"
#include "ctl/server.h"
#include "ctl/table.h"

enum { ID_TEXT_BYTES = 32, REFUSED_BYTES = 160 };

static const char *id_text(const json_t *v, const char *key, char out[ID_TEXT_BYTES])
{
	const json_t *id = json_object_get(v, key);

	if (json_is_integer(id))
		snprintf(out, ID_TEXT_BYTES, "%lld", (long long)json_integer_value(id));
	else
		snprintf(out, ID_TEXT_BYTES, "none");
	return out;
}

static const char *refused_text(const json_t *row, int64_t now_ms, char out[REFUSED_BYTES])
{
	const json_t *refused = json_object_get(row, "refused");
	const char *at = json_get_str(refused, "at");
	char repository[ID_TEXT_BYTES], owner[ID_TEXT_BYTES], age[32];
	int64_t at_ms;

	out[0] = '\0';
	if (at && !rfc3339_parse(at, &at_ms))
		snprintf(out, REFUSED_BYTES, "a token with id %s, owner %s was refused %s",
		    id_text(refused, "repository_id", repository),
		    id_text(refused, "repository_owner_id", owner),
		    age_text(at_ms, now_ms, age, sizeof(age)));
	return out;
}

static void add_row(struct table *t, const json_t *row, int64_t now_ms)
{
	char id[ID_TEXT_BYTES], refused[REFUSED_BYTES];

	table_add(t, json_get_str(row, "repository"));
	table_add(t, id_text(row, "repository_id", id));
	table_add(t, id_text(row, "repository_owner_id", id));
	table_add_age(t, json_get_str(row, "recorded_at"), now_ms);
	table_add(t, json_get_str(row, "issuer"));
	table_add(t, refused_text(row, now_ms, refused));
}

int cmd_identities(const struct ctl *ctl, int argc, char **argv)
{
	static const char *const headings[] = {
	    "REPOSITORY", "ID", "OWNER ID", "RECORDED", "ISSUER", "NOTE", NULL};
	int64_t now_ms = clock_wall_ms();
	json_t *v, *row;
	struct table *t;
	size_t i;

	if (argc > 0)
		return command_wrong("identities", "what is '%s'?", argv[0]);
	if (server_ask(ctl, "GET", "/control/identities", NULL, &v))
		return EXIT_FAILED;
	if (ctl->is_json)
		return server_print_json(v);
	t = table_new(headings);
	json_array_foreach(json_object_get(v, "identities"), i, row) add_row(t, row, now_ms);
	table_print(t, ctl, "no repository has reported yet");
	json_decref(v);
	return EXIT_DONE;
}

int cmd_identities_forget(const struct ctl *ctl, int argc, char **argv)
{
	static const struct argument_option none[] = {{.name = NULL}};
	const char *repository;
	json_t *body, *v;
	int exit_code;

	if (!arguments_read("identities forget", argc, argv, none, &repository, 1, 1))
		return EXIT_USAGE;
	body = json_object();
	json_set_str(body, "repository", repository);
	exit_code = server_ask(ctl, "POST", "/control/identities/forget", body, &v);
	json_decref(body);
	if (exit_code)
		return exit_code;
	if (ctl->is_json)
		return server_print_json(v);
	printf("%s: the ids of its next valid token are recorded\n",
	    json_get_str(v, "repository") ? json_get_str(v, "repository") : "");
	json_decref(v);
	return EXIT_DONE;
}
