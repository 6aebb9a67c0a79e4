#include "daemon/reload.h"

#include "config/source.h"
#include "daemon/notify.h"
#include "daemon/wire.h"
#include "db/db.h"
#include "http/server.h"
#include "registry/registry.h"

enum { MESSAGES_MAX_BYTES = 1 << 20 };

/* ---- loading ---- */

/* config_load_with(), and the checks that need a higher layer: libpq understands the database's URL, and the certificate and the private key
 * belong together. */
static int load_config_with(
    const char *path, const struct registry_files *files, struct config **ret, struct buf *messages)
{
	struct error why = {0};
	int rc = config_load_with(path, files, ret, messages);

	if (rc)
		return rc;
	rc = db_check_url((*ret)->store, &why);
	if (rc) {
		buf_appendf(messages, "%s:%d: store: %s\n", (*ret)->path, (*ret)->store_line, why.text);
	} else if ((*ret)->tls_certificate_pem) {
		rc = http_tls_check((*ret)->tls_certificate_pem, (*ret)->tls_private_key, &why);
		if (rc)
			buf_appendf(messages, "%s:1: tls: %s\n", (*ret)->tls_certificate_file, why.text);
	}
	if (rc) {
		config_unref(*ret);
		*ret = NULL;
	}
	return rc;
}

/* A server that does not answer is no reason to refuse a configuration, because finished logs can wait in state_dir. */
static int check_logs_place(struct config **c, struct buf *messages)
{
	const struct log_place_options place = log_place_of(*c);
	struct error why = {0};
	int rc = logs_check_place(&place, &why);

	if (rc == ERR_NETWORK) {
		log_event(LOG_WARN, "logs_place_unreachable", LOG_S("why", why.text));
		return 0;
	}
	if (rc) {
		buf_appendf(messages, "%s:%d: logs: %s\n", (*c)->path, (*c)->logs_line, why.text);
		config_unref(*c);
		*c = NULL;
	}
	return rc;
}

int daemon_load_first_config(const char *path, struct config **ret, struct buf *messages)
{
	const struct registry_files files = {.find = registry_folder};
	int rc = load_config_with(path, &files, ret, messages);

	if (!rc)
		return check_logs_place(ret, messages);

	/* Adds a way to start without the registry's files, which cannot be corrected on this machine. */
	struct config *without = NULL;
	struct buf ignored = BUF_INIT(MESSAGES_MAX_BYTES);
	if (load_config_with(path, NULL, &without, &ignored) == 0)
		buf_appendf(messages,
		    "%s:1: the registry's last valid commit is no longer valid with this file: correct this file, or "
		    "remove %s/registry/good to start without accelerators and fetch again\n",
		    path, without->state_dir);
	config_unref(without);
	buf_release(&ignored);
	return rc;
}

void daemon_log_warnings(const struct config *c)
{
	for (char **file = c->exposed_files; file && *file; file++)
		log_event(LOG_WARN, "exposed_file", LOG_S("file", *file), LOG_S("why", EXPOSED_FILE_TEXT));
	for (size_t i = 0; i < problems_n_kept(&c->notes); i++) {
		char *at = xasprintf("%s:%d", c->notes.all[i].file, c->notes.all[i].line);

		log_event(LOG_INFO, "config_note", LOG_S("at", at), LOG_S("why", c->notes.all[i].text));
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
		fprintf(stderr, "%s: ok, %zu accelerator%s", config_path, config->n_accelerators,
		    config->n_accelerators == 1 ? "" : "s");
		if (config->accelerators_git_commit)
			fprintf(stderr, ", with accelerators.git@%.7s", config->accelerators_git_commit);
		else if (config->accelerators_git_url)
			fprintf(stderr, ", without accelerators.git: nothing has been fetched yet");
		fprintf(stderr, "\n");
	}
	config_unref(config);
	buf_release(&messages);
	return rc ? 1 : 0;
}

/* ---- reloading ---- */

struct reload {
	struct pool_work work;
	struct daemon *daemon;
	char *path;
	char *folder;          /* the registry's files; NULL: those of the last good commit, if any */
	bool is_of_commit;     /* the registry waits for the outcome */
	struct config *config; /* result */
	struct buf messages;
	int err;
	struct error not_kept; /* the files are valid, but could not be kept */
};

