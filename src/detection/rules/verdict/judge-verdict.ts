/** Judges what an alert is, and finds alerts that people have marked. */
import { many } from "#lib/format.ts";
import { DAY_MS } from "#lib/units.ts";
import { attackerIdOf } from "#model/fingerprint.ts";
import {
  type Mark,
  VERDICT_CLASSES,
  VERDICT_FEATURES,
  type VerdictClass,
  type VerdictFeature,
  type VerdictTime,
  type VerdictWord,
} from "#model/kinds.ts";
import { toUrlPart } from "#model/record-parts.ts";
import { isResponseRule } from "#model/rules.ts";
import type { StoredSources } from "#model/stored-sources.ts";
import { type Features, isHostileWord, MOST_ODDS, type StoredVerdict, SURE_ODDS } from "#model/verdict.ts";
import { toReason } from "#model/words.ts";
import { proposeExclusion } from "../exclusion/propose-exclusion.ts";
import {
  computeFeatures,
  isHostile,
  SHIPPED_WEIGHTS,
  softmax,
  toInputs,
  type Weights,
} from "./compute-features.ts";
import { claimsCrawler } from "./crawlers.ts";
import { splitForeground, type VerdictEvidence } from "./evidence.ts";
import { templateOf } from "./path-template.ts";
import { countBy, groupRequests, type VerdictRequest } from "./requests.ts";
import {
  chooseSample,
  describeNextStep,
  describeReasons,
  describeSenders,
  type RequestCounts,
  titleOf,
} from "./word-verdict.ts";

/** A class is said from these odds on; a misfire needs better ones, the best at the first verdict. */
const LEAST_ODDS = 0.5;
const LEAST_MISFIRE_ODDS: Readonly<Record<VerdictTime, number>> = {
  first: 0.8,
  minute: 0.8,
  "five-minutes": 0.75,
  "half-hour": 0.75,
  "six-hours": 0.7,
  day: 0.7,
};
/** With fewer sessions a misfire needs odds that are all but certain: many browsers may be attackers'. */
const LEAST_SESSIONS = 0.25;
/** The spread of five addresses: of fewer, any tool may be all. */
const LEAST_SPREAD = 0.35;
/** Paths on which bots try passwords, cards and codes, without an idiom of attacks. */
const ACCOUNTS =
  /log-?[io]n|sign-?(?:[io]n|up)|auth|sso|\/(?:session|token)s?\b|passw|otp|2fa|xmlrpc|checkout|payment|coupon|voucher/i;
/** With idioms, or tools of attackers, in a larger share of the requests, neither a misfire nor a broken client is said. */
const MOST_IDIOMS = 0.05;
/** A misfire lasts if this share of its first events still comes. */
const LEAST_LASTING = 0.2;
/** Log odds below which a number is no reason. */
const LEAST_REASON = 0.2;
/** Numbers that count but are not shown as reasons: the signs of their weights separate other pairs of classes. */
const NO_REASONS: ReadonlySet<VerdictFeature> = new Set(["usualJa4", "rulesPerIp", "referer", "knownPath"]);
/** Factor for the log odds if no record was read, because the odds of the columns alone are too extreme. */
const CAUTION = 0.5;
/**
 * Scanners of the whole internet ask for a list of paths and go on. A scan is an attack on this site if each address causes so
 * many events, which none of the numbers counts, or if most of its requests hold an idiom: it tries injections.
 */
const DEEP_SCAN_REQUESTS = 120;
const INJECTION_SCAN_IDIOMS = 0.5;
/** The share of usual networks from which a bot without a verified operator is a crawler. */
const REGULAR_NETWORKS = 0.9;
/** A scan whose requests name the tool of a scanner is one. */
const MOST_TOOLS = 0.5;
/** Shares of requests from which idioms, programs and repetitions decide. */
const PROBE_IDIOMS = 0.25;
const MOST_PROGRAMS = 0.5;
/** A client that repeats itself has one text with an idiom, or two. */
const LEAST_PROBES = 3;
const MOST_REPEATS = 0.5;
/** The odds of an attack or a scan that one number decides. */
const OVERRULED = 0.7;
/** Nobody sends the same text so often by hand. */
const LOOP_TIMES = 20;
type Swap = Partial<Record<VerdictClass, VerdictClass>>;
const SCAN_IS_ATTACK: Swap = { attack: "scanner", scanner: "attack" };
const LOOP_IS_CLIENT: Swap = { misfire: "broken-client", "broken-client": "misfire" };
const MONTH_DAYS = 28;
/** The odds of requests that the operator of a crawler confirms. */
const VERIFIED: Readonly<Record<VerdictClass, number>> = {
  attack: 0,
  misfire: 0.05,
  scanner: 0,
  "broken-client": 0,
  crawler: 0.95,
};
const UNVERIFIED = "The operator of the crawler is not verified.";

