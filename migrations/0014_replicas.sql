-- Why: the status must say whether the service runs, and when each of its processes was last alive.
-- Locks: none; a new table.
CREATE TABLE "replicas" (
	"started_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"seen_at" timestamp (3) with time zone DEFAULT now() NOT NULL,
	"stopped_at" timestamp (3) with time zone,
	"pid" integer NOT NULL,
	"id" text PRIMARY KEY NOT NULL,
	"host" text NOT NULL,
	"version" text NOT NULL,
	"roles" text[] NOT NULL,
	"zone_ids" integer[] NOT NULL
);
