/* GitHub's webhooks: decides which of them are used, and reads their bodies as model events.
 *
 * Thread: any. Pure functions. Owns: the caller owns an event, with event_release(). */
#ifndef WEBHOOK_PAYLOAD_H
#define WEBHOOK_PAYLOAD_H

#include "config/config.h"
#include "model/event.h"
#include "webhook/skim.h"

enum webhook_class {
	WEBHOOK_USED,
	WEBHOOK_PONG,
	WEBHOOK_IGNORED,
};

/* event: the X-GitHub-Event header. *ret_reason (static) is the reason if the webhook is ignored. Of the configuration
 * only upstream's repository (compared without case) and branches count. */
enum webhook_class webhook_classify(
    const char *event, const struct skim *s, const struct config *c, const char **ret_reason);

/* A push to the branch that accelerators.git follows: its url is https://HOST/owner/name(.git) with the
 * repository's name (compared without case). */
bool webhook_is_registry_push(const char *event, const struct skim *s, const struct config *c);

/* Requires only the fields that are used, each with its type: some of GitHub's own bodies do not satisfy GitHub's
 * schema. See event_parse_fn. A user that no longer exists (null) has the author "". ERR_INVALID also if the body
 * is not JSON, or the event or its action is not used. */
event_parse_fn event_parse;

#endif
