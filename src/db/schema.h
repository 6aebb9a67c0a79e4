/* The tables, and the steps that bring an older file to them. src/db/schema_N.sql makes version N of version N-1; the build
 * embeds these files. docs/schema.md explains each table.
 *
 * A script that was released never changes: the next version gets its own file, and SCHEMA_VERSION rises. States are stored
 * by name. Names of repositories stand as given beside a lower-case key that comparisons use. Times are milliseconds since
 * 1970. */
#pragma once

#include "db/db.h"

enum { SCHEMA_VERSION = 14 };

/* Script n makes version n+1 of version n. */
extern const char *const SCHEMA_STEPS[SCHEMA_VERSION];

/* PostgreSQL begins with a later version. src/db/postgres_schema.sql is made of the scripts above (node tests/lint/sql.mjs --schema),
 * and postgres_functions.sql is added to it. src/db/postgres_N.sql makes version N of an existing database.
 *
 * Daemons of two releases may use one database for a while. So a step only adds (expand), and a later release removes (contract). An
 * index may go at once, because an older program works without it, only slower.
 * The table outpost_schema has the version, and the oldest SCHEMA_VERSION of a program that still works with it: 11, because an older
 * program takes the rows that another daemon is sending for those of a dead one. */
enum { POSTGRES_FIRST_VERSION = 10, POSTGRES_READABLE_FROM = 11 };
extern const char POSTGRES_SCHEMA[];
/* The step to each version; NULL: there is none. */
extern const char *const POSTGRES_STEPS[SCHEMA_VERSION + 1];
/* Creates or migrates the file, each step in a transaction of its own. ERR_TOO_NEW: a newer program wrote it;
 * ERR_CORRUPT: damaged, or not Outpost's. Nothing changes then. Thread: the caller's, which owns d. */
int schema_apply(struct db *d, const char *path, struct error *e) MUST_CHECK;
/* Checks the same without a change. A file that does not exist is fine. */
int schema_examine(const char *path, struct error *e) MUST_CHECK;
