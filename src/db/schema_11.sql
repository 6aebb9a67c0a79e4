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
-- the logs of jobs, where they grow in the database: in pieces, and after their end as compressed text, here or elsewhere
CREATE TABLE log (
    job_id INTEGER PRIMARY KEY, bytes INTEGER NOT NULL, tail_at INTEGER NOT NULL, is_complete INTEGER NOT NULL, has_pieces INTEGER NOT NULL,
    place TEXT, object_bytes INTEGER, written_ms INTEGER NOT NULL, moving_until_ms INTEGER NOT NULL DEFAULT 0, mover INTEGER);
CREATE TABLE log_piece (job_id INTEGER NOT NULL, at INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (job_id, at));
CREATE TABLE log_object (job_id INTEGER NOT NULL, at INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (job_id, at));
CREATE INDEX log_to_move ON log (moving_until_ms, job_id) WHERE is_complete = 1 AND has_pieces = 1;
CREATE INDEX log_written ON log (written_ms);
-- of a copy into this database that is not complete, how many rows of each table are copied (db/copy.h)
CREATE TABLE unfinished_copy (name TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;
