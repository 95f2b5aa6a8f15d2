-- Why: searches over months. Closed days are counted in advance, and addresses can be asked for by network, also where
-- the platform masked them.
-- Locks: none, everything is new.
CREATE TABLE "cube_days" (
	"built_at" timestamp with time zone,
	"zone_id" integer NOT NULL,
	"day" date NOT NULL,
	"marks" integer DEFAULT 0 NOT NULL,
	"built_marks" integer,
	"total" integer DEFAULT 0 NOT NULL,
	"times" "bytea",
	CONSTRAINT "cube_days_zone_id_day_pk" PRIMARY KEY("zone_id","day"),
	CONSTRAINT "cube_days_built" CHECK (("cube_days"."built_marks" is null) = ("cube_days"."built_at" is null))
);
--> statement-breakpoint
CREATE TABLE "day_tallies" (
	"zone_id" integer NOT NULL,
	"day" date NOT NULL,
	"dimension" text NOT NULL,
	"heads" "bytea" NOT NULL,
	"tallies" "bytea" NOT NULL,
	"codes" "bytea" NOT NULL,
	CONSTRAINT "day_tallies_zone_id_day_dimension_pk" PRIMARY KEY("zone_id","day","dimension")
);
--> statement-breakpoint
CREATE TABLE "tally_texts" (
	"zone_id" integer NOT NULL,
	"dimension" text NOT NULL,
	"texts" json NOT NULL,
	CONSTRAINT "tally_texts_zone_id_dimension_pk" PRIMARY KEY("zone_id","dimension")
);
--> statement-breakpoint
-- By hand:
-- What is packed hardly gets any smaller, and is read far more often than written.
ALTER TABLE day_tallies ALTER COLUMN heads SET STORAGE EXTERNAL, ALTER COLUMN tallies SET STORAGE EXTERNAL,
  ALTER COLUMN codes SET STORAGE EXTERNAL;
--> statement-breakpoint
ALTER TABLE cube_days ALTER COLUMN times SET STORAGE EXTERNAL;
--> statement-breakpoint
-- An address as a network: itself, or what a masked one (203.0.113.*, 2001:db8:1:*) leaves open; null for any other
-- text. One plain expression, so that Postgres can inline and index it; each CASE keeps from inet what it would refuse.
-- Regular expressions for the rarer forms alone: they take microseconds.
CREATE FUNCTION event_network(ip text) RETURNS inet LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE translate(ip, '0123456789', '')
    WHEN '...' THEN CASE WHEN length(ip) <= 15 AND '.' || ip || '.' NOT LIKE '%..%' THEN
      CASE WHEN split_part(ip, '.', 1)::bigint < 256 AND split_part(ip, '.', 2)::bigint < 256 AND split_part(ip, '.', 3)::bigint < 256 AND split_part(ip, '.', 4)::bigint < 256 THEN
        CASE WHEN host((ip)::inet) = ip THEN ((ip) || '/32')::inet END END END
    WHEN '...*' THEN CASE WHEN ip LIKE '%.*' THEN
      CASE WHEN length(ip) <= 15 AND '.' || rtrim(ip, '*') || '0' || '.' NOT LIKE '%..%' THEN
      CASE WHEN split_part(rtrim(ip, '*') || '0', '.', 1)::bigint < 256 AND split_part(rtrim(ip, '*') || '0', '.', 2)::bigint < 256 AND split_part(rtrim(ip, '*') || '0', '.', 3)::bigint < 256 AND split_part(rtrim(ip, '*') || '0', '.', 4)::bigint < 256 THEN
        CASE WHEN host((rtrim(ip, '*') || '0')::inet) = rtrim(ip, '*') || '0' THEN ((rtrim(ip, '*') || '0') || '/24')::inet END END END END
    WHEN '..*.*' THEN CASE WHEN ip LIKE '%.*.*' THEN
      CASE WHEN length(ip) <= 15 AND '.' || rtrim(ip, '.*') || '.0.0' || '.' NOT LIKE '%..%' THEN
      CASE WHEN split_part(rtrim(ip, '.*') || '.0.0', '.', 1)::bigint < 256 AND split_part(rtrim(ip, '.*') || '.0.0', '.', 2)::bigint < 256 AND split_part(rtrim(ip, '.*') || '.0.0', '.', 3)::bigint < 256 AND split_part(rtrim(ip, '.*') || '.0.0', '.', 4)::bigint < 256 THEN
        CASE WHEN host((rtrim(ip, '.*') || '.0.0')::inet) = rtrim(ip, '.*') || '.0.0' THEN ((rtrim(ip, '.*') || '.0.0') || '/16')::inet END END END END
    ELSE CASE
      WHEN strpos(ip, ':') = 0 THEN NULL
      WHEN ip ~ ('^(?:(?:[0-9A-Fa-f]{1,4}:){7}[0-9A-Fa-f]{1,4}|(?:[0-9A-Fa-f]{1,4}:){1,7}:|:(?::[0-9A-Fa-f]{1,4}){1,7}|::'
          || '|(?:[0-9A-Fa-f]{1,4}:){1,6}:[0-9A-Fa-f]{1,4}|(?:[0-9A-Fa-f]{1,4}:){1,5}(?::[0-9A-Fa-f]{1,4}){1,2}'
          || '|(?:[0-9A-Fa-f]{1,4}:){1,4}(?::[0-9A-Fa-f]{1,4}){1,3}|(?:[0-9A-Fa-f]{1,4}:){1,3}(?::[0-9A-Fa-f]{1,4}){1,4}'
          || '|(?:[0-9A-Fa-f]{1,4}:){1,2}(?::[0-9A-Fa-f]{1,4}){1,5}|[0-9A-Fa-f]{1,4}:(?::[0-9A-Fa-f]{1,4}){1,6})$')
        THEN ip::inet
      WHEN ip ~ '^::(?:[Ff]{4}:)?(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])(?:\.(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])){3}$'
        THEN ip::inet
      WHEN ip ~ '^[0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{1,4}){0,6}:?(?::\*)+$'
        THEN (regexp_replace(ip, ':?(:\*)+$', '') || CASE WHEN ip ~ '^(?:[0-9A-Fa-f]{1,4}:){7}' THEN ':0/' ELSE '::/' END
          || 16 * (length(regexp_replace(ip, '[^:]|:?(:\*)+$', '', 'g')) + 1))::inet
    END
  END
$$;
--> statement-breakpoint
-- On the partition of a closed day: what is counted of it is out of date from this transaction's commit on. Once per
-- transaction: the rows after the first only find the mark.
CREATE FUNCTION mark_cube_day() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  changed waf_events := CASE WHEN tg_op = 'DELETE' THEN old ELSE new END;
  utc_day date := (changed.occurred_at AT TIME ZONE 'UTC')::date;
BEGIN
  INSERT INTO cube_days AS d (zone_id, day, marks) VALUES (changed.zone_id, utc_day, 1)
  ON CONFLICT (zone_id, day) DO UPDATE SET marks = d.marks + 1
  WHERE d.xmin <> pg_current_xact_id()::xid;
  RETURN NULL;
END
$$;
