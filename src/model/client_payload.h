/* The `client_payload` of a repository_dispatch and the body of a vendor's webhook:
 * CRCR's three fields and Outpost's own, within GitHub's size limit.
 *
 * Thread: any. Plain data and pure functions; the owner of a struct releases it. */
#pragma once

#include "model/accelerator.h"
#include "model/experiment.h"

/* The credential that goes out with a dispatch and comes back with its reports. This server signs it, for one dispatch
 * and accelerator, until it expires. No row stores it.
 *
 * Text: "oct1." dispatch "." accelerator "." expiry (seconds) "." base64url(HMAC-SHA256). */

#define CALLBACK_TOKEN_PREFIX "oct1."

/* free(). */
char *callback_token_make(
    const struct secret *key, const char *dispatch_id, const char *accelerator, int64_t expires_wall_ms);
/* The dispatch that a token names. It is not verified: call callback_token_check(). NULL: the text is not such a token. free(). */
char *callback_token_dispatch(const char *token);
/* ERR_AUTH: not signed by this server, or for another dispatch; ERR_TIMEOUT: expired. On 0 free() *ret_accelerator. */
int callback_token_check(const struct secret *key, const char *token, const char *dispatch_id, int64_t now_wall_ms,
    char **ret_accelerator) MUST_CHECK;

enum { CLIENT_PAYLOAD_MAX_BYTES = 60000 };

struct outpost_block {
	const char *dispatch_id;
	const char *action;              /* GitHub's original one */
	const char *const *accelerators; /* NULL-terminated */
	const char *callback_url, *change_url;
	const char *callback_token; /* webhook runners only, else NULL */
	/* A periodic run: those of the accelerators that have a source, in their order. */
	const struct source_head *sources;
	size_t n_sources;
	const struct experiment_request *experiment; /* NULL: none */
	const char *before, *after; /* texts around the payload, which do not count for its limit; NULL: none */
};

/* The part that all targets of one change share: GitHub's body with sent_action as its `action` (unless ""), cut where
 * it is over the limit. */
struct client_payload;
/* action: where its value is in a body that is checked already (p NULL: it has none); NULL: the body is checked here. ERR_INVALID:
 * the body is not a JSON object, or has two actions. */
int client_payload_new(const char *event_type, const char *delivery_id, const char *sent_action, const char *body,
    size_t n, const struct json_slice *action, struct client_payload **ret, struct error *e) MUST_CHECK;
void client_payload_free(struct client_payload *p);
/* {"event_type","delivery_id","payload","outpost"} as text, free(). With is_bounded at most CLIENT_PAYLOAD_MAX_BYTES,
 * and `truncated: true` in outpost if it was cut. If the shortest payload does not fit, an experiment has fewer tests,
 * with `truncated` in outpost.experiment. ERR_TOO_BIG: the smallest form does not fit either; ERR_INVALID: the body
 * has to be cut and is not one that json_parse() accepts. */
int client_payload_text(
    struct client_payload *p, const struct outpost_block *o, bool is_bounded, char **ret, size_t *ret_bytes) MUST_CHECK;
