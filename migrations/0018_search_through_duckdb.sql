-- Why: searches read the archive's files and the rows of all other days. Nothing reads the counts of closed days any more.
-- Locks: each closed day's partition of waf_events, for a moment, to remove its trigger. The indexes of closed days are
-- dropped with their day, when it has been archived.
DROP TABLE "cube_days" CASCADE;--> statement-breakpoint
DROP TABLE "day_tallies" CASCADE;--> statement-breakpoint
DROP TABLE "tally_texts" CASCADE;--> statement-breakpoint
-- By hand:
-- With the function go its triggers on the partitions of closed days.
DROP FUNCTION mark_cube_day() CASCADE;
