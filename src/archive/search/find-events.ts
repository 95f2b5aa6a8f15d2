/** Finds an event by an id or by a part of its path, without a filter. */
import { z } from "zod";
import { refuseHidden } from "#archive/rules/mask.ts";
import type { SearchPlan } from "#archive/rules/query/plan-search.ts";
import { containsTest } from "#archive/rules/query/text-test.ts";
import { prepareSource, selectEvents } from "#archive/rules/sql/event-source.ts";
import { duck } from "#archive/rules/sql/to-condition.ts";
import { formatWhole, showTime } from "#lib/format.ts";
import { toLine } from "#lib/text.ts";
import { DAY_MS, MINUTE_MS } from "#lib/units.ts";
import type { Span } from "#model/horizon.ts";
import { toUrlPart } from "#model/record-parts.ts";
import { IsoTime, lineOf, Name, Text, Time, toIso, toIsoOrNull, ZoneIds } from "#operations/fields.ts";
import { defineQuery, type QueryContext } from "#operations/operation.ts";
import { Refusal } from "#operations/refusal.ts";
import { readZones, requireZones } from "#operations/require-known.ts";
import { checkOrder } from "#operations/span.ts";
import { readUnion } from "./read-union.ts";
import { isOneOf, searchZones } from "./search-zones.ts";
import { priceSearch, type SearchDeps } from "./searching.ts";

const MOST_SHOWN = 20;
const MOST_CHARS = 300;
const MOST_DAYS = 400;
/** Days back at which a part of the search ends. The next part is read only if the newer ones have no such event. */
const PARTS = [7, 90, MOST_DAYS];
/** The platform's clock may be ahead. */
const AHEAD_MS = 5 * MINUTE_MS;
const NAMES = ["log id", "request id", "path"] as const;

export const findEvents = defineQuery({
  name: "find.show",
  summary: "Find an event by a log id, a request id or a part of its path",
  description:
    "A log id and a request id must be whole. If no event has such an id, the text is looked for in the path of the URL. A URL is looked for by its path.",
  http: ["GET", "/api/v1/find"],
  tag: "Events",
  scope: "read",
  refuses: [422, 503],
  input: z.strictObject({
    text: lineOf(MOST_CHARS)
      .meta({ operand: true })
      .describe("A log id, a request id from a visitor's error page, or a part of a path."),
    zone: ZoneIds.default("all"),
    from: Time.optional()
      .meta({ flagDefault: `-${MOST_DAYS}d` })
      .describe(`Find no older events. Default and earliest: ${MOST_DAYS} days ago.`),
  }),
  output: z.object({
    by: z.enum(NAMES).nullable().describe("What the text is. Null if no event was found."),
    total: z
      .number()
      .int()
      .describe("At least so many events have it: older days are not counted once there is one."),
    from: IsoTime.describe("The days from here on were searched."),
    requestIdsFrom: IsoTime.nullable().describe(
      "If no event was found: the oldest event that has a request id. Null if no event of these days has one.",
    ),
    items: z
      .array(
        z.object({
          zone: z.number().int(),
          at: IsoTime,
          logId: Name,
          requestId: Name.describe("Empty if the record has none."),
          action: Name,
          rule: Name,
          address: z.string().meta({ masked: "address" }),
          url: Text.describe("A text from a request. Escape it."),
        }),
      )
      .describe(`Newest first, at most ${MOST_SHOWN}.`),
  }),
  command: {
    name: "",
    limit: null,
    examples: ["find 8f14e45fceea167a5a36dedd4bea2543", "find /wp-login --zone 101,102 --from -30d"],
    help: "Give what the visitor's error page shows. The zone of each event is in the table.",
    columns: [
      { head: "TIME", get: ({ at }) => showTime(at) },
      { head: "ZONE", get: ({ zone }) => String(zone) },
      { head: "ACTION", get: ({ action }) => toLine(action, 20) },
      { head: "RULE", get: ({ rule }) => toLine(rule, 40) },
      { head: "ADDRESS", get: ({ address }) => toLine(address, 45) },
      { head: "LOG ID", get: ({ logId }) => toLine(logId, 80) },
      { head: "URL", get: ({ url }) => toLine(url, 120) },
    ],
    empty: "No event has this log id, this request id or this text in its path.",
    say: ({ by, total, from, requestIdsFrom, items }) => {
      const since = `since ${showTime(from)} UTC`;
      if (by !== null)
        return `Found by ${by}: at least ${formatWhole(total)} ${since}${items.length < total ? `, the newest ${items.length} are shown` : ""}.\n`;
      const days = requestIdsFrom === null ? "of these days" : `before ${showTime(requestIdsFrom)} UTC`;
      return `Searched the days ${since}. No event ${days} has a request id.\n`;
    },
  },
  run: async (asked, { text, zone, from: since }) => {
    const { now, caller } = asked;
    const hidden = caller.masked ? refuseHidden({ filters: [], groupBy: [], query: text }) : null;
    if (hidden !== null)
      throw new Refusal(422, {
        mistakes: [{ field: "text", rule: "must not be an address: this key sees addresses only masked" }],
      });
    const to = now + AHEAD_MS;
    const window = { from: Math.max(since ?? 0, now - MOST_DAYS * DAY_MS), to };
    checkOrder({ name: "from", ms: window.from }, { name: "to", ms: to });
    const zones = await readZones(asked, zone);
    if (zone !== "all") await requireZones(asked, zones, "zone");
    const found = await findFirst(asked, zones, text, window);
    const items = found.rows.map(({ zoneId, event }) => ({
      zone: zoneId,
      at: toIso(event.occurredAt),
      logId: event.logId,
      requestId: event.requestId,
      action: event.fields.action,
      rule: event.fields.ruleId,
      address: event.fields.ip,
      url: event.fields.url,
    }));
    const requestIdsFrom = found.by === null ? await findFirstRequestId(asked, zones, window) : null;
    return {
      by: found.by,
      total: found.total,
      from: toIso(found.from),
      requestIdsFrom: toIsoOrNull(requestIdsFrom),
      items,
    };
  },
});

