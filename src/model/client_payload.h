/* The `client_payload` of a repository_dispatch and the body of a vendor's webhook:
 * CRCR's three fields and Outpost's own, within GitHub's size limit. */
#ifndef MODEL_CLIENT_PAYLOAD_H
#define MODEL_CLIENT_PAYLOAD_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "model/experiment.h"
#include "model/source_head.h"

enum { CLIENT_PAYLOAD_MAX_BYTES = 60000 };

struct outpost_block {
	const char *dispatch_id;
	const char *action;              /* GitHub's original one */
	const char *const *accelerators; /* NULL-terminated */
	const char *callback_url, *change_url;
	const char *callback_token; /* webhook runners only, else NULL */
	/* A periodic run: of those accelerators that have a source, in their order. */
	const struct source_head *sources;
	size_t n_sources;
	const struct experiment_request *experiment; /* NULL: none */
};

/* The part that all targets of one change share, made once per change: GitHub's body with `action`
 * replaced by sent_action (unless ""), cut when it would pass the limit. */
struct client_payload;

/* ERR_INVALID when body is no JSON object. */
int client_payload_new(const char *event_type, const char *delivery_id, const char *sent_action,
    const char *body, size_t n, struct client_payload **ret, struct error *e) MUST_CHECK;
void client_payload_free(struct client_payload *p);
/* {"event_type","delivery_id","payload","outpost"} as text, free(). At most
 * CLIENT_PAYLOAD_MAX_BYTES when is_bounded; `truncated: true` in outpost when it was cut.
 * Where even the shortest payload does not fit, an experiment goes with fewer tests and says so
 * (`truncated` in outpost.experiment). ERR_TOO_BIG when even the smallest form does not fit. */
int client_payload_text(struct client_payload *p, const struct outpost_block *o, bool is_bounded,
    char **ret, size_t *ret_bytes) MUST_CHECK;

#endif
