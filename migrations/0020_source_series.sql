-- Why: attacks that no single rule shows are found by counting different sources, and a rule's alert is graded by them.
-- Locks: spikes for a moment, to add columns and to check its rows.
CREATE TABLE "source_hours" (
	"starts_at" timestamp with time zone NOT NULL,
	"zone_id" integer NOT NULL,
	"marks" integer DEFAULT 0 NOT NULL,
	"is_stale" boolean DEFAULT true NOT NULL,
	"peaks" integer[],
	CONSTRAINT "source_hours_zone_id_starts_at_pk" PRIMARY KEY("zone_id","starts_at"),
	CONSTRAINT "source_hours_whole_hour" CHECK (extract(epoch from "source_hours"."starts_at") % 3600 = 0),
	CONSTRAINT "source_hours_peaks" CHECK (cardinality("source_hours"."peaks") = 15)
);
--> statement-breakpoint
CREATE TABLE "source_usual" (
	"zone_id" integer NOT NULL,
	"day" date NOT NULL,
	"peak3" integer NOT NULL,
	"peak15" integer NOT NULL,
	"peak60" integer NOT NULL,
	"address" text COLLATE "C" NOT NULL,
	CONSTRAINT "source_usual_zone_id_day_address_pk" PRIMARY KEY("zone_id","day","address")
);
--> statement-breakpoint
ALTER TABLE "spikes" DROP CONSTRAINT "spikes_kind";--> statement-breakpoint
ALTER TABLE "spikes" ADD COLUMN "addresses" integer;--> statement-breakpoint
ALTER TABLE "spikes" ADD COLUMN "graded_by" text;--> statement-breakpoint
ALTER TABLE "spikes" ADD COLUMN "is_shadow" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "spikes" ADD COLUMN "sources" jsonb;--> statement-breakpoint
ALTER TABLE "spikes" ADD CONSTRAINT "spikes_sources" CHECK (("spikes"."kind" = 'sources') = ("spikes"."sources" is not null));--> statement-breakpoint
ALTER TABLE "spikes" ADD CONSTRAINT "spikes_graded_by" CHECK ("spikes"."graded_by" in ('addresses', 'score', 'both'));--> statement-breakpoint
ALTER TABLE "spikes" ADD CONSTRAINT "spikes_kind" CHECK ("spikes"."kind" in ('spike', 'new-rule', 'sources'));