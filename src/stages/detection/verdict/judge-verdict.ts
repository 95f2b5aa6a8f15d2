import { many } from "#lib/format.ts";
import {
  VERDICT_CLASSES,
  VERDICT_FEATURES,
  type VerdictClass,
  type VerdictFeature,
  type VerdictWord,
} from "#model/kinds.ts";
import { type Features, MOST_ODDS, type StoredVerdict } from "#model/verdict.ts";
import { proposeExclusion } from "../exclusion/propose-exclusion.ts";
import { chooseSample } from "./choose-sample.ts";
import { computeFeatures } from "./compute-features.ts";
import type { VerdictEvidence } from "./evidence.ts";
import { SHIPPED_WEIGHTS, softmax, toInputs, type Weights } from "./weights.ts";
import { describeNextStep, describeReasons, describeSenders, titleOf } from "./word-verdict.ts";

/** A class is said from these odds on; a misfire needs better ones, the best at the first look. */
const LEAST_ODDS = 0.5;
const LEAST_MISFIRE_ODDS = { first: 0.9, "half-hour": 0.8, "six-hours": 0.8, day: 0.8 };
/** With idioms in a larger share of the requests, neither a misfire nor a broken client is said. */
const MOST_IDIOMS = 0.05;
/** A misfire lasts if this share of its first events still comes. */
const LEAST_LASTING = 0.2;
/** Log odds below which a number is no reason. */
const LEAST_REASON = 0.2;
/** Numbers that count but are no reasons: the signs of their weights tell other pairs of classes apart than the one at hand. */
const NO_REASONS: ReadonlySet<VerdictFeature> = new Set(["usualJa4", "rulesPerIp", "referer"]);
/** Part of the log odds that is left if no record was read. The columns alone are far too sure of themselves. */
const CAUTION = 0.5;
/**
 * Scanners of the whole internet ask for a list of paths and go on. A scan is an attack on this site if each address causes so
 * many events, which none of the twelve numbers counts, or if most of its requests hold an idiom: it tries injections.
 */
const DEEP_SCAN_EVENTS = 120;
const INJECTION_SCAN_IDIOMS = 0.5;
const MONTH_DAYS = 28;
const UNVERIFIED = "The operator of the crawler is not verified.";

