/* The tables and how older files are brought to them. */
#ifndef STORE_SCHEMA_H
#define STORE_SCHEMA_H

#include "store/db.h"

enum { SCHEMA_VERSION = 6 };

/* The script that makes version n+1 of version n; NULL past the last. */
const char *schema_step(int64_t version);
/* Creates or migrates, each step in a transaction of its own. ERR_TOO_NEW: a newer program
 * wrote it; ERR_CORRUPT: damaged, or not Outpost's. Nothing is changed then. */
int schema_apply(struct db *d, const char *path, struct error *e) MUST_CHECK;
/* The same look without the changes, at a file that need not exist. */
int schema_examine(const char *path, struct error *e) MUST_CHECK;

#endif
