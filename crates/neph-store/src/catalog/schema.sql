-- The catalog, version 1. Described for people in docs/schema.md; change both together.
--
-- Ids are text (UUIDv7; a scenario's is 16 hex digits). *_unix_ns: nanoseconds since 1970-01-01
-- UTC. *_ns: nanoseconds. at_ns: nanoseconds since the experiment's start, on the asking side's
-- monotonic clock. *_json: nested values that nobody filters by.

CREATE TABLE campaigns (
    id              TEXT PRIMARY KEY,
    name            TEXT NOT NULL,
    plan_text       TEXT NOT NULL,
    plan_hash       TEXT NOT NULL,              -- SHA-256 of plan_text, hex
    plan_path       TEXT NOT NULL,
    seed            TEXT NOT NULL,              -- unsigned 64 bits, decimal: beyond SQLite's integers
    scenario_order  TEXT NOT NULL,              -- random, sequential
    blocks          INTEGER NOT NULL,
    status          TEXT NOT NULL,              -- running, complete, interrupted, incomplete, imported
    started_unix_ns INTEGER NOT NULL,
    ended_unix_ns   INTEGER
) STRICT;

CREATE TABLE scenarios (
    campaign_id     TEXT NOT NULL REFERENCES campaigns (id),
    scenario_index  INTEGER NOT NULL,           -- place in the plan's matrix, from 0
    id              TEXT NOT NULL,
    label           TEXT NOT NULL,
    endpoint        TEXT NOT NULL,
    target          TEXT NOT NULL,              -- as the plan writes it
    probe           TEXT NOT NULL,              -- ws, http, tcp, udp, icmp
    interval_ns     INTEGER NOT NULL,
    request_bytes   INTEGER NOT NULL,
    response_bytes  INTEGER NOT NULL,
    messages        INTEGER NOT NULL,           -- asked for per experiment
    parameters_json TEXT NOT NULL,              -- every other parameter: {"name": "value"}
    varied_json     TEXT NOT NULL,              -- names of the parameters that differ: ["name"]
    PRIMARY KEY (campaign_id, scenario_index)
) STRICT;

CREATE TABLE experiments (
    id              TEXT PRIMARY KEY,
    campaign_id     TEXT NOT NULL REFERENCES campaigns (id),
    scenario_id     TEXT NOT NULL,
    block           INTEGER NOT NULL,           -- from 0
    position        INTEGER NOT NULL,           -- in the block's order of execution, from 0
    attempt         INTEGER NOT NULL,           -- from 0
    status          TEXT NOT NULL,              -- running, complete, failed, interrupted
    reason          TEXT,                       -- why it failed or was interrupted
    started_unix_ns INTEGER NOT NULL,
    ended_unix_ns   INTEGER,
    messages        INTEGER NOT NULL,           -- main flow: replies + lost + failed
    replies         INTEGER NOT NULL,
    lost            INTEGER NOT NULL,
    failed          INTEGER NOT NULL,
    duplicates      INTEGER NOT NULL,
    reordered       INTEGER NOT NULL,
    late            INTEGER NOT NULL,
    warnings_json   TEXT NOT NULL,              -- [{"warning": "...", ...}]
    anchors_json    TEXT NOT NULL               -- [[at_ns, unix_ns], ...], one a second
) STRICT;
CREATE INDEX experiments_by_campaign ON experiments (campaign_id, block, position, attempt);
CREATE INDEX experiments_by_status ON experiments (status);

CREATE TABLE flows (
    experiment_id   TEXT NOT NULL REFERENCES experiments (id),
    flow            INTEGER NOT NULL,           -- place within the experiment; 0 is the main one
    role            TEXT NOT NULL,              -- main, companion, ping_destination
    probe           TEXT NOT NULL,
    name            TEXT NOT NULL,
    source          TEXT,                       -- address:port; port 0 where there is none
    target          TEXT NOT NULL,
    reflector       INTEGER NOT NULL,           -- 1: the peer is ours and returns its marks
    same_clock      INTEGER NOT NULL,           -- 1: both sides read the same clock
    PRIMARY KEY (experiment_id, flow)
) STRICT;

CREATE TABLE events (
    experiment_id   TEXT NOT NULL REFERENCES experiments (id),
    flow            INTEGER NOT NULL,
    at_ns           INTEGER NOT NULL,
    kind            TEXT NOT NULL,
    text            TEXT NOT NULL
) STRICT;
CREATE INDEX events_by_experiment ON events (experiment_id, at_ns);

CREATE TABLE samples (
    experiment_id   TEXT NOT NULL REFERENCES experiments (id),
    series          TEXT NOT NULL,              -- the unit is in the name
    at_ns           INTEGER NOT NULL,
    value           REAL                        -- NULL: not a number
) STRICT;
CREATE INDEX samples_by_experiment ON samples (experiment_id, series, at_ns);

CREATE TABLE provenance (
    experiment_id      TEXT PRIMARY KEY REFERENCES experiments (id),
    version            TEXT NOT NULL,           -- of neph
    commit_hash        TEXT NOT NULL,
    plan_hash          TEXT NOT NULL,
    site               TEXT,
    host               TEXT NOT NULL,
    kernel             TEXT NOT NULL,
    cpu                TEXT NOT NULL,
    cores              INTEGER NOT NULL,
    clock_source       TEXT NOT NULL,
    clock_sync         TEXT NOT NULL,
    congestion_control TEXT,
    busy_percent       REAL,
    steal_percent      REAL,
    load_average       REAL,
    lateness_p50_ns    INTEGER,
    lateness_p99_ns    INTEGER,
    offloads_json      TEXT NOT NULL,           -- {"interface.feature": "on"}
    sysctls_json       TEXT NOT NULL            -- {"name": "value"}
) STRICT;

CREATE TABLE throughput (
    id              INTEGER PRIMARY KEY,
    campaign_id     TEXT NOT NULL REFERENCES campaigns (id),
    block           INTEGER NOT NULL,
    endpoint        TEXT NOT NULL,
    tool            TEXT NOT NULL,              -- neph, iperf3
    started_unix_ns INTEGER NOT NULL,
    goodput_bits_per_s INTEGER NOT NULL,        -- over the whole transfer
    failure         TEXT,
    seconds_json    TEXT NOT NULL               -- per second: goodput (bit/s), retransmissions, cwnd_segments, srtt (ns)
) STRICT;
CREATE INDEX throughput_by_campaign ON throughput (campaign_id, started_unix_ns);

CREATE TABLE traceroute (
    id              INTEGER PRIMARY KEY,
    campaign_id     TEXT NOT NULL REFERENCES campaigns (id),
    block           INTEGER NOT NULL,
    endpoint        TEXT NOT NULL,
    destination     TEXT NOT NULL,
    started_unix_ns INTEGER NOT NULL,
    reached         INTEGER NOT NULL,           -- 1: the destination itself answered
    failure         TEXT,
    hops_json       TEXT NOT NULL               -- per hop: ttl, addresses, round_trips (ns)
) STRICT;
CREATE INDEX traceroute_by_campaign ON traceroute (campaign_id, started_unix_ns);
