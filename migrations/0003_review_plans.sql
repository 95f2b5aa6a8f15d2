-- Why: people save plans of which rules block, and Longwatch watches the ones that are followed.
-- Locks: none on tables that exist.
CREATE TABLE "review_plans" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "review_plans_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"created_at" timestamp with time zone NOT NULL,
	"deleted_at" timestamp with time zone,
	"zone_id" integer NOT NULL,
	"name" text NOT NULL,
	"note" text NOT NULL,
	"created_by" text NOT NULL,
	"plan" jsonb NOT NULL,
	"watch" jsonb
);
--> statement-breakpoint
CREATE INDEX "review_plans_zone" ON "review_plans" USING btree ("zone_id");