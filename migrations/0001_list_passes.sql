-- Why: a list pass that met its own token again proves nothing, and when a full pass last ended decides on the next.
-- Locks: ingest_cursors for a moment; it has a row per zone and day.
ALTER TABLE "ingest_cursors" DROP CONSTRAINT "ingest_cursors_pass_result";--> statement-breakpoint
ALTER TABLE "ingest_cursors" ADD COLUMN "full_pass_started_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "ingest_cursors" ADD CONSTRAINT "ingest_cursors_pass_result" CHECK ("ingest_cursors"."pass_result" in ('full', 'short', 'looped', 'token_rejected'));
