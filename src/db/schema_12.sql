-- deliveries that GitHub could not make are requested again until they arrive
ALTER TABLE redelivery ADD COLUMN attempt_id INTEGER NOT NULL DEFAULT 0;
ALTER TABLE redelivery ADD COLUMN failed_ms INTEGER NOT NULL DEFAULT 0;
