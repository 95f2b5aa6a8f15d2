/** The requests of a zone by whose they are, and the counts of those that a choice of blocking rules would have stopped. */
import { formatWhole, many } from "#lib/format.ts";
import { REQUEST_CLASSES, type RequestClass, type ReviewPlan } from "./kinds.ts";

/** A statement of an incident, a spike or a person about the requests with a value in a span. The key is hostile text. */
export interface RequestFinding {
  readonly kind: "ip" | "asn" | "ja4" | "ua" | "path" | "rule";
  readonly key: string;
  /** Epoch ms; both ends belong to it. */
  readonly from: number;
  readonly to: number;
  readonly says: Exclude<RequestClass, "unknown">;
}

/**
 * Requests of the same day, class, rules and path: the numbers of the day (since the epoch), of the class, 1 if they were stopped, of the set of
 * rules in `sets`, of the path in `paths` (-1: any other), and how many they are.
 */
export type ReviewRow = readonly [
  day: number,
  of: number,
  isStopped: 0 | 1,
  set: number,
  path: number,
  count: number,
];

/** The requests of a zone, counted by everything that a choice depends on. */
export interface ReviewTable {
  /** Ids of rules. Those that only add others up are left out. */
  readonly rules: readonly string[];
  /** Templates of paths on which visitors were. Hostile text. */
  readonly paths: readonly string[];
  /** Sets of rules that matched the same request, by their numbers. */
  readonly sets: readonly (readonly number[])[];
  readonly rows: readonly ReviewRow[];
}

/** A rule is not to block on a path. */
export interface ReviewExclusion {
  readonly rule: string;
  readonly path: string;
}

/** The rules that are to block. All others log. */
export interface ReviewChoice {
  readonly block: readonly string[];
  readonly exclusions: readonly ReviewExclusion[];
}

export interface ReviewTotals {
  readonly days: number;
  /** Requests of each class: all, those that the choice stops, and those that were stopped. */
  readonly classes: Readonly<
    Record<RequestClass, { readonly all: number; readonly stops: number; readonly stopped: number }>
  >;
  /** The most requests of visitors and unknown senders that the choice stops on a day. */
  readonly worstDay: number;
  /** Where it stops the most requests of visitors; null if it stops none. The path is empty if it is one of many. */
  readonly worstPlace: { readonly rule: string; readonly path: string; readonly count: number } | null;
}

/** A choice that a person saved, with what it promised on the days that it was judged by. */
export interface SavedReview extends ReviewChoice {
  /** The rules that could have been planned to block, and are to log. */
  readonly log: readonly string[];
  /** UTC days, both ends included, and how many of them had requests. */
  readonly learned: ReviewDays;
  readonly judged: ReviewDays;
  readonly promised: readonly VisitorEstimate[];
}

interface ReviewDays {
  readonly from: string;
  readonly to: string;
  readonly days: number;
}

/** Requests of recognised visitors that a rule matches where it is to block: on all judged days, and on the worst one. */
interface VisitorEstimate {
  readonly rule: string;
  readonly visitors: number;
  readonly worst: number;
}

/** How a zone follows a saved plan. Times are epoch ms. */
export interface PlanWatch {
  readonly at: number;
  /** Since when every rule that was seen and is to block does; null if that was never so, or a newer plan is followed. */
  readonly followedSince: number | null;
  /** Whether each rule blocks, and since when. `hasAgreed`: it did as planned at some time since the plan was saved. */
  readonly rules: readonly {
    readonly rule: string;
    readonly blocks: boolean;
    readonly since: number;
    readonly hasAgreed: boolean;
  }[];
  /** Rules that block more visitors than the plan said. An end is kept for a day, so that its alert resolves. */
  readonly hits: readonly PlanHit[];
}

export interface PlanHit {
  readonly rule: string;
  /** A visitor's requests of one hour are one visit. */
  readonly visits: number;
  readonly since: number;
  readonly lastAt: number;
  readonly endedAt: number | null;
}

/** The requests that a rule alone decides about: no other blocking rule of the choice matches them. */
export interface ReviewMargin {
  /** Requests of visitors and unknown senders that it stops alone if it blocks: the median of the days, and the worst day. */
  readonly visitorsMedian: number;
  readonly visitorsWorst: number;
  /** Hostile requests that pass if it logs. */
  readonly hostile: number;
}

/** Returns counts of requests by whose they are, all of them 0. */
export const noRequests = (): Record<RequestClass, number> => ({
  hostile: 0,
  machine: 0,
  visitor: 0,
  unknown: 0,
});

const VISITOR = REQUEST_CLASSES.indexOf("visitor");
const VISITORS: readonly number[] = [VISITOR, REQUEST_CLASSES.indexOf("unknown")];
const HOSTILE = REQUEST_CLASSES.indexOf("hostile");

