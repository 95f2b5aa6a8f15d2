-- Why: channels that update their message show to whom a person gave the alert.
-- Locks: notifications while their rows are checked, which are those of some weeks.
ALTER TABLE "notifications" DROP CONSTRAINT "notifications_reason";--> statement-breakpoint
ALTER TABLE "notifications" ADD CONSTRAINT "notifications_reason" CHECK ("notifications"."reason" in ('first', 'join', 'again', 'worse', 'repeat', 'advice', 'turned', 'verdict', 'settled', 'resolved', 'acknowledged', 'assigned', 'commented'));