-- Tests gain the dtype as a part of their identity; old results keep the test without it.

CREATE TABLE test_3 (id INTEGER PRIMARY KEY, suite TEXT NOT NULL, name TEXT NOT NULL,
    dtype TEXT NOT NULL, UNIQUE (suite, name, dtype));
INSERT INTO test_3 SELECT id, suite, name, '' FROM test;
DROP TABLE test;
ALTER TABLE test_3 RENAME TO test;
ALTER TABLE result ADD COLUMN file TEXT;
ALTER TABLE result ADD COLUMN line INTEGER;

ALTER TABLE verdict ADD COLUMN reason TEXT;
ALTER TABLE verdict ADD COLUMN evidence_job INTEGER;
ALTER TABLE verdict ADD COLUMN evidence_url TEXT;
ALTER TABLE verdict ADD COLUMN file TEXT;
ALTER TABLE verdict ADD COLUMN line INTEGER;
CREATE INDEX verdict_attributed ON verdict (accelerator, test_id, change_id)
    WHERE attribution IS NOT NULL;
CREATE TABLE failure (
    accelerator TEXT NOT NULL, test_id INTEGER NOT NULL, key INTEGER NOT NULL,
    at_ms INTEGER NOT NULL, job_id INTEGER NOT NULL, change_id INTEGER NOT NULL,
    status TEXT NOT NULL, PRIMARY KEY (accelerator, test_id, key, at_ms, job_id))
    WITHOUT ROWID;
CREATE INDEX failure_at ON failure (at_ms);
CREATE INDEX failure_of_change ON failure (change_id);
CREATE TABLE attribution_due (
    change_id INTEGER PRIMARY KEY, since_ms INTEGER NOT NULL, next_ms INTEGER NOT NULL,
    n_tries INTEGER NOT NULL, generation INTEGER NOT NULL);
CREATE INDEX attribution_due_next ON attribution_due (next_ms);
CREATE TABLE branch_commit (
    repository_key TEXT NOT NULL, ref TEXT NOT NULL, position INTEGER NOT NULL,
    sha TEXT NOT NULL, at_ms INTEGER NOT NULL, author TEXT, title TEXT,
    PRIMARY KEY (repository_key, ref, position)) WITHOUT ROWID;
CREATE UNIQUE INDEX branch_commit_sha ON branch_commit (repository_key, sha, ref);
CREATE INDEX branch_commit_at ON branch_commit (at_ms);
CREATE INDEX change_merge_base ON change (repository_key, merge_base_sha)
    WHERE merge_base_sha IS NOT NULL;
ALTER TABLE dispatch ADD COLUMN not_before_ms INTEGER;

CREATE TABLE known_issue (
    id INTEGER PRIMARY KEY, pattern TEXT NOT NULL, accelerator TEXT, url TEXT NOT NULL,
    until_ms INTEGER, created_ms INTEGER NOT NULL, last_match_ms INTEGER,
    n_matches INTEGER NOT NULL DEFAULT 0, is_over INTEGER NOT NULL DEFAULT 0);
CREATE INDEX known_issue_until ON known_issue (until_ms)
    WHERE is_over = 0 AND until_ms IS NOT NULL;
CREATE TABLE known_match (
    issue_id INTEGER NOT NULL, change_id INTEGER NOT NULL, at_ms INTEGER NOT NULL,
    PRIMARY KEY (issue_id, change_id)) WITHOUT ROWID;
CREATE INDEX known_match_of ON known_match (change_id);

ALTER TABLE outbox ADD COLUMN text TEXT;
ALTER TABLE outbox ADD COLUMN accelerator TEXT;
ALTER TABLE comment ADD COLUMN change_id INTEGER;
CREATE TABLE check_run (
    repository_key TEXT NOT NULL, head_sha TEXT NOT NULL, name TEXT NOT NULL,
    check_id INTEGER NOT NULL, accelerator TEXT NOT NULL, job_id INTEGER,
    digest BLOB NOT NULL, is_completed INTEGER NOT NULL, n_annotations INTEGER NOT NULL,
    written_ms INTEGER NOT NULL,
    PRIMARY KEY (repository_key, head_sha, name)) WITHOUT ROWID;
CREATE TABLE command (
    comment_id INTEGER PRIMARY KEY, repository_key TEXT NOT NULL, number INTEGER NOT NULL,
    words TEXT NOT NULL, login TEXT NOT NULL, n INTEGER NOT NULL, at_ms INTEGER NOT NULL);
CREATE INDEX command_of_pull ON command (repository_key, number, at_ms);
CREATE INDEX command_at ON command (at_ms);

ALTER TABLE accelerator ADD COLUMN required_suites TEXT NOT NULL DEFAULT '[]';
ALTER TABLE accelerator ADD COLUMN must_pass TEXT NOT NULL DEFAULT '[]';
ALTER TABLE accelerator ADD COLUMN skip TEXT NOT NULL DEFAULT '[]';
ALTER TABLE accelerator ADD COLUMN unhealthy_since_ms INTEGER;
CREATE TABLE red_episode (
    id INTEGER PRIMARY KEY, accelerator TEXT NOT NULL, repository_key TEXT NOT NULL,
    ref TEXT NOT NULL, first_bad_change INTEGER NOT NULL, first_bad_ms INTEGER NOT NULL,
    last_good_sha TEXT, issue_repository TEXT, issue_number INTEGER, told_ms INTEGER,
    reminded_ms INTEGER, overdue_ms INTEGER, ended_ms INTEGER, ended_change INTEGER,
    closed_ms INTEGER);
CREATE UNIQUE INDEX red_episode_open ON red_episode (accelerator, repository_key, ref)
    WHERE ended_ms IS NULL;
CREATE INDEX red_episode_of ON red_episode (accelerator, first_bad_ms);
CREATE INDEX red_episode_ended ON red_episode (ended_ms) WHERE ended_ms IS NOT NULL;
CREATE TABLE run (
    accelerator TEXT NOT NULL, ended_ms INTEGER NOT NULL, change_id INTEGER NOT NULL,
    is_push INTEGER NOT NULL, outcome TEXT NOT NULL, n_dispatches INTEGER NOT NULL,
    n_met INTEGER NOT NULL, queue_ms INTEGER, run_ms INTEGER,
    PRIMARY KEY (accelerator, ended_ms, change_id)) WITHOUT ROWID;
CREATE UNIQUE INDEX run_of_change ON run (change_id, accelerator);
CREATE INDEX run_push ON run (accelerator, change_id) WHERE is_push = 1;
CREATE INDEX verdict_red ON verdict (change_id, accelerator, attribution)
    WHERE attribution IS NOT NULL;
