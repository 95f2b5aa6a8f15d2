/** The numbers of a verdict and their weights. */

import { z } from "zod";
import { VERDICT_CLASSES, VERDICT_FEATURES, type VerdictFeature } from "#model/kinds.ts";
import { holdsIdiom, isBotAgent, isProgramAgent } from "#model/request-facts.ts";
import { isCoreRule, isInjectionRule, isProtocolRule, isSumRule } from "#model/rules.ts";
import { DIRTY_RULES, type Features } from "#model/verdict.ts";
import { createAddressReader } from "../sources/source-event.ts";
import type { NearbyRule, VerdictEvidence } from "./evidence.ts";
import { inferSlugs, templateOf } from "./path-template.ts";
import { addTo, countActions, countBy, sortCounts, type VerdictRequest } from "./requests.ts";
import type { RequestCounts } from "./word-verdict.ts";

/**
 * A request is repeated if its address sent the same texts to the same path at least this often. People try again what was
 * stopped, but not so often.
 */
const REPEATS = 5;
/** An ASN is usual after five days with events. Before, none can be. */
export const DAYS_OF_ASN = 5;
/** Fewer addresses may have one browser by chance. */
const LEAST_ADDRESSES = 5;
/** So many requests of one fingerprint are of one tool. The browser that most visitors use has about seven tenths of theirs. */
const ONE_JA4 = 0.9;
/** With fewer usual paths, those that are known are the paths of earlier misfires, and another page is no sign of anything. */
const LEAST_PATHS = 5;

/**
 * Returns the numbers of a verdict, counted over requests, and the counts of its window. A number is null if the evidence does
 * not hold it. On the first day nothing can be usual, so its absence says nothing; for networks this is so for five days.
 */
export function computeFeatures(
  { usual, nearby: rules }: Pick<VerdictEvidence, "usual" | "nearby">,
  requests: readonly VerdictRequest[],
): { features: Features; counts: Omit<RequestCounts, "events"> } {
  const asnOf = new Map<string, string>();
  for (const { address, asn } of requests) if (address !== "") asnOf.set(address, asnOf.get(address) || asn);
  const urls = countBy(requests, ({ url }) => url);
  const templates = new Map([...urls.keys()].map((url) => [url, templateOf(url)]));
  const nameSlugs = inferSlugs(new Set(templates.values()));
  const paths = new Map<string, number>();
  for (const [url, template] of templates) addTo(paths, nameSlugs(template), urls.get(url));
  const [top = ""] = sortCounts(paths);
  // Without addresses each network counts once.
  const asns = asnOf.size > 0 ? [...asnOf.values()] : [...new Set(requests.map(({ asn }) => asn))];
  const networks = countBy(asns, (asn) => asn);
  const ja4s = countBy(requests, ({ ja4 }) => ja4);
  // A request whose headers are known and that has no user agent is a program's.
  const agents = requests.flatMap(({ ua, facts }) => (ua === "" && facts.hasSession === null ? [] : [ua]));
  const texts = countBy(requests, ({ text }) => text ?? "");
  const addressOf = createAddressReader();
  const nearby = rules
    .filter(({ ip, ruleId }) => asnOf.has(addressOf(ip)) && !isSumRule(ruleId))
    .map((rule) => ({ ...rule, ip: addressOf(rule.ip) }));
  const isUsualPath = (template: string) => usual.paths.has(template) || usual.paths.has(nameSlugs(template));
  const sessions = requests.flatMap(({ facts }) => facts.hasSession ?? []);
  const referers = requests.flatMap(({ facts }) => facts.hasOwnReferer ?? []);
  const features = {
    spread: asnOf.size === 0 ? null : Math.min(1, Math.log10(asnOf.size) / 2),
    usualAsn: usual.days < DAYS_OF_ASN ? null : shareOf(networks, (asn) => usual.asns.has(asn)),
    usualJa4: usual.days < 1 ? null : shareOf(ja4s, (ja4) => usual.ja4s.has(ja4)),
    oneJa4: asnOf.size > 0 && asnOf.size < LEAST_ADDRESSES ? null : isOneOf(ja4s),
    ...countRules(nearby, (template) => nameSlugs(template) === top),
    knownPath:
      usual.days < 1 || usual.paths.size < LEAST_PATHS
        ? null
        : shareOf(urls, (url) => isUsualPath(templates.get(url) ?? "")),
    onePath: shareOf(paths, (path) => path === top),
    // A zone whose records never have a Cookie may not log the headers of visitors.
    session: usual.hasCookies || sessions.includes(true) ? shareOfAll(sessions) : null,
    referer: usual.hasCookies || referers.includes(true) ? shareOfAll(referers) : null,
    idiom: shareOfAll(requests.flatMap(idiomOf)),
    repeat: shareOf(texts, (_, times) => times >= REPEATS),
    botUa: shareOfAll(agents.map(isBotAgent)),
    tool: shareOfAll(requests.flatMap(({ facts }) => facts.isTool ?? [])),
    program: shareOfAll(agents.map(isProgramAgent)),
  };
  const through = requests.filter(({ action }) => action === "logged");
  const counts = {
    requests: requests.length,
    addresses: asnOf.size,
    networks: networks.size,
    paths: paths.size,
    ...countActions(requests),
    hostile: requests.filter(isHostile).length,
    hostileThrough: through.filter(isHostile).length,
    injectedThrough: through.filter(isInjected).length,
    records: requests.filter(({ facts }) => Object.values(facts).some((fact) => fact !== null)).length,
  };
  return { features, counts };
}

