/* Runs the git program for a job. git obeys the settings that are written here and those of checkout.git_config, and
 * nothing else: no configuration of the user or the system, no hook, no filter, no credential helper, no ~/.netrc. It
 * asks no person anything and follows no redirect. Its progress goes to the job's log once a second.
 *
 * Thread: the only one of the job's process; git_url_parse() and git_url_resolve() are pure, for any thread. Every call
 * that runs git blocks and returns ERR_CANCELLED or ERR_TIMEOUT if the job's time is over, or the error of a git that
 * could not be run. Its `args` end with NULL. */
#pragma once

#include "steps/job.h"

/* ---- running git ---- */

struct git_end {
	bool is_done;       /* it exited with 0 */
	bool is_missing;    /* the server does not have the commit or does not hand it out */
	bool is_redirect;   /* the server answered with a redirect */
	bool is_final;      /* trying again does not help */
	char message[1024]; /* why not, one line; "" if it is done */
};

/* The author of the URL that git fetches from: it decides what git may use to reach the server. */
struct git_remote {
	enum {
		/* checkout.git_url: the operator's proxies, ssh keys and checkout.git_config */
		GIT_OPERATORS_URL,
		/* a submodule's: `proxy` is the only way out, and there is no login of any kind */
		GIT_CHANGES_URL,
	} kind;
	const char *proxy; /* GIT_CHANGES_URL: a proxy's URL */
	bool is_plain;     /* GIT_CHANGES_URL: http instead of https */
};

/* Runs git with the network of this remote; NULL: without the network, as all below. 0: git ran, and *ret says how it
 * ended. */
int git_fetch(struct job *j, const char *folder, const struct git_remote *remote, const char *const *args,
    struct git_end *ret, struct error *e) MUST_CHECK;
/* Fails with ERR_IO and git's message if git fails. */
int git_must(struct job *j, const char *folder, const char *const *args, struct error *e) MUST_CHECK;
/* *ret: the output of git without its last line break; "" if git fails. The output is not logged. free(). */
int git_ask(struct job *j, const char *folder, const char *const *args, char **ret, struct error *e) MUST_CHECK;
/* The same with all bytes, which may be NUL too. */
int git_ask_bytes(
    struct job *j, const char *folder, const char *const *args, char **ret, size_t *ret_n, struct error *e) MUST_CHECK;

/* ---- the URLs that submodules are fetched from: the author of a change writes them, so the parser is strict;
 * git, curl and this parser must agree on the host ---- */

enum { GIT_HOST_MAX_BYTES = 253 };

struct git_url {
	bool is_plain;                     /* http instead of https */
	char host[GIT_HOST_MAX_BYTES + 1]; /* lower case; an IPv6 address without its brackets */
	int port;
	bool is_address; /* the host is a literal address: this one */
	uint8_t address[16];
};

/* https://HOST[:PORT]/PATH, or the same with http. HOST is a domain name of letters, digits, "-"
 * and "_", a dotted quad, or an IPv6 address in brackets: no user, no escapes, no shortened or
 * hexadecimal IPv4 address, no final dot. ERR_INVALID: anything else. */
int git_url_parse(const char *text, struct git_url *ret) MUST_CHECK;

/* The URL that .gitmodules means: `written`; if it begins with ./ or ../, as git resolves it from `parent`. NULL:
 * it leads nowhere. free(). */
char *git_url_resolve(const char *parent, const char *written);
