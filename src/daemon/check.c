#include "daemon/check.h"

#include "base/alloc.h"
#include "base/log.h"
#include "config/source.h"
#include "http/server.h"
#include "registry/registry.h"

enum { MESSAGES_MAX_BYTES = 1 << 20 };

int daemon_load_config(
    const char *path, const struct registry_files *files, struct config **ret, struct buf *messages)
{
	struct error why = {0};
	int rc = config_load_with(path, files, ret, messages);

	if (rc || !(*ret)->tls_certificate_pem)
		return rc;
	rc = http_tls_check((*ret)->tls_certificate_pem, (*ret)->tls_private_key, &why);
	if (rc) {
		buf_appendf(messages, "%s:1: tls: %s\n", (*ret)->tls_certificate_file, why.text);
		config_unref(*ret);
		*ret = NULL;
	}
	return rc;
}

/* The registry's files cannot be mended on this machine, so one way on is to leave them out. */
static void tell_way_out(const char *path, struct buf *messages)
{
	struct config *without = NULL;
	struct buf ignored = BUF_INIT(MESSAGES_MAX_BYTES);

	if (daemon_load_config(path, NULL, &without, &ignored) == 0)
		buf_appendf(messages,
		    "%s:1: the registry's last good commit does not check with this file any more: "
		    "mend this file, or remove %s/registry/good to start without accelerators and "
		    "fetch anew\n",
		    path, without->state_dir);
	config_unref(without);
	buf_release(&ignored);
}

int daemon_load_first_config(const char *path, struct config **ret, struct buf *messages)
{
	const struct registry_files files = {.find = registry_folder};
	int rc = daemon_load_config(path, &files, ret, messages);

	if (rc)
		tell_way_out(path, messages);
	return rc;
}

static void tell_ok(const char *path, const struct config *c)
{
	fprintf(stderr, "%s: ok, %zu accelerator%s", path, c->n_accelerators,
	    c->n_accelerators == 1 ? "" : "s");
	if (c->accelerators_git_commit)
		fprintf(stderr, ", with accelerators.git@%.7s", c->accelerators_git_commit);
	else if (c->accelerators_git_url)
		fprintf(stderr, ", without accelerators.git: nothing has been fetched yet");
	fprintf(stderr, "\n");
}

void daemon_log_warnings(const struct config *c)
{
	for (char **file = c->exposed_files; file && *file; file++)
		log_event(LOG_WARN, "exposed_file", LOG_S("file", *file),
		    LOG_S("why", EXPOSED_FILE_TEXT));
	for (size_t i = 0; i < problems_n_kept(&c->notes); i++) {
		char *at = xasprintf("%s:%d", c->notes.all[i].file, c->notes.all[i].line);

		log_event(
		    LOG_INFO, "config_note", LOG_S("at", at), LOG_S("why", c->notes.all[i].text));
		free(at);
	}
}

int daemon_check(const char *config_path)
{
	struct buf messages = BUF_INIT(MESSAGES_MAX_BYTES);
	struct config *config = NULL;
	int rc = daemon_load_first_config(config_path, &config, &messages);

	fputs(buf_str(&messages), stdout);
	if (!rc) {
		config_print_warnings(config, stderr);
		tell_ok(config_path, config);
	}
	config_unref(config);
	buf_release(&messages);
	return rc ? 1 : 0;
}
