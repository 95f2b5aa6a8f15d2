import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { FIELD_NAMES } from "#model/fields.ts";
import { IsoTime, known, Time, toIso, toIsoOrNull, ZoneId } from "#operations/fields.ts";
import { readEventRevisions } from "#operations/read-event-revisions.ts";
import type { ApiDeps } from "./api-deps.ts";

const MOST_ID_CHARS = 3_000;

export const EventRevisions = z
  .object({
    withdrawnSince: IsoTime.nullable().describe(
      "Since when no route of the platform shows the event. Null if the platform shows it.",
    ),
    values: z
      .array(
        z.object({
          field: z.enum([...FIELD_NAMES, "message"]),
          before: z.string().nullable().describe("The former value; a text from a request. Escape it."),
          after: z.string().nullable().describe("The value that the later look showed. Escape it."),
          route: z.literal("search").describe("The route whose later look showed the other value."),
          seenAt: IsoTime.describe("When the route first showed the other value."),
          acceptedAt: IsoTime.nullable().describe(
            "When a second look confirmed it. Null if none did yet: the event still has the former value.",
          ),
        }),
      )
      .describe("Newest first, at most 100."),
  })
  .meta({ id: "EventRevisions" });

/** `GET /api/v1/zones/{zone}/events/revisions`: what later looks changed of one event. */
export function addEventRevisions(app: FastifyInstance, { archive }: ApiDeps): void {
  app.withTypeProvider<ZodTypeProvider>().get(
    "/api/v1/zones/:zone/events/revisions",
    {
      config: { access: { scope: "read", zone: "zone" } },
      schema: {
        tags: ["Events"],
        summary: "List the former values of an event, and since when the platform no longer shows it",
        params: z.object({ zone: ZoneId }),
        querystring: z.strictObject({
          logId: z
            .string()
            .min(1)
            .max(MOST_ID_CHARS)
            // Postgres keeps no NUL.
            .refine((id) => !id.includes("\0"), "must be the id of an event"),
          at: Time.describe("The event's `timestamp`."),
        }),
        response: { 200: EventRevisions },
      },
    },
    async ({ params: { zone }, query: { logId, at }, caller }) => {
      const event = { zoneId: zone, logId, occurredAt: at, isMasked: known(caller).masked };
      const { withdrawnSince, values } = await readEventRevisions(archive, event);
      return {
        withdrawnSince: toIsoOrNull(withdrawnSince),
        values: values.map(({ seenAt, acceptedAt, ...value }) => ({
          ...value,
          route: "search" as const,
          seenAt: toIso(seenAt),
          acceptedAt: toIsoOrNull(acceptedAt),
        })),
      };
    },
  );
}
