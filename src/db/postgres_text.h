/* One SQL text serves both engines. It is SQLite's; this makes PostgreSQL's of it. The lint of the statements
 * (tests/lint/sql.mjs) compiles the same file.
 *
 * Thread: any; pure. */
#pragma once

/* Returns the statement with $1 for ?1, and without the hints to SQLite's planner: CROSS JOIN (keep the order of the tables) and INDEXED
 * BY. free() it. */
char *postgres_text(const char *sql);
