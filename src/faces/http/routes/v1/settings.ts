import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { listErasures } from "#db/privacy/erasures.ts";
import { IsoTime, toIso, toIsoOrNull } from "#operations/fields.ts";
import type { ApiDeps } from "./api-deps.ts";

export const PrivacyAnswer = z
  .object({
    retention: z.object({
      rawDays: z.number(),
      ipDays: z.number(),
      eventDays: z.number(),
      rollUpDays: z.number(),
    }),
    erasures: z
      .array(
        z.object({
          id: z.number().int(),
          requestedAt: IsoTime,
          untilAt: IsoTime.describe("Events up to this time are covered."),
          endedAt: IsoTime.nullable().describe("Null while stored data is still being processed."),
          zone: z.number().int().nullable(),
          family: z.number().int(),
          prefix: z.number().int(),
          counts: z.record(z.string(), z.number()),
        }),
      )
      .describe("The newest 200. No erasure says which address it covers."),
  })
  .meta({ id: "Privacy" });

export const SettingsAnswer = z
  .object({
    variables: z.array(
      z.object({
        name: z.string(),
        value: z.string().nullable().describe("A secret is shown as [secret]. Null if there is no value."),
        isSet: z.boolean().describe("False if the value is the default."),
      }),
    ),
    channels: z.array(z.object({ name: z.string(), kind: z.string() })),
    routing: z.unknown().describe("Routes, inhibitions, quiet hours, links and zones, as they apply."),
    detection: z.unknown(),
  })
  .meta({ id: "Settings" });

/** `GET /api/v1/privacy` and `GET /api/v1/settings`. */
export function addSettings(app: FastifyInstance, { archive, service }: ApiDeps): void {
  const typed = app.withTypeProvider<ZodTypeProvider>();
  const config = { access: { scope: "admin" } } as const;
  typed.get(
    "/api/v1/privacy",
    {
      config,
      schema: { tags: ["Service"], summary: "Show retention and erasures", response: { 200: PrivacyAnswer } },
    },
    async () => {
      const { rawDays, ipDays, eventDays, rollUpDays } = service.retention;
      const erasures = (await listErasures(archive, 200)).map((one) => ({
        ...one,
        requestedAt: toIso(one.requestedAt),
        untilAt: toIso(one.untilAt),
        endedAt: toIsoOrNull(one.endedAt),
        counts: { ...one.counts },
      }));
      return { retention: { rawDays, ipDays, eventDays, rollUpDays }, erasures };
    },
  );
  typed.get(
    "/api/v1/settings",
    {
      config,
      schema: {
        tags: ["Service"],
        summary: "Show the configuration in force",
        description: "The environment is that of the answering process. No secret is shown.",
        response: { 200: SettingsAnswer },
      },
    },
    async () => {
      const { channels, routing, detection } = service.alerting();
      return {
        variables: service.settings.map((one) => ({ ...one })),
        channels: channels.map(({ name, kind }) => ({ name, kind })),
        routing: JSON.parse(JSON.stringify(routing)) as unknown,
        detection: JSON.parse(JSON.stringify(detection)) as unknown,
      };
    },
  );
}
