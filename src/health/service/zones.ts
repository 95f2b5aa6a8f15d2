/** Zones and how much of them has been copied. */
import { z } from "zod";
import { readLearning } from "#db/detection/judged-hours.ts";
import { type OpenWork, readOpenWork, readServiceStatus } from "#db/health/service-status.ts";
import { listKnownZones, readHourStates, readUndecided } from "#db/proof/coverage-report.ts";
import { readSuspicions } from "#db/proof/platform-health.ts";
import { formatWhole, showTime } from "#lib/format.ts";
import { toLine } from "#lib/text.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import type { CoveredHour } from "#model/covered-hour.ts";
import { horizonAt, startOfHour } from "#model/horizon.ts";
import type { Zones } from "#model/zones.ts";
import { IsoTime, Name, pageOf, pageQuery, toIso, toIsoOrNull, toPage } from "#operations/fields.ts";
import { defineQuery, type QueryContext } from "#operations/operation.ts";
import { hoursToLoss } from "#proof/rules/hour-status.ts";

/** Time range for the newest event and the recent count. */
const RECENT_MS = 4 * DAY_MS;

export const Zone = z
  .object({
    id: z.number().int(),
    name: Name.nullable().describe("Name of the zone in the configuration file."),
    labels: z.record(z.string(), Name),
    account: Name.nullable().describe(
      "The account of the platform whose key reads the zone; null if the configuration file has no accounts.",
    ),
    firstHour: IsoTime.describe("Start of the first hour that Longwatch has watched."),
    newestEventAt: IsoTime.nullable().describe("Null if no event of the last four days is stored."),
    searchedThrough: IsoTime.nullable(),
    hoursToLoss: z
      .number()
      .nullable()
      .describe(
        "Hours until the platform begins to forget the oldest ended hour that is neither sealed nor a gap; null if there is none.",
      ),
    copying: z
      .object({ hours: z.number().int(), done: z.number().int() })
      .nullable()
      .describe(
        "How many hours of the platform's history have been copied. Null if all have been, and while the platform does not answer.",
      ),
    learningUntil: IsoTime.nullable().describe(
      "The end of the zone's first day. Until then nothing is usual yet, and only what is over fixed lines is notified of. Null after it, and before the first event.",
    ),
    recentEvents: z.number().int().describe("Number of stored events of the last four days."),
    suspicions: z
      .array(z.object({ route: Name, since: IsoTime, reason: Name }))
      .describe(
        "Routes of the platform that show fewer events than before. While the list is not empty, no hour is sealed.",
      ),
    quarantined: z.number().int(),
    spikesOpen: z.number().int(),
    alertsFiring: z.number().int(),
    alertsAcknowledged: z.number().int(),
    notificationsPending: z.number().int(),
  })
  .meta({ id: "Zone" });

export const listZones = defineQuery({
  name: "zones.list",
  summary: "List zones",
  description: "The stored events and the current state of each zone.",
  http: ["GET", "/api/v1/zones"],
  tag: "Service",
  scope: "read",
  input: z.strictObject(pageQuery({ fallback: 100, most: 500 })),
  output: pageOf(Zone),
  command: {
    examples: ["zones list", "zones list --json"],
    help: "EVENTS are those of the last four days. TO LOSS is the time until the platform forgets the oldest hour that is not proven.",
    columns: [
      { head: "ZONE", get: ({ id }) => String(id) },
      { head: "NAME", get: ({ name }) => (name === null ? "-" : toLine(name, 60)) },
      { head: "EVENTS", get: ({ recentEvents }) => formatWhole(recentEvents) },
      {
        head: "NEWEST (UTC)",
        get: ({ newestEventAt: at }) => (at === null ? "-" : showTime(at)),
      },
      { head: "TO LOSS", get: ({ hoursToLoss: hours }) => (hours === null ? "-" : `${hours.toFixed(1)} h`) },
      {
        head: "ALERTS",
        get: ({ alertsFiring, alertsAcknowledged }) => String(alertsFiring + alertsAcknowledged),
      },
      { head: "QUARANTINED", get: ({ quarantined }) => formatWhole(quarantined) },
    ],
    empty: "No zones.",
  },
  run: async ({ db, now, cursors, caller, zones: readNames }, { limit, after }) => {
    const [lastZone] = cursors.readAfter("zones", after) ?? [];
    const zones = await readVisibleZones(db, caller.zoneIds);
    const left = zones.filter(({ zoneId }) => zoneId > Number(lastZone ?? 0)).slice(0, limit + 1);
    const shown = await describeZones(db, left, { now, names: readNames() });
    return toPage(
      shown,
      limit,
      (zone) => zone,
      ({ id }) => cursors.sign("zones", [id]),
    );
  },
});

