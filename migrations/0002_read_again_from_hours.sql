-- Why: the progress of a backfill is read from its hours, so that it needs no cursors of its own.
-- Locks: coverage_windows for a moment. An unfinished backfill goes on where it stopped, and keeps the number of its new events.
ALTER TABLE "coverage_windows" ADD COLUMN "read_again" jsonb;--> statement-breakpoint
UPDATE "coverage_windows" w SET "read_again" = jsonb_build_object(
	'at', floor(extract(epoch FROM b."started_at") * 1000)::bigint,
	'by', b."route",
	'stored', w."stored_count" - CASE WHEN w."starts_at" = date_trunc('hour', b."from_at", 'UTC') THEN b."new_events" ELSE 0 END
) || CASE WHEN w."starts_at" + interval '1 hour' <= b."done_through"
	THEN jsonb_build_object('doneAt', floor(extract(epoch FROM b."done_through") * 1000)::bigint) ELSE '{}' END
FROM (
	SELECT DISTINCT ON ("zone_id", "hour") * FROM "backfills",
		generate_series(date_trunc('hour', "from_at", 'UTC'), "to_at" - interval '1 millisecond', interval '1 hour') AS "hour"
	WHERE "ended_at" IS NULL ORDER BY "zone_id", "hour", "started_at" DESC
) b WHERE b."zone_id" = w."zone_id" AND b."hour" = w."starts_at";--> statement-breakpoint
DROP TABLE "backfills" CASCADE;
