import { holdsIdiom } from "#model/request-facts.ts";
import { DIRTY_RULES, type Features, type StoredVerdict } from "#model/verdict.ts";
import { createAddressReader } from "../sources/source-event.ts";
import { addTo, countBy, sortCounts } from "./counting.ts";
import type { NearbyRule, VerdictEvidence } from "./evidence.ts";
import { inferSlugs, templateOf } from "./path-template.ts";

/** A request is repeated if its address sent the same URL at least this often. */
const REPEATS = 3;
/** An ASN is usual after five days with events. Before, none can be. */
export const DAYS_OF_ASN = 5;
/** URLs that are searched for idioms if there are no records. */
const MAX_URLS = 500;
const BOT = /bot|crawl|spider|monitor/i;

/**
 * Returns the numbers of a verdict and the counts of its window. A number is null if the evidence does not hold it. On the
 * first day nothing can be usual, so its absence says nothing; for networks this is so for five days. Masked addresses with
 * the same text count as one.
 */
export function computeFeatures(evidence: VerdictEvidence): {
  features: Features;
  counts: StoredVerdict["counts"];
} {
  const { events, usual } = evidence;
  const addressOf = createAddressReader();
  const asnOf = new Map<string, string>();
  const actions = { blocked: 0, challenged: 0, logged: 0, other: 0 };
  for (const { ip, asn, action } of events) {
    actions[action] += 1;
    if (ip !== "") asnOf.set(addressOf(ip), asnOf.get(addressOf(ip)) || asn);
  }
  const urls = countBy(events, ({ url }) => url);
  const templates = new Map([...urls.keys()].map((url) => [url, templateOf(url)]));
  const nameSlugs = inferSlugs(new Set(templates.values()));
  const paths = new Map<string, number>();
  for (const [url, template] of templates) addTo(paths, nameSlugs(template), urls.get(url));
  const [top = ""] = sortCounts(paths);
  const requests = events.flatMap(({ url, logId }) => {
    const facts = evidence.requests.get(logId);
    return facts === undefined ? [] : [{ ...facts, url }];
  });
  // Without records only the URL of a GET is known to hold the whole request, and only a query says that it is one.
  const queries = [...urls.keys()].filter((url) => url.includes("?"));
  const asked = queries.slice(0, MAX_URLS).map((url) => ({ url, matched: null }));
  const sessions = requests.flatMap(({ hasSession }) => hasSession ?? []);
  const networks = countBy([...asnOf.values()], (asn) => asn);
  const ja4s = countBy(events, ({ ja4 }) => ja4);
  const uas = countBy(events, ({ ua }) => ua);
  const sent = countBy(events, ({ ip, url }) => (ip === "" || url === "" ? "" : `${addressOf(ip)} ${url}`));
  const nearby = evidence.nearby
    .filter(({ ip }) => asnOf.has(addressOf(ip)))
    .map((rule) => ({ ...rule, ip: addressOf(rule.ip) }));
  const isUsualPath = (template: string) => usual.paths.has(template) || usual.paths.has(nameSlugs(template));
  const features = {
    spread: asnOf.size === 0 ? null : Math.min(1, Math.log10(asnOf.size) / 2),
    usualAsn: usual.days < DAYS_OF_ASN ? null : shareOf(networks, (asn) => usual.asns.has(asn)),
    usualJa4: usual.days < 1 ? null : shareOf(ja4s, (ja4) => usual.ja4s.has(ja4)),
    ...countRules(nearby, (template) => nameSlugs(template) === top),
    knownPath: usual.days < 1 ? null : shareOf(urls, (url) => isUsualPath(templates.get(url) ?? "")),
    onePath: shareOf(paths, (path) => path === top),
    // A zone whose records never have a Cookie may not log it.
    session: usual.hasCookies || sessions.includes(true) ? shareOfAll(sessions) : null,
    referer: shareOfAll(requests.flatMap(({ hasOwnReferer }) => hasOwnReferer ?? [])),
    idiom: shareOfAll((requests.length > 0 ? requests : asked).map(holdsIdiom)),
    repeat: shareOf(sent, (_, times) => times >= REPEATS),
    botUa: shareOf(uas, (ua) => BOT.test(ua)),
  };
  const sizes = { events: events.length, addresses: asnOf.size, networks: networks.size, paths: paths.size };
  return { features, counts: { ...sizes, ...actions, records: requests.length } };
}

function countRules(
  nearby: readonly NearbyRule[],
  isTop: (template: string) => boolean,
): Record<"dirty" | "rulesPerIp", number | null> {
  const rules = new Map<string, { readonly all: Set<string>; readonly elsewhere: Set<string> }>();
  for (const { ip, ruleId, template } of nearby) {
    const found = rules.get(ip) ?? { all: new Set(), elsewhere: new Set() };
    rules.set(ip, found);
    found.all.add(ruleId);
    if (!isTop(template)) found.elsewhere.add(ruleId);
  }
  const addresses = [...rules.values()];
  const mean = addresses.reduce((sum, { all }) => sum + all.size, 0) / Math.max(addresses.length, 1);
  return {
    dirty: shareOfAll(addresses.map(({ elsewhere }) => elsewhere.size >= DIRTY_RULES)),
    rulesPerIp: addresses.length === 0 ? null : Math.min(1, Math.log2(mean) / 4),
  };
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
