-- Why: a zone that the platform refuses waits by itself.
-- Locks: request_budgets for a moment; no row is rewritten.
ALTER TABLE "request_budgets" ADD COLUMN "refused_since" timestamp (3) with time zone;--> statement-breakpoint
ALTER TABLE "request_budgets" ADD COLUMN "zone_id" integer;