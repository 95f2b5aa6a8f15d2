import { z } from "zod";
import { listEventRevisions } from "#db/ingest/event-revisions.ts";
import { FIELD_NAMES, FIELDS, toFieldName } from "#model/fields.ts";
import { maskAddress, maskNullable } from "#stages/archive/mask/mask.ts";
import { IsoTime, Time, toIso, toIsoOrNull, ZoneId } from "../fields.ts";
import { defineQuery } from "../operation.ts";

const MOST_ID_CHARS = 3_000;
/** More than an event has, unless a route changes its answer with every look. */
const MOST = 100;
/** The fields whose column has another name than the platform's field. */
const COLUMNS: Readonly<Record<string, string>> = { rule_id: FIELDS.rule };

const RevisedValue = z
  .object({
    field: z.enum([...FIELD_NAMES, "message"]),
    before: z.string().nullable().describe("The former value; a text from a request. Escape it."),
    after: z.string().nullable().describe("The value that the later look showed. Escape it."),
    route: z.literal("search").describe("The route whose later look showed the other value."),
    seenAt: IsoTime.describe("When the route first showed the other value."),
    acceptedAt: IsoTime.nullable().describe(
      "When a second look confirmed it. Null if none did yet: the event still has the former value.",
    ),
  })
  .meta({ masked: maskValue });

const EventRevisions = z
  .object({
    withdrawnSince: IsoTime.nullable().describe(
      "Since when no route of the platform shows the event. Null if the platform shows it.",
    ),
    values: z.array(RevisedValue).describe(`Newest first, at most ${MOST}.`),
  })
  .meta({ id: "EventRevisions" });

export const listRevisions = defineQuery({
  name: "events.revisions",
  summary: "List the former values of an event, and since when the platform no longer shows it",
  http: ["GET", "/api/v1/zones/:zone/events/revisions"],
  tag: "Events",
  scope: "read",
  zone: "zone",
  input: z.strictObject({
    zone: ZoneId,
    logId: z
      .string()
      .min(1)
      .max(MOST_ID_CHARS)
      // Postgres keeps no NUL.
      .refine((id) => !id.includes("\0"), "must be the id of an event"),
    at: Time.describe("The event's `timestamp`."),
  }),
  output: EventRevisions,
  run: async ({ db }, { zone, logId, at }) => {
    const rows = await listEventRevisions(db, zone, { logId, occurredAt: at }, MOST);
    const withdrawn = rows.find(({ field, acceptedAt }) => field === "withdrawn" && acceptedAt !== null);
    return {
      withdrawnSince: toIsoOrNull(withdrawn?.seenAt ?? null),
      values: rows
        .filter(({ field }) => field !== "withdrawn")
        .map(({ field, before, after, seenAt, acceptedAt }) => ({
          field: toFieldName(COLUMNS[field] ?? field) ?? ("message" as const),
          before,
          after,
          route: "search" as const,
          seenAt: toIso(seenAt),
          acceptedAt: toIsoOrNull(acceptedAt),
        })),
    };
  },
});

function maskValue<Value extends { field: string; before: string | null; after: string | null }>(
  value: Value,
): Value {
  const mask = (text: string | null) =>
    value.field === "address" && text !== null ? maskAddress(text) : maskNullable(text);
  return { ...value, before: mask(value.before), after: mask(value.after) };
}
