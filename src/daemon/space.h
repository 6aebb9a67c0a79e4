/* The space that the database takes, for `outpostctl status`. A small database is measured for each status. A large one is
 * measured in the background when a status asks and the last figures are old; the status shows these and their age.
 *
 * Thread: loop. Owns: the daemon, with space_watch_free() after the store has closed. */
#pragma once

#include "db/store.h"

struct space_watch;

/* store: where the daemon has its store, which may not exist yet. */
struct space_watch *space_watch_new(struct store *const *store);
void space_watch_free(struct space_watch *w); /* NULL is fine */

/* The caller owns it until done(). */
struct space_wait {
	/* Once, inside of space_ask() or later. space: a new reference; JSON's null: it is not known yet. */
	void (*done)(json_t *space, void *owner);
	void *owner;
	STAILQ_ENTRY(space_wait) link; /* space.c's own */
};
void space_ask(struct space_watch *w, int64_t file_bytes, struct space_wait *wait);
