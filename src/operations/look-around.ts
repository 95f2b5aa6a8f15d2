import { countSelfAlerts } from "#db/alerting/alert-reports.ts";
import type { Queryable } from "#db/client.ts";
import { readNewlyWatched } from "#db/coverage/platform-health.ts";
import { countGivenUp } from "#db/delivery/deliveries.ts";
import { readHeldCounts } from "#db/ingest/held-pages.ts";
import { readKeyProblem } from "#db/privacy/pseudonym-keys.ts";
import { readReplicas } from "#db/service/leases.ts";
import { KEY_REPORT_MS } from "#jobs/alerting/report-service.ts";
import { HOUR_MS } from "#lib/units.ts";
import { horizonAt, startOfHour } from "#model/horizon.ts";
import type { Looked } from "./list-attention.ts";
import { readChannels } from "./read-channels.ts";
import { assessService } from "./service-life.ts";

/** So long the first copy of a zone may take before its oldest hours need attention. */
const FIRST_COPY_MS = HOUR_MS;

/** Returns since when each zone is watched whose first copy may still be in progress. */
export function listFirstCopies(db: Queryable, now: number): Promise<ReadonlyMap<number, number>> {
  return readNewlyWatched(db, now - FIRST_COPY_MS);
}

/** Reads the facts about the whole service that may need attention, all at once. The zones are read by the caller. */
export async function lookAround(db: Queryable, now: number): Promise<Omit<Looked, "zones" | "unpolled">> {
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