/** Returns the verdict of an alert, with the exclusion if it is a lasting misfire. Counts only the events that rose. */
export function judgeVerdict(evidence: VerdictEvidence, weights: Weights = SHIPPED_WEIGHTS): StoredVerdict {
  const { look, judgedAt, since, crawler, usual } = evidence;
  const { events, background } = splitForeground(evidence);
  const requests = groupRequests(events, evidence.others);
  const found = computeFeatures(evidence, requests);
  const { features } = found;
  const counts = { ...found.counts, events: events.length };
  const caution = counts.records === 0 ? CAUTION : 1;
  const isVerified = crawler !== null && (features.idiom ?? 0) <= MOST_IDIOMS;
  const read = oddsOf(features, weights, caution);
  const decides = isVerified ? null : overrule(features, read, requests);
  const guessed = isVerified ? VERIFIED : decides === null ? read : toHostile(read, decides);
  const isDeepScan = counts.requests >= DEEP_SCAN_REQUESTS * Math.max(counts.addresses, 1);
  const isAttack =
    (isDeepScan || (features.idiom ?? 0) >= INJECTION_SCAN_IDIOMS) &&
    (features.tool ?? 0) < MOST_TOOLS &&
    VERDICT_CLASSES.every((name) => guessed.scanner >= guessed[name]);
  const isLoop = guessed.misfire > guessed["broken-client"] && isRepeatedByProgram(requests);
  const swapped = isAttack ? SCAN_IS_ATTACK : isLoop ? LOOP_IS_CLIENT : {};
  const columnOf = (name: VerdictClass) => swapped[name] ?? name;
  const odds = toRecord(VERDICT_CLASSES, (name) => guessed[columnOf(name)]);
  const [likeliest, ...others] = VERDICT_CLASSES.toSorted((a, b) => odds[b] - odds[a]) as [
    VerdictClass,
    ...VerdictClass[],
  ];
  const isConfirmed = crawler !== null || (isRegular(features) && !claimsCrawler(events));
  const refusal = refuse(likeliest, features, isConfirmed);
  const said: VerdictWord =
    refusal === null && isSaid(likeliest, odds, { look, features, requests }) ? likeliest : "unclear";
  // The reasons say whether somebody attacks, not which of two kinds of attackers or clients it is.
  const isOpposite = (name: VerdictClass) =>
    isHostileWord(name) !== isHostileWord(likeliest) && odds[name] > 0;
  const opposite = others.find(isOpposite) ?? others[0] ?? "attack";
  // A class that is refused may be an attack in disguise.
  const rival = refusal === null ? opposite : "attack";
  const isLasting = (look === "six-hours" || look === "day") && (evidence.lasting ?? 0) >= LEAST_LASTING;

  // An attack that is a scan has the odds of a scan, and its reasons.
  const weigh = (row: Readonly<Record<VerdictClass, number>>) =>
    caution * (row[columnOf(likeliest)] - row[columnOf(rival)]);
  const adds = toRecord(VERDICT_FEATURES, (feature) => {
    const value = features[feature];
    return value === null || isVerified
      ? 0
      : weigh(weights.features[feature]) * (value - weights.means[feature]);
  });
  const reasons = describeReasons((feature) => features[feature] ?? 0, counts);
  const sorted = VERDICT_FEATURES.filter((name) => name !== refusal && !NO_REASONS.has(name)).toSorted(
    (a, b) => adds[b] - adds[a],
  );
  const weakest =
    refusal === "idiom" || refusal === "tool"
      ? refusal
      : // Idioms are what makes an attack of a scan.
        sorted.findLast(
          (feature) =>
            adds[feature] <= -LEAST_REASON && feature !== decides && !(isAttack && feature === "idiom"),
        );
  const shown = { said, likeliest, rival, isLasting };
  const shares = cutOdds(odds);
  const rose = { ...evidence, events };
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
        ...(isVerified ? [`The requests come from the operator of ${crawler ?? ""}.`] : []),
        ...(evidence.ruleId !== null && isResponseRule(evidence.ruleId)
          ? [describeResponses(evidence.ruleId)]
          : []),
        ...(decides === null ? [] : [reasons[decides]]),
        // A deploy is what misfires follow. An attack does not begin because of one.
        ...(said === "misfire" && evidence.began != null ? [toReason(evidence.began)] : []),
        ...(isAttack ? [isDeepScan ? `It is a deep scan: ${describeScan(counts)}.` : reasons.idiom] : []),
        ...sorted.filter((feature) => adds[feature] >= LEAST_REASON).map((feature) => reasons[feature]),
      ]),
    ].slice(0, 2),
    against:
      likeliest === "crawler" && crawler === null
        ? UNVERIFIED
        : weakest === undefined
          ? null
          : reasons[weakest],
    features: toRecord(VERDICT_FEATURES, (feature) => ({ value: features[feature], adds: adds[feature] })),
    peak: evidence.peak,
    start: isVerified ? Math.log(odds[likeliest] / odds[rival]) : weigh(weights.start),
    counts,
    background: { events: background, perHour: evidence.usualPerHour },
    since,
    missing: [
      ...(counts.records === 0 ? ["raw records"] : []),
      ...(events.some(({ ja4 }) => ja4 !== "") ? [] : ["JA4"]),
      ...(usual.days < MONTH_DAYS ? ["a month of history"] : []),
    ],
    who: describeSenders(evidence, requests, counts),
    nextStep: describeNextStep(shown, evidence, requests, counts),
    sample: chooseSample(rose, shown),
    crawler,
    exclusion: said === "misfire" && isLasting ? proposeExclusion(rose) : null,
  };
}

