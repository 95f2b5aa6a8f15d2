import type { Database } from "../../db/client.ts";
import { readCoveredHours } from "../../db/coverage/covered-hours.ts";
import { noteAgreement, noteContradiction, readSuspicions } from "../../db/coverage/zone-suspicions.ts";
import { findContradictions } from "../../src/coverage/find-contradictions.ts";
import { AGREE_MS } from "../../src/coverage/hour-proof.ts";
import type { Clock } from "../../src/lib/clock.ts";
import type { Log } from "../../src/lib/log.ts";
import { horizonAt } from "../../src/model/horizon.ts";
import type { LookRoute } from "../../src/model/look.ts";

export interface JudgeRouteDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Log;
}

export interface RouteLook {
  readonly zoneId: number;
  readonly route: LookRoute;
  /** When the look began; epoch ms. */
  readonly atMs: number;
  /** A contradiction that the caller saw and that no hour's look shows; null when there is none. */
  readonly contradiction: string | null;
}

/**
 * Marks a route as suspect if its looks show less than before, and clears it when looks have agreed for long enough.
 * Called after each look. Several replicas may run this at once.
 */
export async function judgeRoute({ database, clock, log }: JudgeRouteDeps, look: RouteLook): Promise<void> {
  const { zoneId, route, atMs, contradiction } = look;
  const now = clock();
  const hours = await readCoveredHours(database.db, zoneId, { fromMs: horizonAt(now), toMs: now });
  const found = findContradictions(route, hours);
  const reason = contradiction ?? found[0]?.reason ?? null;
  if (reason !== null) {
    const isNew = await noteContradiction(database.db, look, { reason });
    const facts = { zoneId, route, hours: found.length, reason };
    if (isNew) log.warn(facts, "route became suspect");
    return;
  }
  if (await noteAgreement(database.db, { zoneId, route, atMs }, AGREE_MS))
    log.info({ zoneId, route }, "route stopped being suspect");
}

/**
 * Returns whether the route is suspect. Then even a look without a contradiction has to be judged, because it can
 * clear the suspicion.
 */
export async function isRouteSuspect(database: Database, zoneId: number, route: LookRoute): Promise<boolean> {
  const suspicions = await readSuspicions(database.db, [zoneId]);
  return suspicions.some((one) => one.route === route);
}
