-- Why: rules that change their action or fall silent are spikes of two further kinds, with the rules in a column.
-- Locks: spikes while its rows are checked; it has a few thousand.
ALTER TABLE "spikes" DROP CONSTRAINT "spikes_kind";--> statement-breakpoint
ALTER TABLE "spikes" ADD COLUMN "changes" jsonb;--> statement-breakpoint
ALTER TABLE "spikes" ADD CONSTRAINT "spikes_changes" CHECK ((kind = 'action-change' or kind = 'silent-rule') = ("spikes"."changes" is not null));--> statement-breakpoint
ALTER TABLE "spikes" ADD CONSTRAINT "spikes_kind" CHECK ("spikes"."kind" in ('spike', 'new-rule', 'sources', 'action-change', 'silent-rule'));