-- Why: clients that follow the alerts have to learn, over any replica, of every transition once and in order.
-- Locks: alerts while its trigger is made; its rows are copied one entry per transition.
CREATE TABLE "alert_transitions" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "alert_transitions_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"alert_id" bigint NOT NULL,
	"transition" integer NOT NULL,
	"entry" jsonb NOT NULL,
	"headline" text,
	CONSTRAINT "alert_transitions_once" UNIQUE("alert_id","transition")
);
--> statement-breakpoint
ALTER TABLE "alert_transitions" ADD CONSTRAINT "alert_transitions_alert_id_alerts_id_fk" FOREIGN KEY ("alert_id") REFERENCES "public"."alerts"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
-- By hand:
CREATE FUNCTION "record_alert_transition"() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	said text;
BEGIN
	SELECT "details" #>> '{message,headline}' INTO said FROM "alerts" WHERE "id" = NEW."id";
	IF NOT FOUND THEN
		RETURN NULL;
	END IF;
	-- Until this commits no other transaction gets a number, so that numbers appear in their order. It is asked for when
	-- the transaction has all its other locks: nobody who holds it waits for anybody.
	PERFORM pg_advisory_xact_lock(7603012);
	INSERT INTO "alert_transitions" ("alert_id", "transition", "entry", "headline")
	SELECT NEW."id", n, coalesce(NEW."transitions" -> (n - 1), '{}'), said
	FROM generate_series(CASE WHEN TG_OP = 'INSERT' THEN 1 ELSE OLD."transition" + 1 END, NEW."transition") AS n
	ORDER BY n
	ON CONFLICT ("alert_id", "transition") DO NOTHING;
	RETURN NULL;
END
$$;
--> statement-breakpoint
CREATE CONSTRAINT TRIGGER "alerts_record_transition" AFTER INSERT OR UPDATE OF "transition" ON "alerts"
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION "record_alert_transition"();
--> statement-breakpoint
INSERT INTO "alert_transitions" ("alert_id", "transition", "entry", "headline")
SELECT a."id", n, coalesce(a."transitions" -> (n - 1), '{}'), a."details" #>> '{message,headline}'
FROM "alerts" a CROSS JOIN LATERAL generate_series(1, a."transition") AS n
ORDER BY a."transitions" -> (n - 1) -> 'at', a."id", n;
