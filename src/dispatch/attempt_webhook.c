/* The signed POST to a vendor's own CI.
 *
 * Rules guarded here: it goes only to addresses that the operator allows, whatever the name
 * resolves to at that moment; the vendor's secret signs and is never shown. */
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/crypto.h"
#include "base/encode.h"
#include "base/log.h"
#include "base/str.h"
#include "dispatch/attempt.h"

enum { ANSWER_MAX_BYTES = 64 * 1024 };

const char *attempt_webhook_check(struct attempt *a)
{
	const char *name = a->effect.row.accelerators ? a->effect.row.accelerators[0] : NULL;
	const struct accelerator *accelerator = name ? config_accelerator(a->config, name) : NULL;

	if (accelerator)
		a->runner = accelerator_runner(accelerator, a->effect.row.runner);
	if (!a->runner || a->runner->kind != RUNNER_WEBHOOK)
		return "no longer registered";
	return NULL;
}

static bool allow_address(const uint8_t address[16], void *owner)
{
	const struct attempt *a = owner;
	const struct config *c = a->config;
	bool is_plain = strncasecmp(a->runner->url, "http:", 5) == 0;

	return network_contains(c->allow_networks, c->n_allow_networks, address) ||
	       (!is_plain && !network_is_private(address));
}

/* RFC 9110, 10.2.3: seconds, or a date. 0: absent or neither. */
static int64_t retry_after_ms(const struct http_call *call)
{
	char text[64];
	struct tm tm = {0};
	int64_t seconds, ms;
	const char *end;

	if (!http_call_header(call, "Retry-After", text, sizeof(text)))
		return 0;
	if (parse_int64(text, &seconds) == 0)
		return seconds > 0 && seconds < INT32_MAX ? seconds * 1000 : 0;
	end = strptime(text, "%a, %d %b %Y %H:%M:%S GMT", &tm);
	if (!end || *end)
		return 0;
	ms = (int64_t)timegm(&tm) * 1000 - clock_wall_ms();
	return ms > 0 ? ms : 0;
}

static void on_webhook_answer(struct http_call *call)
{
	struct attempt *a = CONTAINER_OF(call, struct attempt, call.http);
	struct error why = call->why, *said = &a->effect.why;
	int err = call->err, status = call->status;
	int64_t wait_ms = retry_after_ms(call);
	bool was_sent = call->was_sent;
	/* An endless answer to a request that was accepted does not concern Outpost. */
	bool has_answer = err == 0 || (err == ERR_TOO_BIG && status > 0);

	a->is_on_wire = false;
	http_call_release(call);
	if (err == ERR_CANCELLED) { /* Outpost itself cut it off */
		error_set(said, err, "%s", "the service was stopped");
		effect_end(&a->effect, was_sent ? OUTBOX_RETRY : OUTBOX_NOT_YET, clock_wall_ms());
	} else if (!has_answer) {
		if (err == ERR_DENIED) {
			/* The row is public, so it does not contain the address that the name has inside the
			 * operator's network. */
			log_event(LOG_WARN, "webhook_address_refused",
			    LOG_S("dispatch", a->effect.row.dispatch_id), LOG_S("why", why.text));
			error_set(said, err, "its host's address may not be reached");
		}
		error_set(said, err, "%s", *why.text ? why.text : err_text(err));
		if (err == ERR_INVALID)
			effect_end(&a->effect, OUTBOX_DEAD, 0);
		else
			attempt_retry(a, 0);
	} else if (status >= 200 && status < 300) {
		effect_end(&a->effect, OUTBOX_OK, 0);
	} else {
		error_set(said, ERR_PROTOCOL, "the vendor's server answered %d%s", status,
		    status >= 300 && status < 400 ? ", and redirects are not followed" : "");
		if (status >= 300 && status < 500 && status != 403 && status != 408 &&
		    status != 429)
			effect_end(&a->effect, OUTBOX_DEAD, 0);
		else
			attempt_retry(a, wait_ms);
	}
}

void attempt_webhook_send(struct attempt *a)
{
	const struct runner *r = a->runner;
	bool is_cancel = a->effect.row.kind == OUTBOX_WEBHOOK_CANCEL;
	uint8_t mac[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];
	char *event =
	    xasprintf("X-Outpost-Event: %s", is_cancel ? "cancel" : a->effect.row.event_type);
	char *delivery = xasprintf("X-Outpost-Delivery: %s", a->effect.row.dispatch_id);
	char *signature;

	a->is_on_wire = true;
	hmac_sha256(secret_text(r->secret), secret_bytes(r->secret), a->text, a->text_bytes, mac);
	signature = xasprintf("X-Hub-Signature-256: sha256=%s", hex_encode(mac, sizeof(mac), hex));

	a->call.http = (struct http_call){
	    .method = "POST",
	    .url = r->url,
	    .headers = (const char *const[]){"Content-Type: application/json",
		"Accept: application/json, */*", event, delivery, signature, NULL},
	    .body = a->text,
	    .body_bytes = a->text_bytes,
	    .max_answer_bytes = ANSWER_MAX_BYTES,
	    .allow_address = allow_address,
	    .allow_owner = a,
	    .allow_plain_http = strncasecmp(r->url, "http:", 5) == 0,
	    .done = on_webhook_answer,
	};
	http_call_start(a->d->deps.http_client, &a->call.http);
	free(event);
	free(delivery);
	free(signature);
}
