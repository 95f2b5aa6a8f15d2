-- Why: which minutes have changed, and what destinations of forwarded events have acknowledged.
-- Locks: none; every table is new.
CREATE TABLE "changed_minutes" (
	"minute" timestamp with time zone NOT NULL,
	"seq" bigserial NOT NULL,
	"zone_id" integer NOT NULL,
	CONSTRAINT "changed_minutes_zone_id_minute_pk" PRIMARY KEY("zone_id","minute"),
	CONSTRAINT "changed_minutes_whole_minute" CHECK (extract(epoch from "changed_minutes"."minute") % 60 = 0)
);
--> statement-breakpoint
CREATE TABLE "forward_cursors" (
	"since" timestamp with time zone NOT NULL,
	"seq" bigint NOT NULL,
	"zone_id" integer NOT NULL,
	"destination" text NOT NULL,
	CONSTRAINT "forward_cursors_destination_zone_id_pk" PRIMARY KEY("destination","zone_id")
);
--> statement-breakpoint
CREATE TABLE "forward_destinations" (
	"seen_at" timestamp with time zone NOT NULL,
	"acknowledged_at" timestamp with time zone,
	"failing_since" timestamp with time zone,
	"retry_at" timestamp with time zone,
	"failures" integer DEFAULT 0 NOT NULL,
	"is_refused" boolean DEFAULT false NOT NULL,
	"destination" text PRIMARY KEY NOT NULL,
	"last_error" text,
	CONSTRAINT "forward_destinations_failing" CHECK (("forward_destinations"."failing_since" is null) = ("forward_destinations"."last_error" is null))
);
--> statement-breakpoint
CREATE TABLE "forward_hours" (
	"starts_at" timestamp with time zone NOT NULL,
	"look_from" timestamp (3) with time zone,
	"look_to" timestamp (3) with time zone,
	"look_at" timestamp with time zone,
	"acknowledged_at" timestamp with time zone,
	"proven_at" timestamp with time zone,
	"sent_again_at" timestamp with time zone,
	"zone_id" integer NOT NULL,
	"acknowledged" integer DEFAULT 0 NOT NULL,
	"stored" integer,
	"counted" integer,
	"is_closed" boolean DEFAULT false NOT NULL,
	"arrival" text DEFAULT 'open' NOT NULL,
	"destination" text NOT NULL,
	CONSTRAINT "forward_hours_destination_zone_id_starts_at_pk" PRIMARY KEY("destination","zone_id","starts_at"),
	CONSTRAINT "forward_hours_arrival" CHECK ("forward_hours"."arrival" in ('open', 'arrived', 'differs')),
	CONSTRAINT "forward_hours_whole_hour" CHECK (extract(epoch from "forward_hours"."starts_at") % 3600 = 0),
	CONSTRAINT "forward_hours_look" CHECK (num_nulls("forward_hours"."look_from", "forward_hours"."look_to", "forward_hours"."look_at") % 3 = 0)
);
--> statement-breakpoint
CREATE TABLE "forward_receipts" (
	"first_at" timestamp (3) with time zone NOT NULL,
	"last_at" timestamp (3) with time zone NOT NULL,
	"starts_at" timestamp with time zone NOT NULL,
	"id" bigserial NOT NULL,
	"zone_id" integer NOT NULL,
	"destination" text NOT NULL,
	"receipts" "bytea" NOT NULL,
	CONSTRAINT "forward_receipts_destination_zone_id_starts_at_id_pk" PRIMARY KEY("destination","zone_id","starts_at","id"),
	CONSTRAINT "forward_receipts_whole" CHECK (octet_length("forward_receipts"."receipts") % 12 = 0)
);
--> statement-breakpoint
CREATE TABLE "forward_refusals" (
	"occurred_at" timestamp (3) with time zone NOT NULL,
	"refused_at" timestamp with time zone NOT NULL,
	"zone_id" integer NOT NULL,
	"destination" text NOT NULL,
	"log_id" text COLLATE "C" NOT NULL,
	"receipt" "bytea" NOT NULL,
	"reason" text NOT NULL,
	CONSTRAINT "forward_refusals_destination_zone_id_occurred_at_log_id_pk" PRIMARY KEY("destination","zone_id","occurred_at","log_id")
);
--> statement-breakpoint
CREATE INDEX "changed_minutes_order" ON "changed_minutes" USING btree ("zone_id","seq");--> statement-breakpoint
CREATE INDEX "forward_hours_looks" ON "forward_hours" USING btree ("destination","zone_id","look_at") WHERE look_at is not null;--> statement-breakpoint
CREATE INDEX "forward_hours_open" ON "forward_hours" USING btree ("destination","zone_id","starts_at") WHERE arrival <> 'arrived';