/* The bodies of webhooks, compressed. Those of one event are nearly alike, so a body is stored as the difference to its base: an
 * earlier body of that event, in the table `body_base`. This takes a tenth of the room, and half of the time.
 *
 * A base is never changed and never deleted, because any number of deliveries may need it. It is used for a month, so there are
 * a dozen small ones a year for each event.
 *
 * Thread: the connection's. */
#pragma once

#include "db/db.h"

/* Replaces the content of out. Returns the id of the base, 0 for none. A body that cannot be stored makes the connection fail. */
int64_t body_pack(struct txn *d, const char *event, const void *body, size_t n, int64_t now_ms, struct buf *out);
/* Replaces the content of out. ERR_CORRUPT: they do not fit together; ERR_TOO_BIG: longer than out->max. */
int body_unpack(const struct view *d, int64_t base_id, const void *p, size_t n, struct buf *out) MUST_CHECK;

/* ---- for db_sqlite*.c: the bases that a connection remembers ---- */
struct body_bases;
void body_bases_free(struct body_bases *b); /* NULL is fine */
/* Undone changes may have made a base: after them it must not be used. */
void body_bases_undone(struct body_bases *b);
void body_bases_committed(struct body_bases *b);
