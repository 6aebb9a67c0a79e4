-- Queries look up only flaky cells by their test, so other red cells need no entry. PostgreSQL makes the new index while others read.
CREATE INDEX verdict_flaky ON verdict (accelerator, test_id, change_id) WHERE attribution = 'FLAKY';
DROP INDEX verdict_attributed;
