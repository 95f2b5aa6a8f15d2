/** Reads what needs attention. */

import { countSelfAlerts } from "#db/alerts/alert-reports.ts";
import type { Queryable } from "#db/client.ts";
import { readChannelStatuses } from "#db/delivery/channel-states.ts";
import { countGivenUp } from "#db/delivery/deliveries.ts";
import { readHeldCounts } from "#db/ingest/held-entries.ts";
import { readKeyProblem } from "#db/people/pseudonymise.ts";
import { readReplicas } from "#db/postgres/leases.ts";
import { readNewlyWatched } from "#db/proof/platform-health.ts";
import { describeCircuit } from "#delivery/rules/plan-delivery.ts";
import { KEY_REPORT_MS } from "#jobs/alerts/report-service.ts";
import { HOUR_MS } from "#lib/units.ts";
import { horizonAt, startOfHour } from "#model/horizon.ts";
import type { ZoneCoverage } from "#operations/read-zones.ts";
import { assessService, type ServiceView } from "#operations/service-life.ts";
import { type Attention, type AttentionFacts, listAttention, readUnpolled } from "./list-attention.ts";

/** The facts about the whole service where there are none, or where the caller may not see them. */
export const NO_SERVICE_FACTS: Omit<AttentionFacts, "zones" | "unpolled"> = {
  channels: null,
  service: assessService([]),
  keyProblem: null,
  held: [],
  givenUp: 0,
  selfAlerts: 0,
  newlyWatched: new Map(),
};

/** Returns what needs attention. A caller of some zones sees nothing of the service as a whole. */
export async function readAttention(
  db: Queryable,
  now: number,
  {
    zones,
    zoneIds,
    isWhole,
    service: { pollEveryMs, configuredChannels },
  }: {
    /** The zones, with their coverage of the last 72 hours. */
    readonly zones: readonly ZoneCoverage[];
    /** Null is every zone. */
    readonly zoneIds: readonly number[] | null;
    /** True if the caller may see things that belong to no single zone. */
    readonly isWhole: boolean;
    readonly service: Pick<ServiceView, "pollEveryMs" | "configuredChannels">;
  },
): Promise<Attention[]> {
  const [facts, unpolled] = await Promise.all([
    isWhole
      ? readServiceFacts(db, now)
      : listFirstCopies(db, now).then((newlyWatched) => ({ ...NO_SERVICE_FACTS, newlyWatched })),
    readUnpolled(db, now, { zoneIds, pollEveryMs }),
  ]);
  const attention = listAttention({ ...facts, zones, unpolled }, configuredChannels());
  return isWhole ? attention : attention.filter(({ kind }) => kind !== "not-running");
}

/** So long the first copy of a zone may take before its oldest hours need attention. */
const FIRST_COPY_MS = HOUR_MS;

/** Returns since when each zone is watched whose first copy may still be in progress. */
function listFirstCopies(db: Queryable, now: number): Promise<ReadonlyMap<number, number>> {
  return readNewlyWatched(db, now - FIRST_COPY_MS);
}

/** Reads the facts about the whole service that may need attention, all at once. The zones are read by the caller. */
async function readServiceFacts(
  db: Queryable,
  now: number,
): Promise<Omit<AttentionFacts, "zones" | "unpolled">> {
  const [channels, replicas, keyProblem, held, givenUp, selfAlerts, newlyWatched] = await Promise.all([
    readChannels(db),
    readReplicas(db),
    readKeyProblem(db, KEY_REPORT_MS),
    readHeldCounts(db),
    countGivenUp(db, startOfHour(horizonAt(now))),
    countSelfAlerts(db),
    listFirstCopies(db, now),
  ]);
  return { channels, service: assessService(replicas), keyProblem, held, givenUp, selfAlerts, newlyWatched };
}

interface ChannelStatus {
  readonly name: string;
  /** One of closed, open, half-open, disabled. */
  readonly circuit: string;
  readonly waiting: number;
  readonly dead: number;
  readonly lastError: string | null;
}

/** Returns every channel that was ever sent a message, by name. */
export async function readChannels(db: Queryable): Promise<ChannelStatus[]> {
  const statuses = await readChannelStatuses(db);
  return statuses.map(({ channel, nowMs, waiting, dead, lastError, ...circuit }) => ({
    name: channel,
    circuit: describeCircuit({ ...circuit, lastError }, nowMs),
    waiting,
    dead,
    lastError,
  }));
}
