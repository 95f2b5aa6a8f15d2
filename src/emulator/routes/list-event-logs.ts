import { DAY_MS } from "#lib/units.ts";
import { isServedDay, parseDay } from "../day.ts";
import type { Call, EmulatorContext } from "../emulator-context.ts";
import { type ListPage, listPage } from "../list-page.ts";
import { failureBlock, json, problem, type Reply } from "../reply.ts";
import { type Place, readToken, writeToken } from "../tokens.ts";
import { toListEntry, withOddity } from "../traffic/render-event.ts";
import { findZone, successBlock, unknownZoneBlock } from "./shield-zone.ts";

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
