-- the feed
CREATE INDEX red_episode_began ON red_episode (first_bad_ms);

-- periodic runs
CREATE TABLE schedule (
    accelerator TEXT PRIMARY KEY, cron TEXT NOT NULL, last_due_ms INTEGER,
    next_ms INTEGER, is_next_skipped INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
CREATE TABLE schedule_run (
    id INTEGER PRIMARY KEY, accelerator TEXT NOT NULL, due_ms INTEGER NOT NULL,
    cause TEXT NOT NULL, state TEXT NOT NULL, outcome TEXT, reason TEXT,
    upstream_sha TEXT, source_url TEXT, source_branch TEXT, source_sha TEXT,
    change_id INTEGER, started_ms INTEGER NOT NULL, ended_ms INTEGER);
CREATE UNIQUE INDEX schedule_run_due ON schedule_run (accelerator, due_ms, cause);
CREATE INDEX schedule_run_of_change ON schedule_run (change_id, accelerator)
    WHERE change_id IS NOT NULL;
CREATE INDEX schedule_run_newest ON schedule_run (accelerator); -- by id
CREATE INDEX schedule_run_open ON schedule_run (accelerator) WHERE ended_ms IS NULL;
CREATE INDEX schedule_run_ended ON schedule_run (ended_ms) WHERE ended_ms IS NOT NULL;
-- history: a periodic run's cells packed, and what the row of them says of each test
CREATE TABLE history_run (
    id INTEGER PRIMARY KEY, accelerator TEXT NOT NULL, day INTEGER NOT NULL,
    run_id INTEGER NOT NULL, change_id INTEGER, at_ms INTEGER NOT NULL,
    repository TEXT NOT NULL, upstream_sha TEXT NOT NULL, source_url TEXT, source_sha TEXT,
    is_self_report INTEGER NOT NULL, is_judged INTEGER NOT NULL, jobs TEXT,
    job_keys TEXT NOT NULL, cells BLOB NOT NULL);
CREATE UNIQUE INDEX history_run_day ON history_run (accelerator, day);
CREATE INDEX history_run_of_change ON history_run (change_id)
    WHERE change_id IS NOT NULL;
CREATE INDEX history_run_old ON history_run (day);
CREATE TABLE history (
    accelerator TEXT NOT NULL, test_id INTEGER NOT NULL, suite TEXT NOT NULL,
    state TEXT NOT NULL, since_day INTEGER, first_bad_day INTEGER, first_bad_job INTEGER,
    last_good_day INTEGER, last_good_job INTEGER,
    PRIMARY KEY (accelerator, test_id)) WITHOUT ROWID;
CREATE INDEX history_worst ON history (state, suite, test_id, accelerator);
CREATE INDEX history_of ON history (accelerator, state, suite, test_id);
CREATE TABLE history_count (
    accelerator TEXT NOT NULL, suite TEXT NOT NULL, state TEXT NOT NULL, n INTEGER NOT NULL,
    PRIMARY KEY (accelerator, suite, state)) WITHOUT ROWID;
CREATE TABLE commits_between (
    repository_key TEXT NOT NULL, good_sha TEXT NOT NULL, bad_sha TEXT NOT NULL,
    repository TEXT NOT NULL, n INTEGER, commits TEXT, n_tries INTEGER NOT NULL,
    next_ms INTEGER, asked_ms INTEGER NOT NULL,
    PRIMARY KEY (repository_key, good_sha, bad_sha)) WITHOUT ROWID;
CREATE INDEX commits_between_due ON commits_between (next_ms) WHERE next_ms IS NOT NULL;
CREATE INDEX commits_between_asked ON commits_between (asked_ms);

-- aggregates, so that no page walks over results
ALTER TABLE run ADD COLUMN n_fail INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN n_error INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN n_miss INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN n_pass INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN n_done INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN n_skip INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN n_flaky INTEGER NOT NULL DEFAULT 0;
CREATE TABLE run_suite (
    change_id INTEGER NOT NULL, accelerator TEXT NOT NULL, suite TEXT NOT NULL,
    status TEXT NOT NULL, n_fail INTEGER NOT NULL, n_error INTEGER NOT NULL,
    n_miss INTEGER NOT NULL, n_pass INTEGER NOT NULL, n_done INTEGER NOT NULL,
    n_skip INTEGER NOT NULL, n_broken INTEGER NOT NULL, job_id INTEGER,
    PRIMARY KEY (change_id, accelerator, suite)) WITHOUT ROWID;
CREATE TABLE day (
    accelerator TEXT NOT NULL, day INTEGER NOT NULL, n_runs INTEGER NOT NULL,
    n_green INTEGER NOT NULL, n_fail INTEGER NOT NULL, n_error INTEGER NOT NULL,
    n_miss INTEGER NOT NULL, n_pass INTEGER NOT NULL, n_done INTEGER NOT NULL,
    n_skip INTEGER NOT NULL, n_flaky INTEGER NOT NULL, queue_p50_ms INTEGER,
    queue_p90_ms INTEGER, run_p50_ms INTEGER, run_p90_ms INTEGER,
    n_dispatches INTEGER NOT NULL, n_met INTEGER NOT NULL,
    is_closed INTEGER NOT NULL DEFAULT 0, queue_times BLOB, run_times BLOB,
    PRIMARY KEY (accelerator, day)) WITHOUT ROWID;
CREATE INDEX day_day ON day (day);
CREATE TABLE number_day (
    accelerator TEXT NOT NULL, test_id INTEGER NOT NULL, unit TEXT NOT NULL,
    day INTEGER NOT NULL, at_ms INTEGER NOT NULL, value REAL NOT NULL,
    change_id INTEGER NOT NULL, head_sha TEXT NOT NULL, job_id INTEGER,
    PRIMARY KEY (accelerator, test_id, unit, day)) WITHOUT ROWID;
CREATE INDEX number_day_day ON number_day (day);
CREATE INDEX number_day_change ON number_day (change_id) WHERE job_id IS NOT NULL;
ALTER TABLE job ADD COLUMN n_tests_fail INTEGER;
ALTER TABLE job ADD COLUMN n_tests_error INTEGER;
ALTER TABLE job ADD COLUMN n_tests_miss INTEGER;
ALTER TABLE job ADD COLUMN n_tests_pass INTEGER;
ALTER TABLE job ADD COLUMN n_tests_done INTEGER;
ALTER TABLE job ADD COLUMN n_tests_skip INTEGER;
-- its condition keeps it out of the plans of those who look for jobs of a change
CREATE INDEX job_of_accelerator ON job (accelerator) WHERE id > 0;
CREATE INDEX dispatch_going ON dispatch (created_ms) WHERE is_current = 1
    AND state IN ('queued', 'sent', 'acknowledged', 'running');
CREATE INDEX dispatch_held_since ON dispatch (created_ms) WHERE is_current = 1
    AND state = 'held';

-- which versions of PyTorch were tested where
CREATE TABLE platform_test (
    accelerator TEXT NOT NULL, release TEXT NOT NULL, os TEXT NOT NULL, torch TEXT NOT NULL,
    change_id INTEGER NOT NULL, head_sha TEXT NOT NULL, job_id INTEGER,
    at_ms INTEGER NOT NULL, extension_version TEXT, n_passed INTEGER NOT NULL,
    n_failed INTEGER NOT NULL, n_missing INTEGER NOT NULL, red_since_ms INTEGER,
    PRIMARY KEY (accelerator, release, os)) WITHOUT ROWID;
CREATE INDEX platform_test_of_change ON platform_test (change_id);
