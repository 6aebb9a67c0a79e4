-- What PostgreSQL has beside the tables of postgres_schema.sql: functions that our statements use and only SQLite has, and views in place of
-- its tables job_test and cell. POSTGRES_SCHEMA of db/schema.h is both files.

CREATE FUNCTION instr(text, text) RETURNS int LANGUAGE sql IMMUTABLE STRICT
    RETURN strpos($1, $2);

-- The larger and the smaller of two, NULL where one is NULL.
CREATE FUNCTION max(bigint, bigint) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT
    RETURN CASE WHEN $1 > $2 THEN $1 ELSE $2 END;
CREATE FUNCTION max(numeric, numeric) RETURNS numeric LANGUAGE sql IMMUTABLE STRICT
    RETURN CASE WHEN $1 > $2 THEN $1 ELSE $2 END;
CREATE FUNCTION min(bigint, bigint) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT
    RETURN CASE WHEN $1 < $2 THEN $1 ELSE $2 END;

-- CAST(… AS INTEGER): the number at the beginning of a text, and the whole part of a number.
CREATE FUNCTION integer_of(text) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT
    RETURN COALESCE(substring($1 FROM '^\s*([+-]?[0-9]{1,18})')::bigint, 0);
CREATE FUNCTION integer_of(numeric) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT RETURN trunc($1)::bigint;
CREATE FUNCTION integer_of(double precision) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT RETURN trunc($1)::bigint;
CREATE FUNCTION integer_of(bigint) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT RETURN $1;

-- SUM(condition): in how many rows it holds.
CREATE FUNCTION sum_boolean_step(bigint, boolean) RETURNS bigint LANGUAGE sql IMMUTABLE
    RETURN CASE WHEN $2 IS NULL THEN $1 ELSE COALESCE($1, 0) + $2::int END;
CREATE AGGREGATE sum(boolean) (SFUNC = sum_boolean_step, STYPE = bigint);

-- The scalar at '$.a.b' or '$.a[0]' of a text that holds JSON.
CREATE FUNCTION json_extract(text, text) RETURNS text LANGUAGE sql IMMUTABLE STRICT
    RETURN $1::jsonb #>> string_to_array(replace(replace(substr($2, 3), '[', '.'), ']', ''), '.');

-- The entries of a JSON array of strings.
CREATE FUNCTION json_each(text) RETURNS TABLE (value text) LANGUAGE sql IMMUTABLE STRICT
    AS 'SELECT jsonb_array_elements_text($1::jsonb)';

-- The version of the tables, and the oldest version of a program that works with them (db/schema.h).
CREATE TABLE outpost_schema (version BIGINT NOT NULL, readable_from BIGINT NOT NULL);

-- Packed results once more, as arrays that the views below read: db_unpack_list() and db_unpack_job() write them.
ALTER TABLE test_list ADD COLUMN ids BIGINT[];
ALTER TABLE packed_job ADD COLUMN statuses SMALLINT[], ADD COLUMN durations INT[];

-- Compressed text is not compressed again, and a piece of a log is soon compressed with the others.
ALTER TABLE log_piece ALTER COLUMN bytes SET STORAGE EXTERNAL;
ALTER TABLE log_object ALTER COLUMN bytes SET STORAGE EXTERNAL;

-- The names of enum test_status.
CREATE FUNCTION test_status_name(smallint) RETURNS text LANGUAGE sql IMMUTABLE STRICT
    RETURN (ARRAY['FAIL', 'ERROR', 'MISS', 'PASS', 'DONE', 'SKIP'])[$1 + 1];

-- Each test of a job (db/packed_tables.h): where a row of `result` says more, only the row.
CREATE VIEW job_test AS
SELECT p.job_id, p.first + t.i - 1 AS ordinal, t.test_id, test_status_name(t.status) AS status, t.duration_ms::bigint AS duration_ms,
    NULL::text AS dtype, NULL::text AS message, NULL::double precision AS number, NULL::text AS unit, NULL::text AS log_url,
    NULL::text AS trace, NULL::text AS file, NULL::bigint AS line, NULL::bytea AS mark
FROM packed_job p JOIN test_list l ON l.id = p.list_id
CROSS JOIN LATERAL unnest(l.ids, p.statuses, p.durations) WITH ORDINALITY t (test_id, status, duration_ms, i)
WHERE t.i <= p.n AND NOT EXISTS (SELECT 1 FROM result r WHERE r.job_id = p.job_id AND r.ordinal = p.first + t.i - 1)
UNION ALL
SELECT job_id, ordinal, test_id, status, duration_ms, dtype, message, number, unit, log_url, trace, file, line, mark FROM result r
WHERE ordinal < (SELECT n_tests FROM job WHERE id = r.job_id); -- the others belong to a report that is being written

-- Each cell of a change: the rows of `verdict`, and for each other test the worst result of the jobs that count, of equal ones that of
-- the oldest job. The first counted job of an accelerator stands for it, so that a condition on change_id finds it by an index. It is the
-- one without an older one: not by NOT EXISTS, because the server checks that after it has unpacked the results, for each job again.
CREATE VIEW cell AS
SELECT change_id, accelerator, test_id, status, attribution, message, job_id, is_late, file, line, reason, evidence_job, evidence_url,
    needs FROM verdict
UNION ALL
SELECT a.change_id, a.accelerator, w.test_id, test_status_name(w.status), NULL, r.message, w.job_id, w.is_late, r.file, r.line, NULL,
    NULL, NULL, 0
FROM job a
CROSS JOIN LATERAL (
    SELECT DISTINCT ON (t.test_id) t.test_id, t.status, j.id AS job_id, j.is_late, p.first + t.i - 1 AS ordinal
    FROM job j JOIN packed_job p ON p.job_id = j.id JOIN test_list l ON l.id = p.list_id
    CROSS JOIN LATERAL unnest(l.ids, p.statuses) WITH ORDINALITY t (test_id, status, i)
    WHERE j.change_id = a.change_id AND j.accelerator = a.accelerator AND j.is_counted = 1 AND t.i <= p.n
    ORDER BY t.test_id, t.status, j.id, p.first, t.i) w
LEFT JOIN result r ON r.job_id = w.job_id AND r.ordinal = w.ordinal
WHERE a.is_counted = 1 AND (SELECT b.id FROM job b
    WHERE b.change_id = a.change_id AND b.accelerator = a.accelerator AND b.is_counted = 1 AND b.id < a.id LIMIT 1) IS NULL
AND NOT EXISTS (SELECT 1 FROM verdict v
    WHERE v.change_id = a.change_id AND v.accelerator = a.accelerator AND v.test_id = w.test_id);
