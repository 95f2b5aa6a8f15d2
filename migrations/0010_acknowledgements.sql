-- Why: channels that can show that somebody has taken an alert on are told of it, by the outbox like everything else.
-- Locks: notifications, while its rows are read once to check them.
ALTER TABLE "notifications" DROP CONSTRAINT "notifications_reason";--> statement-breakpoint
ALTER TABLE "notifications" ADD CONSTRAINT "notifications_reason" CHECK ("notifications"."reason" in ('first', 'worse', 'repeat', 'advice', 'acknowledged', 'resolved'));
