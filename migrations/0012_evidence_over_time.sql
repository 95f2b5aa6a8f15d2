-- Why: a seal is believed only while every look agrees with it, so each hour keeps its looks, its reopenings and a history.
-- Locks: coverage_windows and pages for an instant. Recent hours are flagged so that events without all dimensions are looked for once.
CREATE TABLE "event_aliases" (
	"other_at" timestamp (3) with time zone NOT NULL,
	"kept_at" timestamp (3) with time zone NOT NULL,
	"noted_at" timestamp (3) with time zone NOT NULL,
	"zone_id" integer NOT NULL,
	"log_id" text COLLATE "C" NOT NULL,
	CONSTRAINT "event_aliases_zone_id_other_at_log_id_pk" PRIMARY KEY("zone_id","other_at","log_id")
);
--> statement-breakpoint
CREATE TABLE "zone_suspicions" (
	"since" timestamp (3) with time zone NOT NULL,
	"last_seen_at" timestamp (3) with time zone NOT NULL,
	"agreed_since" timestamp (3) with time zone,
	"cleared_at" timestamp (3) with time zone,
	"zone_id" integer NOT NULL,
	"route" text NOT NULL,
	"reason" text NOT NULL,
	"details" jsonb,
	CONSTRAINT "zone_suspicions_zone_id_route_pk" PRIMARY KEY("zone_id","route"),
	CONSTRAINT "zone_suspicions_route" CHECK ("zone_suspicions"."route" in ('list', 'search', 'counts', 'metrics', 'zone'))
);
--> statement-breakpoint
ALTER TABLE "coverage_windows" ADD COLUMN "reopened_at" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "coverage_windows" ADD COLUMN "proof_from" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "coverage_windows" ADD COLUMN "unresolved_since" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "coverage_windows" ADD COLUMN "reopen_reason" text;--> statement-breakpoint
ALTER TABLE "coverage_windows" ADD COLUMN "looks" jsonb DEFAULT '{}'::jsonb NOT NULL;--> statement-breakpoint
ALTER TABLE "pages" ADD COLUMN "hours" jsonb;--> statement-breakpoint
-- By hand: an earlier version could seal an hour whose events lacked dimensions.
UPDATE "coverage_windows" SET "unresolved_since" = now() WHERE "starts_at" > now() - interval '72 hours';
