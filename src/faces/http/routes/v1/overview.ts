import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { listAlerts } from "#db/alerting/alert-reports.ts";
import { readActivity, readRuleSparklines } from "#db/detection/activity.ts";
import { readNewestAdvice } from "#db/detection/rule-history.ts";
import { type RuleRow, readRules } from "#db/detection/rules.ts";
import { readBudget } from "#db/service/request-budgets.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { horizonAt, startOfHour } from "#model/horizon.ts";
import { ATTENTION_KINDS, type BucketWidth, HOUR_STATUSES, UNRESOLVED_STATES } from "#model/kinds.ts";
import { keyOf } from "#model/series-key.ts";
import type { Zones } from "#model/zones.ts";
import { Alert, readAlertView, toAlert } from "#operations/alerts/alert.ts";
import { IsoTime, known, Time, toIso, visibleZones, ZoneId } from "#operations/fields.ts";
import { maskOutput } from "#operations/masking.ts";
import { readZones } from "#operations/read-zones.ts";
import { readAttention } from "#operations/service/attention.ts";
import { HourItem, toHourItem } from "#operations/service/hour-item.ts";
import { describeZones, readVisibleZones, Zone } from "#operations/service/zones.ts";
import type { ServiceView } from "#operations/service-view.ts";
import { checkSpan } from "#operations/span.ts";
import { ruleTitle } from "#stages/alerting/message/rule-title.ts";
import { maskNullable, maskText } from "#stages/archive/mask/mask-text.ts";
import { bucketEnd, bucketStart } from "#stages/detection/bucket.ts";
import type { ApiDeps } from "./api-deps.ts";

const MAX_DAYS = 400;
const MAX_POINTS = 200;
const SPARKLINE_POINTS = 24;
const MAX_ZONES = 100;
const MAX_ALERTS = 200;
const RULES_READ = 100;
const RULES_SHOWN = 10;

export const Overview = z
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
          ruleId: z.string(),
          title: z.string().nullable(),
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
            .object({ askedAt: IsoTime, text: z.string().describe("Text of the platform's AI. Escape it.") })
            .nullable(),
        }),
      )
      .describe("The rules whose count is furthest above the usual one, at most ten."),
    attention: z
      .array(
        z.object({ kind: z.enum(ATTENTION_KINDS), zoneId: z.number().int().nullable(), text: z.string() }),
      )
      .describe("What a person should look at, the most urgent first."),
    requestBudget: z
      .object({ tokens: z.number(), ratePerSecond: z.number(), isPaused: z.boolean() })
      .nullable()
      .describe(
        "Requests to the platform that are left now. Null if the key is for some zones only, or before the first request.",
      ),
  })
  .meta({ id: "Overview" });

/** `GET /api/v1/overview`: the console's first page in one answer. */
export function addOverview(
  app: FastifyInstance,
  { archive, clock, zones: readNames, service }: ApiDeps,
): void {
  app.withTypeProvider<ZodTypeProvider>().get(
    "/api/v1/overview",
    {
      config: { access: { scope: "read" }, refuses: [422] },
      schema: {
        tags: ["Service"],
        summary: "Show what the console's overview shows",
        description:
          "Events by action, coverage of the last 72 hours, alerts, the rules that changed most, and what needs attention.",
        querystring: z.strictObject({
          zone: ZoneId.optional(),
          from: Time.optional().describe("Default: one day before `to`."),
          to: Time.optional().describe("Default: now."),
        }),
        response: { 200: Overview },
      },
    },
    async ({ query: { zone, ...asked }, caller }) => {
      const now = clock();
      const to = asked.to ?? now;
      const from = asked.from ?? to - DAY_MS;
      checkSpan(from, to, { max: MAX_DAYS, widthMs: DAY_MS, what: "days" });
      return readOverview(archive, {
        now,
        from,
        to,
        zoneIds: visibleZones(caller, zone),
        isWhole: known(caller).zoneIds === null,
        isMasked: known(caller).masked,
        names: readNames(),
        service,
      });
    },
  );
}

interface OverviewAsked {
  readonly now: number;
  readonly from: number;
  readonly to: number;
  /** Null is every zone. */
  readonly zoneIds: readonly number[] | null;
  /** Whether the caller may see what is of no single zone. */
  readonly isWhole: boolean;
  readonly isMasked: boolean;
  readonly names: Zones;
  readonly service: Pick<ServiceView, "requestBudget" | "pollEveryMs" | "configuredChannels">;
}

