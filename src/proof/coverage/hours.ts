import { z } from "zod";
import type { Queryable } from "#db/client.ts";
import { listKnownZones } from "#db/proof/coverage-report.ts";
import { TOO_LITTLE_HISTORY } from "#detection/rules/detection-settings.ts";
import { judgeableHours } from "#detection/rules/find-late.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { startOfDay, startOfHour } from "#model/horizon.ts";
import { HOUR_STATUSES } from "#model/kinds.ts";
import {
  IsoTime,
  ListZones,
  Name,
  pageOf,
  pageQuery,
  Time,
  toIso,
  toIsoOrNull,
  toPage,
} from "#operations/fields.ts";
import { defineQuery } from "#operations/operation.ts";
import { pickZones } from "#operations/require-known.ts";
import { checkOrder, checkSpan } from "#operations/span.ts";
import type { AssessedHour } from "#proof/rules/hour-status.ts";
import { describeCoverage } from "./describe-coverage.ts";
import { readZones, type ZoneCoverage } from "./read-zones.ts";

const MAX_DAYS = 800;
const DEFAULT_DAYS = 7;
/** Exit code of `coverage` and `gaps` if an hour of the span is lost. */
export const GAP_EXIT_CODE = 3;

const CoverageHour = z
  .object({
    zoneId: z.number().int(),
    startsAt: IsoTime,
    state: z.enum(HOUR_STATUSES),
    storedCount: z.number().int(),
    upstreamCount: z
      .number()
      .int()
      .nullable()
      .describe("The platform's own count; null until Longwatch has read it."),
    missingCells: z.number().int(),
    surplusCells: z.number().int(),
    searchedThrough: IsoTime.nullable(),
    reconciledAt: IsoTime.nullable(),
    sealedAt: IsoTime.nullable(),
    gapReason: Name.nullable(),
    reopenedAt: IsoTime.nullable().describe("When the seal of the hour was last withdrawn."),
    reopenReason: Name.nullable(),
    notSealedBecause: Name.nullable().describe(
      "Why a settled hour is not sealed yet; null for all other hours.",
    ),
    judgedAt: IsoTime.nullable().describe(
      "When the detectors had judged every minute of the hour, with all events that are stored of it.",
    ),
    judgedWith: Name.nullable().describe(
      `A short name of the detectors' settings at that time, or "${TOO_LITTLE_HISTORY}" in a zone's first day.`,
    ),
    isWaiting: z
      .boolean()
      .describe(
        "Whether the hour is copied and not judged yet, and will be. Older hours are not judged any more.",
      ),
    evidence: z
      .unknown()
      .meta({ masked: "open" })
      .describe(
        "The evidence behind the state of the hour: what each route showed, and the history of the seals.",
      ),
  })
  .meta({ id: "CoverageHour" });
export type CoverageHour = z.infer<typeof CoverageHour>;

const Horizon = z
  .object({
    zoneId: z.number().int(),
    keptHours: z.number().describe("How many hours the platform keeps the events of the zone."),
    since: IsoTime.describe("When Longwatch first saw that."),
  })
  .meta({ id: "Horizon" });

const CoveredZone = z
  .object({
    zoneId: z.number().int(),
    name: Name.nullable().describe("Name of the zone in the configuration file."),
    firstHour: IsoTime.describe("Start of the first hour that Longwatch has watched."),
    nextToExpire: z
      .object({
        startsAt: IsoTime,
        expiresAt: IsoTime.describe("When the platform begins to forget the hour."),
      })
      .nullable()
      .describe("The oldest hour that is neither sealed nor a gap, in any time range."),
    suspicions: z
      .array(z.object({ since: IsoTime, reason: Name }))
      .describe("Why the platform's answers are incomplete. While the list is not empty, no hour is sealed."),
  })
  .meta({ id: "CoveredZone" });

const Answer = pageOf(CoverageHour).extend({
  from: IsoTime,
  to: IsoTime,
  horizons: z
    .array(Horizon)
    .describe("The zones of this page for which the platform keeps events for less than 72 hours."),
  zones: z
    .array(CoveredZone)
    .describe("The zones of this page, also those without an hour in the time range."),
});
export type CoverageAnswer = z.infer<typeof Answer>;