/** Returns a function that tells whether a rule blocks a request on a path, both by their numbers. */
function createBlockTest({ rules, paths }: ReviewTable, { block, exclusions }: ReviewChoice) {
  const blocks = new Set(block);
  const isBlocking = rules.map((rule) => blocks.has(rule));
  const excluded = new Set(
    exclusions.map(({ rule, path }) => `${rules.indexOf(rule)} ${paths.indexOf(path)}`),
  );
  return (rule: number, path: number) =>
    isBlocking[rule] === true && (path < 0 || excluded.size === 0 || !excluded.has(`${rule} ${path}`));
}

/** Returns what a choice would have stopped on days (numbers since the epoch, `to` exclusive). */
export function countChoice(
  table: ReviewTable,
  choice: ReviewChoice,
  { from, to }: { readonly from: number; readonly to: number },
): ReviewTotals {
  const test = createBlockTest(table, choice);
  const counts = REQUEST_CLASSES.map(() => ({ all: 0, stops: 0, stopped: 0 }));
  const byDay = new Map<number, number>();
  const days = new Set<number>();
  const places = new Map<string, NonNullable<ReviewTotals["worstPlace"]>>();
  for (const [day, of, isStopped, set, path, count] of table.rows) {
    if (day < from || day >= to) continue;
    days.add(day);
    const counted = counts[of];
    if (counted === undefined) continue;
    counted.all += count;
    if (isStopped === 1) counted.stopped += count;
    const place = table.sets[set]?.find((rule) => test(rule, path));
    if (place === undefined) continue;
    counted.stops += count;
    if (of === VISITOR) {
      const key = `${place} ${path}`;
      const before = places.get(key)?.count ?? 0;
      places.set(key, {
        rule: table.rules[place] ?? "",
        path: table.paths[path] ?? "",
        count: before + count,
      });
    }
    if (VISITORS.includes(of)) byDay.set(day, (byDay.get(day) ?? 0) + count);
  }
  const classes = Object.fromEntries(
    REQUEST_CLASSES.map((name, of) => [name, counts[of]]),
  ) as ReviewTotals["classes"];
  const [worstPlace = null] = [...places.values()].sort((one, other) => other.count - one.count);
  return { days: days.size, classes, worstDay: Math.max(0, ...byDay.values()), worstPlace };
}

/** Returns what each rule adds to a choice on days, in the order of the table's rules. */
export function countMargins(
  table: ReviewTable,
  choice: ReviewChoice,
  { from, to }: { readonly from: number; readonly to: number },
): ReviewMargin[] {
  const test = createBlockTest(table, choice);
  const isExcluded = createBlockTest(table, { block: table.rules, exclusions: choice.exclusions });
  const visitors = table.rules.map(() => new Map<number, number>());
  const hostile = table.rules.map(() => 0);
  const days = new Set<number>();
  for (const [day, of, , set, path, count] of table.rows) {
    if (day < from || day >= to) continue;
    days.add(day);
    const rules = table.sets[set] ?? [];
    const blocking = rules.filter((rule) => test(rule, path));
    if (blocking.length > 1) continue;
    for (const rule of rules) {
      if (blocking.length === 1 && blocking[0] !== rule) continue;
      if (of === HOSTILE) hostile[rule] = (hostile[rule] ?? 0) + count;
      else if (VISITORS.includes(of) && isExcluded(rule, path))
        visitors[rule]?.set(day, (visitors[rule].get(day) ?? 0) + count);
    }
  }
  return visitors.map((byDay, rule) => {
    const counts = [...byDay.values(), ...Array.from({ length: days.size - byDay.size }, () => 0)].sort(
      (a, b) => a - b,
    );
    return {
      visitorsMedian: counts[Math.floor(counts.length / 2)] ?? 0,
      visitorsWorst: counts.at(-1) ?? 0,
      hostile: hostile[rule] ?? 0,
    };
  });
}

/** Returns what each blocking rule of a choice would do to recognised visitors on days. */
export function estimateVisitors(
  table: ReviewTable,
  choice: ReviewChoice,
  { from, to }: { readonly from: number; readonly to: number },
): VisitorEstimate[] {
  const test = createBlockTest(table, choice);
  const byRule = table.rules.map(() => new Map<number, number>());
  for (const [day, of, , set, path, count] of table.rows) {
    if (day < from || day >= to || of !== VISITOR) continue;
    for (const rule of table.sets[set] ?? [])
      if (test(rule, path)) byRule[rule]?.set(day, (byRule[rule].get(day) ?? 0) + count);
  }
  return choice.block.map((rule) => {
    const counts = [...(byRule[table.rules.indexOf(rule)]?.values() ?? [])];
    return { rule, visitors: counts.reduce((sum, one) => sum + one, 0), worst: Math.max(0, ...counts) };
  });
}

