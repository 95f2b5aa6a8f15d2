-- Why: people sign in to the console, and save searches there.
-- Locks: none; new tables.
CREATE TABLE "saved_views" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "saved_views_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"changed_at" timestamp with time zone DEFAULT now() NOT NULL,
	"is_shared" boolean NOT NULL,
	"key_id" text NOT NULL,
	"created_by" text NOT NULL,
	"page" text NOT NULL,
	"name" text NOT NULL,
	"state" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "sessions" (
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"last_used_at" timestamp with time zone DEFAULT now() NOT NULL,
	"ended_at" timestamp with time zone,
	"id" text PRIMARY KEY NOT NULL,
	"key_id" text NOT NULL,
	"user_agent" text NOT NULL,
	"token_hash" "bytea" NOT NULL,
	CONSTRAINT "sessions_token_hash" UNIQUE("token_hash")
);
--> statement-breakpoint
CREATE TABLE "sign_in_tokens" (
	"expires_at" timestamp with time zone NOT NULL,
	"used_at" timestamp with time zone,
	"key_id" text NOT NULL,
	"token_hash" "bytea" PRIMARY KEY NOT NULL
);
--> statement-breakpoint
CREATE INDEX "saved_views_key" ON "saved_views" USING btree ("key_id");--> statement-breakpoint
CREATE INDEX "sessions_key" ON "sessions" USING btree ("key_id");