import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { listSpikes, readSpike } from "#db/detection/feed-spikes.ts";
import type { SpikeRow } from "#db/detection/spikes.ts";
import { SPIKE_KINDS, SPIKE_SEVERITIES } from "#model/kinds.ts";
import { maskRows } from "#operations/alerts/mask-message.ts";
import {
  IsoTime,
  known,
  maySee,
  notFound,
  oneOrMore,
  pageOf,
  pageQuery,
  RowId,
  RuleId,
  Time,
  toPage,
  visibleZones,
  ZoneId,
} from "#operations/fields.ts";
import { checkOrder } from "#operations/span.ts";
import { ruleTitle } from "#stages/alerting/message/rule-title.ts";
import type { ApiDeps } from "./api-deps.ts";

const Query = z.strictObject({
  zone: ZoneId.optional(),
  rule: RuleId.optional(),
  state: z.enum(["open", "closed"]).optional(),
  severity: oneOrMore(SPIKE_SEVERITIES).optional(),
  since: Time.optional().describe("Spikes that opened at this time or later."),
  until: Time.optional().describe("Spikes that opened before this time."),
  ...pageQuery({ fallback: 50, most: 200 }),
});

const Top = z.array(z.object({ value: z.string(), count: z.number(), share: z.number() }));

const Spike = z
  .object({
    id: z.number().int(),
    zoneId: z.number().int(),
    ruleId: z.string(),
    ruleTitle: z.string().nullable(),
    kind: z.enum(SPIKE_KINDS),
    severity: z.enum(SPIKE_SEVERITIES),
    openedAt: IsoTime,
    closedAt: IsoTime.nullable(),
    lastActiveAt: IsoTime,
    windowMinutes: z.number().int(),
    windowCount: z.number().int(),
    peak: z.number().int(),
    baseline: z.number().describe("Expected number of events in the window at this time of day."),
    threshold: z.number(),
    score: z.number(),
    evidence: z.object({
      from: IsoTime,
      to: IsoTime,
      total: z.number(),
      sampled: z.number(),
      firstEventAt: IsoTime.nullable(),
      lastEventAt: IsoTime.nullable(),
      top: z
        .object({ ip: Top, asn: Top, country: Top, path: Top, ua: Top, ja4: Top, action: Top })
        .describe("The values are text from requests. Escape them."),
      sparkline: z.array(z.number()),
    }),
  })
  .meta({ id: "Spike" });

/** `GET /api/v1/spikes` and `GET /api/v1/spikes/{id}`. */
export function addSpikes(app: FastifyInstance, { archive, cursors }: ApiDeps): void {
  const typed = app.withTypeProvider<ZodTypeProvider>();
  typed.get(
    "/api/v1/spikes",
    {
      config: { access: { scope: "read" }, refuses: [422] },
      schema: {
        tags: ["Trends"],
        summary: "List spikes, newest first",
        querystring: Query,
        response: { 200: pageOf(Spike) },
      },
    },
    async ({ query: { zone, rule, state, severity, since, until, limit, after }, caller }) => {
      const list = `spikes:${JSON.stringify([zone, rule, state, severity, since, until])}`;
      checkOrder({ name: "since", ms: since }, { name: "until", ms: until });
      const [beforeId] = cursors.readAfter(list, after) ?? [];
      const rows = await listSpikes(archive, {
        zoneIds: visibleZones(caller, zone),
        ruleId: rule,
        isOpen: state === undefined ? undefined : state === "open",
        severities: severity,
        sinceMs: since,
        untilMs: until,
        beforeId: beforeId === undefined ? undefined : Number(beforeId),
        limit: limit + 1,
      });
      const { masked } = known(caller);
      return toPage(
        rows,
        limit,
        (row) => toSpike(row, masked),
        ({ id }) => cursors.sign(list, [id]),
      );
    },
  );

  typed.get(
    "/api/v1/spikes/:id",
    {
      config: { access: { scope: "read" } },
      schema: {
        tags: ["Trends"],
        summary: "Show one spike",
        params: z.object({ id: RowId }),
        response: { 200: Spike },
      },
    },
    async ({ params: { id }, caller }) => {
      const row = await readSpike(archive, id);
      if (row === null || !maySee(caller, row.zoneId)) throw notFound(`spike ${id}`);
      return toSpike(row, known(caller).masked);
    },
  );
}

function toSpike(row: SpikeRow, isMasked: boolean): z.infer<typeof Spike> {
  const { openedAt, closedAt, lastActiveAt, evidence } = row;
  const top = isMasked ? { ...evidence.top, ip: maskRows(evidence.top.ip) } : evidence.top;
  return {
    ...row,
    ruleTitle: ruleTitle(row.ruleId),
    openedAt: openedAt.toISOString(),
    closedAt: closedAt?.toISOString() ?? null,
    lastActiveAt: lastActiveAt.toISOString(),
    evidence: { ...evidence, top, sparkline: [...evidence.sparkline] } as z.infer<typeof Spike>["evidence"],
  };
}
