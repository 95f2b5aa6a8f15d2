/** Plans which rules of a zone should block, from what they matched on earlier days. */
import { REQUEST_CLASSES, type RequestClass, type ReviewPlan, type RuleMode } from "#model/kinds.ts";
import {
  LEAST_REVIEW_DAYS,
  noRequests,
  type ReviewChoice,
  type ReviewExclusion,
  type ReviewTable,
} from "#model/review.ts";
import { isCoreRule, isProtocolRule, isResponseRule } from "#model/rules.ts";
import { refuseRule } from "../exclusion/propose-exclusion.ts";

/** A rule of the zone, as far as a plan depends on it. */
interface PlannedRule {
  readonly rule: string;
  readonly feature: string;
  readonly isCounted: boolean;
  /** Its events in the last days by what became of them. */
  readonly lately: {
    readonly blocked: number;
    readonly challenged: number;
    readonly logged: number;
    readonly other: number;
  };
}

export interface RulePlan {
  readonly rule: string;
  readonly now: RuleMode;
  readonly plan: ReviewPlan;
  /** A sentence: why it is not simply to block, or why it may although nothing matched it. Otherwise empty. */
  readonly why: string;
  readonly exclusions: readonly ReviewExclusion[];
  /** Its requests on the days that the plan was learnt from. */
  readonly learned: Readonly<Counts>;
}

/** Days are numbers since the epoch; `to` is exclusive. */
export interface DaySpan {
  readonly from: number;
  readonly to: number;
}

/** A rule is safe if no visitor matched it, and fewer requests that may be of people than this share of its hostile ones, or than one in all. */
const SAFE_SHARE = 0.005;
/**
 * A rule that people match more often than this share of its attacks reads what people write. They would match it on the next new page, too, so that no exclusion is
 * enough, unless nearly all requests of people to the excluded paths match it: then the page sends what matches, and no other page does.
 */
const MOST_PEOPLE = 0.1;
const WHOLE_PAGE = 0.8;
/** People who matched a rule on a path for the first time in so many last days will soon match it on another path. */
const NEW_DAYS = 7;
/** People match a rule so seldom on a path that others, which nobody has matched there yet, will come: what they send there is free text, such as a password. */
const SELDOM = 3;
/** The weight of a request of an unknown sender, to a visitor's, in a zone in which most people are recognised: most are of passing tools. */
const UNKNOWN_SHARE = 0.02;
/** A request of a machine counts as this share: a crawler or a job that is stopped comes again, and is seen to fail. */
const MACHINE_SHARE = 0.05;
/** Exclusions of one rule, without those of paths with free texts. */
const MOST_EXCLUSIONS = 2;
/** An action that so much of the last events had is what the rule does now. */
const MOSTLY = 0.9;

type Counts = Record<RequestClass, number>;

interface PathCounts extends Counts {
  /** The first day on which a request that is not hostile matched the rule. */
  since: number;
}

type Paths = ReadonlyMap<string, Readonly<PathCounts>>;

interface PlannedCounts {
  readonly table: ReviewTable;
  readonly seen: readonly PlannedRule[];
  /** Whether records show sessions or referers. Without them few visitors are recognised. */
  readonly hasLed: boolean;
}

/** Returns the plan for every rule that was seen, from the days of `learn` alone, and the choice that it stands for. */
export function planReview(
  { table, seen, hasLed }: PlannedCounts,
  learn: DaySpan,
): { readonly choice: ReviewChoice; readonly rules: readonly RulePlan[]; readonly learnedDays: number } {
  const counted = countRules(table, learn);
  const { perRule, perPath, all } = counted;
  // Visitors are recognised by sessions, referers or history. Without them, every unknown sender may be a visitor.
  const unknownShare = hasLed && all.visitor >= all.unknown ? UNKNOWN_SHARE : 1;
  const known = { ...counted, unknownShare, newFrom: learn.to - NEW_DAYS };
  const freePaths = findFreePaths(perPath, unknownShare);
  const rules = seen.map((one) => {
    const learned = perRule.get(one.rule) ?? noRequests();
    const paths = perPath.get(one.rule) ?? new Map<string, PathCounts>();
    const decision = leaveOut(decide(one, learned, paths, known), one.rule, { freePaths, paths });
    return { rule: one.rule, now: modeOf(one.lately), learned, ...decision };
  });
  const choice = {
    block: rules.filter(({ plan }) => plan.startsWith("block")).map(({ rule }) => rule),
    exclusions: rules.flatMap(({ exclusions }) => exclusions),
  };
  return { choice, rules, learnedDays: counted.days };
}

