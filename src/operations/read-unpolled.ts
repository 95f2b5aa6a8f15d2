import type { Queryable } from "#db/client.ts";
import { listWatchedZones, readZoneHealth, type ZoneHealth } from "#db/coverage/platform-health.ts";
import { type Pause, readPauses } from "#db/service/request-budgets.ts";
import { showTime } from "#lib/format.ts";
import { MINUTE_MS } from "#lib/units.ts";

/** A zone without a successful poll for so long needs attention. The alert about it comes later. */
const UNPOLLED_MS = 5 * MINUTE_MS;
/** The service checks every zone once a minute. A zone that it has not checked for so long is not its zone any more. */
const WATCHED_MS = 5 * MINUTE_MS;

/** A zone of the running service whose polls do not succeed. */
export interface UnpolledZone {
  readonly zoneId: number;
  /** When the last successful poll ended, or when the service began to watch the zone, epoch ms. */
  readonly since: number;
  /** Why, or null if it is not known here. */
  readonly reason: string | null;
}

/** Returns the zones without a successful poll for five minutes, or for three periods if that is longer. */
export async function readUnpolled(
  db: Queryable,
  now: number,
  { zoneIds, pollEveryMs }: { zoneIds: readonly number[] | null; pollEveryMs: number },
): Promise<UnpolledZone[]> {
  const watched = await listWatchedZones(db, now - WATCHED_MS);
  const health = await readZoneHealth(
    db,
    watched.filter((zoneId) => zoneIds === null || zoneIds.includes(zoneId)),
  );
  const limitMs = Math.max(UNPOLLED_MS, 3 * pollEveryMs);
  const sinceOf = (zone: ZoneHealth) => Math.max(zone.polledThrough ?? 0, zone.watchedSince ?? now);
  const unpolled = health.filter((zone) => now - sinceOf(zone) > limitMs);
  if (unpolled.length === 0) return [];
  const pauses = await readPauses(db);
  return unpolled.map((zone) => ({
    zoneId: zone.zoneId,
    since: sinceOf(zone),
    reason: explain(zone, pauses, now),
  }));
}

function explain(zone: ZoneHealth, pauses: readonly Pause[], now: number): string | null {
  const { zoneId, answeredAt, refusedSince, refusedWith } = zone;
  if (refusedSince !== null && refusedSince > (answeredAt ?? 0))
    return `the platform refuses the access key for zone ${zoneId} (${refusedWith ?? "refused"})`;
  const account = pauses.find((pause) => pause.zoneId === null && pause.until > now);
  if (account !== undefined)
    return `the platform refuses the requests for every zone (429) until ${showTime(account.until)} UTC`;
  const own = pauses.find((pause) => pause.zoneId === zoneId);
  if (own === undefined) return null;
  return own.until > now
    ? `the platform refuses zone ${zoneId} (429) until ${showTime(own.until)} UTC`
    : `the platform has refused zone ${zoneId} (429) since ${showTime(own.refusedSince ?? own.until)} UTC`;
}
