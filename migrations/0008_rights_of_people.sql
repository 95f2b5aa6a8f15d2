-- Why: a person's rights are granted again from these claims whenever sign_in changes. A session without them ends.
-- Locks: sessions for a moment. The new column is null, so no row is written.
ALTER TABLE "sessions" ADD COLUMN "claims" jsonb;