/* Which webhooks are used: contract's table of events, as a pure function. */
#ifndef WEBHOOK_CLASSIFY_H
#define WEBHOOK_CLASSIFY_H

#include "config/config.h"
#include "webhook/skim.h"

enum webhook_class {
	WEBHOOK_USED,
	WEBHOOK_PONG,
	WEBHOOK_IGNORED,
};

/* event: the X-GitHub-Event header. *ret_reason (static) says why it is ignored. Of the
 * configuration only upstream's repository (compared without case) and branches count. */
enum webhook_class webhook_classify(
    const char *event, const struct skim *s, const struct config *c, const char **ret_reason);

/* A push to the branch that accelerators.git follows: its url is https://HOST/owner/name(.git) with the
 * repository's name (compared without case). */
bool webhook_is_registry_push(const char *event, const struct skim *s, const struct config *c);

#endif
