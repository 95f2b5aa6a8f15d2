-- Why: a person can start a check of archive days in the console.
-- Locks: requested_runs while its few rows are checked.
ALTER TABLE "requested_runs" DROP CONSTRAINT "requested_runs_kind";--> statement-breakpoint
ALTER TABLE "requested_runs" ADD CONSTRAINT "requested_runs_kind" CHECK ("requested_runs"."kind" in ('backfill', 'verify', 'verify-archive'));