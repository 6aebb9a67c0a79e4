-- deliveries that GitHub could not make are requested again until they arrive
ALTER TABLE redelivery ADD COLUMN attempt_id BIGINT NOT NULL DEFAULT 0;
ALTER TABLE redelivery ADD COLUMN failed_ms BIGINT NOT NULL DEFAULT 0;