export const listCoverage = defineQuery({
  name: "coverage.list",
  summary: "List hours by zone and time, and whether each hour is complete",
  http: ["GET", "/api/v1/coverage"],
  tag: "Coverage",
  scope: "read",
  refuses: [422],
  input: z.strictObject({
    zone: ListZones,
    from: Time.optional().describe(`Default: ${DEFAULT_DAYS} days including today.`),
    to: Time.optional().describe("Default: the end of today."),
    ...pageQuery({ fallback: 200, most: 2_000 }),
  }),
  output: Answer,
  command: {
    name: "",
    summary: "Show whether every hour is complete",
    examples: [
      "coverage",
      "coverage --zone 101 --from -90d",
      "coverage --from 2026-11-01 --to 2026-12-01 --json",
    ],
    help: `Each row is a UTC day; each character is an hour:
  █ sealed     complete: search, list and counts of the platform show exactly the stored events
  ▒ searched   read to its end, not sealed yet
  ░ open       not read to its end yet
  ! gap        lost: the platform forgot the hour before it was sealed
  i imported   has imported events: not proven, and no loss
  - unwatched  already partly forgotten by the platform when the zone was first watched
  · not yet    in the future
The command reads only the database; the service need not run. Exit code 0; 2 if the zone is neither configured nor
stored; 3 if the span has a gap.`,
    say: describeCoverage,
    exitCode: ({ items }) => (items.some(({ state }) => state === "gap") ? GAP_EXIT_CODE : 0),
    limit: null,
  },
  run: async (asked, { zone, limit, after, ...wanted }) => {
    const { db, now, cursors, zones: readNames } = asked;
    const list = `coverage-hours:${JSON.stringify([zone, wanted.from, wanted.to])}`;
    const position = cursors.readAfter(list, after);
    const today = startOfDay(now);
    // Later pages are of the first one's span, also after midnight.
    const to = position === null ? (wanted.to ?? today + DAY_MS) : Number(position[1]);
    const first = wanted.from ?? Math.min(today, to) - (DEFAULT_DAYS - 1) * DAY_MS;
    const from = position === null ? first : Number(position[0]);
    checkOrder({ name: "from", ms: from }, { name: "to", ms: to });
    // Hours after today have no state, so they do not count.
    const end = Math.min(to, today + DAY_MS);
    if (from < end) checkSpan(from, end, { max: MAX_DAYS, widthMs: DAY_MS, what: "days" });
    const zoneIds = await pickZones(asked, zone);
    const last = position === null ? null : { zoneId: Number(position[2]), startsAt: Number(position[3]) };
    const page = { zoneIds, from, end, limit: limit + 1, last };
    const found = await readPage(db, now, page);
    const hours = found.flatMap((one) => one.hours.map((hour) => ({ ...hour, zoneId: one.zoneId })));
    const sign = ({ zoneId, startsAt }: ZoneHour) => cursors.sign(list, [from, to, zoneId, startsAt]);
    const names = readNames();
    return {
      ...toPage(hours, limit, (hour) => toHour(hour, now), sign),
      from: toIso(from),
      to: toIso(to),
      horizons: found.flatMap(toHorizons),
      zones: found.map((one) => toZone(one, now, names[one.zoneId]?.name ?? null)),
    };
  },
});

type ZoneHour = AssessedHour & { readonly zoneId: number };

/** Reads zone after zone, and of each no more than fits: a page costs what it shows. */
async function readPage(
  db: Queryable,
  now: number,
  {
    zoneIds,
    from,
    end,
    limit,
    last,
  }: {
    readonly zoneIds: readonly number[] | null;
    readonly from: number;
    readonly end: number;
    readonly limit: number;
    /** The last hour of the page before. */
    readonly last: { readonly zoneId: number; readonly startsAt: number } | null;
  },
): Promise<ZoneCoverage[]> {
  const found: ZoneCoverage[] = [];
  let left = limit;
  for (const { zoneId, firstHour } of await listKnownZones(db)) {
    if (left <= 0 || zoneId < (last?.zoneId ?? 0)) continue;
    if (zoneIds !== null && !zoneIds.includes(zoneId)) continue;
    const isGoingOn = zoneId === last?.zoneId;
    const begin = startOfHour(Math.max(from, firstHour, isGoingOn ? last.startsAt + HOUR_MS : 0));
    if (isGoingOn && begin >= end) continue;
    const span = { zoneId, from: begin, to: Math.min(end, begin + left * HOUR_MS) };
    const zones = await readZones(db, now, span);
    left -= zones.reduce((sum, { hours }) => sum + hours.length, 0);
    found.push(...zones);
  }
  return found;
}

/** Returns nothing while the platform keeps the events of the zone for 72 hours. */
function toHorizons({ zoneId, horizon: { keptMs, since } }: ZoneCoverage): z.infer<typeof Horizon>[] {
  return keptMs === null || since === null
    ? []
    : [{ zoneId, keptHours: Math.round((keptMs / HOUR_MS) * 100) / 100, since: toIso(since) }];
}

function toZone(
  { zoneId, firstHour, nextToExpire: next, suspicions }: ZoneCoverage,
  now: number,
  name: string | null,
): z.infer<typeof CoveredZone> {
  return {
    zoneId,
    name,
    firstHour: toIso(firstHour),
    nextToExpire: next && {
      startsAt: toIso(next.startsAt),
      expiresAt: toIso(now + next.leftMs),
    },
    suspicions: suspicions.map(({ since, reason }) => ({ since: toIso(since), reason })),
  };
}

function toHour({ status, ...hour }: ZoneHour, now: number): CoverageHour {
  const { fromMs, toMs } = judgeableHours(now);
  const isJudgeable = hour.startsAt >= fromMs && hour.startsAt < toMs;
  // Named one by one, because the command line prints this without the schema, and the other times are epoch ms.
  return {
    zoneId: hour.zoneId,
    startsAt: toIso(hour.startsAt),
    state: status,
    storedCount: hour.storedCount,
    upstreamCount: hour.upstreamCount,
    missingCells: hour.missingCells,
    surplusCells: hour.surplusCells,
    searchedThrough: toIsoOrNull(hour.searchedThrough),
    reconciledAt: toIsoOrNull(hour.reconciledAt),
    sealedAt: toIsoOrNull(hour.sealedAt),
    gapReason: hour.gapReason,
    reopenedAt: toIsoOrNull(hour.reopenedAt),
    reopenReason: hour.reopenReason,
    notSealedBecause: hour.notSealedBecause,
    judgedAt: toIsoOrNull(hour.judgedAt),
    judgedWith: hour.judgedWith,
    isWaiting: isJudgeable && (status === "sealed" || status === "searched") && hour.judgedAt === null,
    evidence: hour.evidence ?? null,
  };
}
