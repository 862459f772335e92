-- Version 7: messages that were answered, but not as expected (an HTTP status, a reply cut off).

ALTER TABLE experiments ADD COLUMN errors INTEGER NOT NULL DEFAULT 0;
