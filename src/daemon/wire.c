/* Connects the parts; no other file knows them all. Parts are built in the order of the layers and
 * closed in the reverse order, step by step. */
#include "daemon/wire.h"

#include "config/source.h"
#include "daemon/control.h"
#include "daemon/reload.h"
#include "daemon/space.h"
#include "db/nodes.h"
#include "db/notes.h"
#include "db/seats.h"
#include "db/settings.h"
#include "store/maintenance.h"
#include "webhook/payload.h"

enum { CLOSE_GRACE_MS = 5000 };

static bool is_trusted_proxy(const uint8_t address[16], void *owner)
{
	const struct daemon *d = owner;

	return network_contains(d->config->trusted_proxies, d->config->n_trusted_proxies, address);
}

/* n_nodes: that share the limits. */
static struct github_options github_options_of(const struct config *c, int n_nodes)
{
	return (struct github_options){
	    .api_url = c->github_api_url,
	    .app_id = c->github_app_id,
	    .private_key_pem = c->github_private_key,
	    .writes_per_minute = c->github_writes_per_minute,
	    .max_concurrent = c->github_max_concurrent / n_nodes,
	};
}

struct log_place_options log_place_of(const struct config *c)
{
	return (struct log_place_options){
	    .is_database = c->has_logs_in_database,
	    .folder = c->logs_folder,
	    .s3 = c->logs_s3,
	    .s3_endpoint = c->s3_endpoint,
	    .s3_region = c->s3_region,
	    .access_key = c->s3_access_key,
	    .secret_key = c->s3_secret_key,
	    .session_token = c->s3_session_token,
	};
}

/* ---- the store's copy of the registry follows the configuration ---- */

static void mirror_registry(struct daemon *d);

static void on_mirrored(struct store_op *op)
{
	struct daemon *d = CONTAINER_OF(op, struct daemon, mirror.op);
	bool is_outdated = d->mirrored != d->config;

	config_unref(d->mirrored);
	d->mirrored = NULL;
	if (op->err)
		log_event(LOG_ERROR, "registry_not_mirrored", LOG_S("why", op->why.text));
	if (is_outdated)
		mirror_registry(d);
}

