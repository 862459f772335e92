-- Version 6: the median of a fleet is kept when its experiment ends.

ALTER TABLE experiments ADD COLUMN response_p50_ns INTEGER;   -- NULL: not of a fleet, lost, or not kept