export function isHostile(request: VerdictRequest): boolean {
  return request.isHostileElsewhere || request.facts.isTool === true || idiomOf(request).includes(true);
}

function isInjected(request: VerdictRequest): boolean {
  return idiomOf(request).includes(true) && [...request.rules].some(isInjectionRule);
}

/**
 * Without a record only a query says whether the URL holds an idiom. Where no rule of the core rule set read the request, as with a
 * rate limit, its texts are those of any request: that they hold no idiom says nothing.
 */
function idiomOf({ facts, url, rules }: VerdictRequest): boolean[] {
  const found = facts.hasIdiom ?? (url.includes("?") ? holdsIdiom({ url, matched: null }) : null);
  return found === null || (!found && ![...rules].some(isCoreRule)) ? [] : [found];
}

/** Rules that an address triggers on each of its paths are of one part of all its requests, such as a cookie: they do not count elsewhere. */
function countRules(nearby: readonly NearbyRule[], isTop: (template: string) => boolean) {
  const addresses = [...Map.groupBy(nearby, ({ ip }) => ip).values()].map((rules) => {
    const pathsOf = (of: readonly NearbyRule[]) => new Set(of.map(({ template }) => template));
    const { size } = pathsOf(rules);
    const byRule = [...Map.groupBy(rules, ({ ruleId }) => ruleId).values()].map(pathsOf);
    const elsewhere = byRule.filter((paths) => paths.size < size && [...paths].some((path) => !isTop(path)));
    const isProtocol = rules.every(({ ruleId }) => isProtocolRule(ruleId));
    return { all: byRule.length, elsewhere: elsewhere.length, isProtocol };
  });
  const mean = addresses.reduce((sum, { all }) => sum + all, 0) / Math.max(addresses.length, 1);
  return {
    dirty: shareOfAll(addresses.map(({ elsewhere }) => elsewhere >= DIRTY_RULES)),
    rulesPerIp: addresses.length === 0 ? null : Math.min(1, Math.log2(mean) / 4),
    protocol: shareOfAll(addresses.map(({ isProtocol }) => isProtocol)),
  };
}

function isOneOf(ja4s: ReadonlyMap<string, number>): number | null {
  const [top = ""] = sortCounts(ja4s);
  const share = shareOf(ja4s, (ja4) => ja4 === top);
  return share === null ? null : Number(share >= ONE_JA4);
}

