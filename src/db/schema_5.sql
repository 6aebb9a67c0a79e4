-- which repository is behind a name in an issuer's tokens, and who else claimed that name
CREATE TABLE identity (
    issuer TEXT NOT NULL, repository_key TEXT NOT NULL, repository TEXT NOT NULL,
    repository_id INTEGER, repository_owner_id INTEGER, recorded_ms INTEGER,
    refused_id INTEGER, refused_owner_id INTEGER, refused_ms INTEGER,
    PRIMARY KEY (issuer, repository_key)) WITHOUT ROWID;

-- figures of jobs, which counted pull requests as well
DROP INDEX job_verdict;

-- older versions attributed tests without a result as well
UPDATE verdict SET attribution = 'UNCLASSIFIED', reason = NULL, evidence_job = NULL,
    evidence_url = NULL WHERE status = 'MISS'
    AND attribution IN ('KNOWN', 'BASE', 'FLAKY', 'NEW');
UPDATE verdict SET reason = NULL, evidence_job = NULL WHERE status = 'MISS'
    AND attribution = 'UNCLASSIFIED' AND reason IS NOT NULL;

-- what a vendor's tool says of the cause of a failure
ALTER TABLE job ADD COLUMN triage TEXT;

-- by which levels are judged: the jobs of a pull request's run, and the sums of a day
ALTER TABLE runner ADD COLUMN level_2_since_ms INTEGER;
CREATE TABLE run_jobs (
    accelerator TEXT NOT NULL, ended_ms INTEGER NOT NULL, runner TEXT NOT NULL,
    change_id INTEGER NOT NULL, n_jobs INTEGER NOT NULL, n_passed INTEGER NOT NULL,
    n_timed_out INTEGER NOT NULL, n_overrun INTEGER NOT NULL, n_upstream INTEGER NOT NULL,
    queue_ms INTEGER NOT NULL, n_queued INTEGER NOT NULL, end_to_end BLOB,
    PRIMARY KEY (accelerator, ended_ms, runner, change_id)) WITHOUT ROWID;
CREATE INDEX run_jobs_of_change ON run_jobs (change_id, accelerator);
CREATE TABLE day_jobs (
    accelerator TEXT NOT NULL, day INTEGER NOT NULL, runner TEXT NOT NULL,
    n_jobs INTEGER NOT NULL, n_passed INTEGER NOT NULL, n_timed_out INTEGER NOT NULL,
    n_overrun INTEGER NOT NULL, n_upstream INTEGER NOT NULL, queue_ms INTEGER NOT NULL,
    n_queued INTEGER NOT NULL, end_to_end BLOB, is_closed INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (accelerator, day, runner)) WITHOUT ROWID;
