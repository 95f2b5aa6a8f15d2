-- Why: people want alerts about searches of their own: what a condition counted in each minute, and which conditions there are.
-- Locks: spikes while their rows are checked, which are those of 400 days at most.
CREATE TABLE "condition_minutes" (
	"minute" timestamp with time zone NOT NULL,
	"zone_id" integer NOT NULL,
	"count" integer NOT NULL,
	"counts" text NOT NULL,
	"values" bigint[],
	CONSTRAINT "condition_minutes_zone_id_counts_minute_pk" PRIMARY KEY("zone_id","counts","minute")
);
--> statement-breakpoint
CREATE TABLE "condition_zones" (
	"zone_id" integer PRIMARY KEY NOT NULL,
	"seq" bigint NOT NULL,
	"counted" text[] DEFAULT '{}' NOT NULL
);
--> statement-breakpoint
CREATE TABLE "custom_conditions" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "custom_conditions_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"name" text NOT NULL,
	"condition" jsonb NOT NULL,
	"created_by" text NOT NULL,
	CONSTRAINT "custom_conditions_name_unique" UNIQUE("name")
);
--> statement-breakpoint
ALTER TABLE "spikes" DROP CONSTRAINT "spikes_window";--> statement-breakpoint
ALTER TABLE "spikes" DROP CONSTRAINT "spikes_kind";--> statement-breakpoint
ALTER TABLE "spikes" ADD COLUMN "condition" jsonb;--> statement-breakpoint
ALTER TABLE "spikes" ADD CONSTRAINT "spikes_condition" CHECK (("spikes"."kind" = 'custom-condition') = ("spikes"."condition" is not null));--> statement-breakpoint
ALTER TABLE "spikes" ADD CONSTRAINT "spikes_window" CHECK ("spikes"."window_minutes" in (3, 15, 60) or "spikes"."kind" = 'custom-condition');--> statement-breakpoint
ALTER TABLE "spikes" ADD CONSTRAINT "spikes_kind" CHECK ("spikes"."kind" in ('spike', 'new-rule', 'sources', 'action-change', 'silent-rule', 'custom-condition'));