/** Returns the answer of GET /api/v1/overview. */
export async function readOverview(
  archive: ApiDeps["archive"],
  { now, from, to, zoneIds, isWhole, isMasked, names, service }: OverviewAsked,
): Promise<OverviewAnswer> {
  const { width, stepMs } = pickStep(to - from);
  const span = { width, fromMs: bucketStart(from, width), toMs: bucketEnd(to - 1, width) };
  const seen = (await readVisibleZones(archive, zoneIds)).slice(0, MAX_ZONES);
  const recent = { from: startOfHour(horizonAt(now)), to: now + HOUR_MS, hasEvidence: false };
  const [activity, coverage, budget, described, alerts, rules, view] = await Promise.all([
    readActivity(archive, { zoneIds, stepMs, ...span }),
    Promise.all(seen.map(({ zoneId }) => readZones(archive, now, { zoneId, ...recent }))),
    isWhole ? readBudget(archive, service.requestBudget) : null,
    describeZones(archive, seen, { now, names }),
    readAlerts(archive, zoneIds, span),
    readTopRules(archive, zoneIds, span, isMasked),
    readAlertView(archive, now),
  ]);
  const points = Map.groupBy(activity, (one) => one.zoneId);
  const zones = coverage.flat();
  const hours = new Map(zones.map((one) => [one.zoneId, one.hours]));
  const attention = await readAttention(archive, now, { zones, zoneIds, isWhole, service });
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
    alerts: alerts
      .map((row) => toAlert(row, view))
      .map((alert) => (isMasked ? (maskOutput(Alert, alert) as Alert) : alert)),
    rules,
    attention: attention.map(({ kind, zoneId, text }) => ({
      kind,
      zoneId,
      text: isMasked ? (maskNullable(text) ?? "") : text,
    })),
    requestBudget: budget === null ? null : { ...budget, ratePerSecond: service.requestBudget.ratePerSecond },
  };
}

export type OverviewAnswer = z.infer<typeof Overview>;

interface CountedSpan {
  readonly width: BucketWidth;
  readonly fromMs: number;
  readonly toMs: number;
}

/** At most 200 points, of the finest buckets that are still there for so long a time. */
function pickStep(spanMs: number): { width: BucketWidth; stepMs: number } {
  const width = spanMs <= 2 * DAY_MS ? 60 : spanMs <= 60 * DAY_MS ? 3_600 : 86_400;
  const widthMs = width * 1_000;
  return { width, stepMs: Math.ceil(spanMs / MAX_POINTS / widthMs) * widthMs };
}

async function readAlerts(
  archive: ApiDeps["archive"],
  zoneIds: readonly number[] | null,
  { fromMs, toMs }: CountedSpan,
) {
  const [unresolved, fired] = await Promise.all([
    listAlerts(archive, {
      states: UNRESOLVED_STATES,
      zoneIds,
      sort: "worst",
      limit: MAX_ALERTS,
    }),
    listAlerts(archive, { zoneIds, sinceMs: fromMs, untilMs: toMs, limit: MAX_ALERTS }),
  ]);
  const rows = new Map([...fired, ...unresolved].map((row) => [row.id, row]));
  return [...rows.values()].sort((a, b) => a.urgency - b.urgency || b.id - a.id).slice(0, MAX_ALERTS);
}

async function readTopRules(
  archive: ApiDeps["archive"],
  zoneIds: readonly number[] | null,
  span: CountedSpan,
  isMasked: boolean,
): Promise<z.infer<typeof Overview>["rules"]> {
  const minutes = (span.toMs - span.fromMs) / 60_000;
  const read = await readRules(archive, { zoneIds, ...span, sort: "total", after: null, limit: RULES_READ });
  const change = ({ total, usual }: RuleRow) => total - (usual ?? 0);
  const rows = read.sort((a, b) => change(b) - change(a)).slice(0, RULES_SHOWN);
  const [lines, newest] = await Promise.all([
    readRuleSparklines(archive, rows, { ...span, points: SPARKLINE_POINTS }),
    readNewestAdvice(archive, rows),
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
      advice:
        given === undefined
          ? null
          : { askedAt: toIso(given.askedAt), text: isMasked ? maskText(given.text) : given.text },
    };
  });
}