/* One copy at a time; on_mirrored() starts another when the configuration has changed meanwhile. */
static void mirror_registry(struct daemon *d)
{
	if (d->mirrored || !store_has_seat(d->store, SEAT_REGISTRY))
		return;
	d->mirror = (struct mirror_registry){
	    .op = {.done = on_mirrored, .retry = {.event = "registry_not_mirrored", .now_ms = &d->mirror.now_ms}},
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
	if (!store_mirror_registry(d->store, &d->mirror))
		d->mirrored = config_ref(d->config);
}

/* ---- building ---- */

/* Reads the key that signs callback tokens from state_dir, or makes one (mode 0600). */
static int load_callback_key(const char *state_dir, struct secret **ret, struct error *e)
{
	char *path = path_join(state_dir, CALLBACK_KEY);
	unsigned char key[CALLBACK_KEY_BYTES];
	struct error why = {0};
	int rc = secret_read("", path, SECRET_BYTES, CALLBACK_KEY_BYTES, ret, &why);

	if (rc == ERR_NOT_FOUND) {
		random_bytes(key, sizeof(key));
		rc = file_write_atomic(path, key, sizeof(key), 0600, e);
		if (!rc)
			rc = secret_new(key, sizeof(key), ret, e);
		explicit_bzero(key, sizeof(key));
	} else if (rc == ERR_TOO_BIG || (!rc && secret_bytes(*ret) != CALLBACK_KEY_BYTES)) {
		secret_unref(*ret);
		*ret = NULL;
		rc = error_set(e, ERR_CORRUPT,
		    "%s: not a key of %d bytes, so vendors' tokens cannot be checked: restore it, or remove it to make "
		    "a new one",
		    path, CALLBACK_KEY_BYTES);
	} else if (rc) {
		error_set(e, rc, "%s", why.text);
	} else if (secret_is_exposed(*ret)) {
		log_event(LOG_WARN, "exposed_file", LOG_S("file", path), LOG_S("why", EXPOSED_FILE_TEXT));
	}
	free(path);
	return rc;
}

struct shared_key {
	struct share_setting op;
	bool is_done;
};

static void on_key_shared(struct store_op *op) { CONTAINER_OF(op, struct shared_key, op.op)->is_done = true; }

/* Each daemon has to check the tokens that another one signed. So with PostgreSQL the key of the first daemon is in the database, and counts
 * for all of them. Blocks, before the loop runs. */
static int share_callback_key(struct daemon *d, struct error *e)
{
	struct shared_key key = {.op = {.op.done = on_key_shared, .key = CALLBACK_KEY}};
	char hex[2 * CALLBACK_KEY_BYTES + 1];
	uint8_t bytes[CALLBACK_KEY_BYTES];
	int rc;

	if (!store_is_shared(d->store))
		return 0;
	hex_encode(secret_text(d->callback_key), CALLBACK_KEY_BYTES, hex);
	key.op.value = xstrdup(hex);
	rc = store_share_setting(d->store, &key.op);
	if (!rc)
		loop_run_until(d->loop, &key.is_done);
	rc = rc ? rc : key.op.op.err;
	if (rc) {
		error_set(e, rc, "%s", *key.op.op.why.text ? key.op.op.why.text : err_text(rc));
	} else if (strcmp(key.op.value, hex) != 0) {
		secret_unref(d->callback_key);
		d->callback_key = NULL;
		rc = hex_decode(key.op.value, strlen(key.op.value), bytes, sizeof(bytes));
		rc = rc ? error_set(e, ERR_CORRUPT, "the setting callback.key of the database is not a key")
			: secret_new(bytes, sizeof(bytes), &d->callback_key, e);
	}
	explicit_bzero(key.op.value, strlen(key.op.value));
	explicit_bzero(hex, sizeof(hex));
	explicit_bzero(bytes, sizeof(bytes));
	free(key.op.value);
	return rc;
}

static void on_registry_commit(struct registry *r, const char *commit, const char *folder, void *owner)
{
	(void)r;
	(void)commit;
	reload_try_commit(owner, folder);
}

static void on_registry_push(void *owner) { store_announce(((struct daemon *)owner)->store, STORE_REGISTRY); }

static void on_daemon_topic(unsigned topics, void *owner)
{
	struct daemon *d = owner;
	struct error why = {0};

	if (d->is_stopping)
		return;
	if (topics & STORE_REGISTRY)
		registry_fetch(d->registry);
	if (topics & STORE_NODE) {
		const struct github_options options = github_options_of(d->config, store_n_nodes(d->store));

		if (github_reconfigure(d->github, &options, &why)) /* the same keys: it cannot refuse them */
			log_event(LOG_WARN, "limits_unchanged", LOG_S("why", why.text));
	}
}

static void on_registry_seat(enum seat seat, bool has_seat, void *owner)
{
	struct daemon *d = owner;

	(void)seat;
	if (has_seat && !d->is_stopping)
		mirror_registry(d);
}

static void on_accepted(struct delivery *delivery, void *owner)
{
	struct daemon *d = owner;

	dispatch_accept(d->dispatch, delivery);
}

static const char *why_not_ready(void *owner)
{
	const struct daemon *d = owner;

	return credentials_are_read(runners_credentials(d->runners)) ? NULL : "vendors' tokens have not been read yet";
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
	const struct evidence_deps evidence = {.loop = d->loop, .store = d->store, .github = d->github};
	const struct publish_deps publish = {.loop = d->loop, .store = d->store, .github = d->github};
	const struct registry_deps registry = {.loop = d->loop, .try_commit = on_registry_commit, .owner = d};
	const struct web_deps web = {
	    .loop = d->loop,
	    .store = d->store,
	    .logs = d->logs,
	    .server = d->server,
	    .write_metrics = metrics_write,
	    .add_status = status_add_public,
	    .why_not_ready = why_not_ready,
	    .owner = d,
	};

	d->intake = intake_new(d->loop, d->store, d->server);
	d->runners = runners_new(d->loop, d->store, d->client, d->server, d->callback_key);
	runners_accept_documents(d->runners, d->server, d->logs);
	d->web = web_new(&web);
	d->upkeep = upkeep_new(d);
	d->space = space_watch_new(&d->store);
	d->heads = remote_heads_new(d->loop, d->config);
	dispatch.heads.owner = d->heads;
	d->dispatch = dispatch_new(&dispatch, d->config);
	d->evidence = evidence_new(&evidence);
	d->comparing = comparing_new(&evidence);
	d->publish = publish_new(&publish, d->config);
	intake_configure(d->intake, d->config);
	runners_configure(d->runners, d->config);
	web_configure(d->web, d->config);
	mirror_registry(d);
	d->registry = registry_new(&registry);
	store_subscribe(d->store, STORE_REGISTRY | STORE_NODE, on_daemon_topic, d);
	store_add_part(d->store, &(struct seat_part){SEAT_REGISTRY, on_registry_seat, NULL, d});
	intake_on_registry_push(d->intake, on_registry_push, d);
	intake_on_accepted(d->intake, on_accepted, d);
	registry_configure(d->registry, d->config);
}

/* The name of a node that has none. */
static char *host_and_port(const char *listen)
{
	const char *port = strrchr(listen, ':');
	char host[65];

	if (gethostname(host, sizeof(host)))
		snprintf(host, sizeof(host), "localhost");
	host[sizeof(host) - 1] = '\0';
	return xasprintf("%s%s", host, port ? port : "");
}

/* The server's text names the user only. */
static int open_store(struct daemon *d, const struct store_options *o, struct error *e)
{
	struct error why = {0};
	int rc = store_open(d->loop, o, &d->store, &why);
	bool is_password =
	    rc == ERR_LOGIN && d->config->store_password_file && strstr(why.text, "password authentication");

	return error_set(e, rc, "%s%s%s", why.text, is_password ? "; store_password_file has the password: " : "",
	    is_password ? d->config->store_password_file : "");
}

int wire_up(struct daemon *d, struct error *e)
{
	const struct config *c = d->config;
	char *node = c->node ? xstrdup(c->node) : host_and_port(c->listen);
	enum { SERVER_PATIENCE_MS = 20000 };
	const struct store_options store = {.state_dir = c->state_dir,
	    .database = str_eq(c->store, "sqlite") ? NULL : c->store,
	    .password = c->store_password,
	    .node = node,
	    .has_others = true,
	    .patience_ms = SERVER_PATIENCE_MS,
	    .recover = store_recover,
	    .after_silence = store_after_silence};
	const struct github_options github = github_options_of(c, 1);
	const struct log_place_options place = log_place_of(c);
	bool is_server = store.database != NULL;
	struct http_listener *listener;

	d->server = http_server_new(d->loop, NULL);
	/* A daemon whose address is in use ends before it joins the others, who would give it seats. */
	int rc = http_server_bind(d->server, c->listen, &listener, e);
	if (!rc)
		rc = open_store(d, &store, e);
	free(node);
	if (!rc)
		rc = load_callback_key(c->state_dir, &d->callback_key, e);
	if (!rc)
		rc = share_callback_key(d, e);
	if (!rc)
		rc = logs_open(d->loop, c->state_dir, &d->logs, e);
	if (rc)
		return rc;
	d->client = http_client_new(d->loop, "outpost/" OUTPOST_VERSION);
	if (is_server) {
		http_client_confirm_within(d->client, NODE_CONFIRM_MS);
		logs_grow_in(d->logs, d->store);
	}
	rc = logs_keep_in(d->logs, &place, d->client, e);
	if (rc)
		return rc;
	rc = github_new(d->loop, d->client, &github, &d->github, e);
	if (rc)
		return rc;
	http_server_trust_proxies(d->server, is_trusted_proxy, d);
	if (c->tls_certificate_pem)
		rc = http_server_use_tls(d->server, c->tls_certificate_pem, c->tls_private_key, e);
	if (rc)
		return rc;
	open_parts(d);
	rc = control_new(d, &d->control, e);
	if (!rc)
		rc = http_listener_listen(listener, &d->address, e);
	return rc;
}

/* ---- a new snapshot ---- */

int wire_configure(struct daemon *d, struct config *config, struct error *e)
{
	int n_nodes = store_n_nodes(d->store);
	struct github_options options = github_options_of(config, n_nodes), old = github_options_of(d->config, n_nodes);
	struct error ignored = {0};
	const char *key;
	int rc = github_reconfigure(d->github, &options, e);

	/* First the parts that can refuse it. After a refusal, all of them keep the old one. */
	if (!rc && config->tls_certificate_pem && d->running.has_tls)
		rc = http_server_use_tls(d->server, config->tls_certificate_pem, config->tls_private_key, e);
	if (rc && github_reconfigure(d->github, &old, &ignored))
		log_event(LOG_ERROR, "rollback_failed", LOG_S("why", ignored.text));
	if (rc)
		return rc;
	for (int i = 0; (key = config_needs_restart(&d->running, config, i)) != NULL; i++)
		log_event(LOG_WARN, "restart_needed", LOG_S("key", key));
	config_unref(d->config);
	d->config = config;
	d->config_loaded_wall_ms = clock_wall_ms();
	log_setup(config->log_level, config->log_format);
	daemon_log_warnings(config);
	const struct log_place_options place = log_place_of(config);
	logs_use_keys(d->logs, &place);
	intake_configure(d->intake, config);
	runners_configure(d->runners, config);
	dispatch_configure(d->dispatch, config);
	publish_configure(d->publish, config);
	web_configure(d->web, config);
	registry_configure(d->registry, config);
	remote_heads_configure(d->heads, config);
	mirror_registry(d);
	return 0;
}

/* ---- closing ---- */

static void close_server(struct http_server *s, void (*on_closed)(void *owner), void *owner)
{
	http_server_close(s, CLOSE_GRACE_MS, on_closed, owner);
}

/* X(step, part, how it closes). The parts of a step close together, each after its users. The
 * registry closes after the server, because a request may still ask for its status. */
#define CLOSING_PARTS(X)                                                                                               \
	X(0, server, close_server)                                                                                     \
	X(0, control, control_close)                                                                                   \
	X(0, dispatch, dispatch_close)                                                                                 \
	X(0, evidence, evidence_close)                                                                                 \
	X(0, comparing, comparing_close)                                                                               \
	X(0, publish, publish_close)                                                                                   \
	X(1, runners, runners_close)                                                                                   \
	X(1, registry, registry_close)                                                                                 \
	X(1, heads, remote_heads_close)                                                                                \
	X(2, github, github_close)                                                                                     \
	X(2, logs, logs_close)                                                                                         \
	X(3, client, http_client_close)                                                                                \
	X(4, store, store_close)
enum { N_CLOSING_STEPS = 5 };

static void on_part_closed(void *owner)
{
	struct daemon *d = owner;

	if (--d->n_closing == 0)
		wire_down(d);
}

void wire_down(struct daemon *d)
{
	int step = d->closing_step++;

	if (step == 0) {
		d->is_stopping = true; /* also after a failed start: the store still notifies its subscribers */
		/* End requests that wait for an event, so that the server need not wait for their clients. */
		if (d->runners)
			runners_stop(d->runners);
		if (d->web)
			web_stop(d->web);
		upkeep_stop(d->upkeep);
		if (d->store)
			store_stop_retrying(d->store);
	}
	if (step == N_CLOSING_STEPS) {
		/* The store has notified these parts of changes until now. */
		dispatch_free(d->dispatch);
		evidence_free(d->evidence);
		comparing_free(d->comparing);
		publish_free(d->publish);
		runners_free(d->runners);
		intake_free(d->intake);
		web_free(d->web);
		upkeep_free(d->upkeep);
		space_watch_free(d->space);
		timer_close(d->stop_deadline);
		timer_close(d->watchdog);
		loop_close_signals(d->loop);
		loop_stop(d->loop);
		return;
	}
	d->n_closing = 1; /* this function itself: the step ends once it has begun everywhere */
#define CLOSE_PART(its_step, part, close)                                                                              \
	if (step == (its_step) && d->part) {                                                                           \
		d->n_closing++;                                                                                        \
		close(d->part, on_part_closed, d);                                                                     \
	}
	CLOSING_PARTS(CLOSE_PART)
#undef CLOSE_PART
	on_part_closed(d);
}
