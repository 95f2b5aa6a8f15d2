-- Why: a person's word on a spike changes what enters a rule's history, a spike among many is graver, and the platform's
-- own daily counts are asked for rule by rule.
-- Locks: spikes while its small partial index is built and its rows are checked; rule_buckets against writes while the
-- index of its daily rows is built.
CREATE TABLE "rule_snapshots" (
	"asked_at" timestamp with time zone NOT NULL,
	"due_at" timestamp with time zone NOT NULL,
	"zone_id" integer NOT NULL,
	"rule_id" text NOT NULL,
	"error_code" text,
	CONSTRAINT "rule_snapshots_zone_id_rule_id_pk" PRIMARY KEY("zone_id","rule_id")
);
--> statement-breakpoint
ALTER TABLE "spikes" ADD COLUMN "companions" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "spikes" ADD COLUMN "mark" text;--> statement-breakpoint
ALTER TABLE "spikes" ADD COLUMN "marked_at" timestamp with time zone;--> statement-breakpoint
CREATE INDEX "rule_buckets_days" ON "rule_buckets" USING btree ("zone_id","starts_at","rule_id") WHERE width = 86400;--> statement-breakpoint
CREATE INDEX "spikes_marked" ON "spikes" USING btree ("zone_id","rule_id","opened_at") WHERE mark is not null;--> statement-breakpoint
ALTER TABLE "spikes" ADD CONSTRAINT "spikes_mark" CHECK ("spikes"."mark" in ('attack', 'noise') and "spikes"."marked_at" is not null or "spikes"."mark" is null);