-- Version 2: a lab's topology is kept with its campaign, as the plan is; what is measured once per
-- block says from which site.

ALTER TABLE campaigns ADD COLUMN topology_text TEXT;  -- NULL: no lab
ALTER TABLE campaigns ADD COLUMN topology_hash TEXT;  -- SHA-256 of topology_text, hex

ALTER TABLE throughput ADD COLUMN site TEXT;          -- NULL: the host as it is
ALTER TABLE traceroute ADD COLUMN site TEXT;
