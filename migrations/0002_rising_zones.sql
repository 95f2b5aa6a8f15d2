-- Why: zones in which something rises are polled more often, by whichever process polls.
-- Locks: platform_health for a moment; the new column is null.
ALTER TABLE "platform_health" ADD COLUMN "rising_until" timestamp (3) with time zone;