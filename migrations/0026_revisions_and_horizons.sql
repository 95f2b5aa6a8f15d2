-- Why: one event that the platform drops must not stop the seals of its zone, values that a later look changes are kept,
-- and the platform may keep events for less than 72 hours. Suspicions of the former kind are deleted: hours decide now.
DELETE FROM "zone_suspicions";--> statement-breakpoint
CREATE TABLE "event_revisions" (
	"occurred_at" timestamp (3) with time zone NOT NULL,
	"seen_at" timestamp (3) with time zone NOT NULL,
	"accepted_at" timestamp (3) with time zone,
	"zone_id" integer NOT NULL,
	"log_id" text COLLATE "C" NOT NULL,
	"field" text NOT NULL,
	"before" text,
	"after" text,
	CONSTRAINT "event_revisions_zone_id_occurred_at_log_id_field_seen_at_pk" PRIMARY KEY("zone_id","occurred_at","log_id","field","seen_at"),
	CONSTRAINT "event_revisions_values" CHECK ("event_revisions"."field" = 'withdrawn' or "event_revisions"."after" is not null)
);
--> statement-breakpoint
ALTER TABLE "ingest_cursors" DROP CONSTRAINT "ingest_cursors_pass_result";--> statement-breakpoint
ALTER TABLE "zone_suspicions" DROP CONSTRAINT "zone_suspicions_route";--> statement-breakpoint
ALTER TABLE "platform_health" ADD COLUMN "kept_since" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "platform_health" ADD COLUMN "proven_days" jsonb;--> statement-breakpoint
ALTER TABLE "platform_health" ADD COLUMN "kept_ms" integer;--> statement-breakpoint
ALTER TABLE "platform_health" ADD COLUMN "kept_before_ms" integer;--> statement-breakpoint
ALTER TABLE "zone_suspicions" ADD COLUMN "is_whole" boolean DEFAULT false NOT NULL;--> statement-breakpoint
CREATE INDEX "event_revisions_open" ON "event_revisions" USING btree ("zone_id","occurred_at") WHERE accepted_at is null;--> statement-breakpoint
ALTER TABLE "zone_suspicions" DROP COLUMN "agreed_since";--> statement-breakpoint
ALTER TABLE "zone_suspicions" DROP COLUMN "details";--> statement-breakpoint
ALTER TABLE "ingest_cursors" ADD CONSTRAINT "ingest_cursors_pass_result" CHECK ("ingest_cursors"."pass_result" in ('full', 'short', 'looped', 'token_rejected', 'held'));--> statement-breakpoint
ALTER TABLE "zone_suspicions" ADD CONSTRAINT "zone_suspicions_route" CHECK ("zone_suspicions"."route" in ('list', 'search', 'counts'));