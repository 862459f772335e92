-- Version 10: experiments whose messages were reduced to a histogram for each minute.

CREATE TABLE reductions (
    experiment_id           TEXT PRIMARY KEY REFERENCES experiments (id),
    at_unix_ns              INTEGER NOT NULL,   -- when the messages were removed
    minutes_removed_unix_ns INTEGER             -- when the histograms were removed too
) STRICT;

CREATE TABLE minutes (
    experiment_id   TEXT NOT NULL REFERENCES experiments (id),
    flow            INTEGER NOT NULL,           -- 0 is the main one; of a fleet, all of its flows
    minute          INTEGER NOT NULL,           -- from the experiment's start, from 0
    messages        INTEGER NOT NULL,           -- replies + errors + lost + failed
    replies         INTEGER NOT NULL,
    errors          INTEGER NOT NULL,
    lost            INTEGER NOT NULL,
    failed          INTEGER NOT NULL,
    duplicates      INTEGER NOT NULL,
    reordered       INTEGER NOT NULL,
    response_times  BLOB NOT NULL,              -- a packed histogram of nanoseconds
    PRIMARY KEY (experiment_id, flow, minute)
) STRICT;
