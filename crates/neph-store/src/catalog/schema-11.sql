-- Version 11: names of the glossary.

ALTER TABLE traced_route RENAME COLUMN lane TO slot;
