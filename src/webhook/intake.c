#include "webhook/intake.h"

#include "db/seats.h"
#include "webhook/payload.h"

int signature_parse(const char *header, uint8_t ret[SHA256_BYTES])
{
	static const char prefix[] = "sha256=";

	if (!header || !str_has_prefix(header, prefix))
		return ERR_INVALID;
	const char *digits = header + strlen(prefix);
	return hex_decode(digits, strlen(digits), ret, SHA256_BYTES);
}

bool signature_is_good(struct hmac *h, const void *body, size_t n, const uint8_t signature[SHA256_BYTES])
{
	uint8_t expected[SHA256_BYTES];

	hmac_reset(h);
	hmac_update(h, body, n);
	hmac_final(h, expected);
	return equal_constant_time(expected, signature, SHA256_BYTES);
}

enum {
	BODY_MAX_BYTES = 25 * 1024 * 1024, /* GitHub's own limit */
	GUID_MAX = 64,
	EVENT_MAX = 64,
	PENDING_MAX = 4096, /* deliveries between the store and their answer */
	RETRY_AFTER_S = 5,
};

/* One delivery from its checks to its answer. Owns all that the store borrows. */
struct pending {
	struct put_delivery put;
	struct intake *intake;
	struct http_request *request; /* NULL: the client left */
	char *body;                   /* the server's memory */
	char guid[GUID_MAX + 1];
	char event[EVENT_MAX + 1];
	struct skim skim;
};

enum refusal { REFUSED_REQUEST, REFUSED_SIGNATURE, REFUSED_BUSY, N_REFUSALS };

struct intake {
	struct loop *loop;
	struct store *store;
	struct config *config; /* NULL until configured */
	struct hmac *hmac;     /* keyed with the webhook secret */
	int n_pending;
	struct log_limit lines[N_REFUSALS]; /* of refusals, which anyone can cause */
	struct intake_counters counters;
	void (*on_registry_push)(void *owner); /* or NULL */
	void *registry_owner;
	void (*on_accepted)(struct delivery *d, void *owner); /* or NULL */
	void *accepted_owner;
};

static void pending_free(struct pending *d)
{
	http_recycle_body(d->body);
	d->intake->n_pending--;
	free(d);
}

static void answer_delivery(struct http_request *r, int status, const char *word, const char *key, const char *value)
{
	char text[256];
	int n = snprintf(text, sizeof text, "{\"status\":\"%s\"%s%s%s%s%s}", word, key ? ",\"" : "", key ? key : "",
	    key ? "\":\"" : "", key ? value : "", key ? "\"" : "");

	http_respond(r, status, "application/json", NULL, text, (size_t)n);
}

static const struct {
	const char *ev;
	int status;
	enum log_level level;
} refusals[N_REFUSALS] = {[REFUSED_REQUEST] = {"delivery_refused", 400, LOG_WARN},
    [REFUSED_SIGNATURE] = {"delivery_signature_wrong", 401, LOG_WARN},
    [REFUSED_BUSY] = {"delivery_not_written", 503, LOG_ERROR}};

/* Counts the refusal, and logs at most one of each kind a second. */
static void note_refusal(struct intake *in, enum refusal kind, const char *guid, const char *client, const char *why)
{
	int64_t n_skipped;

	if (log_limit_pass(&in->lines[kind], loop_now_ms(in->loop), &n_skipped))
		log_event(refusals[kind].level, refusals[kind].ev, LOG_S("delivery", guid), LOG_S("client", client),
		    LOG_S("why", why), LOG_I("more", n_skipped));
	if (kind == REFUSED_REQUEST)
		in->counters.n_bad_request++;
	else if (kind == REFUSED_SIGNATURE)
		in->counters.n_bad_signature++;
	else
		in->counters.n_busy++;
}

/* The database's error if the store has no room because the database is away. */
static const char *why_busy(const struct intake *in, const char *other, struct error *why)
{
	return store_check_writable(in->store, why) ? why->text : other;
}

static void refuse_delivery(struct intake *in, struct http_request *r, enum refusal kind, const char *why)
{
	note_refusal(in, kind, http_header(r, "X-GitHub-Delivery"), http_client_address(r), why);
	if (kind == REFUSED_BUSY)
		http_respond_busy(r, RETRY_AFTER_S);
	else
		http_respond_json1(r, refusals[kind].status, "error", why);
}

static void log_delivery(const struct pending *d, const char *ev, const char *reason)
{
	log_event(LOG_INFO, ev, LOG_S("delivery", d->guid), LOG_S("event", d->event), LOG_S("action", d->skim.action),
	    LOG_S("repository", d->skim.repository),
	    reason ? LOG_S("reason", reason) : LOG_I("bytes", (int64_t)d->put.body_bytes));
}

