/* Connects the parts: the only place that knows them all. The order of building is that of
 * the layers; the order of closing is its reverse, one step after the other. */
#include "daemon/wire.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/version.h"
#include "daemon/check.h"
#include "daemon/control.h"
#include "daemon/known_expiry.h"
#include "daemon/log_retention.h"
#include "daemon/metrics.h"
#include "daemon/registry_status.h"
#include "daemon/reload.h"
#include "webhook/payload.h"

enum { CLOSE_GRACE_MS = 5000, MIRROR_AGAIN_MS = 5000 };

static bool is_trusted_proxy(const uint8_t address[16], void *owner)
{
	const struct daemon *d = owner;

	return network_contains(d->config->trusted_proxies, d->config->n_trusted_proxies, address);
}

static struct github_options github_options_of(const struct config *c)
{
	return (struct github_options){
	    .api_url = c->github_api_url,
	    .app_id = c->github_app_id,
	    .private_key_pem = c->github_private_key,
	    .writes_per_minute = c->github_writes_per_minute,
	    .max_concurrent = c->github_max_concurrent,
	};
}

/* ---- the registry's mirror in the store follows the configuration ---- */

static void start_mirror(struct daemon *d);

static void mirror_done(struct store_op *op)
{
	struct daemon *d = CONTAINER_OF(op, struct daemon, mirror.op);
	bool is_outdated = d->mirrored != d->config;

	d->is_mirroring = false;
	config_unref(d->mirrored);
	d->mirrored = NULL;
	if (op->err) {
		log_event(LOG_ERROR, "registry_not_mirrored", LOG_S("why", op->why.text));
		timer_start(d->mirror_again, MIRROR_AGAIN_MS);
	} else if (is_outdated) {
		start_mirror(d);
	}
}

static void on_mirror_again(struct timer *t)
{
	start_mirror(timer_owner(t));
}

static void start_mirror(struct daemon *d)
{
	if (d->is_mirroring)
		return; /* mirror_done() sees that there is a newer one */
	d->mirror = (struct mirror_registry){
	    .op.done = mirror_done,
	    .list = d->config->accelerators,
	    .n = d->config->n_accelerators,
	    .required_suites = (const char *const *)d->config->required_suites,
	    .required_must_pass = (const char *const *)d->config->required_must_pass,
	    .attribution_window_ms = d->config->attribution_window_ms,
	    .attribution_distance = d->config->attribution_distance,
	    .upstream_repository = d->config->upstream_repository,
	    .upstream_branch = d->config->upstream_branches[0],
	    .now_ms = clock_wall_ms(),
	};
	if (store_mirror_registry(d->store, &d->mirror)) {
		timer_start(d->mirror_again, MIRROR_AGAIN_MS);
		return;
	}
	d->mirrored = config_ref(d->config);
	d->is_mirroring = true;
}

/* ---- building ---- */

static int open_store(struct daemon *d, struct error *e)
{
	const struct store_options options = {.state_dir = d->config->state_dir};
	int rc = store_open(d->loop, &options, &d->store, e);

	if (!rc)
		rc = callback_key_load(d->config->state_dir, &d->callback_key, e);
	if (!rc)
		rc = logs_open(d->loop, d->config->state_dir, &d->logs, e);
	return rc;
}

static int open_clients(struct daemon *d, struct error *e)
{
	struct github_options options = github_options_of(d->config);

	d->client = http_client_new(d->loop, "outpost/" OUTPOST_VERSION);
	return github_new(d->loop, d->client, &options, &d->github, e);
}

static int open_server(struct daemon *d, struct error *e)
{
	const struct config *c = d->config;

	d->server = http_server_new(d->loop, NULL);
	http_server_trust_proxies(d->server, is_trusted_proxy, d);
	if (c->tls_certificate_pem)
		return http_server_use_tls(
		    d->server, c->tls_certificate_pem, c->tls_private_key, e);
	return 0;
}

/* ---- the registry from git ---- */

static void try_commit(struct registry *r, const char *commit, const char *folder, void *owner)
{
	(void)r;
	(void)commit;
	reload_try_commit(owner, folder);
}

static void on_registry_push(void *owner)
{
	struct daemon *d = owner;

	registry_fetch(d->registry);
}

static void open_registry(struct daemon *d)
{
	const struct registry_deps deps = {.loop = d->loop, .try_commit = try_commit, .owner = d};

	d->registry = registry_new(&deps);
	intake_on_registry_push(d->intake, on_registry_push, d);
	registry_configure(d->registry, d->config);
}

static const char *why_not_ready(void *owner)
{
	const struct daemon *d = owner;

	return runners_are_tokens_read(d->runners) ? NULL : "vendors' tokens are not read yet";
}

static void open_parts(struct daemon *d)
{
	struct dispatch_deps dispatch = {
	    .loop = d->loop,
	    .store = d->store,
	    .github = d->github,
	    .http_client = d->client,
	    .parse_event = event_parse,
	    .heads = {.ask = remote_head_ask, .cancel = remote_head_cancel},
	    .callback_key = d->callback_key,
	};
	const struct evidence_deps evidence = {
	    .loop = d->loop,
	    .store = d->store,
	    .github = d->github,
	};
	const struct publish_deps publish = {
	    .loop = d->loop,
	    .store = d->store,
	    .github = d->github,
	};
	const struct web_deps web = {
	    .loop = d->loop,
	    .store = d->store,
	    .logs = d->logs,
	    .server = d->server,
	    .write_metrics = metrics_write,
	    .add_status = registry_status_add_public,
	    .why_not_ready = why_not_ready,
	    .owner = d,
	};

	d->intake = intake_new(d->loop, d->store, d->server);
	d->runners = runners_new(d->loop, d->store, d->client, d->server, d->callback_key);
	runners_take_documents(d->runners, d->server, d->logs);
	d->web = web_new(&web);
	d->log_retention = log_retention_new(d);
	d->known_expiry = known_expiry_new(d);
	d->heads = remote_heads_new(d->loop, d->config);
	dispatch.heads.owner = d->heads;
	d->dispatch = dispatch_new(&dispatch, d->config);
	d->evidence = evidence_new(&evidence, d->config);
	d->comparing = comparing_new(&evidence);
	d->publish = publish_new(&publish, d->config);
	intake_configure(d->intake, d->config);
	runners_configure(d->runners, d->config);
	web_configure(d->web, d->config);
	d->mirror_again = timer_new(d->loop, on_mirror_again, d);
	start_mirror(d);
	open_registry(d);
}

