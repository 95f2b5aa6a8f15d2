import { z } from "zod";
import { listKnownZones } from "#db/proof/coverage-report.ts";
import { formatWhole, many, showTime } from "#lib/format.ts";
import { shortenText } from "#lib/text.ts";
import { DAY_MS } from "#lib/units.ts";
import { nameZone } from "#model/zones.ts";
import { IsoTime, ListZones, Name, pageOf, pageQuery, Time, toIso, toPage } from "#operations/fields.ts";
import { defineQuery } from "#operations/operation.ts";
import { pickZones } from "#operations/require-known.ts";
import { checkSpan } from "#operations/span.ts";
import { type Gap as JoinedGap, joinGaps } from "#proof/rules/hour-status.ts";
import { describeNothing } from "./describe-coverage.ts";
import { GAP_EXIT_CODE } from "./hours.ts";
import { readZones } from "./read-zones.ts";

const MAX_DAYS = 800;
/** The default retention, the longest of all data. */
const DEFAULT_DAYS = 400;
/** Longwatch writes short reasons. A longer reason in the database must not fill the screen. */
const MAX_REASON_CHARS = 200;
const MAX_REASONS = 5;

const Gap = z
  .object({
    zoneId: z.number().int(),
    from: IsoTime,
    to: IsoTime,
    hours: z.number().int(),
    storedCount: z.number().int().describe("Events of the gap that are stored. They are kept."),
    upstreamCount: z.number().int().nullable(),
    reasons: z.array(Name),
  })
  .meta({ id: "Gap" });
type Gap = z.infer<typeof Gap>;

const Answer = pageOf(Gap).extend({
  from: IsoTime,
  to: IsoTime,
  zones: z
    .array(
      z.object({
        zoneId: z.number().int(),
        name: Name.nullable().describe("Name of the zone in the configuration file."),
        firstHour: IsoTime.describe("Start of the first hour that Longwatch has watched."),
      }),
    )
    .describe("All zones that were read, also those without a gap."),
});

export const listGaps = defineQuery({
  name: "gaps.list",
  summary: "List gaps by zone and time, with their reasons",
  http: ["GET", "/api/v1/gaps"],
  tag: "Coverage",
  scope: "read",
  heavy: "read",
  refuses: [422],
  input: z.strictObject({
    zone: ListZones,
    from: Time.optional().describe(`Default: ${DEFAULT_DAYS} days before \`to\`.`),
    to: Time.optional().describe("Default: now."),
    ...pageQuery({ fallback: 50, most: 500 }),
  }),
  output: Answer,
  command: {
    name: "",
    summary: "List the hours that are lost, and why",
    examples: ["gaps", "gaps --zone 101 --from -90d", "gaps --from 2026-11-01 --to 2026-12-01 --json"],
    help: `A gap is one or more hours in a row that the platform forgot before they were sealed. The events of a gap that are stored
stay stored. The command reads only the database. Exit code 0; 2 if the zone is neither configured nor stored; 3 if the
span has a gap.`,
    say: describe,
    exitCode: ({ items }) => (items.length > 0 ? GAP_EXIT_CODE : 0),
    limit: null,
  },
  run: async (asked, { zone, limit, after, ...wanted }) => {
    const { db, now, cursors, zones: readNames } = asked;
    const list = `gaps:${JSON.stringify([zone, wanted.from, wanted.to])}`;
    const position = cursors.readAfter(list, after);
    // Later pages use the time range of the first page: a gap that the range cuts would begin elsewhere.
    const to = position === null ? (wanted.to ?? now) : Number(position[1]);
    const from =
      position === null ? (wanted.from ?? Math.max(0, to - DEFAULT_DAYS * DAY_MS)) : Number(position[0]);
    checkSpan(from, to, { max: MAX_DAYS, widthMs: DAY_MS, what: "days" });
    const [lastZone, lastFrom] = [Number(position?.[2] ?? 0), Number(position?.[3] ?? 0)];
    const zoneIds = await pickZones(asked, zone);
    const known = (await listKnownZones(db)).filter(({ zoneId }) => zoneIds?.includes(zoneId) ?? true);
    const gaps: ZoneGap[] = [];
    for (const { zoneId } of known) {
      if (zoneId < lastZone || gaps.length > limit) continue;
      const [found] = await readZones(db, now, { zoneId, from, to, hasEvidence: false });
      const joined = joinGaps(found?.hours ?? []).map((gap) => ({ ...gap, zoneId }));
      gaps.push(...joined.filter((gap) => zoneId > lastZone || gap.from > lastFrom));
    }
    const names = readNames();
    return {
      ...toPage(gaps, limit, toGap, (gap) => cursors.sign(list, [from, to, gap.zoneId, gap.from])),
      from: toIso(from),
      to: toIso(to),
      zones: known.map(({ zoneId, firstHour }) => ({
        zoneId,
        name: names[zoneId]?.name ?? null,
        firstHour: toIso(firstHour),
      })),
    };
  },
});

type ZoneGap = JoinedGap & { readonly zoneId: number };

function toGap({ from, to, reasons, ...gap }: ZoneGap): Gap {
  return { ...gap, from: toIso(from), to: toIso(to), reasons: [...reasons] };
}

function describe(
  { items, zones, ...span }: z.infer<typeof Answer>,
  { input }: { readonly input: { readonly zone?: string | undefined } },
): string {
  if (zones.length === 0) return describeNothing(input.zone);
  const gapsOf = Map.groupBy(items, ({ zoneId }) => zoneId);
  return zones
    .map(({ zoneId, name, firstHour }) => {
      const from = firstHour > span.from ? firstHour : span.from;
      const range = `from ${showTime(from)} to ${showTime(span.to)} UTC`;
      const gaps = gapsOf.get(zoneId) ?? [];
      if (gaps.length === 0) return `${nameZone(zoneId, name)}: no gap ${range}.\n`;
      const hours = gaps.reduce((sum, gap) => sum + gap.hours, 0);
      const head = `${nameZone(zoneId, name)}: ${many(gaps.length, "gap")}, ${many(hours, "hour")}, ${range}\n`;
      return head + gaps.map(describeGap).join("");
    })
    .join("");
}

function describeGap({ from, to, hours, storedCount, upstreamCount, reasons }: Gap): string {
  const counted =
    upstreamCount === null
      ? "the platform was never asked"
      : `the platform last counted ${formatWhole(upstreamCount)}`;
  const more = reasons.length - MAX_REASONS;
  return [
    `  ${showTime(from)} to ${showTime(to)} UTC   ${many(hours, "hour")}, ${many(storedCount, "event")} stored, ${counted}\n`,
    ...reasons.slice(0, MAX_REASONS).map((reason) => `    ${shortenText(reason, MAX_REASON_CHARS)}\n`),
    ...(more > 0 ? [`    and ${more} more reasons\n`] : []),
  ].join("");
}
