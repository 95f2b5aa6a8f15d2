import type { FastifyReply, FastifyRequest } from "fastify";
import { countStoredEvents } from "../../../../db/archive/archive-zones.ts";
import { countArchived } from "../../../../db/archive/archived-days.ts";
import { checkWindow } from "../../../archive/check-window.ts";
import { refuseHidden } from "../../../archive/mask/refuse-hidden.ts";
import { refuseManyTests } from "../../../archive/query/count-tests.ts";
import { estimateCost, readsPageOnly } from "../../../archive/query/estimate-cost.ts";
import { planSearch, type SearchPlan } from "../../../archive/query/plan-search.ts";
import { readSearch } from "../../../archive/query/read-search.ts";
import type { Work } from "../../limits/admission-queue.ts";
import { sendMistakes } from "./platform-answer.ts";
import type { PlatformDeps } from "./platform-deps.ts";
import { readJsonBody } from "./read-json-body.ts";
import { isServedZone, readZoneId } from "./read-zone.ts";

export interface SearchRequest {
  readonly zoneId: number;
  readonly plan: SearchPlan;
  readonly isMasked: boolean;
}

/** A search of this cost takes some ten milliseconds. */
const QUICK_COST = 20_000;

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
  const tooMany = refuseManyTests(body.value);
  if (tooMany !== null) {
    sendMistakes(reply, tooMany);
    return null;
  }
  // The platform refuses other members of a filter, and so does this service, except for its console.
  const read = readSearch(body.value, kind, { allowsNot: request.session !== null });
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
  return { zoneId, plan: planSearch(read.search, { isMasked }), isMasked };
}

/**
 * Returns which places of the admission queue a search needs, and its CPU time in Postgres. @throws if it costs more than
 * a question may.
 */
export async function priceSearch(
  deps: PlatformDeps,
  { zoneId, plan }: SearchRequest,
): Promise<Pick<Work, "kind" | "postgresMs">> {
  // To count first would take longer than the answer.
  if (readsPageOnly(plan)) return { kind: "quick" };
  const events = await countStoredEvents(deps.archive.db, zoneId, plan);
  const archivedEvents = await countArchived(deps.archive.db, zoneId, plan);
  const rows = Math.round(estimateCost(plan, { events, archivedEvents }));
  deps.refuseCostly({ rows });
  const inPostgres = estimateCost(plan, { events: Math.max(0, events - archivedEvents), archivedEvents: 0 });
  return { kind: rows <= QUICK_COST ? "quick" : "long", postgresMs: inPostgres / 1_000 };
}
