CREATE TABLE "judged_hours" (
	"starts_at" timestamp with time zone NOT NULL,
	"rules_from" timestamp with time zone,
	"rules_through" timestamp with time zone,
	"is_live" boolean DEFAULT false NOT NULL,
	"judged_at" timestamp with time zone,
	"zone_id" integer NOT NULL,
	"events" integer,
	"judged_with" text,
	CONSTRAINT "judged_hours_zone_id_starts_at_pk" PRIMARY KEY("zone_id","starts_at"),
	CONSTRAINT "judged_hours_whole_hour" CHECK (extract(epoch from "judged_hours"."starts_at") % 3600 = 0),
	CONSTRAINT "judged_hours_judged" CHECK (("judged_hours"."judged_at" is null) = ("judged_hours"."judged_with" is null))
);
--> statement-breakpoint
ALTER TABLE "spikes" ADD COLUMN "is_late" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "spikes" ADD CONSTRAINT "spikes_late_closed" CHECK (not "spikes"."is_late" or "spikes"."closed_at" is not null);