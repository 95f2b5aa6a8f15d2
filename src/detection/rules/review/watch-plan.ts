/** Judges whether a zone follows a saved plan, and whether its rules block more visitors than the plan said. */
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import type { PlanHit, PlanWatch, SavedReview } from "#model/review.ts";
import { didMostly } from "./plan-review.ts";

/** The newest actions of a rule. Times are epoch ms. */
export interface RuleSeen {
  readonly rule: string;
  /** Its newest events that show what it does, and whether it stopped them. An event that another rule may have stopped shows nothing. */
  readonly newest: readonly (readonly [at: number, isStopped: boolean])[];
  /** When a request that it matches was last stopped, by whatever rule; null if none was. */
  readonly stoppedAt: number | null;
  /** The first and the last time at which it stopped a visitor, of each visitor and hour. */
  readonly visits: readonly (readonly [first: number, last: number])[];
}

/** Visits are counted over this time. */
const WINDOW_MS = DAY_MS;
/** In the first hours after the switch, the estimate is of half a day: a rush hour has more visitors than the average. */
const LEAST_SHARE = 0.5;
/** A person who tries again and again for an hour or two raises no alert. */
const FEWEST_VISITS = 3;
/** An estimate is left by chance this seldom. A zone with 100 rules has some 200,000 independent looks a year. */
const CHANCE = 1e-6;
/** A hit ends without a visitor for so long. */
const QUIET_MS = 6 * HOUR_MS;
/** The events that hits need are not older. */
export const MOST_WATCHED_MS = 7 * DAY_MS;

/** Returns the time from which a plan needs the events of its rules. */
export function watchedFrom(watch: PlanWatch | null, now: number): number {
  const open = (watch?.hits ?? []).filter(({ endedAt }) => endedAt === null);
  return Math.max(now - MOST_WATCHED_MS, Math.min(now - WINDOW_MS, ...open.map(({ since }) => since)));
}

/** Returns what is known of a plan after these rules were seen. `isNewest`: no newer plan of the zone is followed. */
export function watchPlan(
  { plan, savedAt, before }: { plan: SavedReview; savedAt: number; before: PlanWatch | null },
  seen: readonly RuleSeen[],
  { now, isNewest }: { now: number; isNewest: boolean },
): PlanWatch {
  const byRule = new Map(seen.map((one) => [one.rule, one]));
  const rules = [...plan.block, ...plan.log].flatMap((rule) => {
    const known = before?.rules.find((one) => one.rule === rule);
    const isToBlock = plan.block.includes(rule);
    const { newest = [], stoppedAt = null } = byRule.get(rule) ?? {};
    const own = newest.filter(([at]) => at > savedAt);
    // Rules that match nothing alone count as they are planned, if their requests are stopped. One that drifted must show more.
    const isHelped = isToBlock && own.length === 0 && (stoppedAt ?? 0) > savedAt;
    const blocks = readMode(own) ?? (isHelped && known?.hasAgreed !== true ? true : known?.blocks);
    if (blocks === undefined) return [];
    const since = known?.blocks === blocks ? known.since : now;
    const hasAgreed = known?.hasAgreed === true || blocks === isToBlock;
    return [{ rule, blocks, since, hasAgreed }];
  });
  const toBlock = rules.filter(({ rule }) => plan.block.includes(rule));
  const isFollowed = toBlock.length > 0 && toBlock.every(({ blocks }) => blocks);
  const followedSince = isNewest ? (before?.followedSince ?? (isFollowed ? now : null)) : null;
  const blocking = new Set(toBlock.flatMap(({ rule, blocks }) => (blocks ? [rule] : [])));
  const kept = (before?.hits ?? []).filter(({ endedAt }) => endedAt === null || now - endedAt < DAY_MS);
  const hits = kept.map((hit): PlanHit => {
    if (hit.endedAt !== null) return hit;
    const lasts = visitsSince(byRule.get(hit.rule), hit.since).map(([, last]) => last);
    const lastAt = Math.max(hit.lastAt, ...lasts);
    const isOver = followedSince === null || !blocking.has(hit.rule) || now - lastAt >= QUIET_MS;
    return { ...hit, lastAt, visits: Math.max(hit.visits, lasts.length), endedAt: isOver ? now : null };
  });
  const isOpen = (rule: string) => hits.some((hit) => hit.rule === rule && hit.endedAt === null);
  for (const rule of followedSince === null ? [] : [...blocking].filter((one) => !isOpen(one))) {
    // Visits that an alert has reported do not count for the next alert.
    const ended = hits.flatMap((hit) => (hit.rule === rule ? [hit.endedAt ?? now] : []));
    const from = Math.max(now - WINDOW_MS, followedSince ?? now, ...ended);
    const visits = visitsSince(byRule.get(rule), from);
    const since = Math.min(...visits.map(([first]) => Math.max(first, from)));
    const lastAt = Math.max(...visits.map(([, last]) => last));
    if (visits.length >= FEWEST_VISITS && !isWithin(visits.length, expectVisitors(plan, rule, now - from)))
      hits.push({ rule, visits: visits.length, since, lastAt, endedAt: null });
  }
  return { at: now, followedSince, rules, hits };
}

function visitsSince(seen: RuleSeen | undefined, from: number): RuleSeen["visits"] {
  return (seen?.visits ?? []).filter(([, last]) => last >= from);
}

/** Returns whether a rule blocks; null if its events differ. Between, it does what it did before. */
function readMode(newest: RuleSeen["newest"]): boolean | null {
  return didMostly(newest.filter(([, isStopped]) => isStopped).length, newest.length);
}

/** Returns the most visitors that a plan lets expect of a rule. Its worst day counts as a usual one, since days differ by more than chance. */
function expectVisitors({ promised, judged }: SavedReview, rule: string, durationMs: number): number {
  const { visitors = 0, worst = 0 } = promised.find((one) => one.rule === rule) ?? {};
  const perDay = Math.max((visitors + 1) / Math.max(1, judged.days), worst);
  return perDay * Math.max(LEAST_SHARE, durationMs / DAY_MS);
}

/** Returns whether a Poisson count with this mean reaches `count` more often than by the chance of a false alert. */
function isWithin(count: number, mean: number): boolean {
  let [term, below] = [Math.exp(-mean), 0];
  for (let n = 0; n < count; n += 1) {
    below += term;
    term *= mean / (n + 1);
  }
  return 1 - below > CHANCE;
}
