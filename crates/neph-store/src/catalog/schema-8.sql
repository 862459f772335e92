-- Version 8: pings while no experiment ran; series of TCP statistics (tcp_*) in samples.

CREATE TABLE pings_between (
    id INTEGER PRIMARY KEY,
    campaign_id TEXT NOT NULL REFERENCES campaigns (id),
    block INTEGER NOT NULL,
    name TEXT NOT NULL,
    address TEXT NOT NULL,
    sent_unix_ns INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    round_trip_ns INTEGER
) STRICT;
CREATE INDEX pings_between_by_campaign ON pings_between (campaign_id, sent_unix_ns);
