import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { toListEntry } from "#archive/rules/records/to-row.ts";
import { readOnward, readRecords } from "#archive/search/read-records.ts";
import { DAY_MS } from "#lib/units.ts";
import { startOfDay, toDay } from "#model/horizon.ts";
import { EventLogListResponse } from "#platform/contract/event-logs.ts";
import { parseLogDay } from "#platform/list-event-logs.ts";
import { clientGone } from "../../operations.ts";
import {
  failureBlock,
  forAll,
  isServedZone,
  PLATFORM_TAGS,
  type PlatformDeps,
  PROBLEM,
  readParam,
  readZoneId,
  sendBareProblem,
  sendJson,
  shown,
  unknownZoneBlock,
  ZONE_PARAM,
} from "./platform.ts";

const PAGE_SIZE = 1_000;
const FAILED = { logs: null, hasMoreData: false, continuationToken: null, startToken: null };
/** Tokens that some clients send for the first page. */
const FIRST = new Set(["", "start"]);

/** A failure has null instead of the events. */
const FailedList = EventLogListResponse.extend({ logs: z.null() });
const PARAMS = {
  ...ZONE_PARAM,
  date: z
    .string()
    .regex(/^\d{2}-\d{2}-\d{4}$/)
    .meta({ examples: ["11-21-2026"] }),
};
const schema = {
  tags: PLATFORM_TAGS,
  summary: "List the events of one day as the platform sent them, in pages",
  response: {
    200: EventLogListResponse,
    202: FailedList,
    // With an error block it is about the day, without one about the key.
    401: { content: { ...PROBLEM, "application/json": { schema: FailedList } } },
    ...forAll([400, 403, 429, 503], PROBLEM),
  },
};

type After = { readonly occurredAt: number; readonly logId: string } | null;

/**
 * Lists one page of a UTC day's entries (platform API spec 4.9), of any day that is kept. Events are ordered by time
 * and then by id. A token names the last event of its page, so events that arrive meanwhile do not move the pages.
 */
export function addListEventLogs(app: FastifyInstance, deps: PlatformDeps): void {
  const config = { access: { scope: "read" }, errorForm: "bare" } as const;
  const path = "/shield/event-logs/:shieldZoneId/:date";
  const paths = [
    { url: path, params: z.object(PARAMS) },
    // The same as without the slash, so that one of them is enough in the OpenAPI document.
    { url: `${path}/`, params: z.object(PARAMS), hide: true },
    { url: `${path}/:continuationToken`, params: z.object({ ...PARAMS, continuationToken: z.string() }) },
  ];
  for (const { url, ...more } of paths) {
    const options = { config, schema: { ...schema, ...more } };
    app.get(url, options, (request, reply) => listEventLogs(deps, request, reply));
  }
}

async function listEventLogs(deps: PlatformDeps, request: FastifyRequest, reply: FastifyReply) {
  const zoneId = readZoneId(request, reply);
  if (zoneId === null) return reply;
  const date = readParam(request, "date");
  const from = parseLogDay(date);
  if (from === null) {
    return sendBareProblem(
      reply,
      400,
      `The value '${shown(date)}' is not valid: date must be a day in the format MM-dd-yyyy.`,
    );
  }
  if (!(await isServedZone(deps, request, zoneId)))
    return sendJson(reply, 202, { ...FAILED, errorResponse: unknownZoneBlock() });
  if (!isKeptDay(from, deps)) return sendJson(reply, 401, { ...FAILED, errorResponse: outside(deps) });
  const list = `event-logs:${zoneId}:${toDay(from)}`;
  const after = readPosition(deps, list, readParam(request, "continuationToken"));
  if (after === undefined)
    return sendBareProblem(
      reply,
      400,
      "The continuation token is not valid for this zone and day, or has expired.",
    );
  return sendJson(
    reply,
    200,
    await readPage(deps, request, { zoneId, from, list, after, gone: clientGone(reply) }),
  );
}

/** Returns whether the day is kept. Days are dropped whole, so the first kept day is complete. */
function isKeptDay(from: number, { clock, service }: PlatformDeps): boolean {
  const today = startOfDay(clock());
  return from <= today && from >= today - service.retention.eventDays * DAY_MS;
}

function outside({ service }: PlatformDeps) {
  const message = `You can only view the past ${service.retention.eventDays} days of Event Logs.`;
  return failureBlock(401, "invalid_datetime_window.event_logs", message);
}

/** Returns the event after which the page begins; undefined for a changed token, or one of another zone, day or key. */
function readPosition({ cursors }: PlatformDeps, list: string, token: string): After | undefined {
  if (FIRST.has(token)) return null;
  const position = cursors.read(list, token);
  if (position === null) return undefined;
  const [occurredAt, logId] = position;
  return typeof occurredAt === "number" && typeof logId === "string" ? { occurredAt, logId } : null;
}

interface Page {
  readonly zoneId: number;
  readonly from: number;
  readonly list: string;
  readonly after: After;
  readonly gone: AbortSignal;
}

async function readPage(
  deps: PlatformDeps,
  request: FastifyRequest,
  { zoneId, from, list, after, gone }: Page,
) {
  const isMasked = request.caller?.masked ?? true;
  const { runInPlace, openedBlocks } = deps.searching;
  const work = { kind: "quick", signal: gone } as const;
  const { found, records } = await runInPlace(request, work, async (parts) => {
    const day = { from, to: from + DAY_MS, clauses: [] };
    const found = await readOnward(parts, zoneId, { ...day, after, limit: PAGE_SIZE + 1 }, gone);
    const shown = found.slice(0, PAGE_SIZE);
    return { found, records: await readRecords({ ...parts, openedBlocks }, zoneId, shown, gone) };
  });
  const shownEvents = found.slice(0, PAGE_SIZE);
  const logs = shownEvents.map((event, index) => toListEntry(event, records[index], isMasked));
  const last = found.length > PAGE_SIZE ? shownEvents.at(-1) : undefined;
  const rest = JSON.stringify({
    hasMoreData: last !== undefined,
    continuationToken: last === undefined ? "" : deps.cursors.sign(list, [last.occurredAt, last.logId]),
    startToken: deps.cursors.sign(list, []),
    errorResponse: null,
  });
  return `{"logs":[${logs.join(",")}],${rest.slice(1)}`;
}
