/** The conditions that status, the overview, the weekly digest, /readyz and the metrics show. */
import { countSelfAlerts } from "#db/alerts/alert-reports.ts";
import { listWatchedZones } from "#db/proof/platform-health.ts";
import {
  type Examined,
  examine,
  listShown,
  openScope,
  type Scope,
} from "#jobs/health/conditions/condition.ts";
import { WATCHED_MS } from "#jobs/health/conditions/coverage.ts";
import { assessService, findMissing } from "#jobs/health/conditions/processes.ts";
import { CONDITIONS } from "#jobs/health/conditions/service.ts";
import { many } from "#lib/format.ts";
import type { HealthState } from "#model/kinds.ts";
import type { QueryContext } from "#operations/operation.ts";
import type { ServiceView } from "#operations/service-life.ts";

/** Something that a person should look at. */
export interface Attention {
  /** The name of the condition. */
  readonly kind: string;
  /** Null if it is of no single zone. */
  readonly zoneId: number | null;
  readonly text: string;
  /** The command that shows more, without the program's name; null where the text says everything. */
  readonly command: string | null;
}

interface ServiceContext extends Pick<QueryContext, "db" | "now"> {
  readonly service: Pick<ServiceView, "pollEveryMs" | "configuredChannels" | "alerting">;
}

/** Opens the scope of the conditions, also those of zones that some process watches. The disk is not read. */
export async function openServiceScope(
  { db, now: nowMs, service }: ServiceContext,
  seen: readonly number[],
  zoneIds: readonly number[] | null = null,
): Promise<Scope> {
  const channels = service.configuredChannels();
  const watched = await listWatchedZones(db, nowMs - WATCHED_MS);
  const visible = watched.filter((zoneId) => zoneIds === null || zoneIds.includes(zoneId));
  return openScope({
    db,
    nowMs,
    zoneIds: [...new Set([...seen, ...visible])],
    pollEveryMs: service.pollEveryMs,
    channels: channels === null ? null : [...channels],
    zones: service.alerting().routing.zones ?? {},
    destinations: service.alerting().destinations.map(({ name }) => name),
  });
}

/** Examines every condition of the service. */
export async function examineService(context: ServiceContext, seen: readonly number[]): Promise<Examined[]> {
  return examine(await openServiceScope(context, seen), CONDITIONS);
}

/** Returns what needs attention, the most urgent first. A caller of some zones sees nothing of the service as a whole. */
export async function readAttention(
  context: ServiceContext & Pick<QueryContext, "caller">,
  seen: readonly { readonly zoneId: number }[],
  zoneIds: readonly number[] | null = context.caller.zoneIds,
): Promise<Attention[]> {
  const isWhole = context.caller.zoneIds === null;
  const conditions = CONDITIONS.filter((one) => isWhole || one.of === "zone");
  const ids = seen.map(({ zoneId }) => zoneId);
  const shown = listShown(await examine(await openServiceScope(context, ids, zoneIds), conditions));
  const others = isWhole
    ? (await countSelfAlerts(context.db)) - shown.filter(({ isOpen }) => isOpen).length
    : 0;
  const text = `${many(others, "unresolved alert")} of Longwatch about itself`;
  return [
    ...shown.map(toAttention),
    ...(others > 0 ? [{ kind: "self-alert", zoneId: null, text, command: "alerts list --kind self" }] : []),
  ];
}

/** Returns how often each condition needs attention, under the name of its metric. */
export async function countConditions(scope: Scope) {
  const shown = listShown(await examine(scope, CONDITIONS));
  return CONDITIONS.map((one) => ({
    condition: one.name,
    conditions: shown.filter(({ condition }) => condition === one).length,
  }));
}

/** Returns the checks of /readyz that come from conditions. A headline may quote an error, which the public must not read. */
export function listReadyChecks(ask: () => ServiceContext, zoneIds: readonly number[]) {
  const conditions = CONDITIONS.filter(({ ready }) => ready === true);
  const examineAll = async () => listShown(await examine(await openServiceScope(ask(), zoneIds), conditions));
  // The checks of one probe run at once and share one examination.
  let examining: ReturnType<typeof examineAll> | null = null;
  return conditions.map((condition) => ({
    name: condition.name,
    isRequired: false,
    async check(): Promise<{ state: HealthState; detail?: string }> {
      examining ??= examineAll().finally(() => (examining = null));
      const isShown = (await examining).some((one) => one.condition === condition);
      return isShown ? { state: "degraded", detail: "longwatch status says more" } : { state: "ok" };
    },
  }));
}

/** Returns the condition of a service that has never been started. */
export function describeNeverStarted(): Attention[] {
  const text = findMissing(assessService([]), 0)?.headline ?? "";
  return [{ kind: "not-running", zoneId: null, text, command: null }];
}

function toAttention({ condition, subject, found }: ReturnType<typeof listShown>[number]): Attention {
  const { headline: text, next } = found;
  return { kind: condition.name, zoneId: subject.zoneId ?? null, text, command: next?.command ?? null };
}
