-- experiments: tests that run again at a named commit
ALTER TABLE change ADD COLUMN experiment_id INTEGER NOT NULL DEFAULT 0;
DROP INDEX change_identity;
CREATE UNIQUE INDEX change_identity ON change
    (repository_key, head_sha, kind, experiment_id);
ALTER TABLE runner ADD COLUMN reruns TEXT NOT NULL DEFAULT 'none';
ALTER TABLE accelerator ADD COLUMN experiment_tests INTEGER NOT NULL DEFAULT 50;
ALTER TABLE accelerator ADD COLUMN experiment_per_head INTEGER NOT NULL DEFAULT 2;
ALTER TABLE accelerator ADD COLUMN experiment_share INTEGER NOT NULL DEFAULT 100;
ALTER TABLE verdict ADD COLUMN needs INTEGER NOT NULL DEFAULT 0;
-- vendors know its id, which never means another one
CREATE TABLE experiment (
    id INTEGER PRIMARY KEY AUTOINCREMENT, change_id INTEGER NOT NULL, accelerator TEXT NOT NULL,
    runner TEXT NOT NULL, dispatch_id TEXT NOT NULL, cause TEXT NOT NULL,
    round INTEGER NOT NULL, side TEXT NOT NULL, sha TEXT NOT NULL, state TEXT NOT NULL,
    reason TEXT, run_change_id INTEGER, command_id INTEGER, created_ms INTEGER NOT NULL,
    started_ms INTEGER, ended_ms INTEGER, expires_ms INTEGER NOT NULL);
CREATE INDEX experiment_of_change ON experiment (change_id, accelerator);
CREATE INDEX experiment_of_run ON experiment (run_change_id)
    WHERE run_change_id IS NOT NULL;
CREATE INDEX experiment_of_commit ON experiment (accelerator, sha, side);
CREATE INDEX experiment_started ON experiment (accelerator, started_ms)
    WHERE started_ms IS NOT NULL;
CREATE INDEX experiment_pending ON experiment (accelerator, created_ms)
    WHERE state IN ('planned', 'started');
CREATE INDEX experiment_expires ON experiment (expires_ms)
    WHERE state IN ('planned', 'started');
CREATE INDEX experiment_ended ON experiment (accelerator, ended_ms)
    WHERE ended_ms IS NOT NULL AND started_ms IS NOT NULL;
CREATE INDEX experiment_of_command ON experiment (command_id)
    WHERE command_id IS NOT NULL;
CREATE TABLE experiment_test (
    experiment_id INTEGER NOT NULL, test_id INTEGER NOT NULL,
    PRIMARY KEY (experiment_id, test_id)) WITHOUT ROWID;
ALTER TABLE dispatch ADD COLUMN is_wanted INTEGER NOT NULL DEFAULT 1;
CREATE INDEX lease_of_machine ON lease (accelerator, machine, runner, granted_ms);
CREATE INDEX dispatch_of_runner ON dispatch (accelerator, runner) WHERE is_current = 1
    AND state IN ('queued', 'sent', 'acknowledged', 'running')
    AND event_type <> 'experiment';
-- keys are made of more than before: old ones would never be met again
DELETE FROM failure;
CREATE INDEX failure_of_key ON failure (key, change_id, test_id, accelerator);
-- without statistics SQLite takes the key instead, and walks the whole job: see INDEXED BY
CREATE INDEX result_of_test ON result (job_id, test_id);
-- red cells of open pull requests are attributed again, because the rules excuse less than before
INSERT INTO attribution_due (change_id, since_ms, next_ms, n_tries, generation)
    SELECT c.id, 0, 0, 0, 1 FROM change c WHERE c.kind = 'pull_request' AND c.state = 'open'
    AND EXISTS (SELECT 1 FROM verdict v WHERE v.change_id = c.id
        AND v.attribution IS NOT NULL) ON CONFLICT (change_id) DO NOTHING;
