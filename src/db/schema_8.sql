-- results of a job packed: the list of its tests, which many jobs share, and their statuses and durations
CREATE TABLE test_list (
    id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, n INTEGER NOT NULL,
    is_distinct INTEGER NOT NULL, base_id INTEGER, tests BLOB NOT NULL);
CREATE INDEX test_list_of_base ON test_list (base_id) WHERE base_id IS NOT NULL;
-- with a rowid: a row of an index keeps only a quarter of a page outside overflow pages
CREATE TABLE packed_job (
    id INTEGER PRIMARY KEY, job_id INTEGER NOT NULL, first INTEGER NOT NULL, n INTEGER NOT NULL,
    list_id INTEGER NOT NULL, n_rows INTEGER NOT NULL, cells BLOB NOT NULL,
    UNIQUE (job_id, first));
CREATE INDEX packed_job_of_list ON packed_job (list_id);
-- large reports that are not complete: `result` has rows of the job that do not count yet
CREATE TABLE staged (job_id INTEGER PRIMARY KEY, owner INTEGER NOT NULL, at_ms INTEGER NOT NULL);
-- 1: packed_job has the result as well
ALTER TABLE result ADD COLUMN is_packed INTEGER NOT NULL DEFAULT 0;
-- of a failure: how it is compared (model/failure_text.h), so that no attribution reads its words again
ALTER TABLE result ADD COLUMN mark BLOB;
-- the change's cells contain the job's packed results
ALTER TABLE job ADD COLUMN is_counted INTEGER NOT NULL DEFAULT 0;
CREATE INDEX job_counted ON job (change_id, accelerator) WHERE is_counted = 1;
-- the index delivery_accepted counts them
DELETE FROM counter WHERE name = 'delivery.accepted';
-- UUIDs of version 1 in the order of their time (db/key.h). Deliveries keep the old form, because a file may have millions
UPDATE redelivery SET guid = CAST(x'ff' || substr(guid, 7, 2) || substr(guid, 5, 2) || substr(guid, 1, 4) || substr(guid, 9)
    AS BLOB) WHERE typeof(guid) = 'blob' AND hex(substr(guid, 7, 1)) BETWEEN '10' AND '1F';