/** Asks for the newest days first: for the ids in all days, and only then for the paths. */
async function findFirst(asked: QueryContext, zoneIds: readonly number[], text: string, window: Span) {
  const { openedBlocks } = asked.searching;
  const search = async (part: Span, clauses: SearchPlan["clauses"]) => {
    if (clauses.length === 0 || zoneIds.length === 0) return { rows: [], total: 0 };
    const plan = { ...FLAT, ...part, clauses, bucketsFrom: part.from };
    // Masked or not, the answer needs no record.
    return runPlan(asked, { zoneIds, plan }, (deps, stopped) =>
      searchZones({ ...deps, openedBlocks }, { zoneIds, plan, isMasked: true }, stopped),
    );
  };
  const parts = cutWindow(window);
  for (const { from, to } of parts) {
    const { rows, total } = await search({ from, to }, [isOneOf(["log_id", "request_id"], [text])]);
    const byLogId = rows.filter(({ event }) => event.logId === text);
    if (byLogId.length > 0) return { by: "log id", rows: byLogId, total: byLogId.length, from } as const;
    if (total > 0) return { by: "request id", rows, total, from } as const;
  }
  for (const { from, to } of parts) {
    const { rows, total } = await search({ from, to }, toPathClauses(text));
    if (total > 0) return { by: "path", rows, total, from } as const;
  }
  return { by: null, rows: [], total: 0, from: window.from };
}

/** Runs a search when there is a free place for its price. */
async function runPlan<T>(
  { db, caller, searching, signal }: QueryContext,
  wanted: { readonly zoneIds: readonly number[]; readonly plan: SearchPlan },
  run: (deps: SearchDeps, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const price = await priceSearch(db, searching, wanted);
  return await searching.runInPlace({ caller }, { ...price, signal }, run);
}

const FLAT = { groupBy: [], groupNames: [], buckets: 0, page: 0, pageSize: MOST_SHOWN, methodClauses: [] };

function cutWindow({ from, to }: Span): Span[] {
  let end = to;
  return PARTS.flatMap((days) => {
    const part = { from: Math.max(from, to - AHEAD_MS - days * DAY_MS), to: end };
    end = part.from;
    return part.to > part.from ? [part] : [];
  });
}

/** The URL is tested first: it rules most events out for a fraction of what finding their path costs. */
function toPathClauses(text: string): SearchPlan["clauses"] {
  const part = toUrlPart("path", text);
  // Every event would pass, although the text says more.
  if (part === "/" && text !== "/") return [];
  const tests = [containsTest(part)];
  return [...(part === "/" ? [] : [{ columns: ["url"] as const, tests }]), { columns: ["path"], tests }];
}

/** Returns the time of the oldest event that has a request id, epoch ms; null if no event has one. */
async function findFirstRequestId(
  asked: QueryContext,
  zoneIds: readonly number[],
  window: Span,
): Promise<number | null> {
  const clauses = [{ ...isOneOf(["request_id"], [""]), isNegated: true as const }];
  const plan = { ...FLAT, ...window, clauses, bucketsFrom: window.from };
  const columns = ["occurred_at"];
  const { rows } = await runPlan(asked, { zoneIds, plan }, (deps, stopped) =>
    readUnion(deps, zoneIds, plan, { columns, signal: stopped }, (source) => [
      ...prepareSource(source),
      duck`select json_array(epoch_ms(min(occurred_at))) from (${selectEvents(source, plan, columns)})`,
    ]),
  );
  const [first] = JSON.parse(rows[0] ?? "[null]") as [number | null];
  return first;
}
