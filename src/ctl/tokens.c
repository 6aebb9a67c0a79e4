#include "ctl/tokens.h"

#include "base/alloc.h"
#include "ctl/arguments.h"
#include "ctl/server.h"

bool token_options(const char *command, int argc, char **argv, const char *takes,
    const char **words, int n_min, int n_max, struct token_asked *ret)
{
	struct argument_option options[3] = {{.name = NULL}};
	int n = 0;

	if (strchr(takes, 'a'))
		options[n++] =
		    (struct argument_option){.name = "--accelerator", .text = &ret->accelerator};
	if (strchr(takes, 'i'))
		options[n++] =
		    (struct argument_option){.name = "--id", .number = &ret->id, .min = 1};
	return arguments_read(command, argc, argv, options, words, n_min, n_max);
}

static json_t *body_of(const struct token_asked *asked)
{
	json_t *v = json_object();

	json_set_str(v, "kind", asked->kind);
	json_set_str(v, "accelerator", asked->accelerator);
	json_set_str(v, "name", asked->name);
	if (asked->id)
		json_set_int(v, "id", asked->id);
	return v;
}

int token_add(const struct ctl *ctl, const struct token_asked *asked, json_t **ret)
{
	json_t *body = body_of(asked);
	int exit_code = server_ask(ctl, "POST", "/control/tokens", body, ret);

	json_decref(body);
	if (exit_code)
		return exit_code;
	if (ctl->is_json)
		(void)server_print_json(json_incref(*ret));
	else
		puts(json_get_str(*ret, "token"));
	/* It cannot be shown again: say so rather than lose it silently. */
	if (fflush(stdout) == 0 && !ferror(stdout))
		return EXIT_DONE;
	fprintf(stderr,
	    "outpostctl: the token could not be written to standard output; revoke it: --id %lld\n",
	    (long long)json_get_int(*ret, "id", 0));
	json_decref(*ret);
	return EXIT_FAILED;
}

int token_revoke(const struct ctl *ctl, const struct token_asked *asked)
{
	json_t *body = body_of(asked), *v;
	int exit_code = server_ask(ctl, "POST", "/control/tokens/revoke", body, &v);
	int64_t n;

	json_decref(body);
	if (exit_code)
		return exit_code;
	if (ctl->is_json)
		return server_print_json(v);
	n = json_get_int(v, "revoked", 0);
	printf("%lld token%s of %s%s%s revoked\n", (long long)n, n == 1 ? "" : "s",
	    asked->name ? asked->name : asked->accelerator, asked->name ? " of " : "",
	    asked->name ? asked->accelerator : "");
	json_decref(v);
	return EXIT_DONE;
}

/* A name in a query: what is no plain character is escaped. */
static char *query_escaped(const char *s)
{
	struct buf out = BUF_INIT(4096);

	for (; *s; s++)
		if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._", *s))
			buf_append_char(&out, *s);
		else
			buf_appendf(&out, "%%%02x", (unsigned char)*s);
	return buf_take(&out);
}

int token_list(const struct ctl *ctl, const struct token_asked *asked, json_t **ret)
{
	char *accelerator = query_escaped(asked->accelerator ? asked->accelerator : "");
	char *path = xasprintf("/control/tokens?kind=%s%s%s", asked->kind,
	    asked->accelerator ? "&accelerator=" : "", asked->accelerator ? accelerator : "");
	int exit_code = server_ask(ctl, "GET", path, NULL, ret);

	free(accelerator);
	free(path);
	return exit_code;
}
