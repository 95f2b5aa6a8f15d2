-- Why: a short pass over a list that comes oldest first begins at the last page, so that it does not read the whole day.
-- Locks: ingest_cursors for an instant; two new columns, no rewrite.
ALTER TABLE "ingest_cursors" ADD COLUMN "tail_token" text;--> statement-breakpoint
ALTER TABLE "ingest_cursors" ADD COLUMN "began_at_tail" boolean DEFAULT false NOT NULL;