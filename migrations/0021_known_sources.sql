-- Why: a person names sources that are expected, and an hour remembers which of them it was counted without.
-- Locks: source_hours for a moment, to add a column with a constant default.
CREATE TABLE "known_sources" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "known_sources_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"expires_at" timestamp with time zone,
	"zone_id" integer,
	"kind" text NOT NULL,
	"pattern" text NOT NULL,
	"reason" text NOT NULL,
	"created_by" text NOT NULL,
	CONSTRAINT "known_sources_kind" CHECK ("known_sources"."kind" in ('ip', 'asn', 'ja4', 'ua'))
);
--> statement-breakpoint
ALTER TABLE "source_hours" ADD COLUMN "known" text DEFAULT '' NOT NULL;