import type { FastifyReply, FastifyRequest } from "fastify";
import { countStoredEvents } from "../../../../db/queries/archive-zones.ts";
import { checkWindow } from "../../../archive/check-window.ts";
import { refuseHidden } from "../../../archive/refuse-hidden.ts";
import { planSearch, type SearchPlan } from "../../../search/plan-search.ts";
import { readSearch } from "../../../search/read-search.ts";
import { sendMistakes } from "./platform-answer.ts";
import type { PlatformDeps } from "./platform-deps.ts";
import { readJsonBody } from "./read-json-body.ts";
import { isServedZone, readZoneId } from "./read-zone.ts";

export interface SearchRequest {
  readonly zoneId: number;
  readonly plan: SearchPlan;
  readonly isMasked: boolean;
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
  const read = readSearch(body.value, kind);
  const isMasked = request.caller?.masked ?? true;
  const mistakes =
    "mistakes" in read
      ? read.mistakes
      : (checkWindow(read.search, { nowMs: deps.clock(), retentionDays: deps.retentionDays }) ??
        (isMasked ? refuseHidden(read.search) : null));
  if ("mistakes" in read || mistakes !== null) {
    sendMistakes(reply, mistakes ?? {});
    return null;
  }
  if (!(await isServedZone(deps, request, zoneId))) return "unknown zone";
  return { zoneId, plan: planSearch(read.search), isMasked };
}

/** @throws when the events of the window are more than a question may read. */
export async function refuseLargeWindow(deps: PlatformDeps, { zoneId, plan }: SearchRequest): Promise<void> {
  deps.refuseCostly({ rows: await countStoredEvents(deps.archive.db, zoneId, plan) });
}
