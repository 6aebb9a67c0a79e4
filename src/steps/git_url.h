/* The URLs that submodules are fetched from. The author of the change writes them, so they are
 * read strictly: git, curl and this parser must agree on the host. Pure. */
#ifndef STEPS_GIT_URL_H
#define STEPS_GIT_URL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

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

/* The URL that .gitmodules means: `written`, or where that begins with ./ or ../, `written` as
 * git resolves it from `parent`. NULL: there is none. free(). */
char *git_url_resolve(const char *parent, const char *written);

#endif
