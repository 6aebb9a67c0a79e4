/* GitHub's webhook bodies as model events.
 *
 * Only fields that are used are demanded, each with its type: some of GitHub's own bodies
 * do not satisfy GitHub's schema, and a field that nobody reads is no reason to refuse. */
#ifndef WEBHOOK_PAYLOAD_H
#define WEBHOOK_PAYLOAD_H

#include "model/event.h"

/* See event_parse_fn. A user that no longer exists (null) has the author "". ERR_INVALID
 * also when the body is no JSON, the event is none that is used, or its action is not. */
event_parse_fn event_parse;
/* N_PULL_ACTIONS: not one that is used. */
enum pull_action pull_action_parse(const char *word);

#endif
