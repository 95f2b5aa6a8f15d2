/** Hours and events that a destination has or has refused. */
import { z } from "zod";
import {
  type ForwardedHour,
  listForwardedHours,
  listRefusals,
} from "#db/delivery/forwarding/forward-report.ts";
import type { Style } from "#delivery/receivers/channels/terminal/terminal-style.ts";
import { formatWhole, showTime } from "#lib/format.ts";
import { toLine } from "#lib/text.ts";
import { DAY_MS } from "#lib/units.ts";
import { ARRIVALS, type Arrival, HOUR_STATES } from "#model/kinds.ts";
import {
  IsoTime,
  Name,
  pageOf,
  pageQuery,
  Text,
  Time,
  toIso,
  toIsoOrNull,
  toPage,
  visibleZones,
  ZoneId,
} from "#operations/fields.ts";
import { defineQuery } from "#operations/operation.ts";
import { requireZone } from "#operations/require-known.ts";
import { checkSpan } from "#operations/span.ts";
import { DestinationName, requireDestination, TAG } from "./destinations.ts";

const MAX_DAYS = 800;
const DEFAULT_DAYS = 7;

const DestinationHour = z
  .object({
    zoneId: z.number().int(),
    startsAt: IsoTime,
    state: z.enum(HOUR_STATES),
    stored: z
      .number()
      .int()
      .nullable()
      .describe("Stored events that pass the destination's filters. Null before the whole hour was read."),
    acknowledged: z
      .number()
      .int()
      .describe("Events that the destination has acknowledged with their present values."),
    refused: z.number().int(),
    counted: z
      .number()
      .int()
      .nullable()
      .describe("Events by the destination's own count. Null if it was not asked."),
    arrival: z.enum(ARRIVALS),
    provenAt: IsoTime.nullable().describe("When the arrival was last decided."),
    sentAgainAt: IsoTime.nullable().describe(
      "When the whole hour was sent again, because the destination counted fewer events than it had acknowledged.",
    ),
  })
  .meta({ id: "DestinationHour" });

const STYLES: Readonly<Record<Arrival, Style>> = { open: "yellow", arrived: "green", differs: "red" };

export const listForwarded = defineQuery({
  name: "forward.hours",
  summary: "List the hours of a destination by zone and time, and what has arrived of each",
  description: "Hours before the beginning of the destination are left out.",
  http: ["GET", "/api/v1/destinations/:destination/hours"],
  tag: TAG,
  scope: "read",
  refuses: [422],
  input: z.strictObject({
    destination: DestinationName,
    zone: ZoneId.optional().describe("Id of the shield zone. Default: all."),
    from: Time.optional().describe(`Default: ${DEFAULT_DAYS} days before \`to\`.`),
    to: Time.optional().describe("Default: now."),
    arrival: z
      .enum(ARRIVALS)
      .optional()
      .describe(
        "open: not proven yet. differs: the hour was sent twice, and still not every event is there.",
      ),
    ...pageQuery({ fallback: 200, most: 2_000 }),
  }),
  output: pageOf(DestinationHour),
  command: {
    examples: ["forward hours siem", "forward hours siem --zone 101 --from -30d --arrival differs"],
    help: "COUNTED is the destination's own count, and empty if it cannot be asked. SENT AGAIN is when the proof sent the whole hour again.",
    columns: [
      { head: "ZONE", get: ({ zoneId }) => String(zoneId) },
      { head: "HOUR (UTC)", get: ({ startsAt }) => showTime(startsAt) },
      { head: "STATE", get: ({ state }) => state },
      { head: "STORED", get: ({ stored }) => toNumber(stored) },
      { head: "ACKNOWLEDGED", get: ({ acknowledged }) => toNumber(acknowledged) },
      { head: "REFUSED", get: ({ refused }) => toNumber(refused) },
      { head: "COUNTED", get: ({ counted }) => toNumber(counted) },
      { head: "ARRIVAL", get: ({ arrival }) => ({ text: arrival, style: STYLES[arrival] }) },
      {
        head: "SENT AGAIN (UTC)",
        get: ({ sentAgainAt }) => (sentAgainAt === null ? "" : showTime(sentAgainAt)),
      },
    ],
    empty: "No hour matches.",
  },
  run: async (asked, { destination, zone, arrival, limit, after, ...wanted }) => {
    const { db, now, cursors, caller } = asked;
    const list = `forward-hours:${JSON.stringify([destination, zone, arrival, wanted.from, wanted.to])}`;
    const position = cursors.readAfter(list, after)?.map(Number) ?? null;
    // Later pages are of the first one's span.
    const [from = 0, to = 0, zoneId = 0, startsAt = 0] = position ?? readSpan(wanted, now);
    checkSpan(from, to, { max: MAX_DAYS, widthMs: DAY_MS, what: "days" });
    const zoneIds = visibleZones(caller, zone);
    const { config } = await requireDestination(asked, destination);
    if (zone !== undefined) await requireZone(asked, zone);
    const last = position === null ? null : { zoneId, startsAt };
    const reported = { destination, zoneIds, from, to, arrival, after: last };
    const isFiltered = (config?.where.length ?? 0) > 0;
    const rows = await listForwardedHours(db, { ...reported, isFiltered, limit: limit + 1 });
    const sign = (hour: ForwardedHour) => cursors.sign(list, [from, to, hour.zoneId, hour.startsAt]);
    return toPage(rows, limit, toHour, sign);
  },
});

