#include "dispatch/attempt.h"

#include "db/seats.h"
#include "store/deliveries.h"

enum {
	PAYLOADS_KEPT_MAX = 8,
	KEPT_BODY_MAX_BYTES = 256 * 1024, /* larger ones are freed after their last user */
	OFFERED_MAX_BYTES = 2 * 1024 * 1024,
	GRACE_MS = 2000,
	GITHUB_TARGET_BEGUN_MAX = 16,
	PAYLOAD_RETRY_MS = 1000,
	/* A webhook dispatch with a larger body is cut as for GitHub, because many bodies at once must fit into memory. */
	WHOLE_BODY_MAX_BYTES = 1024 * 1024,
};
static const int64_t TOKEN_LASTS_MS = INT64_C(7) * 24 * 3600 * 1000;

/* ---- the bodies that dispatches carry, parsed once for each change. A few recent ones are kept, and attempts that wait
 * for the same one share one look-up. The planner offers each body that it has just planned, so that most are never looked
 * up ---- */

struct payload {
	TAILQ_ENTRY(payload) link;
	struct sender *sender;
	char *guid, *event_type, *sent_action;
	int n_users; /* attempts that send it or wait for it */
	bool is_loading;
	char *offered; /* the planner's body until the first attempt uses it; else NULL */
	size_t action_at, action_bytes;
	struct client_payload *content;
	size_t body_bytes;             /* of the webhook */
	TAILQ_HEAD(, attempt) waiting; /* while it is loading */
	struct get_delivery get;
};

struct sender {
	struct dispatch *d;
	TAILQ_HEAD(payloads, payload) payloads; /* the most recently used first */
	size_t offered_bytes;
	struct engine *engine;
};

static void send_payload(struct attempt *a, int err, const struct error *why);

static void payload_free(struct payload *p)
{
	TAILQ_REMOVE(&p->sender->payloads, p, link);
	if (p->offered)
		p->sender->offered_bytes -= p->body_bytes;
	client_payload_free(p->content);
	FREE_ALL(p->offered, p->guid, p->event_type, p->sent_action, p);
}

static struct payload *payload_new(struct sender *s, const char *guid, const char *event_type, const char *sent_action)
{
	struct payload *p = xcalloc(1, sizeof(*p));

	p->sender = s;
	p->guid = xstrdup(guid);
	p->event_type = xstrdup(event_type);
	p->sent_action = xstrdup(sent_action);
	TAILQ_INIT(&p->waiting);
	TAILQ_INSERT_HEAD(&s->payloads, p, link);
	return p;
}

/* Frees the payloads without users. A few recent small ones stay, and so do the planner's bodies until their first attempt. */
static void trim_payloads(struct sender *s)
{
	int n = 0;

	for (struct payload *p = TAILQ_FIRST(&s->payloads), *next; p; p = next) {
		bool is_small = p->body_bytes <= KEPT_BODY_MAX_BYTES && p->content;

		next = TAILQ_NEXT(p, link);
		if (p->n_users == 0 && !p->offered && !(is_small && ++n <= PAYLOADS_KEPT_MAX))
			payload_free(p);
	}
}

/* Frees the oldest of the planner's bodies when they need too much memory. Their attempts read the delivery again. */
static void trim_offered(struct sender *s)
{
	for (struct payload *p = TAILQ_LAST(&s->payloads, payloads), *next; p && s->offered_bytes > OFFERED_MAX_BYTES;
	     p = next) {
		next = TAILQ_PREV(p, payloads, link);
		if (p->offered)
			payload_free(p);
	}
}

void sender_offer(struct sender *s, const struct sender_body *b)
{
	struct payload *p;

	if (b->bytes > KEPT_BODY_MAX_BYTES) {
		free(b->body);
		return;
	}
	p = payload_new(s, b->guid, b->event_type, b->sent_action);
	p->offered = b->body;
	p->body_bytes = b->bytes;
	p->action_at = b->action_at;
	p->action_bytes = b->action_bytes;
	s->offered_bytes += b->bytes;
	trim_offered(s);
}

/* Parses the body that the planner offered. On a failure the payload has no content, and its user looks the body up, which
 * ends with the same failure. */
static void use_offered(struct payload *p)
{
	const struct json_slice action = {p->action_at ? p->offered + p->action_at : NULL, p->action_bytes};
	struct error why;

	if (client_payload_new(
		p->event_type, p->guid, p->sent_action, p->offered, p->body_bytes, &action, &p->content, &why))
		log_event(LOG_DEBUG, "offered_body_unused", LOG_S("delivery", p->guid), LOG_S("error", why.text));
	p->sender->offered_bytes -= p->body_bytes;
	FREE_AND_NULL(p->offered);
}

