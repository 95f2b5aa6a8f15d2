-- Why: a person can start a backfill or a verification in the console, and the run must survive a kill.
CREATE TABLE "requested_runs" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "requested_runs_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"from_at" timestamp (3) with time zone NOT NULL,
	"to_at" timestamp (3) with time zone NOT NULL,
	"requested_at" timestamp (3) with time zone NOT NULL,
	"started_at" timestamp (3) with time zone,
	"ended_at" timestamp (3) with time zone,
	"zone_id" integer NOT NULL,
	"starts" integer DEFAULT 0 NOT NULL,
	"percent" integer DEFAULT 0 NOT NULL,
	"with_ids" boolean DEFAULT false NOT NULL,
	"kind" text NOT NULL,
	"requested_by" text NOT NULL,
	"step" text,
	"problem" text,
	"result" jsonb,
	CONSTRAINT "requested_runs_kind" CHECK ("requested_runs"."kind" in ('backfill', 'verify')),
	CONSTRAINT "requested_runs_span" CHECK ("requested_runs"."from_at" < "requested_runs"."to_at")
);
--> statement-breakpoint
CREATE UNIQUE INDEX "requested_runs_unfinished" ON "requested_runs" USING btree ("kind","zone_id","from_at","to_at","with_ids") WHERE "requested_runs"."ended_at" is null;--> statement-breakpoint
CREATE INDEX "requested_runs_zone" ON "requested_runs" USING btree ("zone_id","id");