/* Which commands a comment on a pull request holds: `@BOT retest …`, one on a line of its own.
 * Pure.
 *
 * Rule guarded here: text that a reader sees as a quotation, as code or not at all (an HTML
 * comment) is no command, because whoever wrote it did not say it. In doubt it is none. */
#ifndef DISPATCH_COMMAND_H
#define DISPATCH_COMMAND_H

#include <stddef.h>

#include "model/command.h"

/* Fills ret with at most COMMANDS_MAX, in their order; returns how many. Who says `ok-to-test`
 * and `ok-to-test cancel` in one comment has not made up their mind: only the cancel is left.
 * slug: the App's, without @; NULL: whoever is addressed. */
size_t commands_find(const char *text, const char *slug, struct command ret[COMMANDS_MAX]);

#endif