function readSpan(
  { from, to }: { readonly from?: number | undefined; readonly to?: number | undefined },
  now: number,
): readonly [from: number, to: number] {
  const end = to ?? now;
  return [from ?? Math.max(0, end - DEFAULT_DAYS * DAY_MS), end];
}

function toHour({
  startsAt,
  provenAt,
  sentAgainAt,
  ...hour
}: ForwardedHour): z.infer<typeof DestinationHour> {
  return {
    ...hour,
    startsAt: toIso(startsAt),
    provenAt: toIsoOrNull(provenAt),
    sentAgainAt: toIsoOrNull(sentAgainAt),
  };
}

function toNumber(count: number | null): string {
  return count === null ? "" : formatWhole(count);
}

const RefusedEvent = z
  .object({
    zoneId: z.number().int(),
    occurredAt: IsoTime,
    logId: Name.describe("Escape it."),
    refusedAt: IsoTime,
    reason: Text.describe("The destination's words. They may quote the event. Escape them."),
  })
  .meta({ id: "RefusedEvent" });

export const listRefused = defineQuery({
  name: "forward.refused",
  summary: "List the events that a destination has refused, newest first",
  description:
    "A refused event does not stop the others. It is sent again if its values change, or if a person asks for that.",
  http: ["GET", "/api/v1/destinations/:destination/refused"],
  tag: TAG,
  scope: "read",
  refuses: [422],
  input: z.strictObject({
    destination: DestinationName,
    zone: ZoneId.optional().describe("Id of the shield zone. Default: all."),
    ...pageQuery({ fallback: 50, most: 500 }),
  }),
  output: pageOf(RefusedEvent),
  command: {
    examples: ["forward refused siem", "forward refused siem --zone 101 --limit 20"],
    help: "forward retry sends the events again, after the cause is corrected at the receiver.",
    limit: 50,
    columns: [
      { head: "ZONE", get: ({ zoneId }) => String(zoneId) },
      { head: "EVENT (UTC)", get: ({ occurredAt }) => showTime(occurredAt) },
      { head: "ID", get: ({ logId }) => toLine(logId, 100) },
      { head: "REFUSED (UTC)", get: ({ refusedAt }) => showTime(refusedAt) },
      { head: "REASON", get: ({ reason }) => toLine(reason, 300) },
    ],
    empty: "No event was refused.",
  },
  run: async (asked, { destination, zone, limit, after }) => {
    const { db, cursors, caller } = asked;
    const list = `forward-refused:${JSON.stringify([destination, zone])}`;
    const position = cursors.readAfter(list, after);
    const [occurredAt, zoneId, logId] = position ?? [];
    const last =
      position === null
        ? null
        : { occurredAt: Number(occurredAt), zoneId: Number(zoneId), logId: String(logId) };
    const zoneIds = visibleZones(caller, zone);
    await requireDestination(asked, destination);
    if (zone !== undefined) await requireZone(asked, zone);
    const rows = await listRefusals(db, { destination, zoneIds, after: last, limit: limit + 1 });
    return toPage(
      rows,
      limit,
      (row) => ({ ...row, occurredAt: toIso(row.occurredAt), refusedAt: toIso(row.refusedAt) }),
      (row) => cursors.sign(list, [row.occurredAt, row.zoneId, row.logId]),
    );
  },
});