/**
 * Returns the number that decides that somebody attacks, whatever the odds: most requests are of a tool that names itself, or many
 * hold an idiom and a program without a session sends them, or one that does not repeat itself. A client may repeat an idiom.
 */
function overrule(
  { tool, idiom, session, program, repeat }: Features,
  odds: Readonly<Record<VerdictClass, number>>,
  requests: readonly VerdictRequest[],
): "tool" | "idiom" | null {
  if ((tool ?? 0) >= MOST_TOOLS) return "tool";
  const probes = new Set(requests.flatMap((one) => (isHostile(one) ? [`${one.text ?? ""} ${one.url}`] : [])));
  if ((idiom ?? 0) < PROBE_IDIOMS || probes.size < LEAST_PROBES) return null;
  const isClient = VERDICT_CLASSES.every((name) => odds["broken-client"] >= odds[name]);
  const isVaried = (program ?? 0) >= MOST_PROGRAMS && (repeat ?? 0) < MOST_REPEATS;
  return (isClient && (session ?? 0) < LEAST_SESSIONS) || isVaried ? "idiom" : null;
}

/** Returns odds of which at least `OVERRULED` are of a scan by a tool, or of an attack by its idioms. */
function toHostile(
  odds: Readonly<Record<VerdictClass, number>>,
  decides: "tool" | "idiom",
): Record<VerdictClass, number> {
  const [name, other] =
    decides === "tool" ? (["scanner", "attack"] as const) : (["attack", "scanner"] as const);
  const benign = 1 - odds.attack - odds.scanner;
  const share = Math.min(1, (1 - OVERRULED) / Math.max(benign, 1e-9));
  const kept = toRecord(VERDICT_CLASSES, (one) => odds[one] * share);
  return { ...kept, [name]: 1 - benign * share - odds[other], [other]: odds[other] };
}

/** A page that is left open sends as a program does, with the session of its visitor. */
function isRepeatedByProgram(requests: readonly VerdictRequest[]): boolean {
  const times = countBy(requests, ({ text }) => text ?? "");
  return (
    requests.filter(({ text }) => (times.get(text ?? "") ?? 0) >= LOOP_TIMES).length * 2 > requests.length
  );
}

function describeResponses(ruleId: string): string {
  return `Rule ${ruleId} matches what the site answers, not what is sent: an error page or a leak.`;
}