/** Returns what a choice does with a rule, in words. */
export function sayRule({ block, exclusions }: ReviewChoice, rule: string): string {
  if (!block.includes(rule)) return "logs";
  const paths = exclusions.flatMap((one) => (one.rule === rule ? [one.path] : []));
  return paths.length === 0 ? "blocks" : `blocks, not on ${paths.sort().join(", ")}`;
}

/** Returns how a zone's rules differ from a plan that was followed: those that once did as planned and no longer do. */
export function findDrift({ block }: ReviewChoice, watch: PlanWatch | null) {
  if (watch === null || watch.followedSince === null) return [];
  return watch.rules.filter(({ rule, blocks, hasAgreed }) => hasAgreed && blocks !== block.includes(rule));
}

/** Fewer days with events are not enough to say that a rule is safe. */
export const LEAST_REVIEW_DAYS = 10;

interface Summed {
  readonly totals: ReviewTotals;
  readonly learnedDays: number;
  /** The plan of every rule of the zone. */
  readonly rules: readonly { readonly plan: ReviewPlan }[];
  readonly choice: ReviewChoice;
  /** Days whose requests are unknown because their files hold no facts. */
  readonly olderDays: readonly string[];
  readonly zone: number;
}

/** Returns a choice in sentences that a person can pass on. */
export function summarizeReview({
  totals,
  learnedDays,
  rules: all,
  choice: { block, exclusions },
  olderDays,
  zone,
}: Summed): string {
  const rules = all.filter(({ plan }) => plan !== "unplanned").length;
  const blocking = block.length;
  const excluded = new Set(exclusions.map(({ rule }) => rule)).size;
  const { hostile, visitor, unknown } = totals.classes;
  const through = hostile.all - hostile.stopped;
  const older =
    olderDays.length === 0
      ? ""
      : ` The requests of ${many(olderDays.length, "day")} are unknown, because their files are of an older format (${olderDays.slice(0, 3).join(", ")}${olderDays.length > 3 ? ", ..." : ""}): run \`archive rewrite --zone ${zone}\`.`;
  if (rules === 0) return `No rule of zone ${zone} matched a request in the last 30 days.${older}`;
  const little =
    learnedDays >= LEAST_REVIEW_DAYS
      ? ""
      : `There ${learnedDays === 1 ? "is" : "are"} ${many(learnedDays, "day")} to learn from before the last 7, and ${LEAST_REVIEW_DAYS} are needed: nothing is planned to block yet. `;
  const switched =
    blocking === 0
      ? little === ""
        ? `None of ${many(rules, "rule")} can block safely. `
        : ""
      : `Switch ${formatWhole(blocking)} of ${many(rules, "rule")} to blocking${excluded === 0 ? "" : `, ${formatWhole(excluded)} of them after an exclusion`}. `;
  const people = `${many(visitor.stops, "request")} of visitors${describePlace(totals)} and ${formatWhole(unknown.stops)} of unknown senders${visitor.stops + unknown.stops === 0 ? "" : `, at most ${formatWhole(totals.worstDay)} on a day`}`;
  const proof =
    blocking === 0
      ? `In the last ${many(totals.days, "day")} ${formatWhole(through)} of ${many(hostile.all, "hostile request")} got through.`
      : `In the last ${many(totals.days, "day")} that would have stopped ${formatWhole(hostile.stops)} of ${many(hostile.all, "hostile request")}, and ${people}. Without it, ${formatWhole(through)} of the hostile requests got through.`;
  return `${little}${switched}${proof}${older}`;
}

/** Returns where a choice stops most of the visitors that it stops, in brackets. */
function describePlace({ classes: { visitor }, worstPlace }: ReviewTotals): string {
  if (worstPlace === null) return "";
  const { rule, path, count } = worstPlace;
  const share =
    count < visitor.stops
      ? `${formatWhole(count)} of them `
      : count === 1
        ? ""
        : count === 2
          ? "both "
          : "all ";
  return ` (${share}by rule ${rule}${path === "" ? "" : ` on ${path}`})`;
}

/** Requests of a sender on one day, by whose they are. Texts are hostile, and times epoch ms. */
export interface SenderCount extends Readonly<Record<RequestClass, number>> {
  /** Whole days of 24 hours between the requests and the end of the span. */
  readonly ago: number;
  readonly ip: string;
  readonly asn: string;
  readonly ja4: string;
  readonly first: number;
  /** The first and the last hostile request; null if there is none. */
  readonly from: number | null;
  readonly to: number | null;
  /** Hostile requests with a key that an incident shares with others: its rule, path, fingerprint or network. */
  readonly found: number;
}

/** A key of an incident that others may have, and its span. */
export type SharedKey = Pick<RequestFinding, "key" | "from" | "to"> & {
  readonly kind: "rule" | "path" | "ja4" | "asn";
};

/** A block list that was answered, without its entries. Epoch ms; `until` is the last end of an entry. */
export interface AnsweredBlockList {
  readonly at: number;
  readonly entries: number;
  readonly until: number;
}