/** Returns the requests on some days by whose they are: of each rule, in all and on each path, and of each path. The path is empty if it is one of many. */
export function countRules({ rules, paths, sets, rows }: ReviewTable, { from, to }: DaySpan) {
  const perRule = new Map<string, Counts>();
  const perPath = new Map<string, Map<string, PathCounts>>();
  const pages = new Map<string, Counts>();
  const days = new Set<number>();
  const all = noRequests();
  for (const [day, of, , set, place, count] of rows) {
    if (day < from || day >= to) continue;
    days.add(day);
    const name = REQUEST_CLASSES[of] ?? "unknown";
    const path = paths[place] ?? "";
    all[name] += count;
    open(pages, path, noRequests)[name] += count;
    for (const rule of (sets[set] ?? []).map((one) => rules[one] ?? "")) {
      open(perRule, rule, noRequests)[name] += count;
      const own = open(
        open(perPath, rule, () => new Map<string, PathCounts>()),
        path,
        () => ({ ...noRequests(), since: to }),
      );
      own[name] += count;
      if (name !== "hostile") own.since = Math.min(own.since, day);
    }
  }
  return { perRule, perPath, pages, days: days.size, all };
}

/** Returns the value of a key, which is made if there is none. */
function open<Value>(map: Map<string, Value>, key: string, make: () => Value): Value {
  const value = map.get(key) ?? make();
  map.set(key, value);
  return value;
}

type Decision = Pick<RulePlan, "plan" | "why" | "exclusions">;

function decide(
  { rule, feature, isCounted }: PlannedRule,
  learned: Counts,
  paths: Paths,
  {
    days,
    unknownShare,
    newFrom,
    pages,
  }: {
    readonly days: number;
    readonly unknownShare: number;
    readonly newFrom: number;
    readonly pages: ReadonlyMap<string, Counts>;
  },
): Decision {
  const peopleOf = ({ visitor, machine, unknown }: Counts) =>
    visitor + MACHINE_SHARE * machine + unknownShare * unknown;
  const isSafe = (counts: Counts) =>
    counts.visitor === 0 && peopleOf(counts) < Math.max(1, SAFE_SHARE * counts.hostile);
  const none: ReviewExclusion[] = [];
  const refusal = refuseRule(rule, feature);
  if (refusal !== null) return { plan: "unplanned", why: refusal, exclusions: none };
  if (!isCounted)
    return { plan: "unplanned", why: "It is too rare to be counted beside the others.", exclusions: none };
  if (days < LEAST_REVIEW_DAYS)
    return {
      plan: "undecided",
      why: `There are ${days} days to learn from; ${LEAST_REVIEW_DAYS} are needed.`,
      exclusions: none,
    };
  const { hostile, visitor, unknown, machine } = learned;
  if (hostile + visitor + unknown + machine === 0)
    return readsTexts(rule)
      ? { plan: "block", why: "Nobody matched it on the days before the last seven.", exclusions: none }
      : {
          plan: "undecided",
          why: "It matched nothing on the days before the last seven, and a new page or app may match it for all visitors.",
          exclusions: none,
        };
  if (visitor === 0 && machine === 0 && hostile === 0)
    return {
      plan: "undecided",
      why: "Nothing says whose its requests are: mark an alert, or wait for records.",
      exclusions: none,
    };
  const unsafe = [...paths].filter(([, counts]) => !isSafe(counts));
  if (unsafe.length === 0 && isSafe(learned)) return { plan: "block", why: "", exclusions: none };
  const rest = { ...learned };
  for (const [, counts] of unsafe) for (const name of REQUEST_CLASSES) rest[name] -= counts[name];
  const isWhole = ([path, counts]: readonly [string, Counts]) =>
    peopleOf(counts) > SELDOM && peopleOf(counts) >= WHOLE_PAGE * peopleOf(pages.get(path) ?? counts);
  const who = visitor > 0 ? "visitors" : unknown > 0 ? "unknown senders" : "machines";
  const refuse = (where: string): Decision => ({
    plan: "log",
    why: hostile === 0 ? `Only ${who} match it.` : `It matches ${who} ${where}.`,
    exclusions: none,
  });
  if (
    hostile === 0 ||
    unsafe.length > MOST_EXCLUSIONS ||
    unsafe.some(([path]) => path === "") ||
    !isSafe(rest)
  )
    return refuse("on too many paths");
  const names = unsafe.map(([path]) => path).join(" and ");
  if (unsafe.some(([, { since }]) => since >= newFrom))
    return refuse(`on ${names}, and on one of these only since the last days`);
  if (peopleOf(learned) > MOST_PEOPLE * hostile && !(readsTexts(rule) && unsafe.every(isWhole)))
    return refuse(`on ${names}, and so many that a new page would have some, too`);
  const exclusions = unsafe.map(([path]) => ({ rule, path }));
  return { plan: "block-after-exclusion", why: "People match it on these paths only.", exclusions };
}

