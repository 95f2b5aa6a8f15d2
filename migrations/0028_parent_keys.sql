-- Why: a key that was made in the console ends with the key of the person who made it.
-- Locks: api_keys for a moment; the new column is null.
ALTER TABLE "api_keys" ADD COLUMN "parent_key_id" text;