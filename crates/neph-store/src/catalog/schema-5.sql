-- Version 5: what a fleet finds besides its messages is kept as it comes: each route with the path
-- change that it was traced for, and the transfers on the ports of its latency classes.

CREATE TABLE traced_route (
    id              INTEGER PRIMARY KEY,
    experiment_id   TEXT NOT NULL REFERENCES experiments (id),
    lane            INTEGER NOT NULL,           -- place in the fleet, from 0
    source_port     INTEGER NOT NULL,
    at_ns           INTEGER NOT NULL,           -- when its trace was over
    hash            TEXT NOT NULL,              -- the path's fingerprint, 16 hexadecimal digits
    hops_json       TEXT NOT NULL,
    end_json        TEXT NOT NULL,
    change_at_ns    INTEGER,                    -- NULL: the flow's first route
    hash_before     TEXT,                       -- NULL: it was left before it was traced
    other_routers   INTEGER                     -- 1: others than before; NULL: nothing to compare
) STRICT;
CREATE INDEX traced_route_by_experiment ON traced_route (experiment_id, at_ns);

CREATE TABLE transfer (
    id              INTEGER PRIMARY KEY,
    experiment_id   TEXT NOT NULL REFERENCES experiments (id),
    endpoint        INTEGER NOT NULL,           -- place among the fleet's endpoints, from 0
    class           INTEGER NOT NULL,           -- 0 has the lowest latency
    source_port     INTEGER NOT NULL,
    pass            INTEGER NOT NULL,
    at_ns           INTEGER NOT NULL,           -- when the program began to connect
    bytes           INTEGER NOT NULL,           -- asked for
    connect_ns      INTEGER,                    -- NULL: it failed
    whole_ns        INTEGER,                    -- connecting included; NULL: it failed
    failure         TEXT
) STRICT;
CREATE INDEX transfer_by_experiment ON transfer (experiment_id, at_ns);
