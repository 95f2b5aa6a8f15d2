/** The search for events, and how an event was revised. */
import { z } from "zod";
import { maskAddress, maskNullable } from "#archive/rules/mask.ts";
import { narrowZones, type ZonesRequest } from "#archive/rules/query/read-search.ts";
import { formatEvent } from "#archive/rules/records/format-event.ts";
import { createColumns, toNativeRow } from "#archive/rules/records/to-row.ts";
import type { Queryable } from "#db/client.ts";
import { listEventRevisions } from "#db/ingest/event-revisions.ts";
import { FIELD_NAMES, FIELDS, toFieldName } from "#model/fields.ts";
import { EVENT_FORMATS, SEARCH_SOURCES } from "#model/kinds.ts";
import type { Caller } from "#operations/caller.ts";
import { IsoTime, Name, Time, toIso, toIsoOrNull, ZoneId, ZoneIds } from "#operations/fields.ts";
import { defineQuery } from "#operations/operation.ts";
import { readZones } from "#operations/require-known.ts";
import { searchGroups } from "./read-union.ts";
import { type FoundRecord, searchZones } from "./search-zones.ts";
import {
  ABOUT_SEARCH,
  CHOSEN_COLUMNS,
  planNative,
  priceSearch,
  readColumns,
  SEARCH_SPAN,
  SEARCH_WINDOW,
  SearchedField,
  type Searching,
} from "./searching.ts";

/** A member that the search language reads by rules of its own. */
function documented<Value>(schema: z.ZodType<Value>) {
  const { $schema: _$schema, ...wire } = z.toJSONSchema(schema);
  return z.custom<Value>(() => true).meta({ wire });
}

const NativeRow = z.object({
  logId: Name,
  timestamp: z.number().describe("Epoch ms."),
  log: z
    .record(z.string(), z.unknown())
    .nullable()
    .meta({ masked: "nothing" })
    .describe("The record as the platform sent it."),
  fields: z.record(z.enum(FIELD_NAMES), Name).describe("Texts from requests. Escape them."),
});

/** Made for a masked key without what it may not see. */
const FormattedRow = z
  .record(z.string(), z.unknown())
  .meta({ masked: "open" })
  .describe(
    "With the format raw an entry of the platform's list, with ocsf an HTTP Activity of OCSF 1.8, with columns these.",
  );

/** A masked key sees no record and no whole address: neither is read for it. */
const Found = z.object({
  rows: z.array(z.union([NativeRow, FormattedRow])),
  groups: z.array(
    z.object({
      key: z.record(z.string(), Name).describe("By the names in `groupBy`."),
      count: z.number(),
      firstSeen: z.number(),
      lastSeen: z.number(),
      context: z.record(z.string(), z.unknown()).meta({ masked: "open" }),
      sparkline: z.array(z.number()).optional(),
    }),
  ),
  total: z.number().describe("Number of rows or groups on all pages."),
  totalPages: z.number(),
  page: z.number(),
  source: z
    .enum(SEARCH_SOURCES)
    .describe("archive: files of the archive had a part in the answer. events: only the database had."),
});

/** The search of the platform's API with Longwatch's names of the fields, with host, path and method, and with filters that exclude. */
export const searchEvents = defineQuery({
  name: "events.search",
  summary: "Search and group events",
  description: ABOUT_SEARCH,
  http: ["POST", "/api/v1/zones/:zone/events/search"],
  tag: "Events",
  scope: "read",
  zone: "zone",
  refuses: [422, 503],
  input: z.strictObject({
    zone: ZoneIds,
    from: documented(SEARCH_WINDOW.from),
    to: documented(SEARCH_WINDOW.to),
    query: documented(SEARCH_WINDOW.query).optional(),
    filters: documented(SEARCH_WINDOW.filters).optional(),
    groupBy: documented(z.array(SearchedField).nullish()).optional(),
    buckets: documented(z.int()).optional(),
    page: documented(z.int()).optional(),
    pageSize: documented(z.int()).optional(),
    format: z.enum(EVENT_FORMATS).default("event").describe("The format of rows. Groups have one only."),
    ...CHOSEN_COLUMNS,
  }),
  output: Found,
  example: {
    zone: "101",
    ...SEARCH_SPAN,
    groupBy: ["path"],
    filters: [{ field: "action", op: "eq", value: ["block"] }],
  },
  headers: ({ source }) => ({ "x-longwatch-source": source }),
  run: async (
    { db, now, caller, service, searching, signal },
    { zone, format, columns, timeZone, ...body },
  ) => {
    const of = await readZones({ db, caller, service }, zone);
    const zoneIds = zone === "all" ? of : service.zoneIds;
    const retentionDays = service.retention.eventDays;
    const asked = { db, zoneIds, nowMs: now, retentionDays, isMasked: caller.masked };
    const wanted = narrowZones(await planNative(asked, { zoneIds: of, body, kind: "search" }));
    const { isMasked } = wanted;
    const beside =
      wanted.plan.groupBy.length > 0 ? "groupBy" : format === "event" ? null : `the format ${format}`;
    const choice = readColumns({ columns, timeZone }, { isExport: false, beside });
    const toRow = choice === null ? toNativeRow : createColumns(choice, isMasked);
    const found = await answerSearch(
      { db, searching },
      { caller, signal },
      wanted,
      ({ event, record, zoneId }) =>
        format === "event"
          ? toRow({ zoneId, ...event }, record, isMasked)
          : (JSON.parse(
              formatEvent(format, { zoneId, ...event }, record, { ...searching.ocsf, isMasked }),
            ) as Record<string, unknown>),
    );
    const { page, pageSize } = wanted.plan;
    return { ...found, totalPages: Math.ceil(found.total / pageSize), page };
  },
});

/**
 * Answers a search in a place of the queue: rows as `toRow` makes them of an event and its record, or groups.
 * @throws if the search costs more than a question may
 */
export async function answerSearch<Row>(
  { db, searching }: { readonly db: Queryable; readonly searching: Searching },
  { caller, signal }: { readonly caller: Caller | null; readonly signal: AbortSignal },
  wanted: ZonesRequest,
  toRow: (found: FoundRecord) => Row,
) {
  const { zoneIds, plan } = wanted;
  const { openedBlocks, runInPlace } = searching;
  const work = { ...(await priceSearch(db, searching, wanted)), signal };
  return runInPlace({ caller }, work, async (deps, stopped) => {
    if (plan.groupBy.length === 0) {
      const { rows, ...found } = await searchZones({ ...deps, openedBlocks }, wanted, stopped);
      return { rows: rows.map(toRow), groups: [], ...found };
    }
    const { groups, ...found } = await searchGroups(deps, zoneIds, plan, stopped);
    const shown = groups.map(({ sparkline, context, ...group }) => ({
      ...group,
      context: { ...context },
      ...(sparkline === null ? {} : { sparkline: [...sparkline] }),
    }));
    return { rows: [], groups: shown, ...found };
  });
}

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
