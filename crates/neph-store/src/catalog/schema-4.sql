-- Version 4: the routes of a fleet's flows are kept with its experiment.

CREATE TABLE flow_trace (
    id              INTEGER PRIMARY KEY,
    experiment_id   TEXT NOT NULL REFERENCES experiments (id),
    destination     TEXT NOT NULL,              -- address:port
    kind            TEXT NOT NULL,              -- udp, syn, icmp
    started_unix_ns INTEGER NOT NULL,
    enough          INTEGER,                    -- NULL: the flows were given
    routes_json     TEXT NOT NULL               -- per flow: source_port, hops, hash, end
) STRICT;
CREATE INDEX flow_trace_by_experiment ON flow_trace (experiment_id, started_unix_ns);
