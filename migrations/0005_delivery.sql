-- Why: replicas have to agree whether a channel is worth trying, how much of its rate is spent, which messages went out
-- together, and what was handed to the fallback channel.
-- Locks: notifications while its two small partial indexes are built; its new columns are null.
CREATE TABLE "channel_states" (
	"opened_at" timestamp with time zone,
	"retry_at" timestamp with time zone DEFAULT now() NOT NULL,
	"spent_until" timestamp with time zone DEFAULT now() NOT NULL,
	"failures" integer DEFAULT 0 NOT NULL,
	"openings" integer DEFAULT 0 NOT NULL,
	"channel" text PRIMARY KEY NOT NULL,
	"state" text DEFAULT 'closed' NOT NULL,
	"last_error" text,
	CONSTRAINT "channel_states_state" CHECK ("channel_states"."state" in ('closed', 'open', 'disabled'))
);
--> statement-breakpoint
ALTER TABLE "notifications" ADD COLUMN "replayed_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "notifications" ADD COLUMN "digest_key" text;--> statement-breakpoint
ALTER TABLE "notifications" ADD COLUMN "stands_in_for" text;--> statement-breakpoint
CREATE INDEX "notifications_given_up" ON "notifications" USING btree ("channel") WHERE state = 'undeliverable';--> statement-breakpoint
CREATE INDEX "notifications_stand_ins" ON "notifications" USING btree ("alert_id") WHERE stands_in_for is not null;