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
	struct config *config; /* result */
	struct buf messages;
	int err;
};

static void read_files(struct pool_work *w)
{
	struct reload *r = CONTAINER_OF(w, struct reload, work);

	r->err = daemon_load_config(r->path, &r->config, &r->messages);
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
}

static void files_read(struct pool_work *w)
{
	struct reload *r = CONTAINER_OF(w, struct reload, work);
	struct daemon *d = r->daemon;
	bool is_again = d->is_reload_wanted;

	d->is_reloading = false;
	d->is_reload_wanted = false;
	if (!d->is_stopping)
		apply(d, r);
	config_unref(r->config);
	buf_release(&r->messages);
	free(r->path);
	free(r);
	notify_ready();
	if (is_again)
		reload_start(d);
}

void reload_start(struct daemon *d)
{
	struct reload *r;

	if (d->is_stopping)
		return;
	if (d->is_reloading) {
		d->is_reload_wanted = true;
		return;
	}
	d->is_reloading = true;
	notify_reloading();
	r = xcalloc(1, sizeof(*r));
	r->daemon = d;
	r->path = xstrdup(d->config_path);
	buf_init(&r->messages, MESSAGES_MAX_BYTES);
	r->work.work = read_files;
	r->work.after = files_read;
	pool_submit(d->loop, &r->work);
}
