import { z } from "zod";
import { ruleTitle } from "#alerts/rules/alert-spike.ts";
import { maskRows } from "#archive/rules/mask.ts";
import { readSpike, listSpikes as readSpikes } from "#db/detection/spike-evidence.ts";
import type { SpikeRow } from "#db/detection/spikes.ts";
import { formatNumber, formatShare, showTime } from "#lib/format.ts";
import { toLine } from "#lib/text.ts";
import { SPIKE_KINDS, SPIKE_SEVERITIES } from "#model/kinds.ts";
import {
  IsoTime,
  ListZones,
  maySee,
  Name,
  notFound,
  oneOrMore,
  pageOf,
  pageQuery,
  RowId,
  RuleId,
  Time,
  toPage,
  visibleZones,
} from "#operations/fields.ts";
import { defineQuery } from "#operations/operation.ts";
import { checkOrder } from "#operations/span.ts";

const TOP_SHOWN = 3;

/** Values of events without an address; a version such as `121.0.0.0` of a user agent is none. */
const Top = z.array(z.object({ value: Name, count: z.number(), share: z.number() }));

const Spike = z
  .object({
    id: z.number().int(),
    zoneId: z.number().int(),
    ruleId: Name,
    ruleTitle: Name.nullable(),
    kind: z.enum(SPIKE_KINDS),
    severity: z.enum(SPIKE_SEVERITIES),
    openedAt: IsoTime,
    closedAt: IsoTime.nullable(),
    lastActiveAt: IsoTime,
    isLate: z
      .boolean()
      .describe("Found in events that were copied after the fact. Such a spike has no alert of its own."),
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
        .object({
          ip: Top.meta({ masked: maskRows }),
          asn: Top,
          country: Top,
          path: Top,
          ua: Top,
          ja4: Top,
          action: Top,
        })
        .describe("The values are text from requests. Escape them."),
      sparkline: z.array(z.number()),
    }),
  })
  .meta({ id: "Spike" });
type Spike = z.infer<typeof Spike>;

const listSpikes = defineQuery({
  name: "spikes.list",
  summary: "List spikes, newest first",
  http: ["GET", "/api/v1/spikes"],
  tag: "Trends",
  scope: "read",
  refuses: [422],
  input: z.strictObject({
    zone: ListZones,
    rule: RuleId.optional(),
    state: z.enum(["open", "closed"]).optional(),
    severity: oneOrMore(SPIKE_SEVERITIES).optional(),
    late: z
      .enum(["true", "false"])
      .default("false")
      .meta({ isSwitch: true })
      .describe("Only spikes that were found in events that came late."),
    since: Time.optional().describe("Spikes that opened at this time or later."),
    until: Time.optional().describe("Spikes that opened before this time."),
    ...pageQuery({ fallback: 50, most: 200 }),
  }),
  output: pageOf(Spike),
  command: {
    examples: [
      "spikes list",
      "spikes list --state open --severity error,critical",
      "spikes list --late --since -7d",
    ],
    help: "EVENTS are those of the window in which the spike was found, USUAL the expected number of that window.",
    limit: 50,
    columns: [
      { head: "SPIKE", get: ({ id }) => `#${id}` },
      { head: "ZONE", get: ({ zoneId }) => String(zoneId) },
      { head: "RULE", get: ({ ruleId, kind }) => (ruleId === "" ? kind : toLine(ruleId, 100)) },
      { head: "SEVERITY", get: ({ severity }) => severity },
      { head: "OPENED (UTC)", get: ({ openedAt }) => showTime(openedAt) },
      {
        head: "CLOSED (UTC)",
        get: ({ closedAt: at }) => (at === null ? { text: "open", style: "red" } : showTime(at)),
      },
      { head: "EVENTS", get: ({ windowCount }) => formatNumber(windowCount) },
      { head: "USUAL", get: ({ baseline }) => formatNumber(baseline) },
      { head: "PEAK", get: ({ peak }) => formatNumber(peak) },
      { head: "TITLE", get: ({ ruleTitle: title }) => (title === null ? "-" : toLine(title, 60)) },
    ],
    empty: "No spike matches.",
  },
  run: async ({ db, cursors, caller }, { zone, rule, state, severity, late, since, until, limit, after }) => {
    const list = `spikes:${JSON.stringify([zone, rule, state, severity, late, since, until])}`;
    checkOrder({ name: "since", ms: since }, { name: "until", ms: until });
    const [beforeId] = cursors.readAfter(list, after) ?? [];
    const rows = await readSpikes(db, {
      zoneIds: visibleZones(caller, zone),
      ruleId: rule,
      isOpen: state === undefined ? undefined : state === "open",
      severities: severity,
      isLate: late === "true" ? true : undefined,
      sinceMs: since,
      untilMs: until,
      beforeId: beforeId === undefined ? undefined : Number(beforeId),
      limit: limit + 1,
    });
    return toPage(rows, limit, toSpike, ({ id }) => cursors.sign(list, [id]));
  },
});

const showSpike = defineQuery({
  name: "spikes.show",
  summary: "Show one spike",
  http: ["GET", "/api/v1/spikes/:id"],
  tag: "Trends",
  scope: "read",
  input: z.strictObject({ id: RowId.describe("The number of the spike.") }),
  output: Spike,
  command: {
    examples: ["spikes show 17", "spikes show 17 --json"],
    say: describeSpike,
  },
  run: async ({ db, caller }, { id }) => {
    const row = await readSpike(db, id);
    if (row === null || !maySee(caller, row.zoneId)) throw notFound(`spike ${id}`);
    return toSpike(row);
  },
});

export const spikeOperations = [listSpikes, showSpike];

function toSpike(row: SpikeRow): Spike {
  const { openedAt, closedAt, lastActiveAt, evidence } = row;
  return {
    ...row,
    ruleTitle: ruleTitle(row.ruleId),
    openedAt: openedAt.toISOString(),
    closedAt: closedAt?.toISOString() ?? null,
    lastActiveAt: lastActiveAt.toISOString(),
    evidence: { ...evidence, sparkline: [...evidence.sparkline] } as Spike["evidence"],
  };
}

function describeSpike(spike: Spike): string {
  const { id, zoneId, ruleId, ruleTitle: title, kind, severity, openedAt, closedAt, evidence } = spike;
  const subject = ruleId === "" ? kind : `rule ${toLine(ruleId, 100)}`;
  const found = `${formatNumber(spike.windowCount)} events in ${spike.windowMinutes} minutes, usual ${formatNumber(spike.baseline)}, threshold ${formatNumber(spike.threshold)}`;
  const tops = Object.entries(evidence.top).flatMap(([name, rows]) => {
    const shown = rows
      .slice(0, TOP_SHOWN)
      .map(({ value, share }) => `${toLine(value, 80)} ${formatShare(share)}`);
    return shown.length === 0 ? [] : [`  ${name}: ${shown.join(", ")}`];
  });
  return [
    `Spike #${id}: ${severity}, zone ${zoneId}, ${subject}${title === null ? "" : `, ${toLine(title, 100)}`}`,
    `Opened ${showTime(openedAt)} UTC, ${closedAt === null ? "still open" : `closed ${showTime(closedAt)} UTC`}`,
    `Found by ${found}. Peak ${formatNumber(spike.peak)}, score ${formatNumber(spike.score)}.`,
    ...(tops.length === 0 ? [] : [`Of ${formatNumber(evidence.sampled)} sampled events:`, ...tops]),
    "",
  ].join("\n");
}