/** Returns the paths on which people matched a rule once, twice or three times. Rare matches stand for as many that are still to come. */
function findFreePaths(perPath: ReadonlyMap<string, Paths>, unknownShare: number): ReadonlySet<string> {
  const found = new Set<string>();
  for (const paths of perPath.values())
    for (const [path, { visitor, unknown }] of paths) {
      const people = visitor + (unknownShare === 1 ? unknown : 0);
      if (people > 0 && people <= SELDOM && path !== "") found.add(path);
    }
  return found;
}

/** Returns the decision with exclusions for the paths with free texts on which attackers have not matched the rule. */
function leaveOut(
  { plan, why, exclusions }: Decision,
  rule: string,
  { freePaths, paths }: { readonly freePaths: ReadonlySet<string>; readonly paths: Paths },
): Decision {
  if (!plan.startsWith("block") || READS_CLIENT.test(rule)) return { plan, why, exclusions };
  const left = [...freePaths].filter(
    (path) => (paths.get(path)?.hostile ?? 0) === 0 && !exclusions.some((one) => one.path === path),
  );
  if (left.length === 0) return { plan, why, exclusions };
  return {
    plan: "block-after-exclusion",
    why: why === "" ? "What people write on these paths matches a new rule now and then." : why,
    exclusions: [...exclusions, ...left.map((path) => ({ rule, path }))],
  };
}

/** Rules about methods, headers, user agents and bodies, which no text of a person matches. Those of 920220 to 920279 read how texts are encoded. */
const READS_CLIENT = /^(?:200|91[13]|920(?!2[2-7]))\d/;

/** Returns whether a rule looks for attacks in the texts of a request. All visitors match another rule at once when a page or an app changes what it sends or answers. */
function readsTexts(rule: string): boolean {
  return isCoreRule(rule) && !isProtocolRule(rule) && !isResponseRule(rule);
}

/** Returns whether a rule did something to most of its last events; false for hardly any of them, null between and without events. */
export function didMostly(done: number, events: number): boolean | null {
  if (events > 0 && done >= MOSTLY * events) return true;
  return events > 0 && done <= (1 - MOSTLY) * events ? false : null;
}

function modeOf({ blocked, challenged, logged, other }: PlannedRule["lately"]): RuleMode {
  const all = blocked + challenged + logged + other;
  if (all === 0) return "quiet";
  if (didMostly(blocked, all) === true) return "blocks";
  if (didMostly(challenged, all) === true) return "challenges";
  return didMostly(blocked + challenged, all) === false ? "logs" : "mixed";
}
