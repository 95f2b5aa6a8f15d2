-- Why: everything Longwatch keeps. Edited after generation: waf_events and raw_blocks are partitioned by day, so that
-- retention drops whole tables instead of deleting rows; the schema language cannot say it.
-- Locks: none that matter, every table is new.
CREATE TABLE "advice" (
	"asked_at" timestamp with time zone NOT NULL,
	"spike_id" bigint,
	"zone_id" integer NOT NULL,
	"success" boolean NOT NULL,
	"rule_id" text NOT NULL,
	"text" text,
	"error_key" text,
	CONSTRAINT "advice_zone_id_rule_id_asked_at_pk" PRIMARY KEY("zone_id","rule_id","asked_at")
);
--> statement-breakpoint
CREATE TABLE "alerts" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "alerts_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"fired_at" timestamp with time zone NOT NULL,
	"acknowledged_at" timestamp with time zone,
	"resolved_at" timestamp with time zone,
	"spike_id" bigint,
	"zone_id" integer,
	"transition" integer DEFAULT 1 NOT NULL,
	"state" text DEFAULT 'firing' NOT NULL,
	"kind" text NOT NULL,
	"fingerprint" text NOT NULL,
	"rule_id" text,
	"acknowledged_by" text,
	"transitions" jsonb DEFAULT '[]'::jsonb NOT NULL,
	"details" jsonb DEFAULT '{}'::jsonb NOT NULL,
	CONSTRAINT "alerts_state" CHECK ("alerts"."state" in ('firing', 'acknowledged', 'resolved')),
	CONSTRAINT "alerts_resolved_at" CHECK (("alerts"."state" = 'resolved') = ("alerts"."resolved_at" is not null))
);
--> statement-breakpoint
CREATE TABLE "api_keys" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "api_keys_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"expires_at" timestamp with time zone,
	"revoked_at" timestamp with time zone,
	"last_used_at" timestamp with time zone,
	"name" text NOT NULL,
	"key_hash" "bytea" NOT NULL,
	"hint" text NOT NULL,
	"roles" text[] NOT NULL,
	"zone_ids" integer[],
	CONSTRAINT "api_keys_key_hash" UNIQUE("key_hash")
);
--> statement-breakpoint
CREATE TABLE "audit_entries" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "audit_entries_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	"actor" text NOT NULL,
	"action" text NOT NULL,
	"subject" text NOT NULL,
	"details" jsonb DEFAULT '{}'::jsonb NOT NULL
);
--> statement-breakpoint
CREATE TABLE "coverage_windows" (
	"starts_at" timestamp with time zone NOT NULL,
	"searched_through" timestamp (3) with time zone,
	"sealed_at" timestamp with time zone,
	"zone_id" integer NOT NULL,
	"upstream_count" integer,
	"stored_count" integer DEFAULT 0 NOT NULL,
	"passes" integer DEFAULT 0 NOT NULL,
	"state" text DEFAULT 'open' NOT NULL,
	"gap_reason" text,
	"evidence" jsonb,
	CONSTRAINT "coverage_windows_zone_id_starts_at_pk" PRIMARY KEY("zone_id","starts_at"),
	CONSTRAINT "coverage_windows_state" CHECK ("coverage_windows"."state" in ('open', 'sealed', 'gap')),
	CONSTRAINT "coverage_windows_whole_hour" CHECK (extract(epoch from "coverage_windows"."starts_at") % 3600 = 0),
	CONSTRAINT "coverage_windows_sealed_with_evidence" CHECK ("coverage_windows"."state" <> 'sealed' or ("coverage_windows"."sealed_at" is not null and "coverage_windows"."evidence" is not null)),
	CONSTRAINT "coverage_windows_gap_has_reason" CHECK ("coverage_windows"."state" <> 'gap' or "coverage_windows"."gap_reason" is not null)
);
--> statement-breakpoint
CREATE TABLE "dirty_buckets" (
	"minute" timestamp with time zone NOT NULL,
	"zone_id" integer NOT NULL,
	"marks" integer DEFAULT 1 NOT NULL,
	"rule_id" text NOT NULL,
	CONSTRAINT "dirty_buckets_zone_id_rule_id_minute_pk" PRIMARY KEY("zone_id","rule_id","minute"),
	CONSTRAINT "dirty_buckets_whole_minute" CHECK (extract(epoch from "dirty_buckets"."minute") % 60 = 0)
);
--> statement-breakpoint
CREATE TABLE "ingest_cursors" (
	"fence" bigint NOT NULL,
	"started_at" timestamp with time zone NOT NULL,
	"quiet_pass_started_at" timestamp with time zone,
	"zone_id" integer NOT NULL,
	"day" date NOT NULL,
	"pass" integer DEFAULT 1 NOT NULL,
	"pages_seen" integer DEFAULT 0 NOT NULL,
	"new_entries" integer DEFAULT 0 NOT NULL,
	"continuation_token" text,
	"pass_result" text,
	CONSTRAINT "ingest_cursors_zone_id_day_pk" PRIMARY KEY("zone_id","day"),
	CONSTRAINT "ingest_cursors_pass_result" CHECK ("ingest_cursors"."pass_result" in ('full', 'short', 'token_rejected'))
);
--> statement-breakpoint
CREATE TABLE "leases" (
	"fence" bigint DEFAULT 0 NOT NULL,
	"expires_at" timestamp with time zone,
	"due_at" timestamp with time zone,
	"name" text PRIMARY KEY NOT NULL,
	"holder" text
);
--> statement-breakpoint
CREATE TABLE "notifications" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "notifications_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"alert_id" bigint NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"next_attempt_at" timestamp with time zone DEFAULT now() NOT NULL,
	"delivered_at" timestamp with time zone,
	"transition" integer NOT NULL,
	"attempts" integer DEFAULT 0 NOT NULL,
	"reason" text NOT NULL,
	"channel" text NOT NULL,
	"state" text DEFAULT 'pending' NOT NULL,
	"dedupe_key" text NOT NULL,
	"provider_reference" text,
	"last_error" text,
	"content" jsonb DEFAULT '{}'::jsonb NOT NULL,
	CONSTRAINT "notifications_once" UNIQUE("alert_id","transition","channel"),
	CONSTRAINT "notifications_state" CHECK ("notifications"."state" in ('pending', 'sending', 'delivered', 'undeliverable')),
	CONSTRAINT "notifications_reason" CHECK ("notifications"."reason" in ('first', 'worse', 'repeat', 'advice', 'resolved'))
);
--> statement-breakpoint
CREATE TABLE "pages" (
	"read_at" timestamp with time zone DEFAULT now() NOT NULL,
	"first_at" timestamp (3) with time zone,
	"last_at" timestamp (3) with time zone,
	"zone_id" integer NOT NULL,
	"day" date NOT NULL,
	"pass" integer NOT NULL,
	"page" integer NOT NULL,
	"entries" integer NOT NULL,
	"new_entries" integer NOT NULL,
	"hash" "bytea" NOT NULL,
	"token_hash" "bytea",
	CONSTRAINT "pages_zone_id_day_pass_page_pk" PRIMARY KEY("zone_id","day","pass","page")
);
--> statement-breakpoint
CREATE TABLE "quarantined_entries" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "quarantined_entries_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"received_at" timestamp with time zone DEFAULT now() NOT NULL,
	"zone_id" integer NOT NULL,
	"day" date,
	"route" text NOT NULL,
	"reason" text NOT NULL,
	"raw" "bytea" NOT NULL,
	"raw_hash" "bytea" GENERATED ALWAYS AS (sha256(raw)) STORED,
	CONSTRAINT "quarantined_entries_route" CHECK ("quarantined_entries"."route" in ('search', 'list'))
);
--> statement-breakpoint
CREATE TABLE "raw_blocks" (
	"first_at" timestamp (3) with time zone NOT NULL,
	"last_at" timestamp (3) with time zone NOT NULL,
	"zone_id" integer NOT NULL,
	"day" date NOT NULL,
	"entry_count" integer NOT NULL,
	"block_id" uuid DEFAULT gen_random_uuid() NOT NULL,
	"log_id_hashes" "bytea" NOT NULL,
	"block" "bytea" NOT NULL,
	CONSTRAINT "raw_blocks_zone_id_day_block_id_pk" PRIMARY KEY("zone_id","day","block_id"),
	CONSTRAINT "raw_blocks_hash_per_entry" CHECK (octet_length("raw_blocks"."log_id_hashes") = 8 * "raw_blocks"."entry_count"),
	CONSTRAINT "raw_blocks_time_order" CHECK ("raw_blocks"."first_at" <= "raw_blocks"."last_at")
) PARTITION BY RANGE ("day");
--> statement-breakpoint
CREATE TABLE "rule_buckets" (
	"starts_at" timestamp with time zone NOT NULL,
	"zone_id" integer NOT NULL,
	"width" integer NOT NULL,
	"total" integer NOT NULL,
	"blocked" integer DEFAULT 0 NOT NULL,
	"logged" integer DEFAULT 0 NOT NULL,
	"challenged" integer DEFAULT 0 NOT NULL,
	"other" integer DEFAULT 0 NOT NULL,
	"rule_id" text NOT NULL,
	CONSTRAINT "rule_buckets_zone_id_rule_id_width_starts_at_pk" PRIMARY KEY("zone_id","rule_id","width","starts_at"),
	CONSTRAINT "rule_buckets_width" CHECK ("rule_buckets"."width" in (60, 3600, 86400)),
	CONSTRAINT "rule_buckets_aligned" CHECK (extract(epoch from "rule_buckets"."starts_at") % "rule_buckets"."width" = 0),
	CONSTRAINT "rule_buckets_adds_up" CHECK ("rule_buckets"."total" = "rule_buckets"."blocked" + "rule_buckets"."logged" + "rule_buckets"."challenged" + "rule_buckets"."other")
);
--> statement-breakpoint
CREATE TABLE "rule_metrics" (
	"fetched_at" timestamp with time zone DEFAULT now() NOT NULL,
	"zone_id" integer NOT NULL,
	"day" date NOT NULL,
	"total" integer NOT NULL,
	"blocked" integer,
	"logged" integer,
	"challenged" integer,
	"rule_id" text NOT NULL,
	CONSTRAINT "rule_metrics_zone_id_rule_id_day_pk" PRIMARY KEY("zone_id","rule_id","day")
);
--> statement-breakpoint
CREATE TABLE "silences" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "silences_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"starts_at" timestamp with time zone NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	"created_by" text NOT NULL,
	"reason" text NOT NULL,
	"matchers" jsonb NOT NULL,
	CONSTRAINT "silences_end_after_start" CHECK ("silences"."expires_at" > "silences"."starts_at")
);
--> statement-breakpoint
CREATE TABLE "spikes" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "spikes_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"opened_at" timestamp with time zone NOT NULL,
	"closed_at" timestamp with time zone,
	"baseline" double precision NOT NULL,
	"score" double precision NOT NULL,
	"peak" integer NOT NULL,
	"zone_id" integer NOT NULL,
	"rule_id" text NOT NULL,
	"evidence" jsonb NOT NULL,
	CONSTRAINT "spikes_close_after_open" CHECK ("spikes"."closed_at" >= "spikes"."opened_at")
);
--> statement-breakpoint
CREATE TABLE "waf_events" (
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
	CONSTRAINT "waf_events_zone_id_occurred_at_log_id_pk" PRIMARY KEY("zone_id","occurred_at","log_id"),
	CONSTRAINT "waf_events_route" CHECK ("waf_events"."route" in ('search', 'list'))
) PARTITION BY RANGE ("occurred_at");
--> statement-breakpoint
ALTER TABLE "advice" ADD CONSTRAINT "advice_spike_id_spikes_id_fk" FOREIGN KEY ("spike_id") REFERENCES "public"."spikes"("id") ON DELETE set null ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "alerts" ADD CONSTRAINT "alerts_spike_id_spikes_id_fk" FOREIGN KEY ("spike_id") REFERENCES "public"."spikes"("id") ON DELETE set null ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "notifications" ADD CONSTRAINT "notifications_alert_id_alerts_id_fk" FOREIGN KEY ("alert_id") REFERENCES "public"."alerts"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "alerts_open" ON "alerts" USING btree ("fingerprint") WHERE state <> 'resolved';--> statement-breakpoint
CREATE INDEX "audit_entries_at" ON "audit_entries" USING btree ("at");--> statement-breakpoint
CREATE INDEX "notifications_due" ON "notifications" USING btree ("next_attempt_at") WHERE state in ('pending', 'sending');--> statement-breakpoint
CREATE UNIQUE INDEX "quarantined_entries_content" ON "quarantined_entries" USING btree ("zone_id","raw_hash");--> statement-breakpoint
CREATE INDEX "raw_blocks_times" ON "raw_blocks" USING btree ("zone_id","first_at","last_at");--> statement-breakpoint
CREATE UNIQUE INDEX "spikes_open" ON "spikes" USING btree ("zone_id","rule_id") WHERE closed_at is null;--> statement-breakpoint
CREATE INDEX "spikes_opened" ON "spikes" USING btree ("zone_id","opened_at");--> statement-breakpoint
CREATE INDEX "waf_events_rule_time" ON "waf_events" USING btree ("zone_id","rule_id","occurred_at");--> statement-breakpoint
CREATE INDEX "waf_events_time_range" ON "waf_events" USING brin ("occurred_at");