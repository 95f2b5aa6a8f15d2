-- Why: any replica can see whether the platform still takes the access key, and since when each zone is looked after.
-- Locks: none; a new table.
CREATE TABLE "platform_health" (
	"watched_since" timestamp (3) with time zone NOT NULL,
	"checked_at" timestamp (3) with time zone,
	"answered_at" timestamp (3) with time zone,
	"refused_since" timestamp (3) with time zone,
	"zone_id" integer PRIMARY KEY NOT NULL,
	"refused_with" text
);
