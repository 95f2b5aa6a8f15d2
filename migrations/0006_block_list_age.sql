-- Why: every process knows the age of the last good block list, also one that has just started.
-- Locks: platform_health for a moment.
ALTER TABLE "platform_health" ADD COLUMN "block_list" jsonb;