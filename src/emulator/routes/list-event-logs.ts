/** The route of the day's list: its pages and their tokens. */

import { z } from "zod";
import { DAY_MS } from "#lib/units.ts";
import type { Call, EmulatorContext } from "../emulator-context.ts";
import { failureBlock, json, problem, type Reply } from "../reply.ts";
import { compareDrafts, type Draft } from "../traffic/draft.ts";
import { hashText } from "../traffic/random.ts";
import { shareOf, toListEntry, withOddity } from "../traffic/render-event.ts";
import type { ZoneStore } from "../zone-store.ts";
import { findZone, successBlock, unknownZoneBlock } from "./bodies.ts";

const FAILED = { logs: null, hasMoreData: false, continuationToken: null, startToken: null };
const REMEMBERED_PASSES = 64;

function beginPass(context: EmulatorContext, zone: number, day: string): Place {
  const key = `${zone}/${day}`;
  const pass = (context.listings.passes.get(key) ?? 0) + 1;
  context.listings.passes.set(key, pass);
  return { zone, day, order: context.switches.order, after: null, pass, page: 0, issuedAt: 0, turn: 0 };
}

/**
 * Returns the place of the request's token: the first page without a token, with an empty one and, by switch, with
 * `start`.
 */
function placeOf(context: EmulatorContext, call: Call, zone: number, day: string): Place | undefined {
  const token = call.params["continuationToken"] ?? "";
  if (token === "" || (token === "start" && context.switches.startToken === "accept"))
    return beginPass(context, zone, day);
  const place = readToken(context.seed, token);
  if (place === undefined || place.zone !== zone || place.day !== day) return undefined;
  const { tokenLifetimeMs } = context.switches;
  const isExpired =
    tokenLifetimeMs > 0 && place.after !== null && context.now() - place.issuedAt > tokenLifetimeMs;
  return isExpired || call.faults.some((fault) => fault.kind === "token-expiry") ? undefined : place;
}

/** Returns the tokens that this pass has returned so far, by page. The fault of a token loop repeats one of them. */
function tokensOf(context: EmulatorContext, place: Place): string[] {
  const { tokens } = context.listings;
  const key = `${place.zone}/${place.day}/${place.pass}`;
  const known = tokens.get(key);
  if (known !== undefined) return known;
  const [oldest] = tokens.keys();
  if (tokens.size >= REMEMBERED_PASSES && oldest !== undefined) tokens.delete(oldest);
  const made: string[] = [];
  tokens.set(key, made);
  return made;
}

/** Returns the token after this page, with the faults that concern tokens; `undefined` at the end of the day. */
function nextToken(context: EmulatorContext, call: Call, place: Place, page: ListPage): string | undefined {
  const last = page.drafts.at(-1);
  const after =
    last === undefined ? place.after : { at: last.at, id: [...last.id] as [number, number, number, number] };
  const issuedAt = context.now();
  const bytes = call.faults.find((fault) => fault.kind === "long-token")?.bytes;
  const write = (next: Partial<Place>) => writeToken(context.seed, { ...place, issuedAt, ...next }, bytes);
  const given = tokensOf(context, place);
  const loop = call.faults.find((fault) => fault.kind === "token-loop");
  if (loop !== undefined && (place.page >= loop.pages || !page.hasMore)) {
    return given[Math.max(0, place.page - loop.pages)] ?? write({ after, page: place.page + 1 });
  }
  if (call.faults.some((fault) => fault.kind === "duplicate-page")) return write({ turn: place.turn + 1 });
  if (!page.hasMore) return undefined;
  const token = write({ after, page: place.page + 1 });
  given[place.page] = token;
  return token;
}

/** Returns one page of a UTC day's entries (platform API spec 4.9): the list entries with their `log` as text. */
export function listEventLogs(context: EmulatorContext, call: Call): Reply {
  const zone = findZone(context, call);
  if ("refusal" in zone) return zone.refusal;
  const day = call.params["date"] ?? "";
  const startMs = parseDay(day);
  if (startMs === undefined)
    return problem(400, `The value '${day}' is not valid: date must be a day in the format MM-dd-yyyy.`);
  if (zone.store === undefined) return json(202, { ...FAILED, errorResponse: unknownZoneBlock() });
  if (!isServedDay(startMs, context.now())) {
    const message = "You can only view the past 3 days (72 hours) of Event Logs.";
    return json(401, {
      ...FAILED,
      errorResponse: failureBlock(401, "invalid_datetime_window.event_logs", message),
    });
  }
  const place = placeOf(context, call, zone.id, day);
  if (place === undefined)
    return problem(400, "The continuation token is not valid for this zone and day, or has expired.");

  const dropped = call.faults.find((fault) => fault.kind === "dropped-events");
  const droppedShare = dropped !== undefined && place.pass <= dropped.passes ? dropped.share : 0;
  const window = { startMs, endMs: startMs + DAY_MS };
  const page = listPage(zone.store, {
    ...window,
    place,
    pageSize: context.switches.pageSize,
    droppedShare,
    features: context.switches.listFeatures,
    nowMs: context.now(),
  });
  const shortened = call.faults.find((fault) => fault.kind === "shortened-page");
  const shown = page.drafts.slice(0, Math.floor(page.drafts.length * (shortened?.keep ?? 1)));
  const token = shortened?.endsEarly === true ? undefined : nextToken(context, call, place, page);
  return json(200, {
    logs: shown.map((draft) => withOddity(draft, toListEntry(draft), call.faults)),
    hasMoreData: token !== undefined,
    continuationToken: token ?? (context.switches.lastToken === "empty" ? "" : null),
    startToken: writeToken(context.seed, { ...place, after: null, page: 0, issuedAt: 0, turn: 0 }),
    ...successBlock(context, "errorResponse"),
  });
}

