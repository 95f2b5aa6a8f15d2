/** The overview of the service. */
import { z } from "zod";
import { Alert, readAlertView, toAlert } from "#alerts/operations/alert.ts";
import { ruleTitle } from "#alerts/rules/alert-spike.ts";
import { listAlerts } from "#db/alerts/alert-reports.ts";
import type { Queryable } from "#db/client.ts";
import { readNewestAdvice } from "#db/detection/rule-history.ts";
import { type RuleRow, readActivity, readRuleSparklines, readRules } from "#db/detection/rules.ts";
import { bucketEnd, bucketStart } from "#detection/rules/detection-settings.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { keyOf } from "#model/fingerprint.ts";
import { horizonAt, startOfHour } from "#model/horizon.ts";
import { type BucketWidth, HOUR_STATUSES, UNRESOLVED_STATES } from "#model/kinds.ts";
import { IsoTime, ListZones, Name, Text, Time, toIso } from "#operations/fields.ts";
import { defineQuery, type QueryContext } from "#operations/operation.ts";
import { pickZones } from "#operations/require-known.ts";
import { checkSpan } from "#operations/span.ts";
import { readZones } from "#proof/coverage/read-zones.ts";
import type { AssessedHour } from "#proof/rules/hour-status.ts";
import { readAccounts } from "./accounts.ts";
import { readAttention } from "./attention.ts";
import { describeZones, readVisibleZones, Zone } from "./zones.ts";

/** The state of one hour of a zone. */
export const HourItem = z.object({
  startsAtMs: z.number().int(),
  state: z.enum(HOUR_STATUSES),
  stored: z.number(),
});

export function toHourItem({ startsAt, status, storedCount }: AssessedHour): z.infer<typeof HourItem> {
  return { startsAtMs: startsAt, state: status, stored: storedCount };
}

const MAX_DAYS = 400;
const MAX_POINTS = 200;
const SPARKLINE_POINTS = 24;
const MAX_ZONES = 100;
const MAX_ALERTS = 200;
const RULES_READ = 100;
const RULES_SHOWN = 10;

const Overview = z
  .object({
    now: IsoTime,
    from: IsoTime,
    to: IsoTime,
    stepSeconds: z.number().int().describe("Width of the points of all zones."),
    zones: z
      .array(
        Zone.extend({
          points: z
            .array(
              z.object({
                startsAtMs: z.number().int(),
                blocked: z.number(),
                challenged: z.number(),
                logged: z.number(),
                other: z.number(),
              }),
            )
            .describe("Events by action. Steps without events are left out."),
          hours: z.array(HourItem).describe("The last 72 hours, oldest first."),
        }),
      )
      .describe(`The first ${MAX_ZONES} zones.`),
    alerts: z
      .array(Alert)
      .describe(
        "Unresolved alerts and those that fired in the span, at most 200: firing alerts first, each state by severity, and the newest of one severity first.",
      ),
    rules: z
      .array(
        z.object({
          zoneId: z.number().int(),
          ruleId: Name,
          title: Name.nullable(),
          total: z.number(),
          perMinute: z.number(),
          usualPerMinute: z
            .number()
            .nullable()
            .describe("From the 28 days before; null if those days were not watched."),
          sparkline: z
            .array(z.number())
            .describe(
              `Events in at most ${SPARKLINE_POINTS} parts of the span. The last part may be shorter.`,
            ),
          openSpikeId: z.number().int().nullable(),
          advice: z
            .object({ askedAt: IsoTime, text: Text.describe("Text of the platform's AI. Escape it.") })
            .nullable(),
        }),
      )
      .describe("The rules whose count is furthest above the usual one, at most ten."),
    attention: z
      .array(z.object({ kind: Name, zoneId: z.number().int().nullable(), text: Text }))
      .describe("What a person should look at, the most urgent first."),
    requestBudget: z
      .object({ tokens: z.number(), ratePerSecond: z.number(), isPaused: z.boolean() })
      .nullable()
      .describe(
        "Requests to the platform that are left now, of all accounts together. Null if the key is for some zones only, or before the first request.",
      ),
  })
  .meta({ id: "Overview" });

export const showOverview = defineQuery({
  name: "overview.show",
  summary: "Show what the console's overview shows",
  description:
    "Events by action, coverage of the last 72 hours, alerts, the rules that changed most, and what needs attention.",
  http: ["GET", "/api/v1/overview"],
  tag: "Service",
  scope: "read",
  refuses: [422],
  input: z.strictObject({
    zone: ListZones,
    from: Time.optional().describe("Default: one day before `to`."),
    to: Time.optional().describe("Default: now."),
  }),
  output: Overview,
  run: async (asked, { zone, to = asked.now, from = to - DAY_MS }) => {
    const zoneIds = await pickZones(asked, zone);
    checkSpan(from, to, { max: MAX_DAYS, widthMs: DAY_MS, what: "days" });
    return readOverview(asked, { from, to, zoneIds });
  },
});

