import type { Queryable } from "#db/client.ts";
import { countUnreadable } from "#db/ingest/quarantine.ts";
import {
  type KnownZone,
  listKnownZones,
  readCoverageHours,
  readUndecided,
  type UndecidedHour,
} from "#db/proof/coverage-report.ts";
import { readHorizon } from "#db/proof/horizons.ts";
import { readSuspicions, type Suspicion } from "#db/proof/platform-health.ts";
import { HELD_BACK } from "#ingest/rules/read-page.ts";
import { DAY_MS } from "#lib/units.ts";
import { KEPT_MS, type KnownHorizon, keptFor, startOfDay, startOfHour } from "#model/horizon.ts";
import { type AssessedHour, assessHours } from "#proof/rules/hour-status.ts";
import { GIVE_UP_MS } from "#proof/rules/judge-counts.ts";

export interface ZoneCoverage {
  readonly zoneId: number;
  /** Start of the first known hour. */
  readonly firstHour: number;
  /** The oldest undecided hour, inside or outside the requested span. */
  readonly nextToExpire: UndecidedHour | null;
  readonly hours: readonly AssessedHour[];
  /** Routes that show fewer events than before. While there is one, no hour is sealed. */
  readonly suspicions: readonly Suspicion[];
  /** How long the platform keeps the events of the zone. */
  readonly horizon: KnownHorizon;
}

/** Reads the hours of one or all zones that begin in [from, to), epoch ms, between the first known hour and the end of today. */
export async function readZones(
  db: Queryable,
  now: number,
  {
    zoneId,
    from,
    to,
    hasEvidence = true,
  }: { zoneId: number | undefined; from: number; to: number; hasEvidence?: boolean },
): Promise<ZoneCoverage[]> {
  const zones: ZoneCoverage[] = [];
  for (const zone of await listKnownZones(db, zoneId)) {
    const { suspicions, horizon, ...known } = await readZoneFacts(db, zone, now);
    const { firstHour } = known;
    // Hours after today have no state.
    const end = Math.min(to, startOfDay(now) + DAY_MS);
    const span = { from: startOfHour(Math.max(from, firstHour)), to: end, hasEvidence };
    const hours = assessHours(now, await readCoverageHours(db, zone.zoneId, span), { ...span, ...known });
    const [undecided] = await readUndecided(db, [zone.zoneId], now);
    zones.push({ ...zone, hours, suspicions, horizon, nextToExpire: undecided?.oldest ?? null });
  }
  return zones;
}

/** Reads the facts about a zone that decide the status of its hours. */
async function readZoneFacts(db: Queryable, { zoneId, firstHour }: KnownZone, now: number) {
  const suspicions = await readSuspicions(db, [zoneId]);
  const horizon = await readHorizon(db, zoneId);
  const keptMs = keptFor(horizon, now, GIVE_UP_MS);
  const unreadable = await countUnreadable(db, zoneId, { sinceMs: now - KEPT_MS, exceptReason: HELD_BACK });
  return { firstHour, suspicions, suspicion: suspicions[0]?.reason ?? null, horizon, keptMs, unreadable };
}
