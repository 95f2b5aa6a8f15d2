import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { toSearchRow } from "../../../archive/records/to-search-row.ts";
import { EventLogsSearchRequest, EventLogsSearchResponse } from "../../../edge/contract/event-logs-search.ts";
import { type RecordDeps, readRecords } from "../../../operations/search/read-records.ts";
import { searchGroups } from "../../../operations/search/search-groups.ts";
import { searchRows } from "../../../operations/search/search-rows.ts";
import { clientGone } from "./client-gone.ts";
import { sendJson } from "./platform-answer.ts";
import type { PlatformDeps } from "./platform-deps.ts";
import { PLATFORM_TAGS, SEARCH_LIMITS, SEARCH_SPAN, searchRefusals, ZONE_PARAM } from "./platform-schemas.ts";
import { priceSearch, readSearchRequest, type SearchRequest } from "./read-search-request.ts";
import { unknownZoneBlock } from "./read-zone.ts";

const schema = {
  tags: PLATFORM_TAGS,
  summary: "Search events, as far back as Longwatch keeps them",
  description: `${SEARCH_LIMITS} The header x-longwatch-source says whether the answer was computed from files of the archive (archive) or from events in the database only (events).`,
  params: z.object(ZONE_PARAM),
  body: EventLogsSearchRequest.meta({ examples: [{ ...SEARCH_SPAN, groupBy: ["ruleId"], buckets: 24 }] }),
  response: { 200: EventLogsSearchResponse, ...searchRefusals(EventLogsSearchResponse) },
};

const FAILED = { rows: null, groups: null, total: 0, totalPages: 0, page: 0 };

interface Answer {
  /** The JSON of the side that was asked for. */
  readonly rows: string;
  readonly groups: string;
  readonly total: number;
  readonly source: "archive" | "events";
}

/** Flat rows or groups over everything that is kept (platform API spec 4.7); `x-longwatch-source` says what answered. */
export function addSearchEventLogs(app: FastifyInstance, deps: PlatformDeps): void {
  const config = { access: { scope: "read" }, errorForm: "bare" } as const;
  app.post("/shield/event-logs/:shieldZoneId/search", { config, schema }, async (request, reply) => {
    const wanted = await readSearchRequest(deps, request, reply, "search");
    if (wanted === null) return reply;
    if (wanted === "unknown zone")
      return sendJson(reply, 202, { ...FAILED, errorResponse: unknownZoneBlock() });
    const gone = clientGone(reply);
    const work = { ...(await priceSearch(deps, wanted)), signal: gone };
    const { rows, groups, total, source } = await deps.runInPlace(request, work, (found) =>
      answer({ ...found, openedBlocks: deps.openedBlocks }, gone, wanted),
    );
    const { page, pageSize } = wanted.plan;
    const rest = { total, totalPages: Math.ceil(total / pageSize), page, errorResponse: null };
    void reply.header("x-longwatch-source", source);
    return sendJson(reply, 200, `{"rows":${rows},"groups":${groups},${JSON.stringify(rest).slice(1)}`);
  });
}

function answer(deps: RecordDeps, signal: AbortSignal, wanted: SearchRequest): Promise<Answer> {
  return wanted.plan.groupBy.length === 0
    ? answerRows(deps, signal, wanted)
    : answerGroups(deps, signal, wanted);
}

async function answerRows(
  deps: RecordDeps,
  signal: AbortSignal,
  { zoneId, plan, isMasked }: SearchRequest,
): Promise<Answer> {
  const found = await searchRows(deps, zoneId, plan, signal);
  const records = isMasked ? [] : await readRecords(deps, zoneId, found.rows, signal);
  const rows = found.rows.map((event, index) => toSearchRow(event, records[index], isMasked));
  return { rows: `[${rows.join(",")}]`, groups: "null", total: found.total, source: found.source };
}

async function answerGroups(
  deps: RecordDeps,
  signal: AbortSignal,
  { zoneId, plan }: SearchRequest,
): Promise<Answer> {
  const found = await searchGroups(deps, zoneId, plan, signal);
  const groups = found.groups.map(({ sparkline, ...group }) =>
    sparkline === null ? group : { ...group, sparkline },
  );
  return { rows: "null", groups: JSON.stringify(groups), total: found.total, source: found.source };
}