async function readOverview(
  asked: QueryContext,
  { from, to, zoneIds }: { from: number; to: number; zoneIds: readonly number[] | null },
): Promise<OverviewAnswer> {
  const { db, now, caller, zones: readNames } = asked;
  // A key of some zones sees nothing of the service as a whole.
  const isWhole = caller.zoneIds === null;
  const { width, stepMs } = pickStep(to - from);
  const span = { width, fromMs: bucketStart(from, width), toMs: bucketEnd(to - 1, width) };
  const seen = (await readVisibleZones(db, zoneIds)).slice(0, MAX_ZONES);
  const recent = { from: startOfHour(horizonAt(now)), to: now + HOUR_MS, hasEvidence: false };
  const [activity, coverage, accounts, described, alerts, rules, view] = await Promise.all([
    readActivity(db, { zoneIds, stepMs, ...span }),
    Promise.all(seen.map(({ zoneId }) => readZones(db, now, { zoneId, ...recent }))),
    isWhole ? readAccounts(asked) : [],
    describeZones(db, seen, { now, names: readNames() }),
    readAlerts(db, zoneIds, span),
    readTopRules(db, zoneIds, span),
    readAlertView(db, now),
  ]);
  const points = Map.groupBy(activity, (one) => one.zoneId);
  const zones = coverage.flat();
  const hours = new Map(zones.map((one) => [one.zoneId, one.hours]));
  const attention = await readAttention(asked, seen, zoneIds);
  return {
    now: toIso(now),
    from: toIso(span.fromMs),
    to: toIso(span.toMs),
    stepSeconds: stepMs / 1_000,
    zones: described.map((one) => ({
      ...one,
      points: (points.get(one.id) ?? []).map(({ zoneId: _zoneId, startsAt, ...counts }) => ({
        startsAtMs: startsAt,
        ...counts,
      })),
      hours: (hours.get(one.id) ?? []).map(toHourItem),
    })),
    alerts: alerts.map((row) => toAlert(row, view)),
    rules,
    attention: attention.map(({ kind, zoneId, text }) => ({ kind, zoneId, text })),
    requestBudget: sumBudgets(accounts),
  };
}

function sumBudgets(
  accounts: Awaited<ReturnType<typeof readAccounts>>,
): z.infer<typeof Overview>["requestBudget"] {
  const known = accounts.flatMap(({ tokens, ...one }) => (tokens === null ? [] : [{ tokens, ...one }]));
  if (known.length === 0) return null;
  return {
    tokens: known.reduce((sum, { tokens }) => sum + tokens, 0),
    ratePerSecond: accounts.reduce((sum, { ratePerSecond }) => sum + ratePerSecond, 0),
    isPaused: known.every(({ isPaused }) => isPaused),
  };
}

export type OverviewAnswer = z.infer<typeof Overview>;

interface CountedSpan {
  readonly width: BucketWidth;
  readonly fromMs: number;
  readonly toMs: number;
}

/** Returns the width and step of at most 200 points. Finer buckets are kept for a shorter time. */
function pickStep(spanMs: number): { width: BucketWidth; stepMs: number } {
  const width = spanMs <= 2 * DAY_MS ? 60 : spanMs <= 60 * DAY_MS ? 3_600 : 86_400;
  const widthMs = width * 1_000;
  return { width, stepMs: Math.ceil(spanMs / MAX_POINTS / widthMs) * widthMs };
}

async function readAlerts(db: Queryable, zoneIds: readonly number[] | null, { fromMs, toMs }: CountedSpan) {
  const [unresolved, fired] = await Promise.all([
    listAlerts(db, {
      states: UNRESOLVED_STATES,
      zoneIds,
      sort: "worst",
      limit: MAX_ALERTS,
    }),
    listAlerts(db, { zoneIds, sinceMs: fromMs, untilMs: toMs, limit: MAX_ALERTS }),
  ]);
  const rows = new Map([...fired, ...unresolved].map((row) => [row.id, row]));
  return [...rows.values()].sort((a, b) => a.urgency - b.urgency || b.id - a.id).slice(0, MAX_ALERTS);
}

async function readTopRules(
  db: Queryable,
  zoneIds: readonly number[] | null,
  span: CountedSpan,
): Promise<z.infer<typeof Overview>["rules"]> {
  const minutes = (span.toMs - span.fromMs) / 60_000;
  const read = await readRules(db, { zoneIds, ...span, sort: "total", after: null, limit: RULES_READ });
  const change = ({ total, usual }: RuleRow) => total - (usual ?? 0);
  const rows = read.sort((a, b) => change(b) - change(a)).slice(0, RULES_SHOWN);
  const [lines, newest] = await Promise.all([
    readRuleSparklines(db, rows, { ...span, points: SPARKLINE_POINTS }),
    readNewestAdvice(db, rows),
  ]);
  const advice = new Map(newest.map((given) => [keyOf(given), given]));
  return rows.map((row) => {
    const { zoneId, ruleId, total, usual, openSpikeId } = row;
    const given = advice.get(keyOf(row));
    return {
      zoneId,
      ruleId,
      title: ruleTitle(ruleId),
      total,
      perMinute: total / minutes,
      usualPerMinute: usual === null ? null : usual / minutes,
      sparkline: lines.get(keyOf(row)) ?? [],
      openSpikeId,
      advice: given === undefined ? null : { askedAt: toIso(given.askedAt), text: given.text },
    };
  });
}
