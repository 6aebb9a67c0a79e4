/* A SOCKS5 server (RFC 1928) on loopback, the only way to the network that git has while it
 * fetches a submodule. It looks the URL's host up itself and connects only to addresses that the
 * change may reach, so the address that was checked is the address that is connected, whatever a
 * name server answers a moment later. It connects to the URL's host and port and nothing else, so
 * a redirect or an alternate leads nowhere.
 *
 * Refused, unless checkout.allow_networks lists them: private, loopback, link-local and other
 * special addresses (config/network.h), the machine's own addresses, and for plain http all. */
#ifndef STEPS_RELAY_H
#define STEPS_RELAY_H

#include <sys/types.h>

#include "config/network.h"
#include "steps/git_url.h"

struct relay {
	pid_t pid;
	int port;     /* on 127.0.0.1 */
	int notes_fd; /* what went wrong, for relay_stop() */
};

enum relay_trouble {
	RELAY_FINE,
	/* No such host, or none of its addresses may be reached. One word for both: the log is
	 * public, and must not say which names a private network knows. */
	RELAY_UNREACHABLE,
	/* an address that may be reached did not take the connection, or no name server answered */
	RELAY_NOT_CONNECTED,
};

/* Runs until relay_stop(), as a process of its own that ends with this one. */
int relay_start(const struct git_url *to, const struct network_list *allowed, struct relay *ret,
    struct error *e) MUST_CHECK;
/* Ends it and all its connections; the worst that happened to one. */
enum relay_trouble relay_stop(struct relay *r);

/* True when the change may have this address connected. */
bool relay_may_reach(
    const struct git_url *to, const struct network_list *allowed, const uint8_t address[16]);

#endif
