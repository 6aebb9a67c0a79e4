/* Regular work of the daemon: known issues expire, and logs without a write for retention.logs are
 * deleted. Thread: loop, everything. Owns: the daemon, with upkeep_free(). */
#ifndef DAEMON_UPKEEP_H
#define DAEMON_UPKEEP_H

struct daemon;

/* The daemon's store and logs exist and are closed between upkeep_stop() and upkeep_free(). Begins
 * with the known issues that expired while the daemon was down. */
struct upkeep *upkeep_new(struct daemon *d);
/* A known issue was added: schedules its expiry. */
void upkeep_on_known_issue(struct upkeep *u);
/* Starts no more work. The store and the logs end the operations that were begun. NULL is fine. */
void upkeep_stop(struct upkeep *u);
void upkeep_free(struct upkeep *u); /* NULL is fine */

#endif
