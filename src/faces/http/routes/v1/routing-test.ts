import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { ROUTE_VERDICTS, SEVERITIES, SPIKE_KINDS } from "#model/kinds.ts";
import { explainRouting, readLiveState } from "#operations/explain-routing.ts";
import { IsoTime, RuleId, requireEveryZone, Time, toIso, ZoneId } from "#operations/fields.ts";
import type { ApiDeps } from "./api-deps.ts";

const Transition = z.object({
  reason: z.string(),
  severity: z.enum(SEVERITIES),
  notified: z.array(z.string()),
  updated: z.array(z.string()),
  waiting: z.array(z.string()),
  held: z.array(z.string()),
});

export const ExplainedRouting = z
  .object({
    at: IsoTime,
    routes: z.array(
      z.object({
        path: z.string(),
        verdict: z.enum(ROUTE_VERDICTS),
        mismatches: z.array(z.string()),
        channels: z.array(z.string()),
        continues: z.boolean(),
      }),
    ),
    quietHours: z.array(z.object({ path: z.string(), verdict: z.string(), channels: z.array(z.string()) })),
    inhibitedBy: z.string().nullable(),
    silencedBy: z.number().int().nullable(),
    timing: z.object({
      groupWaitMs: z.number(),
      groupIntervalMs: z.number(),
      repeatIntervalMs: z.number(),
    }),
    repeatIntervalMs: z.record(z.string(), z.number()),
    transitions: z.array(Transition).describe("The beginning, a rise a minute later, and the end."),
  })
  .meta({ id: "ExplainedRouting" });

/** `GET /api/v1/routing/test`: what `longwatch config routes test --live` prints. */
export function addRoutingTest(app: FastifyInstance, { archive, clock, log, service }: ApiDeps): void {
  app.withTypeProvider<ZodTypeProvider>().get(
    "/api/v1/routing/test",
    {
      config: { access: { scope: "read" } },
      schema: {
        tags: ["Alerts"],
        summary: "Show step by step who would be notified of an alert",
        description:
          "The alert need not exist. The silences and spikes of the moment count. The answer comes from the functions that decide in the service.",
        querystring: z.strictObject({
          zone: ZoneId,
          rule: RuleId,
          severity: z.enum(SEVERITIES),
          kind: z.enum(SPIKE_KINDS).default("spike"),
          at: Time.optional().describe("Default: now."),
        }),
        response: { 200: ExplainedRouting },
      },
    },
    async ({ query: { zone, rule, severity, kind, at }, caller }) => {
      requireEveryZone(caller);
      const nowMs = at ?? clock();
      const { routing, channels } = service.alerting();
      const live = await readLiveState(archive, log, nowMs);
      const explained = explainRouting(
        { kind, zoneId: zone, ruleId: rule, severity },
        { routing, channels, nowMs },
        live,
      );
      return { at: toIso(nowMs), ...(structuredClone(explained) as Mutable<typeof explained>) };
    },
  );
}

/** The same, as the schema's types have it: arrays of the pure function are read-only. */
type Mutable<Value> = { -readonly [Key in keyof Value]: Mutable<Value[Key]> };
