-- What a transfer came to in the place of messages.
ALTER TABLE experiments ADD COLUMN quantities_json TEXT;
