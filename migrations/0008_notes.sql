-- Why: plots and alerts show what people noted, such as a deploy.
-- Locks: none of an existing table.
CREATE TABLE "notes" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "notes_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"at" timestamp with time zone NOT NULL,
	"zone_id" integer,
	"text" text NOT NULL,
	"link" text,
	"created_by" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"source" text,
	CONSTRAINT "notes_source_unique" UNIQUE("source")
);
--> statement-breakpoint
CREATE INDEX "notes_at" ON "notes" USING btree ("at");