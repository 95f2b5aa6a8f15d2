-- Why: the detector remembers each hour's largest windows, and a spike carries what an alert says. Nothing has written
-- spikes before this, so the new columns need no default.
-- Locks: rule_buckets against writers while its index is built.
CREATE TABLE "rule_peaks" (
	"starts_at" timestamp with time zone NOT NULL,
	"zone_id" integer NOT NULL,
	"events" integer NOT NULL,
	"peak3" integer NOT NULL,
	"peak15" integer NOT NULL,
	"peak60" integer NOT NULL,
	"rule_id" text NOT NULL,
	CONSTRAINT "rule_peaks_zone_id_rule_id_starts_at_pk" PRIMARY KEY("zone_id","rule_id","starts_at"),
	CONSTRAINT "rule_peaks_whole_hour" CHECK (extract(epoch from "rule_peaks"."starts_at") % 3600 = 0),
	CONSTRAINT "rule_peaks_nested" CHECK ("rule_peaks"."peak3" <= "rule_peaks"."peak15" and "rule_peaks"."peak15" <= "rule_peaks"."peak60" and "rule_peaks"."peak60" > 0)
);
--> statement-breakpoint
ALTER TABLE "spikes" ADD COLUMN "last_active_at" timestamp with time zone NOT NULL;--> statement-breakpoint
ALTER TABLE "spikes" ADD COLUMN "judged_through" timestamp with time zone NOT NULL;--> statement-breakpoint
ALTER TABLE "spikes" ADD COLUMN "threshold" double precision NOT NULL;--> statement-breakpoint
ALTER TABLE "spikes" ADD COLUMN "window_count" integer NOT NULL;--> statement-breakpoint
ALTER TABLE "spikes" ADD COLUMN "window_minutes" integer NOT NULL;--> statement-breakpoint
ALTER TABLE "spikes" ADD COLUMN "severity" text NOT NULL;--> statement-breakpoint
ALTER TABLE "spikes" ADD COLUMN "kind" text NOT NULL;--> statement-breakpoint
CREATE INDEX "rule_buckets_minutes" ON "rule_buckets" USING btree ("starts_at") WHERE width = 60;--> statement-breakpoint
CREATE INDEX "spikes_closed" ON "spikes" USING btree ("closed_at");--> statement-breakpoint
ALTER TABLE "spikes" ADD CONSTRAINT "spikes_window" CHECK ("spikes"."window_minutes" in (3, 15, 60));--> statement-breakpoint
ALTER TABLE "spikes" ADD CONSTRAINT "spikes_severity" CHECK ("spikes"."severity" in ('warning', 'error', 'critical'));--> statement-breakpoint
ALTER TABLE "spikes" ADD CONSTRAINT "spikes_kind" CHECK ("spikes"."kind" in ('spike', 'new-rule'));