import type { FastifyReply, FastifyRequest } from "fastify";
import { countStoredEvents } from "#db/archive/archive-zones.ts";
import { countArchived } from "#db/archive/archived-days.ts";
import { checkWindow } from "#stages/archive/check-window.ts";
import { refuseHidden } from "#stages/archive/mask/refuse-hidden.ts";
import { refuseManyTests } from "#stages/archive/query/count-tests.ts";
import { estimateCost, readsPageOnly } from "#stages/archive/query/estimate-cost.ts";
import { planSearch, type SearchPlan } from "#stages/archive/query/plan-search.ts";
import { readSearch, type SearchForm } from "#stages/archive/query/read-search.ts";
import type { Mistakes } from "#stages/archive/query/search.ts";
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

/** A search of this cost takes about ten milliseconds. */
const QUICK_COST = 20_000;

/** Returns the requested search or export; null if it was refused and answered, in the platform's order. */
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
  const read = planBody(deps, request, body.value, { kind, form: "platform" });
  if ("mistakes" in read) {
    sendMistakes(reply, read.mistakes);
    return null;
  }
  return (await isServedZone(deps, request, zoneId)) ? { zoneId, ...read } : "unknown zone";
}

/** Returns the plan of a body, or all its mistakes. */
export function planBody(
  { clock, retentionDays }: Pick<PlatformDeps, "clock" | "retentionDays">,
  { caller }: FastifyRequest,
  body: unknown,
  { kind, form }: { readonly kind: "search" | "export"; readonly form: SearchForm },
): Omit<SearchRequest, "zoneId"> | { readonly mistakes: Mistakes } {
  const tooMany = refuseManyTests(body);
  if (tooMany !== null) return { mistakes: tooMany };
  const read = readSearch(body, kind, form);
  if ("mistakes" in read) return read;
  const { search } = read;
  const isMasked = caller?.masked ?? true;
  const mistakes =
    checkWindow(search, { nowMs: clock(), retentionDays }) ?? (isMasked ? refuseHidden(search) : null);
  if (mistakes !== null) return { mistakes };
  return { plan: planSearch(search, { isMasked }), isMasked };
}

/**
 * Returns the kind of place that a search needs in the admission queue, and its CPU time in Postgres.
 * @throws if the search costs more than the limit
 */
export async function priceSearch(
  deps: PlatformDeps,
  { zoneId, plan }: SearchRequest,
): Promise<Pick<Work, "kind" | "postgresMs">> {
  // Counting first would take longer than the search.
  if (readsPageOnly(plan)) return { kind: "quick" };
  const events = await countStoredEvents(deps.archive.db, zoneId, plan);
  const archivedEvents = await countArchived(deps.archive.db, zoneId, plan);
  const rows = Math.round(estimateCost(plan, { events, archivedEvents }));
  deps.refuseCostly({ rows });
  const inPostgres = estimateCost(plan, { events: Math.max(0, events - archivedEvents), archivedEvents: 0 });
  return { kind: rows <= QUICK_COST ? "quick" : "long", postgresMs: inPostgres / 1_000 };
}