static void on_sender_gone(struct http_request *r) { ((struct pending *)http_user(r))->request = NULL; }

static void pass_on_delivery(struct pending *d)
{
	struct delivery delivery = {
	    .id = d->put.delivery_id,
	    .guid = xstrdup(d->guid),
	    .event = xstrdup(d->event),
	    .received_ms = d->put.now_ms,
	    .body = d->body,
	    .body_len = d->put.body_bytes,
	};

	d->intake->on_accepted(&delivery, d->intake->accepted_owner);
	d->body = delivery.body;
	delivery.body = NULL;
	delivery_release(&delivery);
}

static void on_delivery_written(struct store_op *op)
{
	struct pending *d = CONTAINER_OF(op, struct pending, put.op);

	if (op->err) {
		const char *why = op->why.text[0] ? op->why.text : err_text(op->err);

		if (d->request)
			refuse_delivery(d->intake, d->request, REFUSED_BUSY, why);
		else
			note_refusal(d->intake, REFUSED_BUSY, d->guid, NULL, why);
	} else {
		struct intake_counters *c = &d->intake->counters;
		bool is_duplicate = d->put.delivery_id == 0;

		c->n_duplicate += is_duplicate;
		c->n_accepted += !is_duplicate;
		c->n_bytes_accepted += is_duplicate ? 0 : (int64_t)d->put.body_bytes;
		c->n_gone += !d->request;
		log_delivery(d, is_duplicate ? "delivery_duplicate" : "delivery_accepted", NULL);
		if (d->request)
			answer_delivery(d->request, is_duplicate ? 200 : 202, is_duplicate ? "duplicate" : "accepted",
			    "delivery", d->guid);
		if (d->put.is_passed_on && !is_duplicate)
			pass_on_delivery(d);
	}
	pending_free(d);
}

/* Takes the body from the request, so that it outlives a client that leaves. */
static void write_delivery(struct pending *d, struct http_request *r)
{
	struct intake *in = d->intake;

	d->body = http_detach_body(r, &d->put.body_bytes);
	if (d->skim.has_nul)
		json_replace_nuls(d->body, d->put.body_bytes);
	d->put.op.done = on_delivery_written;
	d->put.guid = d->guid;
	d->put.event = d->event;
	d->put.action = d->skim.action;
	d->put.repository = d->skim.repository;
	d->put.body = d->body;
	d->put.now_ms = clock_wall_ms();
	/* Without the seat the commit itself announces the delivery, because this node may end right after it. */
	d->put.is_passed_on = in->on_accepted && store_has_seat(in->store, SEAT_PLANNER);
	/* While the database does not answer, GitHub gets an answer at once instead of none, and the load balancer asks another node. */
	int err = store_is_acting(in->store) ? store_put_delivery(in->store, &d->put) : ERR_BUSY;
	if (err) {
		struct error why = {0};

		pending_free(d);
		refuse_delivery(in, r, REFUSED_BUSY, why_busy(in, err_text(err), &why));
		return;
	}
	d->request = r;
	http_set_user(r, d);
	http_on_gone(r, on_sender_gone);
}

/* True: at most `n_max` letters, digits and `extra`. */
static bool is_header_name(const char *s, size_t n_max, char extra)
{
	size_t n = 0;

	while (s && n < n_max && (isalnum((unsigned char)s[n]) || (s[n] && s[n] == extra)))
		n++;
	return n > 0 && s[n] == '\0';
}

/* NULL, or the mistake in the headers. */
static const char *check_headers(struct http_request *r, uint8_t ret_signature[SHA256_BYTES])
{
	const char *signature = http_header(r, "X-Hub-Signature-256");

	if (!signature)
		return "X-Hub-Signature-256 is missing";
	if (signature_parse(signature, ret_signature) != 0)
		return "X-Hub-Signature-256 is not sha256= and 64 hexadecimal digits";
	if (!is_header_name(http_header(r, "X-GitHub-Event"), EVENT_MAX, '_'))
		return "X-GitHub-Event is missing or not an event's name";
	if (!is_header_name(http_header(r, "X-GitHub-Delivery"), GUID_MAX, '-'))
		return "X-GitHub-Delivery is missing or not 1 to 64 letters, digits and '-'";
	return NULL;
}

static const char TOO_MANY[] = "too many deliveries are being written";

