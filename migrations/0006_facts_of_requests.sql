-- Why: verdicts, searches and exports read the facts of a request as columns, without opening records.
-- Locks: waf_events with its partitions, and held_events, for a moment. The new columns are null, so no row is written.
ALTER TABLE "held_events" ADD COLUMN "method" text;--> statement-breakpoint
ALTER TABLE "held_events" ADD COLUMN "request_id" text;--> statement-breakpoint
ALTER TABLE "held_events" ADD COLUMN "matched_key" integer;--> statement-breakpoint
ALTER TABLE "held_events" ADD COLUMN "facts" smallint;--> statement-breakpoint
ALTER TABLE "waf_events" ADD COLUMN "method" text;--> statement-breakpoint
ALTER TABLE "waf_events" ADD COLUMN "request_id" text;--> statement-breakpoint
ALTER TABLE "waf_events" ADD COLUMN "matched_key" integer;--> statement-breakpoint
ALTER TABLE "waf_events" ADD COLUMN "facts" smallint;