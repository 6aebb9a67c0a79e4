/* What a comment on a pull request asks of this program: `@BOT ok-to-test [SHA]` or
 * `@BOT ok-to-test cancel` on a line of its own. Pure.
 *
 * Rule guarded here: text that a reader sees as a quotation, as code or not at all (an HTML
 * comment) is no command, because whoever wrote it did not say it. In doubt it is none. */
#ifndef DISPATCH_COMMAND_H
#define DISPATCH_COMMAND_H

enum command_kind { /* of several in one comment the latest of these counts */
	COMMAND_NONE,
	COMMAND_UNKNOWN, /* addressed to the bot, but nothing that it knows */
	COMMAND_OK_TO_TEST,
	COMMAND_DECLINE, /* ok-to-test cancel: who says both has not made up their mind */
};

struct command {
	enum command_kind kind;
	char sha[41]; /* of ok-to-test; "" when none was named. 7 to 40 digits, lower case */
};

/* The first line of the kind that counts; COMMAND_UNKNOWN when a line at least addresses the
 * bot. slug: the App's, without @. */
struct command command_find(const char *text, const char *slug);

#endif
