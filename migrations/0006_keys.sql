-- Why: keys are found by the id in them, and replicas have to sign page cursors with one secret.
-- Locks: api_keys, which nothing has written to before this version.
CREATE TABLE "server_secrets" (
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"name" text PRIMARY KEY NOT NULL,
	"secret" "bytea" NOT NULL
);
--> statement-breakpoint
ALTER TABLE "api_keys" ADD COLUMN "is_masked" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "api_keys" ADD COLUMN "key_id" text NOT NULL;--> statement-breakpoint
ALTER TABLE "api_keys" DROP COLUMN "hint";--> statement-breakpoint
ALTER TABLE "api_keys" ADD CONSTRAINT "api_keys_key_id" UNIQUE("key_id");