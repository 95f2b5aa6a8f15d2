/** Plans which rules of a zone should block, from what they matched on earlier days. */
import { REQUEST_CLASSES, type RequestClass, type ReviewPlan, type RuleMode } from "#model/kinds.ts";
import {
  LEAST_REVIEW_DAYS,
  noRequests,
  type ReviewChoice,
  type ReviewExclusion,
  type ReviewTable,
} from "#model/review.ts";
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
  /** A sentence: why it is not simply to block. Empty for `block`. */
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

/** A rule with fewer requests of people than this share of its hostile ones is safe, and at most one on twenty days. */
const SAFE_SHARE = 0.005;
const SAFE_PER_DAY = 1 / 20;
/** The weight of a request of an unknown sender, to a visitor's, in a zone in which most people are recognised: most are of passing tools. */
const UNKNOWN_SHARE = 0.02;
/** A request of a machine counts as this share: a crawler or a job that is stopped comes again, and is seen to fail. */
const MACHINE_SHARE = 0.05;
/** Exclusions of one rule. */
const MOST_EXCLUSIONS = 2;
/** A path whose exclusion would let through more than this share of the rule's hostile requests stays watched. */
const MOST_LOST = 0.2;
/** An action that so much of the last events had is what the rule does now. */
const MOSTLY = 0.9;

type Counts = Record<RequestClass, number>;

/** Returns the plan for every rule that was seen, from the days of `learn` alone, and the choice that it stands for. */
export function planReview(
  table: ReviewTable,
  seen: readonly PlannedRule[],
  learn: DaySpan,
): { readonly choice: ReviewChoice; readonly rules: readonly RulePlan[]; readonly learnedDays: number } {
  const counted = countRules(table, learn);
  const { perRule, perPath, days } = counted;
  const rules = seen.map((one) => {
    const learned = perRule.get(one.rule) ?? noRequests();
    const decision = decide(one, learned, perPath.get(one.rule) ?? new Map(), counted);
    return { rule: one.rule, now: modeOf(one.lately), learned, ...decision };
  });
  const choice = {
    block: rules.filter(({ plan }) => plan.startsWith("block")).map(({ rule }) => rule),
    exclusions: rules.flatMap(({ exclusions }) => exclusions),
  };
  return { choice, rules, learnedDays: days };
}

/** Returns the requests of each rule on some days by whose they are, in all and on each path. */
export function countRules({ rules, paths, sets, rows }: ReviewTable, { from, to }: DaySpan) {
  const perRule = new Map<string, Counts>();
  const perPath = new Map<string, Map<string, Counts>>();
  const days = new Set<number>();
  const all = noRequests();
  for (const [day, of, , set, path, count] of rows) {
    if (day < from || day >= to) continue;
    days.add(day);
    const name = REQUEST_CLASSES[of] ?? "unknown";
    all[name] += count;
    for (const place of sets[set] ?? []) {
      const rule = rules[place] ?? "";
      const counts = perRule.get(rule) ?? noRequests();
      counts[name] += count;
      perRule.set(rule, counts);
      const template = paths[path];
      if (template === undefined) continue;
      const ofPaths = perPath.get(rule) ?? new Map<string, Counts>();
      const ofPath = ofPaths.get(template) ?? noRequests();
      ofPath[name] += count;
      perPath.set(rule, ofPaths.set(template, ofPath));
    }
  }
  // Without sessions, referers or history nobody is recognised, and every unknown sender may be a visitor.
  const unknownShare = all.visitor >= all.unknown ? UNKNOWN_SHARE : 1;
  return { perRule, perPath, days: days.size, unknownShare };
}

type Learned = Pick<ReturnType<typeof countRules>, "days" | "unknownShare">;
type Decision = Pick<RulePlan, "plan" | "why" | "exclusions">;

function decide(
  { rule, feature, isCounted }: PlannedRule,
  learned: Counts,
  paths: ReadonlyMap<string, Counts>,
  { days, unknownShare }: Learned,
): Decision {
  const peopleOf = ({ visitor, machine, unknown }: Counts) =>
    visitor + MACHINE_SHARE * machine + unknownShare * unknown;
  const isSafe = (counts: Counts) =>
    counts.visitor === 0 && peopleOf(counts) <= Math.max(SAFE_PER_DAY * days, SAFE_SHARE * counts.hostile);
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
    return {
      plan: "undecided",
      why: "It matched nothing on the days before the last seven.",
      exclusions: none,
    };
  if (isSafe(learned)) return { plan: "block", why: "", exclusions: none };
  const exclusions: ReviewExclusion[] = [];
  const rest = { ...learned };
  const byVisitors = [...paths].sort(([, one], [, other]) => peopleOf(other) - peopleOf(one));
  for (const [path, counts] of byVisitors.slice(0, MOST_EXCLUSIONS)) {
    if (counts.hostile > MOST_LOST * hostile || path === "/" || path === "") break;
    for (const name of REQUEST_CLASSES) rest[name] -= counts[name];
    exclusions.push({ rule, path });
    if (rest.hostile > 0 && isSafe(rest))
      return {
        plan: "block-after-exclusion",
        why: "People or unknown senders match it on few paths only.",
        exclusions,
      };
  }
  if (visitor === 0 && machine === 0 && hostile === 0)
    return {
      plan: "undecided",
      why: "Nothing says whose its requests are: mark an alert, or wait for records.",
      exclusions: none,
    };
  const who = visitor > 0 ? "visitors" : "unknown senders";
  return { plan: "log", why: `It matches ${who} on too many paths.`, exclusions: none };
}

function modeOf({ blocked, challenged, logged, other }: PlannedRule["lately"]): RuleMode {
  const all = blocked + challenged + logged + other;
  if (all === 0) return "quiet";
  if (blocked >= MOSTLY * all) return "blocks";
  if (challenged >= MOSTLY * all) return "challenges";
  return blocked + challenged <= (1 - MOSTLY) * all ? "logs" : "mixed";
}
