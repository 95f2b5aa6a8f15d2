import type { Database, Queryable } from "#db/client.ts";
import { clearSuspicion, noteSuspicion, readSuspicions } from "#db/coverage/platform-health.ts";
import type { Log } from "#lib/log.ts";
import type { LookRoute } from "#model/kinds.ts";
import { AGREE_LONG_MS } from "#stages/coverage/hour-proof.ts";

export interface JudgeRouteDeps {
  readonly database: Database;
  readonly log: Log;
}

/** Reason why answers of a route prove nothing. */
export interface Contradiction {
  /** A sentence for people. */
  readonly reason: string;
  /** True if the route shows nothing of what is known of the zone. */
  readonly isWhole: boolean;
}

export interface RouteLook {
  readonly zoneId: number;
  readonly route: LookRoute;
  /** When the look began; epoch ms. */
  readonly atMs: number;
  readonly contradiction: Contradiction | null;
}

/**
 * Marks a route as suspect if its look contradicts what is known, and clears it if the look does not. Returns whether
 * the look has to be held back: for an hour from the first contradiction on, the look proves nothing. After that hour it
 * does, because every look of the hour agreed. Several replicas may run this at once.
 */
export async function judgeRoute({ database, log }: JudgeRouteDeps, look: RouteLook): Promise<boolean> {
  const { contradiction, ...at } = look;
  const { zoneId, route, atMs } = at;
  if (contradiction === null) {
    if (await clearSuspicion(database.db, at)) log.info({ zoneId, route }, "route stopped being suspect");
    return false;
  }
  const since = await noteSuspicion(database.db, at, contradiction);
  if (since === atMs) log.warn({ zoneId, route, reason: contradiction.reason }, "route became suspect");
  return atMs - since < AGREE_LONG_MS;
}

/**
 * Returns whether one of these routes shows nothing of what is known, so that an answer is believed only if it shows an
 * event that is known. Every poll asks the search anew, so its suspicion is never old. That of the list may be.
 */
export async function isZoneSuspect(
  db: Queryable,
  zoneId: number,
  routes: readonly LookRoute[],
): Promise<boolean> {
  const suspicions = await readSuspicions(db, [zoneId]);
  return suspicions.some(({ isWhole, route }) => isWhole && routes.includes(route));
}
