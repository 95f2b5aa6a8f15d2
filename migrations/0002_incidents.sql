ALTER TABLE "notifications" DROP CONSTRAINT "notifications_reason";--> statement-breakpoint
ALTER TABLE "spikes" DROP CONSTRAINT "spikes_kind";--> statement-breakpoint
DROP INDEX "spikes_open";--> statement-breakpoint
ALTER TABLE "platform_health" ADD COLUMN "rising_until" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "spikes" ADD COLUMN "incident" text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE "spikes" ADD COLUMN "member_of" bigint;--> statement-breakpoint
ALTER TABLE "spikes" ADD COLUMN "main_senders" integer;--> statement-breakpoint
ALTER TABLE "spikes" ADD COLUMN "resolved_attackers" text[] DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE "spikes" ADD COLUMN "changes" jsonb;--> statement-breakpoint
ALTER TABLE "spikes" ADD CONSTRAINT "spikes_member_of_spikes_id_fk" FOREIGN KEY ("member_of") REFERENCES "public"."spikes"("id") ON DELETE set null ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "spikes_members" ON "spikes" USING btree ("member_of") WHERE member_of is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "spikes_open" ON "spikes" USING btree ("zone_id","rule_id","incident") WHERE closed_at is null;--> statement-breakpoint
ALTER TABLE "spikes" DROP COLUMN "companions";--> statement-breakpoint
ALTER TABLE "notifications" ADD CONSTRAINT "notifications_reason" CHECK ("notifications"."reason" in ('first', 'join', 'worse', 'repeat', 'advice', 'acknowledged', 'resolved'));--> statement-breakpoint
ALTER TABLE "spikes" ADD CONSTRAINT "spikes_changes" CHECK ((kind = 'action-change' or kind = 'silent-rule') = ("spikes"."changes" is not null));--> statement-breakpoint
ALTER TABLE "spikes" ADD CONSTRAINT "spikes_kind" CHECK ("spikes"."kind" in ('spike', 'new-rule', 'sources', 'action-change', 'silent-rule'));