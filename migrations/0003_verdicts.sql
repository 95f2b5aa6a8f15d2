-- Why: what an alert is (verdict, at each look), what is usual in a zone, proposed exclusions, fitted weights, and marks with a reason.
-- Locks: notifications and spikes for a moment, while their checks are read anew.
CREATE TABLE "exclusions" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "exclusions_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"proposed_at" timestamp with time zone NOT NULL,
	"followed_at" timestamp with time zone,
	"spike_id" bigint,
	"zone_id" integer NOT NULL,
	"key" text NOT NULL,
	"clause" jsonb NOT NULL
);
--> statement-breakpoint
CREATE TABLE "verdict_weights" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "verdict_weights_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"fitted_at" timestamp with time zone NOT NULL,
	"marks" integer NOT NULL,
	"fitted_by" text NOT NULL,
	"weights" jsonb
);
--> statement-breakpoint
CREATE TABLE "verdicts" (
	"spike_id" bigint NOT NULL,
	"judged_at" timestamp with time zone NOT NULL,
	"zone_id" integer NOT NULL,
	"look" text NOT NULL,
	"said" text NOT NULL,
	"verdict" jsonb NOT NULL,
	CONSTRAINT "verdicts_spike_id_look_pk" PRIMARY KEY("spike_id","look"),
	CONSTRAINT "verdicts_look" CHECK ("verdicts"."look" in ('first', 'half-hour', 'six-hours', 'day')),
	CONSTRAINT "verdicts_said" CHECK ("verdicts"."said" in ('attack', 'misfire', 'scanner', 'broken-client', 'crawler', 'unclear'))
);
--> statement-breakpoint
CREATE TABLE "zone_usual" (
	"since" timestamp with time zone NOT NULL,
	"zone_id" integer NOT NULL,
	"dimension" text NOT NULL,
	"value" text COLLATE "C" NOT NULL,
	CONSTRAINT "zone_usual_zone_id_dimension_value_pk" PRIMARY KEY("zone_id","dimension","value"),
	CONSTRAINT "zone_usual_dimension" CHECK ("zone_usual"."dimension" in ('asn', 'ja4', 'path'))
);
--> statement-breakpoint
ALTER TABLE "notifications" DROP CONSTRAINT "notifications_reason";--> statement-breakpoint
ALTER TABLE "spikes" DROP CONSTRAINT "spikes_mark";--> statement-breakpoint
ALTER TABLE "exclusions" ADD CONSTRAINT "exclusions_spike_id_spikes_id_fk" FOREIGN KEY ("spike_id") REFERENCES "public"."spikes"("id") ON DELETE set null ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "verdicts" ADD CONSTRAINT "verdicts_spike_id_spikes_id_fk" FOREIGN KEY ("spike_id") REFERENCES "public"."spikes"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "exclusions_clause" ON "exclusions" USING btree ("zone_id","key");--> statement-breakpoint
CREATE INDEX "verdicts_judged" ON "verdicts" USING btree ("zone_id","judged_at");--> statement-breakpoint
ALTER TABLE "notifications" ADD CONSTRAINT "notifications_reason" CHECK ("notifications"."reason" in ('first', 'join', 'worse', 'repeat', 'advice', 'verdict', 'acknowledged', 'resolved'));--> statement-breakpoint
ALTER TABLE "spikes" ADD CONSTRAINT "spikes_mark" CHECK ("spikes"."mark" in ('attack', 'misfire', 'scanner', 'broken-client', 'crawler', 'noise') and "spikes"."marked_at" is not null or "spikes"."mark" is null);