static void read_config_files(struct pool_work *w)
{
	struct reload *r = CONTAINER_OF(w, struct reload, work);
	const struct registry_files files = {.folder = r->folder, .find = registry_folder};

	r->err = load_config_with(r->path, &files, &r->config, &r->messages);
	if (!r->err && !r->is_of_commit)
		r->err = check_logs_place(&r->config, &r->messages);
	if (!r->err && r->is_of_commit)
		r->err = registry_keep_folder(r->folder, &r->not_kept);
}

static void apply_config(struct daemon *d, struct reload *r)
{
	struct error why = {0};
	const char *refused = NULL;
	char *messages, *line;

	if (r->err) {
		/* one log line per mistake, so that a search finds file and line */
		messages = xstrdup(buf_str(&r->messages));
		for (char *rest = messages; (line = strsep(&rest, "\n")) != NULL;)
			if (*line)
				log_event(LOG_ERROR, "config_error", LOG_S("at", line));
		free(messages);
		refused = buf_str(&r->messages);
	} else if (wire_configure(d, r->config, &why)) {
		log_event(LOG_ERROR, "config_error", LOG_S("at", why.text));
		refused = why.text;
	}
	FREE_AND_NULL(d->config_error);
	if (refused) {
		log_event(LOG_ERROR, "reload_refused", LOG_S("kept", "the configuration in force"));
		d->config_error = xstrdup(refused);
		d->config_error_wall_ms = clock_wall_ms();
		return;
	}
	r->config = NULL;
	log_event(LOG_INFO, "reloaded", LOG_I("accelerators", (int64_t)d->config->n_accelerators));
	registry_retry(d->registry);
}

static void start_reading(struct daemon *d, const char *folder, bool is_of_commit);

static void on_files_read(struct pool_work *w)
{
	struct reload *r = CONTAINER_OF(w, struct reload, work);
	struct daemon *d = r->daemon;

	d->is_reloading = false;
	if (!d->is_stopping && r->is_of_commit) {
		struct error why = {0};

		/* The registry reports an invalid commit; it is not a refused reload. */
		if (r->not_kept.code) {
			registry_answer(d->registry, REGISTRY_NOT_KEPT, r->not_kept.text);
		} else if (r->err) {
			registry_answer(d->registry, REGISTRY_REFUSED, buf_str(&r->messages));
		} else if (wire_configure(d, r->config, &why)) {
			registry_answer(d->registry, REGISTRY_REFUSED, why.text);
		} else {
			r->config = NULL;
			registry_answer(d->registry, REGISTRY_IN_FORCE, NULL);
		}
	} else if (!d->is_stopping) {
		apply_config(d, r);
	}
	config_unref(r->config);
	buf_release(&r->messages);
	FREE_ALL(r->folder, r->path, r);
	notify_send("READY=1");
	if (!d->is_stopping && !d->is_reloading) {
		char *folder = d->next_commit_folder;

		if (d->is_reload_pending) {
			reload_start(d);
		} else if (folder) {
			d->next_commit_folder = NULL;
			start_reading(d, folder, true);
			free(folder);
		}
	}
}

static void start_reading(struct daemon *d, const char *folder, bool is_of_commit)
{
	struct reload *r = xcalloc(1, sizeof(*r));

	d->is_reloading = true;
	notify_reloading();
	r->daemon = d;
	r->path = xstrdup(d->config_path);
	r->folder = xstrdup_or_null(folder);
	r->is_of_commit = is_of_commit;
	buf_init(&r->messages, MESSAGES_MAX_BYTES);
	r->work.work = read_config_files;
	r->work.after = on_files_read;
	pool_submit(d->loop, &r->work);
}

void reload_start(struct daemon *d)
{
	if (d->is_stopping)
		return;
	d->is_reload_pending = d->is_reloading;
	if (!d->is_reloading)
		start_reading(d, d->config->accelerators_git_folder, false);
}

void reload_try_commit(struct daemon *d, const char *folder)
{
	if (d->is_stopping)
		return;
	if (!d->is_reloading) {
		start_reading(d, folder, true);
		return;
	}
	free(d->next_commit_folder);
	d->next_commit_folder = xstrdup(folder);
}