int wire_up(struct daemon *d, struct error *e)
{
	int rc = open_store(d, e);

	if (!rc)
		rc = open_clients(d, e);
	if (!rc)
		rc = open_server(d, e);
	if (rc)
		return rc;
	open_parts(d);
	rc = control_new(d, &d->control, e);
	if (!rc)
		rc = http_server_listen(d->server, d->config->listen, &d->address, e);
	return rc;
}

/* ---- a new snapshot ---- */

static int reconfigure_parts_that_may_refuse(struct daemon *d, struct config *c, struct error *e)
{
	struct github_options options = github_options_of(c), old = github_options_of(d->config);
	struct error ignored = {0};
	int rc = github_reconfigure(d->github, &options, e);

	if (!rc && c->tls_certificate_pem && d->running.has_tls)
		rc = http_server_use_tls(d->server, c->tls_certificate_pem, c->tls_private_key, e);
	if (rc && github_reconfigure(d->github, &old, &ignored))
		log_event(LOG_ERROR, "rollback_failed", LOG_S("why", ignored.text));
	return rc;
}

int wire_configure(struct daemon *d, struct config *config, struct error *e)
{
	const char *key;
	int rc = reconfigure_parts_that_may_refuse(d, config, e);

	if (rc)
		return rc;
	for (int i = 0; (key = config_needs_restart(&d->running, config, i)) != NULL; i++)
		log_event(LOG_WARN, "restart_needed", LOG_S("key", key));
	config_unref(d->config);
	d->config = config;
	d->config_loaded_wall_ms = clock_wall_ms();
	log_setup(config->log_level, config->log_format);
	daemon_log_warnings(config);
	intake_configure(d->intake, config);
	runners_configure(d->runners, config);
	dispatch_configure(d->dispatch, config);
	evidence_configure(d->evidence, config);
	publish_configure(d->publish, config);
	web_configure(d->web, config);
	registry_configure(d->registry, config);
	remote_heads_configure(d->heads, config);
	start_mirror(d);
	return 0;
}

/* ---- closing ---- */

static void next_step(struct daemon *d);

static void part_closed(void *owner)
{
	struct daemon *d = owner;

	if (--d->n_closing == 0)
		next_step(d);
}

static void close_users(struct daemon *d)
{
	if (d->runners)
		runners_stop(d->runners); /* the server need not wait for those who are held */
	if (d->web)
		web_stop(d->web);
	log_retention_stop(d->log_retention);
	known_expiry_stop(d->known_expiry);
	if (d->server) {
		d->n_closing++;
		http_server_close(d->server, CLOSE_GRACE_MS, part_closed, d);
	}
	if (d->control) {
		d->n_closing++;
		control_close(d->control, part_closed, d);
	}
	if (d->dispatch) {
		d->n_closing++;
		dispatch_close(d->dispatch, part_closed, d);
	}
	if (d->evidence) {
		d->n_closing++;
		evidence_close(d->evidence, part_closed, d);
	}
	if (d->comparing) {
		d->n_closing++;
		comparing_close(d->comparing, part_closed, d);
	}
	if (d->publish) {
		d->n_closing++;
		publish_close(d->publish, part_closed, d);
	}
}

static void finish(struct daemon *d)
{
	/* The store told them of changes until it was closed. */
	dispatch_free(d->dispatch);
	evidence_free(d->evidence);
	comparing_free(d->comparing);
	publish_free(d->publish);
	runners_free(d->runners);
	intake_free(d->intake);
	web_free(d->web);
	log_retention_free(d->log_retention);
	known_expiry_free(d->known_expiry);
	timer_close(d->stop_deadline);
	timer_close(d->watchdog);
	timer_close(d->mirror_again);
	loop_close_signals(d->loop);
	loop_stop(d->loop);
}

static void next_step(struct daemon *d)
{
	d->n_closing = 1; /* held until this step has started everything */
	switch (d->closing_step++) {
	case 0:
		close_users(d);
		break;
	case 1:
		if (d->runners) {
			d->n_closing++;
			runners_close(d->runners, part_closed, d);
		}
		/* Not before the server: an answer in hand may yet ask what it is at. */
		if (d->registry) {
			d->n_closing++;
			registry_close(d->registry, part_closed, d);
		}
		if (d->heads) {
			d->n_closing++;
			remote_heads_close(d->heads, part_closed, d);
		}
		break;
	case 2:
		if (d->github) {
			d->n_closing++;
			github_close(d->github, part_closed, d);
		}
		if (d->logs) {
			d->n_closing++;
			logs_close(d->logs, part_closed, d);
		}
		break;
	case 3:
		if (d->client) {
			d->n_closing++;
			http_client_close(d->client, part_closed, d);
		}
		break;
	case 4:
		if (d->store) {
			d->n_closing++;
			store_close(d->store, part_closed, d);
		}
		break;
	default:
		finish(d);
		return;
	}
	part_closed(d);
}

void wire_down(struct daemon *d)
{
	next_step(d);
}
