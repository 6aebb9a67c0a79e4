#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"
#include "config/config.h"
#include "config/source.h"
#include "ctl/command.h"
#include "ctl/server.h"
#include "http/server.h"

enum { MESSAGES_MAX_BYTES = 1 << 20 };

/* "file:line: text", as every mistake is told; NULL: it is none. */
static json_t *problem_of(const char *line, size_t n)
{
	char *copy = xstrndup(line, n), *at = copy, *end;
	json_t *o = NULL;

	while (!o && (at = strchr(at, ':')) != NULL) {
		long number = strtol(++at, &end, 10);

		if (end == at || !str_has_prefix(end, ": "))
			continue;
		at[-1] = '\0';
		o = json_object();
		json_set_str(o, "file", copy);
		json_set_int(o, "line", number);
		json_set_str(o, "text", end + 2);
	}
	free(copy);
	return o;
}

static void print_json(const struct config *config, const char *messages)
{
	json_t *o = json_object(), *problems = json_array(), *warnings = json_array(), *one;

	json_object_set_new(o, "ok", json_boolean(config != NULL));
	if (config)
		json_set_int(o, "accelerators", (int64_t)config->n_accelerators);
	for (const char *end; *messages; messages = *end ? end + 1 : end) {
		end = strchrnul(messages, '\n');
		one = problem_of(messages, (size_t)(end - messages));
		if (one)
			json_array_append_new(problems, one);
	}
	for (char **file = config ? config->exposed_files : NULL; file && *file; file++) {
		one = json_object();
		json_set_str(one, "file", *file);
		json_set_str(one, "text", EXPOSED_FILE_TEXT);
		json_array_append_new(warnings, one);
	}
	for (size_t i = 0; config && i < problems_n_kept(&config->notes); i++) {
		const struct problem *note = &config->notes.all[i];

		one = json_object();
		json_set_str(one, "file", note->file);
		json_set_int(one, "line", note->line);
		json_set_str(one, "text", note->text);
		json_array_append_new(warnings, one);
	}
	json_object_set_new(o, "problems", problems);
	json_object_set_new(o, "warnings", warnings);
	(void)server_print_json(o);
}

static void print_text(const struct ctl *ctl, const struct config *config, const char *messages)
{
	fputs(messages, stdout);
	if (config) {
		config_print_warnings(config, stderr);
		fprintf(stderr, "%s: ok, %zu accelerator%s%s\n", ctl->config_path,
		    config->n_accelerators, config->n_accelerators == 1 ? "" : "s",
		    config->accelerators_git_url ? ", without those of accelerators.git: outpostd "
						   "--check reads what it fetched last"
						 : "");
	}
}

int cmd_check(const struct ctl *ctl, int argc, char **argv)
{
	struct buf messages = BUF_INIT(MESSAGES_MAX_BYTES);
	struct config *config = NULL;
	struct error why = {0};
	int rc;

	if (argc > 0)
		return command_wrong("check", "what is '%s'?", argv[0]);
	rc = config_load(ctl->config_path, &config, &messages);
	if (!rc && config->tls_certificate_pem) {
		rc = http_tls_check(config->tls_certificate_pem, config->tls_private_key, &why);
		if (rc)
			buf_appendf(
			    &messages, "%s:1: tls: %s\n", config->tls_certificate_file, why.text);
	}
	if (ctl->is_json)
		print_json(rc ? NULL : config, buf_str(&messages));
	else
		print_text(ctl, rc ? NULL : config, buf_str(&messages));
	config_unref(config);
	buf_release(&messages);
	return rc ? EXIT_FAILED : EXIT_DONE;
}
