-- deliveries that GitHub could not make are requested again until they arrive
ALTER TABLE redelivery ADD COLUMN attempt_id INTEGER NOT NULL DEFAULT 0;
ALTER TABLE redelivery ADD COLUMN failed_ms INTEGER NOT NULL DEFAULT 0;
-- until when GitHub takes no request of an installation of the App
CREATE TABLE github_limit (
    installation_id INTEGER PRIMARY KEY, until_ms INTEGER NOT NULL, remaining INTEGER NOT NULL, reset_ms INTEGER NOT NULL);
