/* What gives way when a server is full, so that a newcomer gets in however many connections and
 * bodies a stranger keeps open.
 *
 * A connection may be closed while it waits for its client: in a TLS handshake, between two
 * requests, in a head, in a body that is collected, or while a finished answer leaves. It is never
 * closed while a handler has its request, for instance while a delivery is being written.
 *
 * The order: first connections of clients without an authenticated request in the last hour,
 * then of other clients, and last those whose own last request was authenticated or that come
 * from a trusted proxy. Within each class first those of a client group with more than a 16th of
 * all places, the largest group first, and then those that have kept us waiting longest. A body
 * keeps us waiting as far as it is behind 64 KiB/s.
 *
 * One search closes a 64th of the places at once, so that its cost is spread over as many
 * newcomers. Thread: loop. */
#ifndef HTTP_EVICTION_H
#define HTTP_EVICTION_H

#include <stdbool.h>

struct http_conn;

/* The newcomer, which is not counted as open yet, may stay: there is a place for it, perhaps
 * since this call closed others. */
bool http_evict_for_connection(struct http_conn *newcomer);
/* The body of c does not find room: the slowest bodies are refused with 503, of the same client
 * group when its share is used up. Returns false when none is slow enough. */
bool http_evict_for_body(struct http_conn *c, bool is_share);

#endif
