-- verdict_red of version 1 was never used: the primary key begins with change_id as well.

DROP INDEX verdict_red;
ALTER TABLE job ADD COLUMN message TEXT;
ALTER TABLE job ADD COLUMN environment TEXT;
ALTER TABLE job ADD COLUMN report_digest BLOB;
ALTER TABLE job ADD COLUMN n_cut INTEGER NOT NULL DEFAULT 0;
ALTER TABLE job ADD COLUMN log_bytes INTEGER;
ALTER TABLE job ADD COLUMN is_log_complete INTEGER NOT NULL DEFAULT 0;
ALTER TABLE result ADD COLUMN trace TEXT;
CREATE INDEX dispatch_pull_queue ON dispatch (accelerator, runner, created_ms, id)
    WHERE kind = 'pull' AND state = 'queued';

CREATE TABLE lease (
    id TEXT PRIMARY KEY, dispatch_id TEXT NOT NULL, accelerator TEXT NOT NULL,
    runner TEXT NOT NULL, machine TEXT NOT NULL, claim_id TEXT NOT NULL,
    attempt INTEGER NOT NULL, job_id INTEGER, max_parallel INTEGER NOT NULL,
    state TEXT NOT NULL, reason TEXT, lease_ms INTEGER NOT NULL, until_ms INTEGER NOT NULL,
    granted_ms INTEGER NOT NULL, ended_ms INTEGER) WITHOUT ROWID;
CREATE UNIQUE INDEX lease_of_dispatch ON lease (dispatch_id, attempt);
CREATE UNIQUE INDEX lease_one_active ON lease (dispatch_id) WHERE state = 'active';
CREATE INDEX lease_of_runner ON lease (accelerator, runner) WHERE state = 'active';
CREATE UNIQUE INDEX lease_of_claim ON lease (accelerator, machine, claim_id)
    WHERE state = 'active';
CREATE INDEX lease_until ON lease (until_ms) WHERE state = 'active';
CREATE INDEX lease_of_accelerator ON lease (accelerator, granted_ms);
CREATE INDEX lease_granted ON lease (granted_ms);

CREATE TABLE token (
    id INTEGER PRIMARY KEY, kind TEXT NOT NULL, accelerator TEXT NOT NULL,
    name TEXT NOT NULL, hash BLOB NOT NULL UNIQUE, created_ms INTEGER NOT NULL,
    last_used_ms INTEGER, last_address TEXT, revoked_ms INTEGER);
CREATE INDEX token_valid ON token (accelerator, name, kind) WHERE revoked_ms IS NULL;
