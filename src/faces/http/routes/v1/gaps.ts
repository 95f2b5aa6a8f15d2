import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { listKnownZones } from "#db/coverage/coverage-report.ts";
import { DAY_MS } from "#lib/units.ts";
import { IsoTime, pageOf, pageQuery, Time, toIso, toPage, visibleZones, ZoneId } from "#operations/fields.ts";
import { readZones } from "#operations/read-zones.ts";
import { checkSpan } from "#operations/span.ts";
import { type Gap, joinGaps } from "#stages/coverage/join-gaps.ts";
import type { ApiDeps } from "./api-deps.ts";

const MAX_DAYS = 800;
/** The default retention, the longest of all data. */
const DEFAULT_DAYS = 400;

const Query = z.strictObject({
  zone: ZoneId.optional(),
  from: Time.optional().describe(`Default: ${DEFAULT_DAYS} days before \`to\`.`),
  to: Time.optional().describe("Default: now."),
  ...pageQuery({ fallback: 50, most: 500 }),
});

const GapItem = z
  .object({
    zoneId: z.number().int(),
    from: IsoTime,
    to: IsoTime,
    hours: z.number().int(),
    storedCount: z.number().int().describe("Events of the gap that are stored. They are kept."),
    upstreamCount: z.number().int().nullable(),
    reasons: z.array(z.string()),
  })
  .meta({ id: "Gap" });

type ZoneGap = Gap & { readonly zoneId: number };

/** `GET /api/v1/gaps`: the hours that are gaps, and why. */
export function addGaps(app: FastifyInstance, { archive, clock, cursors }: ApiDeps): void {
  app.withTypeProvider<ZodTypeProvider>().get(
    "/api/v1/gaps",
    {
      config: { access: { scope: "read" }, refuses: [422], heavy: "read" },
      schema: {
        tags: ["Coverage"],
        summary: "List gaps by zone and time, with their reasons",
        querystring: Query,
        response: { 200: pageOf(GapItem) },
      },
    },
    async ({ query: { zone, limit, after, ...asked }, caller }) => {
      const now = clock();
      const list = `gaps:${JSON.stringify([zone, asked.from, asked.to])}`;
      const position = cursors.readAfter(list, after);
      // Later pages use the time range of the first page: a gap that the range cuts would begin elsewhere.
      const to = position === null ? (asked.to ?? now) : Number(position[1]);
      const from =
        position === null ? (asked.from ?? Math.max(0, to - DEFAULT_DAYS * DAY_MS)) : Number(position[0]);
      checkSpan(from, to, { max: MAX_DAYS, widthMs: DAY_MS, what: "days" });
      const [lastZone, lastFrom] = [Number(position?.[2] ?? 0), Number(position?.[3] ?? 0)];
      const zoneIds = visibleZones(caller, zone);
      const gaps: ZoneGap[] = [];
      for (const { zoneId } of await listKnownZones(archive)) {
        const isAsked = zoneId >= lastZone && (zoneIds === null || zoneIds.includes(zoneId));
        if (!isAsked || gaps.length > limit) continue;
        const [known] = await readZones(archive, now, { zoneId, from, to, hasEvidence: false });
        const found = joinGaps(known?.hours ?? []).map((gap) => ({ ...gap, zoneId }));
        gaps.push(...found.filter((gap) => zoneId > lastZone || gap.from > lastFrom));
      }
      const sign = (gap: ZoneGap) => cursors.sign(list, [from, to, gap.zoneId, gap.from]);
      return toPage(gaps, limit, toGap, sign);
    },
  );
}

export function toGap({ from, to, reasons, ...gap }: ZoneGap): z.infer<typeof GapItem> {
  return { ...gap, from: toIso(from), to: toIso(to), reasons: [...reasons] };
}
