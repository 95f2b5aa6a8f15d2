-- Why: verdicts are judged after 1 and 5 minutes, too; an alert is told again, turns or settles; an incident goes on with a rule's alert.
-- Locks: verdicts, notifications and spikes for a moment; the new checks are validated against rows that all pass them.
ALTER TABLE "notifications" DROP CONSTRAINT "notifications_reason";--> statement-breakpoint
ALTER TABLE "verdicts" DROP CONSTRAINT "verdicts_look";--> statement-breakpoint
ALTER TABLE "spikes" ADD COLUMN "takes_over" text;--> statement-breakpoint
ALTER TABLE "notifications" ADD CONSTRAINT "notifications_reason" CHECK ("notifications"."reason" in ('first', 'join', 'again', 'worse', 'repeat', 'advice', 'turned', 'verdict', 'acknowledged', 'settled', 'resolved'));--> statement-breakpoint
ALTER TABLE "verdicts" ADD CONSTRAINT "verdicts_look" CHECK ("verdicts"."look" in ('first', 'minute', 'five-minutes', 'half-hour', 'six-hours', 'day'));