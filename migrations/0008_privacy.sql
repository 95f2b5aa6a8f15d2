-- Why: personal data leaves in its time and on request: erasures with the tombstones they leave, which key made the pseudonyms,
-- which days are done. The audit trail can only be added to.
-- Locks: audit_entries for a moment, while its triggers are made.
CREATE TABLE "erasures" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "erasures_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"requested_at" timestamp (3) with time zone NOT NULL,
	"until_at" timestamp (3) with time zone NOT NULL,
	"ended_at" timestamp (3) with time zone,
	"zone_id" integer,
	"family" integer NOT NULL,
	"prefix" integer NOT NULL,
	"include_masked" boolean NOT NULL,
	"key_id" text NOT NULL,
	"hash" "bytea" NOT NULL,
	"masked_hash" "bytea",
	"masked_prefix" integer,
	"counts" jsonb NOT NULL,
	CONSTRAINT "erasures_once" UNIQUE NULLS NOT DISTINCT("zone_id","key_id","hash","include_masked"),
	CONSTRAINT "erasures_family" CHECK ("erasures"."family" in (4, 6))
);
--> statement-breakpoint
CREATE TABLE "pseudonym_keys" (
	"adopted_at" timestamp with time zone DEFAULT now() NOT NULL,
	"retired_at" timestamp with time zone,
	"key_id" text PRIMARY KEY NOT NULL
);
--> statement-breakpoint
CREATE TABLE "pseudonymised_days" (
	"done_at" timestamp with time zone DEFAULT now() NOT NULL,
	"events" bigint NOT NULL,
	"day" date PRIMARY KEY NOT NULL,
	"key_id" text NOT NULL
);
--> statement-breakpoint
CREATE INDEX "erasures_until" ON "erasures" USING btree ("until_at");--> statement-breakpoint
CREATE UNIQUE INDEX "pseudonym_keys_current" ON "pseudonym_keys" USING btree ((true)) WHERE retired_at is null;
--> statement-breakpoint
-- By hand:
CREATE FUNCTION "refuse_audit_change"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	RAISE EXCEPTION 'audit_entries can only be added to' USING ERRCODE = '42501';
END;
$$;
--> statement-breakpoint
CREATE TRIGGER "audit_entries_no_change" BEFORE UPDATE OR DELETE OR TRUNCATE ON "audit_entries" FOR EACH STATEMENT EXECUTE FUNCTION "refuse_audit_change"();
