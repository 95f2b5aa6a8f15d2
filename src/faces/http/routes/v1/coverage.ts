import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { listKnownZones, readCoverageHours } from "#db/coverage/coverage-report.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { type KnownHorizon, startOfDay, startOfHour } from "#model/horizon.ts";
import { HOUR_STATUSES } from "#model/kinds.ts";
import {
  IsoTime,
  pageOf,
  pageQuery,
  Time,
  toIso,
  toIsoOrNull,
  toPage,
  visibleZones,
  ZoneId,
} from "#operations/fields.ts";
import { readZoneFacts } from "#operations/read-zones.ts";
import { checkSpan } from "#operations/span.ts";
import { type AssessedHour, assessHours } from "#stages/coverage/hour-status.ts";
import type { ApiDeps } from "./api-deps.ts";

const MAX_DAYS = 800;
const DEFAULT_DAYS = 7;

const Query = z.strictObject({
  zone: ZoneId.optional(),
  from: Time.optional().describe(`Default: ${DEFAULT_DAYS} days including today.`),
  to: Time.optional().describe("Default: the end of today."),
  ...pageQuery({ fallback: 200, most: 2_000 }),
});

export const CoverageHour = z
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
    gapReason: z.string().nullable(),
    reopenedAt: IsoTime.nullable().describe("When the seal of the hour was last withdrawn."),
    reopenReason: z.string().nullable(),
    notSealedBecause: z
      .string()
      .nullable()
      .describe("Why a settled hour is not sealed yet; null for all other hours."),
    evidence: z
      .unknown()
      .describe(
        "The evidence behind the state of the hour: what each route showed, and the history of the seals.",
      ),
  })
  .meta({ id: "CoverageHour" });

const Horizon = z
  .object({
    zoneId: z.number().int(),
    keptHours: z.number().describe("How many hours the platform keeps the events of the zone."),
    since: IsoTime.describe("When Longwatch first saw that."),
  })
  .meta({ id: "Horizon" });

const Answer = pageOf(CoverageHour).extend({
  horizons: z
    .array(Horizon)
    .describe("The zones of this page for which the platform keeps events for less than 72 hours."),
});

type ZoneHour = AssessedHour & { readonly zoneId: number };

/** `GET /api/v1/coverage`: where every hour of every zone stands. */
export function addCoverage(app: FastifyInstance, { archive, clock, cursors }: ApiDeps): void {
  app.withTypeProvider<ZodTypeProvider>().get(
    "/api/v1/coverage",
    {
      config: { access: { scope: "read" }, refuses: [422] },
      schema: {
        tags: ["Coverage"],
        summary: "List hours by zone and time, and whether each hour is complete",
        querystring: Query,
        response: { 200: Answer },
      },
    },
    async ({ query: { zone, limit, after, ...asked }, caller }) => {
      const now = clock();
      const list = `coverage-hours:${JSON.stringify([zone, asked.from, asked.to])}`;
      const position = cursors.readAfter(list, after);
      const today = startOfDay(now);
      // Later pages are of the first one's span, also after midnight.
      const to = position === null ? (asked.to ?? today + DAY_MS) : Number(position[1]);
      const first = asked.from ?? Math.min(today, to) - (DEFAULT_DAYS - 1) * DAY_MS;
      const from = position === null ? first : Number(position[0]);
      checkSpan(from, to, { max: MAX_DAYS, widthMs: DAY_MS, what: "days" });
      const page = { from: startOfHour(from), to, now, limit: limit + 1, position };
      const { hours, horizons } = await readHours(archive, visibleZones(caller, zone), page);
      const sign = ({ zoneId, startsAt }: ZoneHour) => cursors.sign(list, [from, to, zoneId, startsAt]);
      return { ...toPage(hours, limit, toHour, sign), horizons };
    },
  );
}

interface HoursPage {
  readonly from: number;
  readonly to: number;
  readonly now: number;
  readonly limit: number;
  readonly position: readonly (string | number | null)[] | null;
}

/** Zone by zone, and of each no more than still fits: a page costs what it shows. */
async function readHours(
  archive: ApiDeps["archive"],
  zoneIds: readonly number[] | null,
  { from, to, now, limit, position }: HoursPage,
): Promise<{ hours: ZoneHour[]; horizons: z.infer<typeof Horizon>[] }> {
  const [lastZone, lastHour] = (position?.slice(2) ?? [0, 0]).map(Number) as [number, number];
  const zones = (await listKnownZones(archive)).filter(
    ({ zoneId }) => zoneId >= lastZone && (zoneIds === null || zoneIds.includes(zoneId)),
  );
  const hours: ZoneHour[] = [];
  const horizons: z.infer<typeof Horizon>[] = [];
  for (const zone of zones) {
    const { zoneId, firstHour } = zone;
    const begin = Math.max(
      from,
      firstHour,
      position !== null && zoneId === lastZone ? lastHour + HOUR_MS : 0,
    );
    const left = limit - hours.length;
    const end = Math.min(to, startOfDay(now) + DAY_MS, begin + left * HOUR_MS);
    if (left <= 0 || begin >= end) continue;
    const span = { from: begin, to: end };
    const facts = await readZoneFacts(archive, zone, now);
    const rows = await readCoverageHours(archive, zoneId, span);
    hours.push(...assessHours(now, rows, { ...span, ...facts }).map((hour) => ({ ...hour, zoneId })));
    horizons.push(...toHorizons(zoneId, facts.horizon));
  }
  return { hours, horizons };
}

/** Returns nothing while the platform keeps the events of the zone for 72 hours. */
export function toHorizons(zoneId: number, { keptMs, since }: KnownHorizon): z.infer<typeof Horizon>[] {
  return keptMs === null || since === null
    ? []
    : [{ zoneId, keptHours: Math.round((keptMs / HOUR_MS) * 100) / 100, since: toIso(since) }];
}

export function toHour(hour: ZoneHour): z.infer<typeof CoverageHour> {
  // Named one by one, because the command line prints this without the schema, and the other times are epoch ms.
  return {
    zoneId: hour.zoneId,
    startsAt: toIso(hour.startsAt),
    state: hour.status,
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
    evidence: hour.evidence ?? null,
  };
}
