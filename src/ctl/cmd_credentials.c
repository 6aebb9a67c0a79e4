/* outpostctl runner, token and identities: the credentials with which vendors report. A machine and
 * a vendor's own CI have the same kind of token; "kind" of the control API says which ("runner" or
 * "api"). A repository's workflow has no token here: its OIDC identity is recorded. */

#include "ctl/server.h"

enum { ID_TEXT_BYTES = 32, REFUSED_BYTES = 160 };

struct token_args {
	const char *kind;
	const char *accelerator, *name; /* or NULL */
	int64_t id;                     /* 0: not given */
};

/* Reads `runner COMMAND NAME --accelerator A [--id N]`, where the accelerator is required, or
 * `token COMMAND ACCELERATOR [--id N]`. Returns false after explaining the mistake. */
static bool read_token_args(const struct ctl *ctl, bool has_id, struct token_args *ret)
{
	bool is_runner = str_has_prefix(ctl->command, "runner ");
	struct argument_option options[3] = {{.name = NULL}}, *o = options;

	*ret = (struct token_args){.kind = is_runner ? "runner" : "api"};
	if (is_runner)
		*o++ = (struct argument_option){.name = "--accelerator", .text = &ret->accelerator};
	if (has_id)
		*o = (struct argument_option){.name = "--id", .number = &ret->id, .min = 1};
	if (!arguments_read(ctl, options, is_runner ? &ret->name : &ret->accelerator, 1, 1))
		return false;
	if (!ret->accelerator)
		(void)command_usage(ctl);
	return ret->accelerator;
}

static json_t *token_json(const struct token_args *args)
{
	json_t *v =
	    json_pack("{s:s, s:s, s:s?}", "kind", args->kind, "accelerator", args->accelerator, "name", args->name);

	if (args->id)
		json_set_int(v, "id", args->id);
	return v;
}

/* Prints a new token alone on stdout, with --json the whole answer. On EXIT_DONE *ret is the answer. */
static int add_token(const struct ctl *ctl, const struct token_args *args, json_t **ret)
{
	int exit_code = server_ask(ctl, "POST", "/control/tokens", token_json(args), ret);

	if (exit_code)
		return exit_code;
	if (ctl->is_json)
		(void)server_print_json(json_incref(*ret));
	else
		puts(json_get_str(*ret, "token"));
	/* The token cannot be shown again, so a failed write must not pass silently. */
	if (fflush(stdout) == 0 && !ferror(stdout))
		return EXIT_DONE;
	fprintf(stderr, "outpostctl: the token could not be written to standard output; revoke it: --id %lld\n",
	    (long long)json_get_int(*ret, "id", 0));
	json_decref(*ret);
	return EXIT_FAILED;
}

int cmd_token_revoke(const struct ctl *ctl)
{
	struct token_args args;
	json_t *v;

	if (!read_token_args(ctl, true, &args))
		return EXIT_USAGE;
	int exit_code = server_show(ctl, "POST", "/control/tokens/revoke", token_json(&args), &v);
	int64_t n = json_get_int(v, "revoked", 0);
	if (v)
		printf("%lld token%s of %s%s%s revoked\n", (long long)n, n == 1 ? "" : "s",
		    args.name ? args.name : args.accelerator, args.name ? " of " : "",
		    args.name ? args.accelerator : "");
	json_decref(v);
	return exit_code;
}

/* accelerator NULL: those of all accelerators. */
static int list_tokens(const struct ctl *ctl, const char *kind, const char *accelerator, const struct server_list *list)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
	struct buf path = BUF_INIT(64 << 10);

	buf_appendf(&path, "/control/tokens?kind=%s%s", kind, accelerator ? "&accelerator=" : "");
	for (const char *c = accelerator; c && *c; c++)
		buf_appendf(&path, strchr(plain, *c) ? "%c" : "%%%02x", (unsigned char)*c);
	int exit_code = server_print_list(ctl, buf_str(&path), list);
	buf_release(&path);
	return exit_code;
}

static void add_last_use(struct table *t, const json_t *v)
{
	table_add(t, AGE(v, "last_used", "never"));
	table_add(t, json_get_str(v, "last_address"));
}

int cmd_runner_add(const struct ctl *ctl)
{
	struct token_args args;
	json_t *v;

	if (!read_token_args(ctl, false, &args))
		return EXIT_USAGE;
	if (add_token(ctl, &args, &v))
		return EXIT_FAILED;
	fprintf(stderr,
	    "Token %lld of %s for %s. It is shown only once. Write it to the file that token_file\n"
	    "in the machine's runner.yml names, readable for its user only:\n\n"
	    "  (umask 077 && cat > runner.token)\n\n"
	    "Set `name: %s` and `accelerator: %s` there, and start it: outpost-runner -c runner.yml\n",
	    (long long)json_get_int(v, "id", 0), args.name, args.accelerator, args.name, args.accelerator);
	if (!json_get_bool(v, "has_pull_runner", true))
		fprintf(stderr,
		    "Note: %s has no `pull` runner yet, so there will be no work. Add to its file:\n"
		    "  runners:\n    - {name: farm, pull: {labels: []}}\n",
		    args.accelerator);
	json_decref(v);
	return EXIT_DONE;
}