interface ListPage {
  readonly drafts: readonly Draft[];
  readonly hasMore: boolean;
}

interface ListQuery {
  readonly startMs: number;
  readonly endMs: number;
  readonly place: Place;
  readonly pageSize: number;
  /** Fault: this share of the events is left out, always the same events. */
  readonly droppedShare: number;
  readonly features: "all" | "waf";
  readonly nowMs: number;
}

/** Yields rows of the day after a place, in the place's order. */
function* rowsFrom(store: ZoneStore, query: ListQuery): Generator<number> {
  const { place } = query;
  const columns = store.columns();
  const begin = columns.lowerBound(query.startMs);
  const end = columns.lowerBound(query.endMs);
  if (place.order === "oldest") {
    for (let row = place.after === null ? begin : store.rowAfter(place.after); row < end; row++) yield row;
    return;
  }
  let row = (place.after === null ? end : Math.min(end, store.rowAfter(place.after))) - 1;
  if (place.after !== null && row >= begin && compareDrafts(store.draft(row), place.after) === 0) row--;
  for (; row >= begin; row--) yield row;
}

/**
 * Returns the next entries after a position. A position is an event, not a count. So an event that becomes visible
 * late before the position is missed by this pass and shifts nothing.
 */
function listPage(store: ZoneStore, query: ListQuery): ListPage {
  const columns = store.columns();
  const drafts: Draft[] = [];
  for (const row of rowsFrom(store, query)) {
    if (columns.visibleAt(row) > query.nowMs) continue;
    const draft = store.draft(row);
    if (query.features === "waf" && draft.rule.feature !== "waf") continue;
    if (query.droppedShare > 0 && shareOf(draft) < query.droppedShare) continue;
    if (drafts.length === query.pageSize) return { drafts, hasMore: true };
    drafts.push(draft);
  }
  return { drafts, hasMore: false };
}

const Position = z.strictObject({
  at: z.number(),
  id: z.tuple([z.number(), z.number(), z.number(), z.number()]),
});

/** The position of a listing: after which event, in which pass, on which page. */
const Place = z.strictObject({
  zone: z.int(),
  day: z.string(),
  order: z.enum(["oldest", "newest"]),
  /** Null for the beginning of the day. */
  after: Position.nullable(),
  pass: z.int(),
  page: z.int(),
  issuedAt: z.number(),
  /** Distinguishes the token of a repeated page from the first one. */
  turn: z.int(),
});
type Place = z.infer<typeof Place>;

/** Makes every token start with slashes, which reveals a client that does not encode it. */
const SLASHES = Buffer.from([0xff, 0xff, 0xff]);

function checkOf(seed: string, text: string): Buffer {
  const check = Buffer.alloc(4);
  check.writeUInt32BE(hashText(`${seed}/${text}`));
  return check;
}

/**
 * Returns a token that is opaque to clients: base64 with `/` in it and `=` at its end, of at least `leastBytes`. Valid for
 * any emulator of the same seed.
 */
function writeToken(seed: string, place: Place, leastBytes = 0): string {
  let text = JSON.stringify(place).padEnd((leastBytes * 3) / 4);
  while ((SLASHES.length + 4 + text.length) % 3 === 0) text += " ";
  return Buffer.concat([SLASHES, checkOf(seed, text), Buffer.from(text)]).toString("base64");
}

function readToken(seed: string, token: string): Place | undefined {
  const bytes = Buffer.from(token, "base64");
  if (bytes.toString("base64") !== token || bytes.length < 8) return undefined;
  if (!bytes.subarray(0, 3).equals(SLASHES)) return undefined;
  const text = bytes.subarray(7).toString();
  if (!bytes.subarray(3, 7).equals(checkOf(seed, text))) return undefined;
  return Place.parse(JSON.parse(text));
}

/** Number of served UTC days: today and the two before it. */
const SERVED_DAYS = 3;

/** Returns a UTC day of the list's path, `MM-dd-yyyy`; `undefined` when it is not a calendar day. */
function parseDay(text: string): number | undefined {
  const match = /^(\d{2})-(\d{2})-(\d{4})$/.exec(text);
  if (match === null) return undefined;
  const [, month, day, year] = match;
  const startMs = Date.parse(`${year}-${month}-${day}T00:00:00.000Z`);
  // Date.parse turns 31 February into a day of March.
  return Number.isNaN(startMs) || new Date(startMs).getUTCDate() !== Number(day) ? undefined : startMs;
}

function isServedDay(startMs: number, nowMs: number): boolean {
  const todayMs = Math.floor(nowMs / DAY_MS) * DAY_MS;
  return startMs <= todayMs && startMs > todayMs - SERVED_DAYS * DAY_MS;
}