/* Refuses a request by its headers, before its body uses memory. */
static void on_delivery_headers(struct http_request *r, void *owner)
{
	struct intake *in = owner;
	uint8_t signature[SHA256_BYTES];
	const char *why = check_headers(r, signature);
	struct error away = {0};

	if (!in->config || in->n_pending >= PENDING_MAX)
		refuse_delivery(in, r, REFUSED_BUSY, in->config ? why_busy(in, TOO_MANY, &away) : "not configured yet");
	else if (why)
		refuse_delivery(in, r, REFUSED_REQUEST, why);
}

static void on_delivery_request(struct http_request *r, void *owner)
{
	struct intake *in = owner;
	uint8_t signature[SHA256_BYTES];
	struct error e = {0};
	size_t n;
	const char *reason;

	/* More deliveries may have arrived while this body did. */
	if (in->n_pending >= PENDING_MAX) {
		refuse_delivery(in, r, REFUSED_BUSY, why_busy(in, TOO_MANY, &e));
		return;
	}
	const char *body = http_body(r, &n);
	/* The scan follows at once, while the body is still in the CPU's cache. */
	if (check_headers(r, signature) || !signature_is_good(in->hmac, body, n, signature)) {
		refuse_delivery(in, r, REFUSED_SIGNATURE, "X-Hub-Signature-256 is wrong");
		return;
	}
	http_note_authenticated(r);
	struct pending *d = xcalloc(1, sizeof(*d));
	d->intake = in;
	in->n_pending++;
	snprintf(d->guid, sizeof d->guid, "%s", http_header(r, "X-GitHub-Delivery"));
	snprintf(d->event, sizeof d->event, "%s", http_header(r, "X-GitHub-Event"));
	d->put.body_bytes = n;
	int err = skim(body, n, &d->skim, &e);
	if (err) {
		pending_free(d);
		const char *type = http_header(r, "Content-Type");
		char text[sizeof e.text + 32];

		if (type && str_has_prefix(type, "application/x-www-form-urlencoded"))
			snprintf(text, sizeof text,
			    "the body is a form: set the webhook's content type to application/json");
		else
			snprintf(text, sizeof text, "the body is not JSON: %s", e.text);
		refuse_delivery(in, r, REFUSED_REQUEST, text);
		return;
	}
	bool is_registry_push = webhook_is_registry_push(d->event, &d->skim, in->config);
	if (is_registry_push && in->on_registry_push)
		in->on_registry_push(in->registry_owner);
	switch (webhook_classify(d->event, &d->skim, in->config, &reason)) {
	case WEBHOOK_USED:
		write_delivery(d, r);
		return;
	case WEBHOOK_PONG:
		in->counters.n_pong++;
		log_delivery(d, "delivery_ping", NULL);
		answer_delivery(r, 200, "pong", NULL, NULL);
		break;
	case WEBHOOK_IGNORED:
		if (is_registry_push)
			reason = "a push to the registry: it is fetched";
		in->counters.n_ignored++;
		log_delivery(d, "delivery_ignored", reason);
		answer_delivery(r, 200, "ignored", "reason", reason);
		break;
	}
	pending_free(d);
}

struct intake *intake_new(struct loop *l, struct store *s, struct http_server *h)
{
	struct intake *in = xcalloc(1, sizeof *in);

	in->loop = l;
	in->store = s;
	http_server_route(h, &(struct http_route){.method = "POST",
				 .pattern = "/github/webhook",
				 .max_body_bytes = BODY_MAX_BYTES,
				 .body_mode = HTTP_BODY_WHOLE,
				 .on_headers = on_delivery_headers,
				 .on_request = on_delivery_request,
				 .owner = in});
	return in;
}

void intake_configure(struct intake *in, struct config *c)
{
	struct config *old = in->config;

	in->config = config_ref(c);
	hmac_free(in->hmac);
	in->hmac = hmac_new(secret_text(c->github_webhook_secret), secret_bytes(c->github_webhook_secret));
	config_unref(old);
}

void intake_on_registry_push(struct intake *in, void (*on_push)(void *owner), void *owner)
{
	in->on_registry_push = on_push;
	in->registry_owner = owner;
}

void intake_on_accepted(struct intake *in, void (*on_accepted)(struct delivery *d, void *owner), void *owner)
{
	in->on_accepted = on_accepted;
	in->accepted_owner = owner;
}

void intake_free(struct intake *in)
{
	if (!in)
		return;
	assert(in->n_pending == 0);
	hmac_free(in->hmac);
	config_unref(in->config);
	free(in);
}

const struct intake_counters *intake_counters(const struct intake *in) { return &in->counters; }
