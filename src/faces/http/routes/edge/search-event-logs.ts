/** The platform's route of the search. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { planBody, type SearchRequest } from "#archive/rules/query/read-search.ts";
import { toSearchRow } from "#archive/rules/records/to-row.ts";
import { answerSearch } from "#archive/search/search-events.ts";
import { SEARCH_LIMITS, SEARCH_SPAN } from "#archive/search/searching.ts";
import { EventLogsSearchRequest, EventLogsSearchResponse } from "#platform/contract/event-logs.ts";
import { clientGone } from "../../operations.ts";
import { readJsonBody } from "../read-body.ts";
import {
  isServedZone,
  PLATFORM_TAGS,
  type PlatformDeps,
  readZoneId,
  searchRefusals,
  sendJson,
  sendMistakes,
  unknownZoneBlock,
  ZONE_PARAM,
} from "./platform.ts";

const schema = {
  tags: PLATFORM_TAGS,
  summary: "Search events, as far back as Longwatch keeps them",
  description: `${SEARCH_LIMITS} The header x-longwatch-source says whether the answer was computed from files of the archive (archive) or from events in the database only (events).`,
  params: z.object(ZONE_PARAM),
  body: EventLogsSearchRequest.meta({ examples: [{ ...SEARCH_SPAN, groupBy: ["ruleId"], buckets: 24 }] }),
  response: { 200: EventLogsSearchResponse, ...searchRefusals(EventLogsSearchResponse) },
};

const FAILED = { rows: null, groups: null, total: 0, totalPages: 0, page: 0 };

/** Searches all kept events (platform API spec 4.7). `x-longwatch-source` names the stores that answered. */
export function addSearchEventLogs(app: FastifyInstance, deps: PlatformDeps): void {
  const config = { access: { scope: "read" }, errorForm: "bare" } as const;
  app.post("/shield/event-logs/:shieldZoneId/search", { config, schema }, async (request, reply) => {
    const wanted = await readSearchRequest(deps, request, reply, "search");
    if (wanted === null) return reply;
    if (wanted === "unknown zone")
      return sendJson(reply, 202, { ...FAILED, errorResponse: unknownZoneBlock() });
    const asking = { caller: request.caller, signal: clientGone(reply) };
    const { rows, groups, total, source } = await answerSearch(
      deps,
      asking,
      { ...wanted, zoneIds: [wanted.zoneId] },
      ({ event, record }) => toSearchRow(event, record, wanted.isMasked),
    );
    const { groupBy, page, pageSize } = wanted.plan;
    const rest = { total, totalPages: Math.ceil(total / pageSize), page, errorResponse: null };
    void reply.header("x-longwatch-source", source);
    const sides =
      groupBy.length === 0
        ? `"rows":[${rows.join(",")}],"groups":null`
        : `"rows":null,"groups":${JSON.stringify(groups)}`;
    return sendJson(reply, 200, `{${sides},${JSON.stringify(rest).slice(1)}`);
  });
}

/** The search or export a request asks for, checked in the platform's order; null when it was refused and answered. */
export async function readSearchRequest(
  deps: PlatformDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  kind: "search" | "export",
): Promise<SearchRequest | "unknown zone" | null> {
  const body = readJsonBody(request, reply);
  if (body === null) return null;
  const zoneId = readZoneId(request, reply);
  if (zoneId === null) return null;
  const { clock, service } = deps;
  const isMasked = request.caller?.masked ?? true;
  const asked = { nowMs: clock(), retentionDays: service.retention.eventDays, isMasked };
  const read = planBody(body.value, asked, { kind, form: "platform" });
  if ("mistakes" in read) {
    sendMistakes(reply, read.mistakes);
    return null;
  }
  return (await isServedZone(deps, request, zoneId)) ? { zoneId, ...read } : "unknown zone";
}
