-- experiments that wait for a good machine
ALTER TABLE experiment ADD COLUMN not_before_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE experiment_test ADD COLUMN waits INTEGER NOT NULL DEFAULT 0;
ALTER TABLE branch_commit ADD COLUMN files TEXT;
CREATE INDEX job_mostly_red ON job (accelerator, completed_ms)
    WHERE n_tests >= 5 AND n_tests < 2 * n_red;
-- the time that an accelerator's jobs used: experiments may use a share of it. Only a statement that says completed_ms > 0 uses
-- this index, so that it takes the place of no other
CREATE INDEX job_completed ON job (accelerator, completed_ms, started_ms)
    WHERE completed_ms > 0;
-- older versions wrote into the error how a person ended a dispatch
ALTER TABLE dispatch ADD COLUMN ended_how TEXT;
ALTER TABLE dispatch ADD COLUMN ended_by TEXT;
UPDATE dispatch SET ended_how = 'declined', ended_by = substr(last_error, 13),
    last_error = NULL WHERE state = 'cancelled' AND held_reason IS NOT NULL
    AND last_error GLOB 'declined by *';
UPDATE dispatch SET ended_how = 'cancelled', ended_by = substr(last_error, 14),
    last_error = NULL WHERE state = 'cancelled' AND last_error GLOB 'cancelled by *';
ALTER TABLE experiment ADD COLUMN cancelled_by TEXT;
UPDATE experiment SET cancelled_by = substr(reason, 14), reason = NULL
    WHERE state = 'cancelled' AND reason GLOB 'cancelled by *';
-- the author's commands do not count against members, also after the author has another name
ALTER TABLE command ADD COLUMN is_member INTEGER NOT NULL DEFAULT 0;
