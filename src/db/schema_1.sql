CREATE TABLE setting (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE counter (name TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID;

CREATE TABLE delivery (
    id INTEGER PRIMARY KEY, guid NOT NULL UNIQUE, event TEXT NOT NULL, action TEXT NOT NULL,
    repository TEXT NOT NULL, received_ms INTEGER NOT NULL, state TEXT NOT NULL,
    n_attempts INTEGER NOT NULL, is_synthetic INTEGER NOT NULL, planned_ms INTEGER,
    error TEXT, body_bytes INTEGER NOT NULL, body BLOB);
CREATE INDEX delivery_accepted ON delivery (id) WHERE state = 'accepted';
CREATE INDEX delivery_failed ON delivery (id) WHERE state = 'failed';
CREATE TABLE redelivery (guid PRIMARY KEY, n INTEGER NOT NULL, last_ms INTEGER NOT NULL)
    WITHOUT ROWID;
CREATE INDEX redelivery_last ON redelivery (last_ms);

CREATE TABLE change (
    id INTEGER PRIMARY KEY, kind TEXT NOT NULL, repository TEXT NOT NULL,
    repository_key TEXT NOT NULL, head_sha TEXT NOT NULL, ref TEXT, base_ref TEXT,
    base_sha TEXT, merge_base_sha TEXT, merge_base_ms INTEGER, title TEXT, author TEXT,
    state TEXT NOT NULL, is_released INTEGER NOT NULL DEFAULT 0,
    created_ms INTEGER NOT NULL, active_ms INTEGER NOT NULL);
CREATE UNIQUE INDEX change_identity ON change (repository_key, head_sha, kind);
CREATE INDEX change_active ON change (active_ms);
CREATE TABLE pull (
    repository_key TEXT NOT NULL, number INTEGER NOT NULL, repository TEXT NOT NULL,
    change_id INTEGER NOT NULL, state TEXT NOT NULL, title TEXT, author TEXT,
    association TEXT, labels TEXT, is_draft INTEGER NOT NULL, base_ref TEXT, base_sha TEXT,
    updated_ms INTEGER NOT NULL, PRIMARY KEY (repository_key, number)) WITHOUT ROWID;
CREATE INDEX pull_of_change ON pull (change_id, state);
CREATE INDEX pull_open ON pull (repository_key, state, number, change_id, updated_ms);
CREATE TABLE pull_head (
    repository_key TEXT NOT NULL, number INTEGER NOT NULL, since_ms INTEGER NOT NULL,
    change_id INTEGER NOT NULL, PRIMARY KEY (repository_key, number, since_ms, change_id))
    WITHOUT ROWID;
CREATE INDEX pull_head_of_change ON pull_head (change_id);
CREATE TABLE change_files (
    repository_key TEXT NOT NULL, head_sha TEXT NOT NULL, files TEXT NOT NULL,
    created_ms INTEGER NOT NULL, PRIMARY KEY (repository_key, head_sha)) WITHOUT ROWID;
CREATE INDEX change_files_created ON change_files (created_ms);

CREATE TABLE dispatch (
    id TEXT NOT NULL, accelerator TEXT NOT NULL, runner TEXT NOT NULL,
    change_id INTEGER NOT NULL, kind TEXT NOT NULL, target TEXT NOT NULL,
    target_key TEXT NOT NULL, round INTEGER NOT NULL, round_ms INTEGER NOT NULL,
    is_current INTEGER NOT NULL, state TEXT NOT NULL, held_reason TEXT,
    is_held_for_good INTEGER NOT NULL, number INTEGER NOT NULL,
    delivery_guid TEXT NOT NULL, event_type TEXT NOT NULL, sent_action TEXT NOT NULL,
    original_action TEXT NOT NULL, acknowledge_ms INTEGER NOT NULL, start_ms INTEGER NOT NULL,
    finish_ms INTEGER NOT NULL, ack_by_ms INTEGER, start_by_ms INTEGER, finish_by_ms INTEGER,
    next_due_ms INTEGER, created_ms INTEGER NOT NULL, sent_ms INTEGER, finished_ms INTEGER,
    is_late INTEGER NOT NULL DEFAULT 0, is_closed_told INTEGER NOT NULL DEFAULT 0,
    last_error TEXT, PRIMARY KEY (id, accelerator, runner)) WITHOUT ROWID;
CREATE UNIQUE INDEX dispatch_current ON dispatch (change_id, accelerator, runner)
    WHERE is_current = 1;
CREATE INDEX dispatch_of_change ON dispatch (change_id, accelerator, created_ms);
CREATE INDEX dispatch_due ON dispatch (next_due_ms) WHERE next_due_ms IS NOT NULL;
CREATE INDEX dispatch_target ON dispatch (target_key, delivery_guid);
CREATE INDEX dispatch_of_accelerator ON dispatch (accelerator, created_ms);
CREATE INDEX dispatch_expired ON dispatch (accelerator, created_ms)
    WHERE state = 'expired';
CREATE INDEX dispatch_created ON dispatch (created_ms);
CREATE INDEX dispatch_held ON dispatch (delivery_guid) WHERE state = 'held';

CREATE TABLE outbox (
    id INTEGER PRIMARY KEY, kind TEXT NOT NULL, key TEXT NOT NULL UNIQUE, lane TEXT NOT NULL,
    target TEXT NOT NULL, target_key TEXT NOT NULL, number INTEGER NOT NULL, change_id INTEGER,
    dispatch_id TEXT NOT NULL, runner TEXT NOT NULL, delivery_guid TEXT NOT NULL,
    event_type TEXT NOT NULL, sent_action TEXT NOT NULL, original_action TEXT NOT NULL,
    state TEXT NOT NULL, owner TEXT, lease_until_ms INTEGER, n_attempts INTEGER NOT NULL,
    first_ms INTEGER NOT NULL, next_ms INTEGER NOT NULL, generation INTEGER NOT NULL,
    is_uncertain INTEGER NOT NULL, is_dropped INTEGER NOT NULL, last_error TEXT);
CREATE INDEX outbox_due ON outbox (kind, next_ms, id) WHERE state IN ('due', 'waiting');
CREATE INDEX outbox_lane ON outbox (lane, id) WHERE state IN ('due', 'waiting', 'sending');
CREATE INDEX outbox_state ON outbox (state, first_ms)
    WHERE state IN ('due', 'waiting', 'sending', 'dead');
CREATE INDEX outbox_closed ON outbox (target_key, delivery_guid)
    WHERE kind = 'github_closed';
CREATE INDEX outbox_unsent ON outbox (delivery_guid)
    WHERE state IN ('due', 'waiting', 'sending');
CREATE INDEX outbox_of_change ON outbox (change_id);

CREATE TABLE job (
    id INTEGER PRIMARY KEY, change_id INTEGER NOT NULL, dispatch_id TEXT NOT NULL,
    accelerator TEXT NOT NULL, runner TEXT NOT NULL, workflow TEXT NOT NULL,
    name TEXT NOT NULL, run_id TEXT NOT NULL, run_attempt INTEGER NOT NULL,
    status TEXT NOT NULL, conclusion TEXT, verdict TEXT, is_current INTEGER NOT NULL,
    is_late INTEGER NOT NULL, is_push INTEGER NOT NULL, url TEXT, artifact_url TEXT,
    check_run_id TEXT, digest BLOB, n_tests INTEGER NOT NULL, n_red INTEGER NOT NULL,
    n_passed INTEGER, n_failed INTEGER, n_skipped INTEGER, n_total INTEGER,
    started_ms INTEGER, completed_ms INTEGER, reported_ms INTEGER NOT NULL,
    vendor_started_ms INTEGER, vendor_completed_ms INTEGER);
CREATE UNIQUE INDEX job_identity ON job
    (change_id, dispatch_id, accelerator, workflow, name, run_id, run_attempt);
CREATE INDEX job_current ON job (change_id, accelerator, workflow, name)
    WHERE is_current = 1;
CREATE INDEX job_verdict ON job (accelerator, verdict, reported_ms) WHERE is_current = 1;
CREATE INDEX job_push ON job (accelerator, change_id, verdict, completed_ms)
    WHERE is_push = 1 AND is_current = 1;
CREATE TABLE test (id INTEGER PRIMARY KEY, suite TEXT NOT NULL, name TEXT NOT NULL,
    UNIQUE (suite, name));
CREATE TABLE result (
    job_id INTEGER NOT NULL, ordinal INTEGER NOT NULL, test_id INTEGER NOT NULL,
    status TEXT NOT NULL, duration_ms INTEGER, dtype TEXT, message TEXT, number REAL,
    unit TEXT, log_url TEXT, PRIMARY KEY (job_id, ordinal)) WITHOUT ROWID;
CREATE TABLE verdict (
    change_id INTEGER NOT NULL, accelerator TEXT NOT NULL, test_id INTEGER NOT NULL,
    status TEXT NOT NULL, attribution TEXT, message TEXT, job_id INTEGER,
    is_late INTEGER NOT NULL, PRIMARY KEY (change_id, accelerator, test_id)) WITHOUT ROWID;
CREATE INDEX verdict_red ON verdict (change_id) WHERE attribution IS NOT NULL;

CREATE TABLE comment (
    repository_key TEXT NOT NULL, number INTEGER NOT NULL, comment_id INTEGER NOT NULL,
    body_hash BLOB NOT NULL, written_ms INTEGER NOT NULL, has_red_written INTEGER NOT NULL,
    PRIMARY KEY (repository_key, number)) WITHOUT ROWID;
CREATE TABLE accelerator (
    name TEXT PRIMARY KEY, title TEXT NOT NULL, vendor TEXT, level INTEGER NOT NULL,
    docs_url TEXT, help_url TEXT, oncall TEXT NOT NULL, is_gone INTEGER NOT NULL,
    first_ms INTEGER NOT NULL, last_report_ms INTEGER) WITHOUT ROWID;
CREATE TABLE runner (
    accelerator TEXT NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL, target TEXT NOT NULL,
    is_gone INTEGER NOT NULL, PRIMARY KEY (accelerator, name)) WITHOUT ROWID;
