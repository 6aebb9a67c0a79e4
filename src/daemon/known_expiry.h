/* Known issues whose time has run out: what they explained is looked at again when it has. Thread:
 * loop. */
#ifndef DAEMON_KNOWN_EXPIRY_H
#define DAEMON_KNOWN_EXPIRY_H

struct daemon;
struct known_expiry;

/* Looks at once: some may have run out while nobody was there. */
struct known_expiry *known_expiry_new(struct daemon *d);
/* One was added: looks when the next one is due. */
void known_expiry_look(struct known_expiry *x);
void known_expiry_stop(struct known_expiry *x); /* before the store is closed; NULL is fine */
void known_expiry_free(struct known_expiry *x); /* the store is closed; NULL is fine */

#endif
