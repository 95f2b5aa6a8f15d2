CREATE TABLE "judged_hours" (
	"starts_at" timestamp with time zone NOT NULL,
	"rules_from" timestamp with time zone,
	"rules_through" timestamp with time zone,
	"is_live" boolean DEFAULT false NOT NULL,
	"judged_at" timestamp with time zone,
	"zone_id" integer NOT NULL,
	"events" integer,
	"judged_with" text,
	CONSTRAINT "judged_hours_zone_id_starts_at_pk" PRIMARY KEY("zone_id","starts_at"),
	CONSTRAINT "judged_hours_whole_hour" CHECK (extract(epoch from "judged_hours"."starts_at") % 3600 = 0),
	CONSTRAINT "judged_hours_judged" CHECK (("judged_hours"."judged_at" is null) = ("judged_hours"."judged_with" is null))
);
--> statement-breakpoint
ALTER TABLE "notifications" DROP CONSTRAINT "notifications_reason";--> statement-breakpoint
ALTER TABLE "spikes" DROP CONSTRAINT "spikes_kind";--> statement-breakpoint
DROP INDEX "spikes_open";--> statement-breakpoint
ALTER TABLE "platform_health" ADD COLUMN "rising_until" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "spikes" ADD COLUMN "incident" text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE "spikes" ADD COLUMN "member_of" bigint;--> statement-breakpoint
ALTER TABLE "spikes" ADD COLUMN "main_senders" integer;--> statement-breakpoint
ALTER TABLE "spikes" ADD COLUMN "is_late" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "spikes" ADD COLUMN "resolved_attackers" text[] DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE "spikes" ADD COLUMN "changes" jsonb;--> statement-breakpoint
ALTER TABLE "spikes" ADD CONSTRAINT "spikes_member_of_spikes_id_fk" FOREIGN KEY ("member_of") REFERENCES "public"."spikes"("id") ON DELETE set null ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "spikes_members" ON "spikes" USING btree ("member_of") WHERE member_of is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "spikes_open" ON "spikes" USING btree ("zone_id","rule_id","incident") WHERE closed_at is null;--> statement-breakpoint
ALTER TABLE "spikes" DROP COLUMN "companions";--> statement-breakpoint
ALTER TABLE "notifications" ADD CONSTRAINT "notifications_reason" CHECK ("notifications"."reason" in ('first', 'join', 'worse', 'repeat', 'advice', 'acknowledged', 'resolved'));--> statement-breakpoint
ALTER TABLE "spikes" ADD CONSTRAINT "spikes_late_closed" CHECK (not "spikes"."is_late" or "spikes"."closed_at" is not null);--> statement-breakpoint
ALTER TABLE "spikes" ADD CONSTRAINT "spikes_changes" CHECK ((kind = 'action-change' or kind = 'silent-rule') = ("spikes"."changes" is not null));--> statement-breakpoint
ALTER TABLE "spikes" ADD CONSTRAINT "spikes_kind" CHECK ("spikes"."kind" in ('spike', 'new-rule', 'sources', 'action-change', 'silent-rule'));