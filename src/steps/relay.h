/* A SOCKS5 server (RFC 1928) on loopback: the only way to the network that git has while it fetches a submodule.
 *
 * It looks the URL's host up itself and connects only to addresses that the change may reach, so the address
 * that was checked is the address that is connected, even if a name server answers differently a moment
 * later. It connects only to the URL's host and port, so a redirect or an alternate leads nowhere.
 *
 * Refused, unless checkout.allow_networks lists them: private, loopback, link-local and other special
 * addresses (config/network.h), the machine's own addresses, and for plain http every address.
 *
 * Thread: the only one of the job's process, because it forks. */
#pragma once

#include "config/network.h"
#include "steps/git.h"

struct relay {
	pid_t pid;
	int port;     /* on 127.0.0.1 */
	int notes_fd; /* its children write failures there, for relay_stop() */
};

enum relay_trouble {
	RELAY_FINE,
	/* No such host, or none of its addresses may be reached. One value for both: the log is public
	 * and must not show which names a private network knows. */
	RELAY_UNREACHABLE,
	/* an allowed address did not accept the connection, or no name server answered */
	RELAY_NOT_CONNECTED,
};

/* Starts it as a process that runs until relay_stop() or until this process ends. `to` and `allowed` are
 * copied by the fork. ERR_IO. */
int relay_start(
    const struct git_url *to, const struct network_list *allowed, struct relay *ret, struct error *e) MUST_CHECK;
/* Ends it and all its connections. Returns the worst trouble of any connection. */
enum relay_trouble relay_stop(struct relay *r);

/* True if a submodule's fetch may connect to this address. */
bool relay_may_reach(const struct git_url *to, const struct network_list *allowed, const uint8_t address[16]);
