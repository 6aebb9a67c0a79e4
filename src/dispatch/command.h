/* Finds the commands in a comment on a pull request: `@BOT retest …`, each on a line of its own.
 *
 * Rule guarded here: text that GitHub shows as a quotation or as code, or does not show (an HTML comment), is not a
 * command, because the comment's author did not give it. In doubt the line is not a command.
 *
 * Thread: any. A pure function. Owns: the caller owns `ret`. */
#ifndef DISPATCH_COMMAND_H
#define DISPATCH_COMMAND_H

#include <stddef.h>

#include "model/event.h"

/* Fills ret with at most COMMANDS_MAX commands in their order, and returns their number. If a comment contains both
 * `ok-to-test` and `ok-to-test cancel`, only the cancel counts. slug: the App's, without @; NULL: any name. */
size_t commands_find(const char *text, const char *slug, struct command ret[COMMANDS_MAX]);

#endif
