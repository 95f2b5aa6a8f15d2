/** Conditions of zones: hours that are lost or may be lost, answers of the platform that cannot be right, and plans that block visitors. */
import type { Queryable } from "#db/client.ts";
import { listReviewPlans, type ReviewPlanRow } from "#db/detection/exclusions.ts";
import { readGapBatches, readUndecided } from "#db/proof/coverage-report.ts";
import { readSuspicions, readZoneHealth, type ZoneHealth } from "#db/proof/platform-health.ts";
import { readReopenedHours } from "#db/proof/reopen-hours.ts";
import { formatDecimal, formatDuration, formatHours, many, showTime } from "#lib/format.ts";
import { toLine } from "#lib/text.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { BELIEVED_MS, KEPT_MS } from "#model/horizon.ts";
import type { PlanHit } from "#model/review.ts";
import { hoursToLoss } from "#proof/rules/hour-status.ts";
import { UNPREVENTABLE } from "#proof/rules/judge-hour.ts";
import { byZone, defineCondition, type Examined, type Scope, see, toStep } from "./condition.ts";

/** The service checks every zone once a minute. A zone that it has not checked for so long is not its zone any more. */
export const WATCHED_MS = 5 * MINUTE_MS;

export function isWatched({ checkedAt }: Pick<ZoneHealth, "checkedAt">, nowMs: number): boolean {
  return checkedAt !== null && nowMs - checkedAt <= WATCHED_MS;
}

/** An outage that continues keeps its alert open, and its first gaps count for as long. */
const LOST_DAYS = 120;

function readLost(db: Queryable, zoneIds: readonly number[], nowMs: number) {
  return readGapBatches(db, zoneIds, { sinceMs: nowMs - LOST_DAYS * DAY_MS, exceptReasons: UNPREVENTABLE });
}

async function readTrouble({ once }: Scope) {
  const health = new Map((await once(readZoneHealth)).map((zone) => [zone.zoneId, zone]));
  const gaps = Map.groupBy(await once(readLost), ({ zoneId }) => zoneId);
  return (await once(readUndecided)).flatMap((zone) => {
    const own = health.get(zone.zoneId);
    return own === undefined ? [] : [{ ...zone, gaps: gaps.get(zone.zoneId) ?? [], health: own }];
  });
}
type Trouble = Awaited<ReturnType<typeof readTrouble>>[number];

/** The outage that caused the gaps is over if no new gap has come for this long. */
const SETTLED_MS = HOUR_MS;
/** Gaps that no alert has reported are reported late, up to this age. */
const LATE_GAPS_MS = 24 * HOUR_MS;

/** Returns the gaps that the open alert is about, or that a new one would be about. */
function gapsOfAlert(
  { gaps }: Trouble,
  { alert, isOpen, nowMs }: Pick<Examined, "alert" | "isOpen" | "nowMs">,
) {
  // Gaps of the hour before a resolve were not stored when it was decided.
  const reportedUntil =
    alert?.resolvedAt == null ? nowMs - LATE_GAPS_MS : alert.resolvedAt.getTime() - SETTLED_MS;
  const since = isOpen && alert !== null ? alert.firedAt.getTime() - 1 : reportedUntil;
  return gaps.filter(({ decidedAt }) => decidedAt > since);
}

function describeGaps(zoneId: number, gaps: Trouble["gaps"]): string {
  const hours = gaps.reduce((sum, batch) => sum + batch.hours, 0);
  const from = Math.min(...gaps.map((batch) => batch.from));
  const to = Math.max(...gaps.map((batch) => batch.to));
  const span = gaps.length === 0 ? "" : ` between ${showTime(from)} and ${showTime(to)} UTC`;
  return `Zone ${zoneId}: ${many(hours, "hour")}${span} can never be proven complete`;
}