static void add_machine(struct table *t, const json_t *v)
{
	struct buf work = BUF_INIT(8192);
	json_t *lease;
	size_t i;

	table_add(t, json_get_str(v, "name"));
	table_add(t, json_get_str(v, "accelerator"));
	table_add_int(t, json_get_int(v, "id", 0));
	table_add_age(t, v, "created");
	add_last_use(t, v);
	/* "#151234 1a2b3c4d since 3 min ago", for each lease */
	json_array_foreach(json_object_get(v, "leases"), i, lease)
	{
		const char *sha = json_get_str(lease, "head_sha");
		int64_t pr = json_get_int(lease, "pr", 0);

		buf_append_str(&work, i ? "; " : "");
		if (pr)
			buf_appendf(&work, "#%lld ", (long long)pr);
		buf_appendf(&work, "%.8s since %s", sha ? sha : "", AGE(lease, "since", ""));
	}
	if (!json_get_bool(v, "registered", true))
		table_add(t, "refused: the accelerator has left the registry");
	else
		table_add(t, work.len ? work.data : "idle");
	buf_release(&work);
}

int cmd_runner_list(const struct ctl *ctl)
{
	static const struct server_list list = {"tokens",
	    {"MACHINE", "ACCELERATOR", "TOKEN", "CREATED", "SEEN", "FROM", "WORK"}, add_machine,
	    "no machines: outpostctl runner add NAME --accelerator A"};
	const char *accelerator = NULL;
	const struct argument_option options[] = {{.name = "--accelerator", .text = &accelerator}, {.name = NULL}};

	if (!arguments_read(ctl, options, NULL, 0, 0))
		return EXIT_USAGE;
	return list_tokens(ctl, "runner", accelerator, &list);
}

int cmd_token_issue(const struct ctl *ctl)
{
	struct token_args args;
	json_t *v;

	if (!read_token_args(ctl, false, &args))
		return EXIT_USAGE;
	if (add_token(ctl, &args, &v))
		return EXIT_FAILED;
	fprintf(stderr,
	    "Token %lld of %s. It is shown only once. Store it as a secret of the vendor's CI, which\n"
	    "sends it as `Authorization: Bearer TOKEN` with the jobs that it reports.\n",
	    (long long)json_get_int(v, "id", 0), args.accelerator);
	json_decref(v);
	return EXIT_DONE;
}

static void add_api_token(struct table *t, const json_t *v)
{
	table_add(t, json_get_str(v, "accelerator"));
	table_add_int(t, json_get_int(v, "id", 0));
	table_add_age(t, v, "created");
	add_last_use(t, v);
}

int cmd_token_list(const struct ctl *ctl)
{
	static const struct server_list list = {"tokens", {"ACCELERATOR", "TOKEN", "CREATED", "USED", "FROM"},
	    add_api_token, "no tokens: outpostctl token issue ACCELERATOR"};

	return list_tokens(ctl, "api", ctl->words[0], &list);
}

static const char *id_text(const json_t *v, const char *key, char out[ID_TEXT_BYTES])
{
	const json_t *id = json_object_get(v, key);

	if (json_is_integer(id))
		snprintf(out, ID_TEXT_BYTES, "%lld", (long long)json_integer_value(id));
	else
		snprintf(out, ID_TEXT_BYTES, "none");
	return out;
}

static void add_identity(struct table *t, const json_t *row)
{
	const json_t *refused = json_object_get(row, "refused");
	char id[ID_TEXT_BYTES], owner[ID_TEXT_BYTES], note[REFUSED_BYTES] = "";

	table_add(t, json_get_str(row, "repository"));
	table_add(t, id_text(row, "repository_id", id));
	table_add(t, id_text(row, "repository_owner_id", id));
	table_add_age(t, row, "recorded_at");
	table_add(t, json_get_str(row, "issuer"));
	if (json_get_str(refused, "at"))
		snprintf(note, sizeof(note), "a token with id %s, owner %s was refused %s",
		    id_text(refused, "repository_id", id), id_text(refused, "repository_owner_id", owner),
		    AGE(refused, "at", ""));
	table_add(t, note);
}

int cmd_identities(const struct ctl *ctl)
{
	static const struct server_list list = {"identities",
	    {"REPOSITORY", "ID", "OWNER ID", "RECORDED", "ISSUER", "NOTE"}, add_identity,
	    "no repository has reported yet"};

	return server_print_list(ctl, "/control/identities", &list);
}

int cmd_identities_forget(const struct ctl *ctl)
{
	const char *repository = ctl->words[0];
	json_t *v;
	int exit_code =
	    server_show(ctl, "POST", "/control/identities/forget", json_pack("{s:s}", "repository", repository), &v);
	if (v)
		printf("%s: the ids of its next valid token will be recorded\n",
		    json_get_str(v, "repository") ? json_get_str(v, "repository") : "");
	json_decref(v);
	return exit_code;
}
