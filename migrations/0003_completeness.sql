-- Why: an hour is sealed by evidence, and the evidence needs a place: when it last gained an event, when it was searched
-- and compared, which counts differ. Also one request budget for all replicas, and backfills that go on where they ended.
-- Locks: coverage_windows for a moment; its new columns are null or constant.
CREATE TABLE "backfills" (
	"from_at" timestamp (3) with time zone NOT NULL,
	"to_at" timestamp (3) with time zone NOT NULL,
	"started_at" timestamp (3) with time zone NOT NULL,
	"done_through" timestamp (3) with time zone NOT NULL,
	"ended_at" timestamp (3) with time zone,
	"new_events" bigint DEFAULT 0 NOT NULL,
	"zone_id" integer NOT NULL,
	"route" text NOT NULL,
	CONSTRAINT "backfills_zone_id_from_at_to_at_route_pk" PRIMARY KEY("zone_id","from_at","to_at","route"),
	CONSTRAINT "backfills_route" CHECK ("backfills"."route" in ('list', 'search', 'export')),
	CONSTRAINT "backfills_span" CHECK ("backfills"."from_at" < "backfills"."to_at")
);
--> statement-breakpoint
CREATE TABLE "differing_cells" (
	"starts_at" timestamp with time zone NOT NULL,
	"first_seen_at" timestamp (3) with time zone NOT NULL,
	"last_seen_at" timestamp (3) with time zone NOT NULL,
	"resolved_at" timestamp (3) with time zone,
	"next_repair_at" timestamp (3) with time zone NOT NULL,
	"zone_id" integer NOT NULL,
	"upstream_count" integer NOT NULL,
	"stored_count" integer NOT NULL,
	"repairs" integer DEFAULT 0 NOT NULL,
	"rule_id" text NOT NULL,
	CONSTRAINT "differing_cells_zone_id_starts_at_rule_id_pk" PRIMARY KEY("zone_id","starts_at","rule_id"),
	CONSTRAINT "differing_cells_whole_hour" CHECK (extract(epoch from "differing_cells"."starts_at") % 3600 = 0)
);
--> statement-breakpoint
CREATE TABLE "request_budgets" (
	"refilled_at" timestamp (3) with time zone NOT NULL,
	"paused_until" timestamp (3) with time zone,
	"tokens" double precision NOT NULL,
	"name" text PRIMARY KEY NOT NULL
);
--> statement-breakpoint
ALTER TABLE "coverage_windows" ADD COLUMN "last_new_at" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "coverage_windows" ADD COLUMN "closing_search_at" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "coverage_windows" ADD COLUMN "reconciled_at" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "coverage_windows" ADD COLUMN "missing_cells" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "coverage_windows" ADD COLUMN "surplus_cells" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
CREATE INDEX "differing_cells_unresolved" ON "differing_cells" USING btree ("zone_id","starts_at") WHERE resolved_at is null;