static void on_body_got(struct store_query *q)
{
	struct payload *p = CONTAINER_OF(q, struct payload, get.q);
	struct delivery *body = &p->get.delivery;
	struct error why = {0};
	int err = q->err;

	if (err)
		error_set(&why, err, "%s", *q->why.text ? q->why.text : err_text(err));
	else if (!body->body)
		err = error_set(&why, ERR_NOT_FOUND, "the webhook's body is gone");
	else
		err = client_payload_new(
		    p->event_type, p->guid, p->sent_action, body->body, body->body_len, NULL, &p->content, &why);
	p->body_bytes = body->body_len;
	delivery_release(body);
	p->is_loading = false;
	p->n_users++; /* this loop */
	for (struct attempt *a; (a = TAILQ_FIRST(&p->waiting)) != NULL;) {
		TAILQ_REMOVE(&p->waiting, a, waiting);
		send_payload(a, err, &why);
	}
	p->n_users--;
	trim_payloads(p->sender);
}

/* Sends the attempt when its body is loaded, possibly inside this call. */
static void load_payload(struct sender *s, struct attempt *a)
{
	const struct outbox_row *row = &a->effect.row;
	const char *sent_action = row->sent_action ? row->sent_action : "";
	struct payload *p;

	TAILQ_FOREACH (p, &s->payloads, link)
		if ((p->is_loading || p->content || p->offered) && str_eq(p->guid, row->delivery_guid) &&
		    str_eq(p->event_type, row->event_type) && str_eq(p->sent_action, sent_action))
			break;
	if (p && p->offered)
		use_offered(p);
	if (p && !p->content && !p->is_loading)
		p = NULL;
	if (p) {
		TAILQ_REMOVE(&s->payloads, p, link);
		TAILQ_INSERT_HEAD(&s->payloads, p, link);
	} else {
		p = payload_new(s, row->delivery_guid, row->event_type, sent_action);
		p->get = (struct get_delivery){.q = {.done = on_body_got, .kind = QUERY_URGENT}, .guid = p->guid};
		p->is_loading = store_get_delivery(s->d->deps.store, &p->get) == 0;
	}
	p->n_users++;
	a->payload = p;
	if (p->is_loading)
		TAILQ_INSERT_TAIL(&p->waiting, a, waiting);
	else
		send_payload(a, p->content ? 0 : ERR_BUSY, NULL);
}

/* ---- one attempt ---- */

static bool attempt_is_github(const struct effect *e)
{
	return e->row.kind == OUTBOX_GITHUB_DISPATCH || e->row.kind == OUTBOX_GITHUB_CLOSED ||
	       e->row.kind == OUTBOX_RERUN;
}

