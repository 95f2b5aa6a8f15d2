import type { Queryable } from "../../db/client.ts";
import { listKnownZones, readCoverageHours } from "../../db/coverage/coverage-report.ts";
import { readSuspicions, type Suspicion } from "../../db/coverage/zone-suspicions.ts";
import {
  type AssessedHour,
  assessHours,
  findNextToExpire,
  type NextToExpire,
} from "../coverage/hour-status.ts";
import { DAY_MS } from "../lib/units.ts";
import { horizonAt, startOfDay, startOfHour } from "../model/horizon.ts";

export interface ZoneCoverage {
  readonly zoneId: number;
  /** Start of the first known hour. */
  readonly firstHour: number;
  /** The next hour to expire, inside or outside the requested span. */
  readonly nextToExpire: NextToExpire | null;
  readonly hours: readonly AssessedHour[];
  /** Routes that show fewer events than before. While there is one, no hour is sealed. */
  readonly suspicions: readonly Suspicion[];
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
    const { firstHour } = zone;
    // Hours after today have no state.
    const end = Math.min(to, startOfDay(now) + DAY_MS);
    const span = { from: startOfHour(Math.max(from, firstHour)), to: end, hasEvidence };
    const kept = { from: startOfHour(horizonAt(now)), to: now, hasEvidence };
    const suspicions = await readSuspicions(db, [zone.zoneId]);
    const known = { firstHour, suspicion: suspicions[0]?.reason ?? null };
    const hours = assessHours(now, await readCoverageHours(db, zone.zoneId, span), { ...span, ...known });
    const recent =
      from <= kept.from && end >= now
        ? hours.filter(({ startsAt }) => startsAt >= kept.from && startsAt < kept.to)
        : assessHours(now, await readCoverageHours(db, zone.zoneId, kept), { ...kept, ...known });
    zones.push({ ...zone, hours, suspicions, nextToExpire: findNextToExpire(now, recent) });
  }
  return zones;
}
