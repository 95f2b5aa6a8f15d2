-- Why: searches keep a copy of sealed hours and must notice every change of their events. Inserts are counted in coverage_windows.
-- Locks: waf_events in share row exclusive mode, for a moment.
CREATE TABLE "hour_changes" (
	"starts_at" timestamp with time zone NOT NULL,
	"changed_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"id" bigserial NOT NULL,
	"zone_id" integer NOT NULL,
	CONSTRAINT "hour_changes_zone_id_starts_at_id_pk" PRIMARY KEY("zone_id","starts_at","id")
);
--> statement-breakpoint
-- By hand: no writer can forget a trigger. An insert has none, because COPY into partitions would then insert row by row.
CREATE FUNCTION note_hour_changes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO "hour_changes" ("zone_id", "starts_at")
	SELECT DISTINCT "zone_id", date_trunc('hour', "occurred_at", 'UTC') FROM changed;
	RETURN NULL;
END
$$;
--> statement-breakpoint
CREATE TRIGGER waf_events_note_update AFTER UPDATE ON waf_events
	REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_hour_changes();
--> statement-breakpoint
CREATE TRIGGER waf_events_note_delete AFTER DELETE ON waf_events
	REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_hour_changes();
