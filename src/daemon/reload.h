/* SIGHUP: read everything again in the pool, then swap the snapshot, or keep the old one
 * and say why. */
#ifndef DAEMON_RELOAD_H
#define DAEMON_RELOAD_H

struct daemon;

/* Thread: loop. A signal during a reload is answered by one more reload after it. */
void reload_start(struct daemon *d);

#endif