interface SeenZone {
  readonly zoneId: number;
  readonly firstHour: number;
}

export async function readVisibleZones(
  db: QueryContext["db"],
  zoneIds: readonly number[] | null,
): Promise<SeenZone[]> {
  const zones = await listKnownZones(db);
  return zones.filter(({ zoneId }) => zoneIds === null || zoneIds.includes(zoneId));
}

export async function describeZones(
  db: QueryContext["db"],
  zones: readonly SeenZone[],
  { now, names }: { readonly now: number; readonly names: Zones },
): Promise<z.infer<typeof Zone>[]> {
  const ids = zones.map(({ zoneId }) => zoneId);
  const [status, openWork, suspected, progress, learning] = await Promise.all([
    readServiceStatus(db, ids, now - RECENT_MS),
    readOpenWork(db, ids),
    readSuspicions(db, ids),
    readProgress(db, ids, now),
    readLearning(db, ids, now),
  ]);
  const work = new Map(openWork.map(({ zoneId, ...open }) => [zoneId, open]));
  const stored = new Map(status.zones.map((zone) => [zone.zoneId, zone]));
  const suspicions = Map.groupBy(suspected, ({ zoneId }) => zoneId);
  return zones.map(({ zoneId, firstHour }) => {
    const known = stored.get(zoneId);
    return {
      id: zoneId,
      name: names[zoneId]?.name ?? null,
      labels: { ...names[zoneId]?.labels },
      account: names[zoneId]?.account ?? null,
      firstHour: toIso(firstHour),
      newestEventAt: toIsoOrNull(known?.newestAt ?? null),
      searchedThrough: toIsoOrNull(known?.searchedThrough ?? null),
      hoursToLoss: progress.get(zoneId)?.hoursToLoss ?? null,
      copying: progress.get(zoneId)?.copying ?? null,
      learningUntil: toIsoOrNull(learning.get(zoneId) ?? null),
      recentEvents: known?.events ?? 0,
      suspicions: (suspicions.get(zoneId) ?? []).map(({ route, since, reason }) => ({
        route,
        since: toIso(since),
        reason,
      })),
      quarantined: known?.quarantined ?? 0,
      ...(work.get(zoneId) ?? NOTHING_OPEN),
    };
  });
}

async function readProgress(
  db: QueryContext["db"],
  ids: readonly number[],
  now: number,
): Promise<ReadonlyMap<number, Pick<z.infer<typeof Zone>, "hoursToLoss" | "copying">>> {
  const range = { fromMs: startOfHour(horizonAt(now)), toMs: now + HOUR_MS };
  const hours = Map.groupBy(await readHourStates(db, ids, range), ({ zoneId }) => zoneId);
  return new Map(
    (await readUndecided(db, ids, now)).map(({ zoneId, oldest, keptMs }) => [
      zoneId,
      { hoursToLoss: hoursToLoss(oldest), copying: copyProgress(now, hours.get(zoneId) ?? [], keptMs) },
    ]),
  );
}

const NOTHING_OPEN: Omit<OpenWork, "zoneId"> = {
  spikesOpen: 0,
  alertsFiring: 0,
  alertsAcknowledged: 0,
  notificationsPending: 0,
};

/** While the platform answers, the newest minutes are searched at least this often, however much history is left. */
const FRESH_MS = 5 * MINUTE_MS;

interface CopyProgress {
  /** Ended hours that the platform still shows, without the one that has just ended. */
  readonly hours: number;
  /** Hours that were read to their end. */
  readonly done: number;
}

/**
 * Returns how far the copy of the platform's history has come. Null if every hour was read, and while the newest minutes
 * are not read: then the platform does not answer, and nothing is copied. Times in epoch ms.
 */
export function copyProgress(
  now: number,
  known: readonly Pick<CoveredHour, "startsAt" | "state" | "searchedThrough">[],
  keptMs?: number,
): CopyProgress | null {
  const newest = Math.max(0, ...known.map(({ searchedThrough }) => searchedThrough ?? 0));
  if (now - newest > FRESH_MS) return null;
  const read = new Set(
    known
      .filter(
        ({ startsAt, state, searchedThrough }) =>
          state !== "open" || (searchedThrough ?? 0) >= startsAt + HOUR_MS,
      )
      .map(({ startsAt }) => startsAt),
  );
  let [hours, done] = [0, 0];
  for (let hour = startOfHour(horizonAt(now, keptMs)); hour < startOfHour(now) - HOUR_MS; hour += HOUR_MS) {
    hours += 1;
    if (read.has(hour)) done += 1;
  }
  return done === hours ? null : { hours, done };
}
