-- bodies that later ones of the same event are stored as the difference to
CREATE TABLE body_base (
    id INTEGER PRIMARY KEY, event TEXT NOT NULL, made_ms INTEGER NOT NULL, body BLOB NOT NULL);
CREATE INDEX body_base_of_event ON body_base (event, id);
ALTER TABLE delivery ADD COLUMN base_id INTEGER;
