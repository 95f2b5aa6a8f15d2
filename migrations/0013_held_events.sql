-- Why: a page that an erasure may cover is kept apart while the pseudonym key is missing, and judged once the key is back.
-- Locks: quarantined_entries while its index is made.
CREATE TABLE "held_blocks" (
	"first_at" timestamp (3) with time zone NOT NULL,
	"last_at" timestamp (3) with time zone NOT NULL,
	"held_at" timestamp with time zone DEFAULT now() NOT NULL,
	"zone_id" integer NOT NULL,
	"day" date NOT NULL,
	"entry_count" integer NOT NULL,
	"block_id" uuid DEFAULT gen_random_uuid() NOT NULL,
	"log_id_hashes" "bytea" NOT NULL,
	"block" "bytea" NOT NULL,
	CONSTRAINT "held_blocks_zone_id_day_block_id_pk" PRIMARY KEY("zone_id","day","block_id")
);
--> statement-breakpoint
CREATE TABLE "held_events" (
	"occurred_at" timestamp (3) with time zone NOT NULL,
	"zone_id" integer NOT NULL,
	"log_id" text COLLATE "C" NOT NULL,
	"route" text NOT NULL,
	"feature" text,
	"rule_id" text,
	"ip" text,
	"ja4" text,
	"ua" text,
	"url" text,
	"asn" text,
	"country" text,
	"action" text,
	"message" text,
	"held_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "held_events_zone_id_occurred_at_log_id_pk" PRIMARY KEY("zone_id","occurred_at","log_id"),
	CONSTRAINT "held_events_route" CHECK ("held_events"."route" in ('search', 'list'))
);
--> statement-breakpoint
ALTER TABLE "pseudonym_keys" ADD COLUMN "missing_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "pseudonym_keys" ADD COLUMN "missing_because" text;--> statement-breakpoint
ALTER TABLE "quarantined_entries" ADD COLUMN "is_held" boolean DEFAULT false NOT NULL;--> statement-breakpoint
CREATE INDEX "held_blocks_times" ON "held_blocks" USING btree ("zone_id","first_at","last_at");--> statement-breakpoint
CREATE INDEX "quarantined_entries_held" ON "quarantined_entries" USING btree ("id") WHERE is_held;