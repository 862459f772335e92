-- Version 2: a lab's topology is kept with its campaign, as the plan is.

ALTER TABLE campaigns ADD COLUMN topology_text TEXT;  -- NULL: no lab
ALTER TABLE campaigns ADD COLUMN topology_hash TEXT;  -- SHA-256 of topology_text, hex
