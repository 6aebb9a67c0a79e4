-- several daemons on one database: each start is a node with a number of its own
CREATE TABLE node (
    epoch INTEGER PRIMARY KEY, name TEXT NOT NULL, version TEXT NOT NULL, schema_version INTEGER NOT NULL,
    started_ms INTEGER NOT NULL, seen_ms INTEGER NOT NULL, gone_ms INTEGER, batch INTEGER NOT NULL DEFAULT 0);
CREATE TABLE node_independent (epoch INTEGER PRIMARY KEY, batch INTEGER NOT NULL DEFAULT 0);
CREATE TABLE seat (
    name TEXT PRIMARY KEY, epoch INTEGER NOT NULL, until_ms INTEGER NOT NULL) WITHOUT ROWID;
ALTER TABLE outbox ADD COLUMN epoch INTEGER;
ALTER TABLE staged ADD COLUMN epoch INTEGER;
-- content writes on GitHub of the last hour, for the node that writes next
CREATE TABLE content_write (id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, n INTEGER NOT NULL);
