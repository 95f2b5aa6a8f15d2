-- Why: a person who signs in at an OpenID Connect issuer has a session with rights of their own, without a key.
-- Locks: sessions for a moment. The new columns are null, so no row is written.
ALTER TABLE "sessions" ADD COLUMN "token_ends_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "sessions" ADD COLUMN "is_masked" boolean;--> statement-breakpoint
ALTER TABLE "sessions" ADD COLUMN "person_name" text;--> statement-breakpoint
ALTER TABLE "sessions" ADD COLUMN "id_token" text;--> statement-breakpoint
ALTER TABLE "sessions" ADD COLUMN "roles" text[];--> statement-breakpoint
ALTER TABLE "sessions" ADD COLUMN "zone_ids" integer[];