/** One whole outage has one alert. People are shown its hours as long as the platform would still have them. */
const gap = defineCondition<Trouble>({
  name: "gap",
  of: "zone",
  fingerprint: "coverage.gap",
  severity: "critical",
  isShownEarly: true,
  read: readTrouble,
  find(zone, moment) {
    const reported = gapsOfAlert(zone, moment);
    const gaps = reported.length > 0 ? reported : zone.gaps.filter(({ to }) => to > moment.nowMs - KEPT_MS);
    const [first] = gaps;
    if (first === undefined) return null;
    return {
      since: first.decidedAt,
      headline: describeGaps(zone.zoneId, gaps),
      next: see(`gaps --zone ${zone.zoneId}`),
      graceMs: reported.length > 0 ? 0 : Number.POSITIVE_INFINITY,
      isOver: reported.every(({ decidedAt }) => decidedAt <= moment.nowMs - SETTLED_MS),
    };
  },
  recovered: (zone, moment) =>
    `${describeGaps(zone.zoneId, gapsOfAlert(zone, moment))}. No other hour has been lost since then`,
});

/** The first hours of a newly watched zone expire soon, whatever Longwatch does. */
const FIRST_COPY_MS = HOUR_MS;
const WARNING_HOURS = 24;
const ERROR_HOURS = 12;
/** seal-windows is about to declare expired undecided hours as gaps. An alert is raised only if it has not after this time. */
const OVERDUE_MS = 15 * MINUTE_MS;

const nearLoss = defineCondition<Trouble>({
  name: "near-loss",
  of: "zone",
  fingerprint: "coverage.loss",
  severity: "warning",
  isShownEarly: true,
  read: readTrouble,
  find(zone, { nowMs, isOpen }) {
    const { zoneId, oldest, gaps, health } = zone;
    const hoursLeft = hoursToLoss(oldest);
    if (oldest === null || hoursLeft === null || hoursLeft >= WARNING_HOURS) return null;
    if (!isOpen && isFirstCopy(zone, nowMs)) return null;
    const isGapReported = gaps.some(({ decidedAt }) => decidedAt > nowMs - SETTLED_MS);
    return {
      severity: hoursLeft < ERROR_HOURS ? "error" : "warning",
      since: nowMs,
      headline: `Zone ${zoneId}: in ${formatHours(hoursLeft)} the platform begins to forget an hour that is not proven complete`,
      next: see(`coverage --zone ${zoneId}`),
      graceMs: isGapReported || isDecidedSoon(oldest.leftMs, health, nowMs) ? Number.POSITIVE_INFINITY : 0,
    };
  },
  recovered: ({ zoneId }) => `Zone ${zoneId}: no hour is about to be lost any more`,
});

/** After a break, hours of before it are sealed. The first may be sealed a little before the watch is recorded. */
function isFirstCopy({ firstSealAt, health: { watchedSince } }: Trouble, nowMs: number): boolean {
  if (watchedSince === null || nowMs - watchedSince >= FIRST_COPY_MS) return false;
  return firstSealAt === null || firstSealAt >= watchedSince - HOUR_MS;
}

/** While the platform still shows a part of the hour, the hour stays undecided. Earlier alerts have warned of it. */
function isDecidedSoon(leftMs: number, health: ZoneHealth, nowMs: number): boolean {
  if (leftMs > 0) return false;
  const watchedSince = isWatched(health, nowMs) ? (health.watchedSince ?? nowMs) : nowMs;
  return nowMs - Math.max(nowMs + leftMs + HOUR_MS, watchedSince) < OVERDUE_MS;
}

const suspect = defineCondition<{ zoneId: number; rows: Awaited<ReturnType<typeof readSuspicions>> }>({
  name: "suspect",
  of: "zone",
  fingerprint: "coverage.suspect",
  severity: "error",
  // A route may be suspect for a moment.
  graceMs: 15 * MINUTE_MS,
  isShownEarly: true,
  read: async (scope) => byZone(scope, await scope.once(readSuspicions)),
  find({ zoneId, rows: [first] }) {
    if (first === undefined) return null;
    return {
      since: first.since,
      headline: `Zone ${zoneId}: the platform's answers cannot be right and have been held back since ${showTime(first.since)} UTC. ${first.reason}`,
      next: toStep("See docs/runbooks/the-platform-answers-incompletely.md and", `coverage --zone ${zoneId}`),
    };
  },
  recovered: ({ zoneId }) => `Zone ${zoneId}: the platform shows the known events again`,
});

