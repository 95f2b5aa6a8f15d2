-- Why: a message waits for a verdict of now, and the row says so to whichever process judges.
-- Locks: verdicts for a moment. No row has the column set.
ALTER TABLE "verdicts" ADD COLUMN "asked_at" timestamp with time zone;--> statement-breakpoint
CREATE INDEX "verdicts_asked" ON "verdicts" USING btree ("spike_id") WHERE "verdicts"."asked_at" is not null;