/** Returns the verdict of an alert, for a misfire that lasts with its exclusion. */
export function judgeVerdict(evidence: VerdictEvidence, weights: Weights = SHIPPED_WEIGHTS): StoredVerdict {
  const { look, judgedAt, since, crawler, usual } = evidence;
  const { features, counts } = computeFeatures(evidence);
  const guessed = oddsOf(features, weights, counts.records === 0 ? CAUTION : 1);
  const isDeepScan = counts.events >= DEEP_SCAN_EVENTS * Math.max(counts.addresses, 1);
  const isAttack =
    (isDeepScan || (features.idiom ?? 0) >= INJECTION_SCAN_IDIOMS) &&
    VERDICT_CLASSES.every((name) => guessed.scanner >= guessed[name]);
  const odds = isAttack ? { ...guessed, attack: guessed.scanner, scanner: guessed.attack } : guessed;
  const [likeliest, second] = VERDICT_CLASSES.toSorted((a, b) => odds[b] - odds[a]) as [
    VerdictClass,
    VerdictClass,
  ];
  const refusal = refuse(likeliest, features, crawler);
  const least = likeliest === "misfire" ? LEAST_MISFIRE_ODDS[look] : LEAST_ODDS;
  const said: VerdictWord = odds[likeliest] >= least && refusal === null ? likeliest : "unclear";
  // A class that is refused may be an attack in disguise.
  const rival = refusal === null ? second : "attack";
  const isLasting = (look === "six-hours" || look === "day") && (evidence.lasting ?? 0) >= LEAST_LASTING;

  const adds = toRecord(VERDICT_FEATURES, (feature) => {
    const [row, value] = [weights.features[feature], features[feature]];
    return value === null ? 0 : (row[likeliest] - row[rival]) * (value - weights.means[feature]);
  });
  const reasons = describeReasons((feature) => features[feature] ?? 0, counts);
  const sorted = VERDICT_FEATURES.filter((name) => name !== refusal && !NO_REASONS.has(name)).toSorted(
    (a, b) => adds[b] - adds[a],
  );
  const weakest =
    refusal === "idiom" ? refusal : sorted.findLast((feature) => adds[feature] <= -LEAST_REASON);
  const shown = { said, likeliest, rival, isLasting };
  const shares = cutOdds(odds);
  return {
    look,
    judgedAt,
    said,
    likeliest,
    odds: shares[likeliest],
    classes: shares,
    isLasting,
    title: titleOf(shown, evidence),
    for: [
      ...new Set([
        ...(isAttack ? [isDeepScan ? `It is a deep scan: ${describeScan(counts)}.` : reasons.idiom] : []),
        ...sorted.filter((feature) => adds[feature] >= LEAST_REASON).map((feature) => reasons[feature]),
      ]),
    ].slice(0, 2),
    against: refusal === "operator" ? UNVERIFIED : weakest === undefined ? null : reasons[weakest],
    features: toRecord(VERDICT_FEATURES, (feature) => ({ value: features[feature], adds: adds[feature] })),
    counts,
    since,
    missing: [
      ...(counts.records === 0 ? ["raw records"] : []),
      ...(evidence.events.some(({ ja4 }) => ja4 !== "") ? [] : ["JA4"]),
      ...(usual.days < MONTH_DAYS ? ["a month of history"] : []),
    ],
    who: describeSenders(evidence, counts),
    nextStep: describeNextStep(shown, evidence, counts),
    sample: chooseSample(evidence, shown),
    crawler,
    exclusion: said === "misfire" && isLasting ? proposeExclusion(evidence) : null,
  };
}

function describeScan({ events, addresses, paths }: StoredVerdict["counts"]): string {
  return `${many(addresses, "address", "addresses")} caused ${many(events, "event")} on ${many(paths, "path")}`;
}

/** Returns the odds of each class, which add up to one. A caution below 1 brings them nearer to each other. */
export function oddsOf(features: Features, weights: Weights, caution = 1): Record<VerdictClass, number> {
  const inputs = toInputs(features, weights);
  const logits = VERDICT_CLASSES.map((name) =>
    VERDICT_FEATURES.reduce(
      (sum, feature, index) => sum + weights.features[feature][name] * (inputs[index] ?? 0),
      weights.start[name],
    ),
  );
  const odds = softmax(logits.map((logit) => logit * caution));
  return toRecord(VERDICT_CLASSES, (_, index) => odds[index] ?? 0);
}

/** Returns odds that still add up to one, none of which is above `MOST_ODDS`. */
function cutOdds(odds: Record<VerdictClass, number>): Record<VerdictClass, number> {
  const most = Math.max(...Object.values(odds));
  if (most <= MOST_ODDS) return odds;
  const rest = Object.values(odds).reduce((sum, one) => sum + (one === most ? 0 : one), 0) || 1;
  const cut = (one: number) => (one === most ? MOST_ODDS : ((1 - MOST_ODDS) * one) / rest);
  return toRecord(VERDICT_CLASSES, (name) => cut(odds[name]));
}

/** Returns why a class is not said, whatever its odds. An attacker can forge headers, user agents and repetitions. */
function refuse(name: VerdictClass, features: Features, crawler: string | null): "idiom" | "operator" | null {
  if (name === "crawler") return crawler === null ? "operator" : null;
  const isQuiet = name === "misfire" || name === "broken-client";
  return isQuiet && (features.idiom ?? 0) > MOST_IDIOMS ? "idiom" : null;
}

function toRecord<K extends string, T>(
  names: readonly K[],
  read: (name: K, index: number) => T,
): Record<K, T> {
  return Object.fromEntries(names.map((name, index) => [name, read(name, index)])) as Record<K, T>;
}
