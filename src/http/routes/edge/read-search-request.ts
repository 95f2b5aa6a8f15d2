import type { FastifyReply, FastifyRequest } from "fastify";
import { countStoredEvents } from "../../../../db/archive/archive-zones.ts";
import { countArchived } from "../../../../db/archive/archived-days.ts";
import { checkWindow } from "../../../archive/check-window.ts";
import { refuseHidden } from "../../../archive/mask/refuse-hidden.ts";
import { countTests, refuseManyTests } from "../../../archive/query/count-tests.ts";
import { estimateCost, readsPageOnly } from "../../../archive/query/estimate-cost.ts";
import { planSearch, type SearchPlan } from "../../../archive/query/plan-search.ts";
import { readSearch, type SearchForm } from "../../../archive/query/read-search.ts";
import type { Mistakes } from "../../../archive/query/search.ts";
import { sendMistakes } from "./platform-answer.ts";
import type { PlatformDeps } from "./platform-deps.ts";
import { readJsonBody } from "./read-json-body.ts";
import { isServedZone, readZoneId } from "./read-zone.ts";

export interface SearchRequest {
  readonly zoneId: number;
  readonly plan: SearchPlan;
  readonly isMasked: boolean;
  /** As `countTests` counts them. */
  readonly tests: number;
}

/** An event that has to pass so many tests costs as much as reading it. */
const TESTS_PER_READ = 100;

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
  const read = planBody(deps, request, body.value, { kind, form: "platform" });
  if ("mistakes" in read) {
    sendMistakes(reply, read.mistakes);
    return null;
  }
  return (await isServedZone(deps, request, zoneId)) ? { zoneId, ...read } : "unknown zone";
}

/** Returns the plan of a body, or everything that is wrong with it. */
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
  return { plan: planSearch(search, { isMasked }), isMasked, tests: countTests(search.filters) };
}

/** About how many events an answer has to read. @throws when they are more than a question may. */
export async function refuseLarge(
  deps: PlatformDeps,
  { zoneId, plan, tests }: SearchRequest,
): Promise<number> {
  // A page is less than any cap: to count first would take longer than the answer.
  if (readsPageOnly(plan)) return 0;
  const events = await countStoredEvents(deps.archive.db, zoneId, plan);
  const archivedEvents = await countArchived(deps.archive.db, zoneId, plan);
  const weight = Math.max(1, tests / TESTS_PER_READ);
  const rows = Math.round(weight * estimateCost(plan, { events, archivedEvents }));
  deps.refuseCostly({ rows });
  return rows;
}