/* A repository in lower case, or a URL's host and port: its path and query may hold secrets. free(). */
static char *attempt_target_name(const struct effect *e)
{
	const char *from = e->row.target ? e->row.target : "", *scheme = strstr(from, "://");
	char *name;

	if (attempt_is_github(e)) {
		name = xstrdup(from);
	} else {
		if (scheme)
			from = scheme + 3;
		name = xstrndup(from, strcspn(from, "/?#"));
	}
	for (char *c = name; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return name;
}

void attempt_retry(struct attempt *a, int64_t retry_after_ms)
{
	int64_t next_ms;
	bool has_time = effect_back_off(&a->effect, retry_after_ms, &next_ms);

	effect_end(&a->effect, has_time ? OUTBOX_RETRY : OUTBOX_DEAD, next_ms);
}

static int make_request_text(struct attempt *a)
{
	const struct outbox_row *row = &a->effect.row;
	const char *url = a->config->public_url;
	bool is_github = attempt_is_github(&a->effect);
	int64_t finish_ms = row->finish_by_ms > 0 ? row->finish_by_ms : clock_wall_ms();
	char *callback_url = is_github ? xasprintf("%s/github/callback", url)
				       : xasprintf("%s/api/v1/dispatches/%s/jobs", url, row->dispatch_id);
	/* The same commit may have been pushed and tested, too. */
	char *change_url = row->number > 0 ? xasprintf("%s/pulls/%lld", url, (long long)row->number)
					   : xasprintf("%s/commits/%s%s", url, row->head_sha,
						 strcmp(row->event_type, "nightly") == 0 ? "?kind=nightly" : "");
	char *token = is_github ? NULL
				: callback_token_make(a->d->deps.callback_key, row->dispatch_id, row->accelerators[0],
				      finish_ms + TOKEN_LASTS_MS);
	/* event_type is one of a few words of this program's own. */
	char *before = is_github ? xasprintf("{\"event_type\":\"%s\",\"client_payload\":", row->event_type) : NULL;
	struct outpost_block block = {
	    .dispatch_id = row->dispatch_id,
	    .action = row->original_action,
	    .accelerators = (const char *const *)row->accelerators,
	    .callback_url = callback_url,
	    .change_url = change_url,
	    .sources = row->sources,
	    .n_sources = row->n_sources,
	    .experiment = row->experiment,
	    .callback_token = token,
	    .before = before,
	    .after = is_github ? "}" : NULL,
	};
	bool is_bounded = is_github || a->payload->body_bytes > WHOLE_BODY_MAX_BYTES;
	int rc = client_payload_text(a->payload->content, &block, is_bounded, &a->text, &a->text_bytes);

	FREE_ALL(callback_url, change_url, token, before);
	return rc;
}

/* err: the payload is not loaded, for the reason `why`. */
static void send_payload(struct attempt *a, int err, const struct error *why)
{
	int rc = err ? 0 : make_request_text(a);

	a->payload->n_users--;
	a->payload = NULL;
	trim_payloads(a->d->sender);
	if (err == ERR_NOT_FOUND || err == ERR_INVALID) {
		a->effect.why = *why;
		effect_end(&a->effect, OUTBOX_DEAD, 0);
	} else if (err) {
		effect_put_off(&a->effect, PAYLOAD_RETRY_MS);
	} else if (rc) {
		error_set(&a->effect.why, rc, "the payload does not fit: %s", err_text(rc));
		effect_end(&a->effect, OUTBOX_DEAD, 0);
	} else if (a->d->is_closing || !effect_may_go_on(&a->effect)) {
		effect_put_off(&a->effect, 0);
	} else if (attempt_is_github(&a->effect)) {
		attempt_github_send(a);
	} else {
		attempt_webhook_send(a);
	}
}

static void attempt_begin(struct effect *e)
{
	struct attempt *a = CONTAINER_OF(e, struct attempt, effect);

	a->d = engine_owner(e->engine);
	a->config = config_ref(a->d->config);
	const char *why = attempt_is_github(e) ? attempt_github_check(a) : attempt_webhook_check(a);
	if (why) {
		error_set(&e->why, ERR_INVALID, "%s", why);
		effect_end(e, OUTBOX_DEAD, 0);
	} else if (e->row.kind == OUTBOX_RERUN) {
		attempt_rerun_send(a);
	} else if (e->row.kind == OUTBOX_WEBHOOK_NOTICE) { /* its body was written with its cause */
		a->text = xstrdup(e->row.text ? e->row.text : "{}");
		a->text_bytes = strlen(a->text);
		attempt_webhook_send(a);
	} else {
		load_payload(a->d->sender, a);
	}
}

static void attempt_cancel(struct effect *e)
{
	struct attempt *a = CONTAINER_OF(e, struct attempt, effect);

	if (!a->is_on_wire)
		return; /* it waits for the store, which answers soon */
	if (attempt_is_github(e))
		github_cancel(a->d->deps.github, &a->call.github);
	else
		http_call_cancel(a->d->deps.http_client, &a->call.http);
}

static void attempt_release(struct effect *e)
{
	struct attempt *a = CONTAINER_OF(e, struct attempt, effect);

	config_unref(a->config);
	json_decref(a->rerun);
	free(a->text);
}

/* ---- the kinds and the lanes ---- */

enum { GITHUB_LANE, VENDORS_LANE, N_LANES };

/* GITHUB_LANE follows the configuration: sender_configure(). */
static const struct lane_limits LANES[N_LANES] = {
    [GITHUB_LANE] = {.claimed = 16, .begun = 16, .begun_per_target = GITHUB_TARGET_BEGUN_MAX},
    [VENDORS_LANE] = {.claimed = 256, .begun = 64, .begun_per_target = 4},
};

#define KIND(its_kind, its_lane)                                                                                       \
	&(const struct effect_kind)                                                                                    \
	{                                                                                                              \
		.kind = OUTBOX_##its_kind, .lane = its_lane, .bytes = sizeof(struct attempt), .begin = attempt_begin,  \
		.cancel = attempt_cancel, .release = attempt_release, .target_name = attempt_target_name,              \
	}
static const struct effect_kind *const KINDS[] = {
    KIND(GITHUB_DISPATCH, GITHUB_LANE),
    KIND(GITHUB_CLOSED, GITHUB_LANE),
    KIND(RERUN, GITHUB_LANE),
    KIND(WEBHOOK_DISPATCH, VENDORS_LANE),
    KIND(WEBHOOK_CANCEL, VENDORS_LANE),
    KIND(WEBHOOK_NOTICE, VENDORS_LANE),
};
#undef KIND

static void log_and_count_ended(struct effect *e)
{
	struct dispatch *d = engine_owner(e->engine);
	struct dispatch_counters *n = &d->counters;
	bool is_dispatch = e->row.kind == OUTBOX_GITHUB_DISPATCH || e->row.kind == OUTBOX_WEBHOOK_DISPATCH;
	const char *event = NULL;
	enum log_level level = LOG_DEBUG;

	switch (e->result) {
	case OUTBOX_OK:
	case OUTBOX_AGAIN:
		event = "dispatch_sent";
		level = LOG_INFO;
		n->n_github_sent += attempt_is_github(e);
		n->n_webhooks_sent += !attempt_is_github(e);
		if (is_dispatch)
			histogram_add(&n->send_times, (clock_wall_ms() - e->row.first_ms) * 1000);
		break;
	case OUTBOX_RETRY:
		event = "dispatch_retried";
		level = LOG_WARN;
		n->n_retries++;
		break;
	case OUTBOX_DEAD:
		event = "dispatch_dead";
		level = LOG_ERROR;
		n->n_dead++;
		break;
	case OUTBOX_NOT_YET:
		event = "dispatch_put_off";
		break;
	}
	log_event(level, event, LOG_S("dispatch", e->row.dispatch_id), LOG_S("delivery", e->row.delivery_guid),
	    LOG_S("kind", outbox_kind_name(e->row.kind)), LOG_S("target", effect_target(e)), LOG_I("pr", e->row.number),
	    LOG_S("head", e->row.head_sha), LOG_I("attempts", e->row.n_attempts + 1), LOG_S("error", e->why.text));
}

struct sender *sender_new(struct dispatch *d)
{
	struct sender *s = xcalloc(1, sizeof(*s));

	s->d = d;
	TAILQ_INIT(&s->payloads);
	s->engine = engine_new(&(struct engine_options){
	    .loop = d->deps.loop,
	    .store = d->deps.store,
	    .owner = d,
	    .kinds = KINDS,
	    .n_kinds = ARRAY_LEN(KINDS),
	    .lanes = LANES,
	    .n_lanes = N_LANES,
	    .claim_failed_event = "outbox_unclaimed",
	    .settle_failed_event = "dispatch_unsettled",
	    .on_end = log_and_count_ended,
	});
	sender_configure(s);
	return s;
}

void sender_configure(struct sender *s)
{
	/* all nodes together */
	int n = s->d->config->github_max_concurrent / store_n_nodes(s->d->deps.store);

	/* Claim more than GitHub may get at once, so that a free place is filled at once: a place in the lane is free again when
	 * the end of its row is on disk. */
	engine_limit_lane(s->engine, GITHUB_LANE,
	    (struct lane_limits){.claimed = 4 * n + 16, .begun = n + 16, .begun_per_target = GITHUB_TARGET_BEGUN_MAX});
	engine_look(s->engine);
}

void sender_ring(struct sender *s) { engine_look(s->engine); }

void sender_follow_node(struct sender *s) { engine_follow_node(s->engine); }

void sender_offer_places(struct sender *s, const struct plan *plan, struct outbox_offer *offer)
{
	for (size_t i = 0; i < plan->n_wants; i++) {
		const struct plan_want *w = &plan->wants[i];

		if (w->kind != RUNNER_PULL && !w->held_reason)
			engine_offer(s->engine,
			    w->kind == RUNNER_WEBHOOK ? OUTBOX_WEBHOOK_DISPATCH : OUTBOX_GITHUB_DISPATCH, 1, offer);
	}
}

void sender_adopt(struct sender *s, struct outbox_offer *offer)
{
	if (s) /* an engine with an offer outside does not close */
		engine_adopt(s->engine, offer);
}

int sender_n_claimed(const struct sender *s) { return engine_n_claimed(s->engine); }

static void on_sender_closed(void *owner)
{
	struct sender *s = owner;
	struct dispatch *d = s->d;

	engine_free(s->engine);
	while (!TAILQ_EMPTY(&s->payloads))
		payload_free(TAILQ_FIRST(&s->payloads));
	d->sender = NULL;
	dispatch_part_closed(d, s);
}

void sender_close(struct sender *s) { engine_close(s->engine, GRACE_MS, on_sender_closed, s); }
