/* Notes: how the subscribers of one node learn what another node has committed.
 *
 * Each batch that has topics sends one note with its transaction (NOTIFY), and a thread of each node listens. A note is only the faster
 * way: after a lost connection everything is rung, and where notes do not arrive (a pooler between the daemon and the database) the thread
 * compares the counts of the others' batches every second. Nothing of this happens with SQLite.
 *
 * Thread: see each function. */
#pragma once

#include "db/db.h"
#include "db/store.h"
#include "db/touched.h"

struct notes;

/* Rings the subscribers of these topics on every node, also without a commit that changes something. Several calls become one operation.
 * Thread: loop. */
void store_announce(struct store *s, unsigned topics);

/* ---- for db/store.c and db/writer.c ---- */

/* Starts the thread. NULL: the database is a file. Thread: loop. */
struct notes *notes_new(struct store *s);
/* Adds a note to the transaction of this batch, if it touched anything. n NULL: does nothing. Thread: the connection's. */
void notes_send(struct notes *n, struct db *d, unsigned topics);
void notes_stop(struct notes *n); /* thread: loop; returns at once. NULL is fine, as below */
void notes_wait(
    struct notes *n); /* the thread has ended; may take as long as a connection attempt. Thread: any except the loop */
void notes_free(struct notes *n); /* thread: loop, after notes_wait() and the last operation */

/* ---- the text of a note, pure: "SENDER TOPICS c1 c2 j3 aNAME", or with "*": anything may look different ---- */
enum { NOTE_SENDER_BYTES = 17, NOTE_MAX_BYTES = 4000 /* PostgreSQL takes 7,999 */ };
/* Writes the text into out (NOTE_MAX_BYTES). */
void note_text(const char *sender, unsigned topics, const struct store_touched *t, char *out);
/* A text that is not understood stands for everything, so that a later release may add to it. Returns false for a note of `sender`
 * itself. */
bool note_parse(const char *text, const char *sender, unsigned *ret_topics, struct store_touched *ret);
