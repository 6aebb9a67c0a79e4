/* What is left of a day when its details have gone: one row an accelerator and UTC day, made of its
 * runs. Trends of a year are read from these and from nothing else. */
#ifndef STORE_DAYS_H
#define STORE_DAYS_H

#include "store/db.h"

#define DAY_MS INT64_C(86400000)

/* Days since 1970, UTC. */
int64_t day_of(int64_t wall_ms);

/* A run that ended then was written, changed or taken away: the day is made anew, unless one of its
 * runs has gone by retention. Inside a writer's transaction. */
void day_note(struct db *d, const char *accelerator, int64_t ended_ms);
/* The change goes, and its runs with it: their days are final. Before they go. Inside a writer's
 * transaction. */
void days_close(struct db *d, int64_t change_id);
/* Days and their numbers that are over before before_ms go, a piece of `limit` rows at a time. True:
 * there may be more. Inside a writer's transaction. */
bool days_drop(struct db *d, int64_t before_ms, int limit);

/* Once, of what versions before the fourth recorded: counts the cells of the newest runs of pushes,
 * as many as a second or two allows, and makes every day and number that is on record. At the
 * start, in a transaction of its own. */
int days_fill(struct db *d, struct error *e) MUST_CHECK;

#endif
