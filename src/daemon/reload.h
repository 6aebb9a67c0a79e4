/* New configuration in a running daemon: read in the pool, then put in force everywhere, or refused
 * with the reason and the old one kept. One at a time, whoever asks. Thread: loop. */
#ifndef DAEMON_RELOAD_H
#define DAEMON_RELOAD_H

struct daemon;

/* SIGHUP: everything again, with the registry's commit that is in force. A signal during a reload
 * is answered by one more reload after it. */
void reload_start(struct daemon *d);
/* Everything again, with the registry's files of another commit, checked out in `folder`. The
 * registry gets its registry_answer() when it is over, unless the daemon stops before. */
void reload_try_commit(struct daemon *d, const char *folder);

#endif
