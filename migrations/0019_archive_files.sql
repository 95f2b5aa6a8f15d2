-- Why: days that can no longer change are kept as Parquet files. The manifest says which files are valid.
-- Locks: none; a new table.
CREATE TABLE "archive_files" (
	"written_at" timestamp with time zone DEFAULT now() NOT NULL,
	"checked_at" timestamp with time zone DEFAULT now() NOT NULL,
	"uploaded_at" timestamp with time zone,
	"retired_at" timestamp with time zone,
	"damaged_at" timestamp with time zone,
	"first_at" timestamp (3) with time zone,
	"last_at" timestamp (3) with time zone,
	"bytes" bigint NOT NULL,
	"zone_id" integer NOT NULL,
	"day" date NOT NULL,
	"rows" integer NOT NULL,
	"format" integer NOT NULL,
	"hours" integer[] NOT NULL,
	"sum" numeric NOT NULL,
	"kind" text NOT NULL,
	"damage" text,
	"sha256" text NOT NULL,
	"path" text NOT NULL,
	CONSTRAINT "archive_files_zone_id_day_kind_sha256_pk" PRIMARY KEY("zone_id","day","kind","sha256"),
	CONSTRAINT "archive_files_kind" CHECK ("archive_files"."kind" in ('events', 'records')),
	CONSTRAINT "archive_files_sha256" CHECK ("archive_files"."sha256" ~ '^[0-9a-f]{64}$'),
	CONSTRAINT "archive_files_hours" CHECK (cardinality("archive_files"."hours") = 24),
	CONSTRAINT "archive_files_times" CHECK (("archive_files"."rows" = 0) = ("archive_files"."first_at" is null) and "archive_files"."first_at" <= "archive_files"."last_at")
);
--> statement-breakpoint
CREATE UNIQUE INDEX "archive_files_valid" ON "archive_files" USING btree ("zone_id","day","kind") WHERE retired_at is null;--> statement-breakpoint
CREATE INDEX "archive_files_day" ON "archive_files" USING btree ("day");