function describeScan({ requests, addresses, paths }: RequestCounts): string {
  return `${many(addresses, "address", "addresses")} sent ${many(requests, "request")} to ${many(paths, "path")}`;
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

/**
 * Returns whether a class is likely enough to be said. What matters is whether somebody attacks: an attack and a scan count together,
 * as does everybody whom a rule is in the way of. Without sessions, on paths where bots try passwords and cards, only a client of a
 * usual network is said, because nothing that bots send there is an idiom.
 */
function isSaid(
  name: VerdictClass,
  odds: Readonly<Record<VerdictClass, number>>,
  {
    look,
    features,
    requests,
  }: { look: VerdictTime; features: Features; requests: readonly VerdictRequest[] },
): boolean {
  const isRead = requests.some(({ facts }) => Object.values(facts).some((fact) => fact !== null));
  if (name === "crawler" || !isRead) return odds[name] >= (name === "misfire" ? SURE_ODDS : LEAST_ODDS);
  const hostile = odds.attack + odds.scanner;
  if (isHostileWord(name)) return hostile >= LEAST_ODDS;
  const accounts = requests.filter(({ url }) => ACCOUNTS.test(toUrlPart("path", url))).length;
  const isUsualClient = name === "broken-client" && (features.usualAsn ?? 0) >= LEAST_ODDS;
  if ((features.session ?? 0) < LEAST_SESSIONS && accounts * 2 >= requests.length && !isUsualClient)
    return false;
  return (
    1 - hostile >= leastMisfireOdds(look, features) || (name === "broken-client" && odds[name] >= LEAST_ODDS)
  );
}

/** Returns the odds from which a misfire is said. If sessions are not known, many browsers are most likely visitors'. */
function leastMisfireOdds(look: VerdictTime, { session, spread, oneJa4 }: Features): number {
  const areMany = oneJa4 === null ? (spread ?? 0) >= LEAST_SPREAD : oneJa4 === 0;
  const areVisitors = session === null ? areMany : session >= LEAST_SESSIONS;
  return areVisitors ? LEAST_MISFIRE_ODDS[look] : SURE_ODDS;
}

/** Returns why a class is not said, whatever its odds. An attacker can forge headers, user agents and repetitions. */
function refuse(
  name: VerdictClass,
  features: Features,
  isConfirmed: boolean,
): "idiom" | "tool" | "operator" | null {
  if (name === "crawler") return isConfirmed ? null : "operator";
  if (name !== "misfire" && name !== "broken-client") return null;
  return (["idiom", "tool"] as const).find((sign) => (features[sign] ?? 0) > MOST_IDIOMS) ?? null;
}

/** Returns whether the networks have come for days, and nothing of what they send is hostile: such a bot is a regular crawler. */
function isRegular({ usualAsn, idiom, dirty }: Features): boolean {
  return (usualAsn ?? 0) >= REGULAR_NETWORKS && (idiom ?? 0) === 0 && (dirty ?? 0) === 0;
}

function toRecord<K extends string, T>(
  names: readonly K[],
  read: (name: K, index: number) => T,
): Record<K, T> {
  return Object.fromEntries(names.map((name, index) => [name, read(name, index)])) as Record<K, T>;
}

/** Former marks are said for so long. */
export const REMEMBERED_MS = 90 * DAY_MS;

/** A spike with its mark, and what it is compared with other spikes by. */
interface MarkedSpike {
  readonly mark: Mark | null;
  readonly markedAt: Date | null;
  readonly alertId: number | null;
  readonly path: string | null;
  readonly sources: StoredSources | null;
}

/** Returns the marks of the same subject: an attacker of the incident, or the most frequent path. A path that is not known matches any. */
export function pickSame([own, ...others]: readonly MarkedSpike[]) {
  const keysOf = ({ sources }: MarkedSpike) => sources?.findings.map(attackerIdOf) ?? [];
  const isSame = (other: MarkedSpike, one: MarkedSpike) => {
    if (one.sources !== null) return keysOf(other).some((key) => keysOf(one).includes(key));
    return other.path === null || one.path === null || templateOf(other.path) === templateOf(one.path);
  };
  return others.flatMap((other) => {
    const { mark, markedAt, alertId } = other;
    if (own === undefined || mark === null || markedAt === null || !isSame(other, own)) return [];
    return [{ mark, at: markedAt.toISOString(), alertId }];
  });
}
