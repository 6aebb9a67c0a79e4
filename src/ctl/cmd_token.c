/* outpostctl token: with which a vendor's own CI reports for an accelerator. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "ctl/server.h"
#include "ctl/table.h"
#include "ctl/tokens.h"

int cmd_token_issue(const struct ctl *ctl, int argc, char **argv)
{
	struct token_asked asked = {.kind = "api"};
	json_t *v;

	if (!token_options("token issue", argc, argv, "", &asked.accelerator, 1, 1, &asked))
		return EXIT_USAGE;
	if (token_add(ctl, &asked, &v))
		return EXIT_FAILED;
	fprintf(stderr,
	    "Token %lld of %s. It is shown this once: keep it as a secret of the vendor's CI, "
	    "which\n"
	    "sends it as `Authorization: Bearer TOKEN` with the jobs that it reports.\n",
	    (long long)json_get_int(v, "id", 0), asked.accelerator);
	json_decref(v);
	return EXIT_DONE;
}

int cmd_token_revoke(const struct ctl *ctl, int argc, char **argv)
{
	struct token_asked asked = {.kind = "api"};

	if (!token_options("token revoke", argc, argv, "i", &asked.accelerator, 1, 1, &asked))
		return EXIT_USAGE;
	return token_revoke(ctl, &asked);
}

static void add_row(struct table *t, const json_t *v, int64_t now)
{
	const char *used = json_get_str(v, "last_used");

	table_add(t, json_get_str(v, "accelerator"));
	table_add_int(t, json_get_int(v, "id", 0));
	table_add_age(t, json_get_str(v, "created"), now);
	if (used)
		table_add_age(t, used, now);
	else
		table_add(t, "never");
	table_add(t, json_get_str(v, "last_address"));
}

int cmd_token_list(const struct ctl *ctl, int argc, char **argv)
{
	static const char *const headings[] = {
	    "ACCELERATOR", "TOKEN", "CREATED", "USED", "FROM", NULL};
	struct token_asked asked = {.kind = "api"};
	int64_t now = clock_wall_ms();
	struct table *t;
	json_t *v, *token;
	size_t i;

	if (!token_options("token list", argc, argv, "", &asked.accelerator, 0, 1, &asked))
		return EXIT_USAGE;
	if (token_list(ctl, &asked, &v))
		return EXIT_FAILED;
	if (ctl->is_json)
		return server_print_json(v);
	t = table_new(headings);
	json_array_foreach(json_object_get(v, "tokens"), i, token) add_row(t, token, now);
	table_print(t, ctl, "no tokens: outpostctl token issue ACCELERATOR");
	json_decref(v);
	return EXIT_DONE;
}