const horizon = defineCondition<ZoneHealth>({
  name: "horizon",
  of: "zone",
  fingerprint: "coverage.horizon",
  severity: "error",
  graceMs: BELIEVED_MS,
  read: ({ once }) => once(readZoneHealth),
  find({ zoneId, horizon: { keptMs, since, beforeMs } }) {
    if (keptMs === null || since === null) return null;
    const until = showTime(since);
    const before = `${formatDuration(beforeMs ?? KEPT_MS)} until ${until} UTC`;
    return {
      since,
      headline: `Zone ${zoneId}: the platform now keeps events for ${formatDuration(keptMs)} (${before})`,
    };
  },
  recovered: ({ zoneId }) => `Zone ${zoneId}: the platform keeps events for ${formatDuration(KEPT_MS)} again`,
});

const reopened = defineCondition<{ zoneId: number; rows: Awaited<ReturnType<typeof readReopenedHours>> }>({
  name: "reopened",
  of: "zone",
  fingerprint: "coverage.reopened",
  severity: "warning",
  // A reopened hour is usually repaired and sealed again within one cycle.
  graceMs: HOUR_MS,
  read: async (scope) => byZone(scope, await scope.once(readReopenedHours)),
  find({ zoneId, rows }) {
    const [first] = rows;
    if (first === undefined) return null;
    const hours =
      rows.length === 1 ? "1 hour was reopened and is" : `${rows.length} hours were reopened and are`;
    return {
      since: Math.min(...rows.map(({ reopenedAt }) => reopenedAt)),
      headline: `Zone ${zoneId}: ${hours} not sealed again yet. The oldest begins at ${showTime(first.startsAt)} UTC. ${first.reason}`,
      next: see(`coverage --zone ${zoneId}`),
    };
  },
  recovered: ({ zoneId }) => `Zone ${zoneId}: every reopened hour is now sealed again or a gap`,
});

/** A rule of a saved plan blocks more visitors than the plan said. There is one alert for each rule. */
const planHit = defineCondition<{ zoneId: number; plan: ReviewPlanRow; hit: PlanHit }>({
  name: "plan-hit",
  of: "zone",
  severity: "error",
  async read({ db, zoneIds }) {
    const plans = await listReviewPlans(db, zoneIds, { withDeleted: true, onlyHit: true });
    return plans.flatMap((plan) => {
      // The newest hit of a rule comes last.
      const hits = new Map((plan.watch?.hits ?? []).map((hit) => [hit.rule, hit]));
      return [...hits.values()].map((hit) => ({
        zoneId: plan.zoneId,
        key: `${plan.id} ${hit.rule}`,
        plan,
        hit,
      }));
    });
  },
  find({ zoneId, plan: { name, plan }, hit: { rule, visits, since, endedAt } }) {
    if (endedAt !== null) return null;
    const planned = plan.promised.find((one) => one.rule === rule)?.visitors ?? 0;
    const perDay = formatDecimal(planned / Math.max(1, plan.judged.days));
    const samples = `review samples --zone ${zoneId} --rule ${toLine(rule, 60)}`;
    return {
      since,
      headline: `Zone ${zoneId}: rule ${toLine(rule, 60)} blocks ${many(visits, "visit")} since ${showTime(since)} UTC; the plan "${toLine(name, 80)}" said ${perDay} a day. Let the rule log again, or exclude it where it matches visitors: longwatch ${samples} shows where`,
      next: see(samples),
    };
  },
  recovered: ({ zoneId, hit }) =>
    `Zone ${zoneId}: rule ${toLine(hit.rule, 60)} blocks no more visitors than planned`,
});

export const COVERAGE_CONDITIONS = [suspect, nearLoss, gap, horizon, reopened, planHit];
