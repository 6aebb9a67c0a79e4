#include "daemon/reload.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "daemon/check.h"
#include "daemon/notify.h"
#include "daemon/wire.h"

enum { MESSAGES_MAX_BYTES = 1 << 20 };

struct reload {
	struct pool_work work;
	struct daemon *daemon;
	char *path;
	char *folder;          /* the registry's files; NULL: whatever is good, or none */
	bool is_of_commit;     /* the registry waits for what becomes of them */
	struct config *config; /* result */
	struct buf messages;
	int err;
	struct error not_kept; /* of a commit whose files are right */
};

static void read_files(struct pool_work *w)
{
	struct reload *r = CONTAINER_OF(w, struct reload, work);
	const struct registry_files files = {.folder = r->folder, .find = registry_folder};

	r->err = daemon_load_config(r->path, &files, &r->config, &r->messages);
	if (!r->err && r->is_of_commit)
		r->err = registry_keep_folder(r->folder, &r->not_kept);
}

/* One log line a mistake, so that file and line stand where an operator greps. */
static void log_mistakes(char *messages)
{
	char *line = messages, *end;

	for (; *line; line = end) {
		end = strchrnul(line, '\n');
		if (*end)
			*end++ = '\0';
		log_event(LOG_ERROR, "config_error", LOG_S("at", line));
	}
}

static void keep_old(struct daemon *d, const char *why)
{
	log_event(LOG_ERROR, "reload_refused", LOG_S("kept", "the configuration in force"));
	free(d->config_error);
	d->config_error = xstrdup(why);
	d->config_error_wall_ms = clock_wall_ms();
}

static void apply(struct daemon *d, struct reload *r)
{
	struct error why = {0};
	char *mistakes;

	if (r->err) {
		mistakes = xstrdup(buf_str(&r->messages));
		log_mistakes(mistakes);
		free(mistakes);
		keep_old(d, buf_str(&r->messages));
		return;
	}
	if (wire_configure(d, r->config, &why)) {
		log_event(LOG_ERROR, "config_error", LOG_S("at", why.text));
		keep_old(d, why.text);
		return;
	}
	r->config = NULL;
	FREE_AND_NULL(d->config_error);
	log_event(LOG_INFO, "reloaded", LOG_I("accelerators", (int64_t)d->config->n_accelerators));
	registry_retry(d->registry);
}

/* A commit that does not check is the registry's to tell of: no reload was refused. */
static void apply_commit(struct daemon *d, struct reload *r)
{
	struct error why = {0};

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
}

static void begin(struct daemon *d, const char *folder, bool is_of_commit);

static void begin_what_was_asked_for(struct daemon *d)
{
	char *folder = d->wanted_commit_folder;

	if (d->is_reload_wanted) {
		reload_start(d);
	} else if (folder) {
		d->wanted_commit_folder = NULL;
		begin(d, folder, true);
		free(folder);
	}
}

static void files_read(struct pool_work *w)
{
	struct reload *r = CONTAINER_OF(w, struct reload, work);
	struct daemon *d = r->daemon;

	d->is_reloading = false;
	if (!d->is_stopping && r->is_of_commit)
		apply_commit(d, r);
	else if (!d->is_stopping)
		apply(d, r);
	config_unref(r->config);
	buf_release(&r->messages);
	free(r->folder);
	free(r->path);
	free(r);
	notify_ready();
	if (!d->is_stopping && !d->is_reloading)
		begin_what_was_asked_for(d);
}

static void begin(struct daemon *d, const char *folder, bool is_of_commit)
{
	struct reload *r = xcalloc(1, sizeof(*r));

	d->is_reloading = true;
	notify_reloading();
	r->daemon = d;
	r->path = xstrdup(d->config_path);
	r->folder = xstrdup_or_null(folder);
	r->is_of_commit = is_of_commit;
	buf_init(&r->messages, MESSAGES_MAX_BYTES);
	r->work.work = read_files;
	r->work.after = files_read;
	pool_submit(d->loop, &r->work);
}

void reload_start(struct daemon *d)
{
	if (d->is_stopping)
		return;
	d->is_reload_wanted = d->is_reloading;
	if (!d->is_reloading)
		begin(d, d->config->accelerators_git_folder, false);
}

void reload_try_commit(struct daemon *d, const char *folder)
{
	if (d->is_stopping)
		return;
	if (!d->is_reloading) {
		begin(d, folder, true);
		return;
	}
	free(d->wanted_commit_folder);
	d->wanted_commit_folder = xstrdup(folder);
}
