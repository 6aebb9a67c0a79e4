/* outpostctl runner: the machines that may take work of an accelerator. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "ctl/server.h"
#include "ctl/table.h"
#include "ctl/tokens.h"

static void explain(const struct token_asked *asked, const json_t *v)
{
	fprintf(stderr,
	    "Token %lld of %s for %s. It is shown this once: put it into the file that token_file\n"
	    "in that machine's runner.yml names, for its user alone:\n\n"
	    "  (umask 077 && cat > runner.token)\n\n"
	    "With `name: %s` and `accelerator: %s` there, start it: outpost-runner -c runner.yml\n",
	    (long long)json_get_int(v, "id", 0), asked->name, asked->accelerator, asked->name,
	    asked->accelerator);
	if (!json_get_bool(v, "has_pull_runner", true))
		fprintf(stderr,
		    "Note: %s has no `pull` runner yet, so there will be no work. Add to its "
		    "file:\n"
		    "  runners:\n    - {name: farm, pull: {labels: []}}\n",
		    asked->accelerator);
}

int cmd_runner_add(const struct ctl *ctl, int argc, char **argv)
{
	struct token_asked asked = {.kind = "runner"};
	json_t *v;

	if (!token_options("runner add", argc, argv, "a", &asked.name, 1, 1, &asked))
		return EXIT_USAGE;
	if (!asked.accelerator)
		return command_usage("runner add");
	if (token_add(ctl, &asked, &v))
		return EXIT_FAILED;
	explain(&asked, v);
	json_decref(v);
	return EXIT_DONE;
}

int cmd_runner_revoke(const struct ctl *ctl, int argc, char **argv)
{
	struct token_asked asked = {.kind = "runner"};

	if (!token_options("runner revoke", argc, argv, "ai", &asked.name, 1, 1, &asked))
		return EXIT_USAGE;
	if (!asked.accelerator)
		return command_usage("runner revoke");
	return token_revoke(ctl, &asked);
}

/* "#151234 1a2b3c4d, 3 min ago", for each lease. */
static void add_leases(struct table *t, const json_t *leases, int64_t now)
{
	struct buf line = BUF_INIT(8192);
	json_t *lease;
	size_t i;

	json_array_foreach((json_t *)leases, i, lease)
	{
		const char *sha = json_get_str(lease, "head_sha"),
			   *since = json_get_str(lease, "since");
		int64_t pr = json_get_int(lease, "pr", 0), since_ms;
		char age[32] = "";

		if (since && !rfc3339_parse(since, &since_ms))
			age_text(since_ms, now, age, sizeof(age));
		buf_append_str(&line, i ? "; " : "");
		if (pr)
			buf_appendf(&line, "#%lld ", (long long)pr);
		buf_appendf(&line, "%.8s since %s", sha ? sha : "", age);
	}
	table_add(t, line.len ? line.data : "idle");
	buf_release(&line);
}

static void add_row(struct table *t, const json_t *v, int64_t now)
{
	const char *address = json_get_str(v, "last_address"), *used = json_get_str(v, "last_used");

	table_add(t, json_get_str(v, "name"));
	table_add(t, json_get_str(v, "accelerator"));
	table_add_int(t, json_get_int(v, "id", 0));
	table_add_age(t, json_get_str(v, "created"), now);
	if (used)
		table_add_age(t, used, now);
	else
		table_add(t, "never");
	table_add(t, address);
	if (!json_get_bool(v, "registered", true))
		table_add(t, "refused: the accelerator has left the registry");
	else
		add_leases(t, json_object_get(v, "leases"), now);
}

int cmd_runner_list(const struct ctl *ctl, int argc, char **argv)
{
	static const char *const headings[] = {
	    "MACHINE", "ACCELERATOR", "TOKEN", "CREATED", "SEEN", "FROM", "WORK", NULL};
	struct token_asked asked = {.kind = "runner"};
	int64_t now = clock_wall_ms();
	struct table *t;
	json_t *v, *token;
	size_t i;

	if (!token_options("runner list", argc, argv, "a", NULL, 0, 0, &asked))
		return EXIT_USAGE;
	if (token_list(ctl, &asked, &v))
		return EXIT_FAILED;
	if (ctl->is_json)
		return server_print_json(v);
	t = table_new(headings);
	json_array_foreach(json_object_get(v, "tokens"), i, token) add_row(t, token, now);
	table_print(t, ctl, "no machines: outpostctl runner add NAME --accelerator A");
	json_decref(v);
	return EXIT_DONE;
}
