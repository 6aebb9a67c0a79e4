/* What `runner` and `token` have in common: vendors' credentials over the control socket. */
#ifndef CTL_TOKENS_H
#define CTL_TOKENS_H

#include "base/json.h"
#include "ctl/command.h"

/* What is asked for; kind is "runner" or "api". */
struct token_asked {
	const char *kind;
	const char *accelerator, *name; /* or NULL */
	int64_t id;                     /* 0: all, or none given */
};

/* Reads what follows the command, as arguments_read() does. `takes` is a string of the options'
 * first letters that the command has: "ai" is --accelerator and --id. False: the command is not
 * written so, which was said. */
bool token_options(const char *command, int argc, char **argv, const char *takes,
    const char **words, int n_min, int n_max, struct token_asked *ret);
/* A new token: on 0, *ret is the service's answer; the token was printed alone on stdout (with
 * --json the whole answer), and nothing else was. */
int token_add(const struct ctl *ctl, const struct token_asked *asked, json_t **ret);
int token_revoke(const struct ctl *ctl, const struct token_asked *asked);
int token_list(const struct ctl *ctl, const struct token_asked *asked, json_t **ret);

#endif
