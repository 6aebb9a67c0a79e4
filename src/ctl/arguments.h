/* What follows a command, read against a list of its options: whoever writes something else is told
 * which argument is wrong, and how the command is written. */
#ifndef CTL_ARGUMENTS_H
#define CTL_ARGUMENTS_H

#include <stdint.h>

#include "ctl/command.h"

/* One of text, number and flag says where it goes; what is absent leaves it as it was. A text must
 * be NULL before, and cannot be given twice. */
struct argument_option {
	const char *name; /* "--limit" */
	const char **text;
	int64_t *number;
	int64_t min, max; /* of the number; max 0: none */
	bool *flag;
	/* For a text: NULL-terminated, what else is refused; or NULL. */
	const char *const *choices;
};

/* How many rows a list may be asked for; the service gives no more. */
enum { ARGUMENT_LIMIT_MAX = 1000 };
#define ARGUMENT_LIMIT(to)                                                                         \
	{                                                                                          \
		.name = "--limit", .number = (to), .min = 1, .max = ARGUMENT_LIMIT_MAX             \
	}

/* options ends with a name of NULL. Words (borrowed) go into words[], at least n_min of them and at
 * most n_max; none is empty. False: wrong, which was said on stderr; the caller returns EXIT_USAGE. */
bool arguments_read(const char *command, int argc, char **argv,
    const struct argument_option *options, const char **words, int n_min, int n_max);
/* For a command without options, or which reads on its own. False as above. */
bool argument_number(const char *command, const char *what, const char *text, int64_t min,
    int64_t max, int64_t *ret);

#endif
