-- Version 3: an experiment may measure a fleet.

ALTER TABLE experiments ADD COLUMN fleet_json TEXT;   -- NULL: no fleet