/** Returns null for none of none, as `shareOfAll` does. */
function shareOf(
  counts: ReadonlyMap<string, number>,
  test: (text: string, times: number) => boolean,
): number | null {
  let [found, all] = [0, 0];
  for (const [text, times] of counts) {
    all += times;
    if (test(text, times)) found += times;
  }
  return all === 0 ? null : found / all;
}

function shareOfAll(all: readonly boolean[]): number | null {
  return all.length === 0 ? null : all.filter(Boolean).length / all.length;
}

const perClass = z.record(z.enum(VERDICT_CLASSES), z.number().min(-50).max(50));

/**
 * Log odds of the classes. A number counts by its distance from its mean, so one that is not known counts nothing, and `start`
 * is what is said without any evidence.
 */
const weights = z.object({
  start: perClass,
  features: z.record(z.enum(VERDICT_FEATURES), perClass),
  means: z.record(z.enum(VERDICT_FEATURES), z.number().min(0).max(1)),
});
export type Weights = Readonly<z.output<typeof weights>>;

/** The scores before any evidence, in the order of `VERDICT_CLASSES`. */
const START = [2.25, 1.75, -0.75, -1.25, -1.5];
/** Weights in the same order, and the mean. */
const TABLE: Readonly<Record<VerdictFeature, readonly number[]>> = {
  spread: [1.5, 1.25, -2.5, -1.75, 1.75, 0.43],
  usualAsn: [-1.75, 0, 0.5, 0.75, 0.25, 0.54],
  usualJa4: [0, 0, 0, 0.5, 0.25, 0.51],
  oneJa4: [1.75, -1.75, 0, 0, 0.25, 0.49],
  dirty: [-1.25, -2, 3.75, 0, -0.25, 0.16],
  rulesPerIp: [1.5, -0.75, 1, -2, 0.5, 0.43],
  protocol: [-1, 0.25, -0.5, 0.75, 0, 0.1],
  knownPath: [0.25, 0.25, 0, -0.75, -0.75, 0.55],
  onePath: [0.75, -0.25, -1.75, 1.5, -0.5, 0.8],
  session: [-1.75, 3, -0.5, 0.25, -1.25, 0.34],
  referer: [-0.5, 0.5, 0, -1, 0, 0.23],
  idiom: [2.75, -1.25, 0.25, 0.25, -1.75, 0.39],
  repeat: [-0.5, -2.75, 0.75, 3, -0.5, 0.12],
  botUa: [-1.75, -1.5, 1.25, -2, 4.5, 0.06],
  tool: [0, -0.25, 1.5, -3, 0, 0.11],
  program: [-2.25, -0.5, -1.25, 2.75, 1, 0.26],
};

/**
 * Fitted by a softmax regression with a ridge to the requests of half of the situations of `bench:message` and to the drawn zones of
 * `bench:verdict`, every situation with the same weight, some of them without records or history. A weight may not have the sign
 * that speaks against what everybody knows: a session never speaks for an attack, an idiom never for a misfire.
 */
export const SHIPPED_WEIGHTS: Weights = weights.parse({
  start: toPerClass(START),
  features: Object.fromEntries(VERDICT_FEATURES.map((feature) => [feature, toPerClass(TABLE[feature])])),
  means: Object.fromEntries(VERDICT_FEATURES.map((feature) => [feature, TABLE[feature].at(-1)])),
});

/** Returns what the softmax reads from the numbers, in the order of `VERDICT_FEATURES`. */
export function toInputs(features: Features, { means }: Weights): number[] {
  return VERDICT_FEATURES.map((feature) => (features[feature] ?? means[feature]) - means[feature]);
}

/** Returns the odds of the classes, in the order of `VERDICT_CLASSES`, whose log odds are given up to a constant. */
export function softmax(logits: readonly number[]): number[] {
  const most = Math.max(...logits);
  const powers = logits.map((logit) => Math.exp(logit - most));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}

function toPerClass(row: readonly number[]): Record<string, number | undefined> {
  return Object.fromEntries(VERDICT_CLASSES.map((name, index) => [name, row[index]]));
}
