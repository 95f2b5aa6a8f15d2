import type { VerdictFeature } from "#model/kinds.ts";
import type { Features, StoredVerdict } from "#model/verdict.ts";
import { createAddressReader } from "../sources/source-event.ts";
import type { NearbyRule, RequestFacts, VerdictEvidence } from "./evidence.ts";
import { hasIdiom } from "./idioms.ts";
import { templateOf, templatesOf } from "./path-template.ts";

/** An address that triggers so many rules on other paths is dirty. */
const DIRTY_RULES = 3;
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
  const slugged = templatesOf(events.map(({ url }) => url));
  const readUrl = remember((url) => ({ plain: templateOf(url), template: slugged(url) }));
  const isBot = remember((ua) => BOT.test(ua));
  const [asnOf, paths, sent] = [
    new Map<string, string>(),
    new Map<string, number>(),
    new Map<string, number>(),
  ];
  const actions = { blocked: 0, challenged: 0, logged: 0, other: 0 };
  const networks = new Set<string>();
  for (const { ip, asn, url, action } of events) {
    actions[action] += 1;
    if (asn !== "") networks.add(asn);
    if (ip !== "") asnOf.set(addressOf(ip), asnOf.get(addressOf(ip)) || asn);
    if (url === "") continue;
    add(paths, readUrl(url).template);
    if (ip !== "") add(sent, `${addressOf(ip)} ${url}`);
  }
  const withUrl = events.filter(({ url }) => url !== "");
  const requests = events.flatMap(({ url, logId }) => {
    const facts = evidence.requests.get(logId);
    return facts === undefined ? [] : [{ ...facts, url }];
  });
  const sessions = requests.flatMap(({ hasSession }) => hasSession ?? []);
  const referers = requests.flatMap(({ hasOwnReferer }) => hasOwnReferer ?? []);
  const [top = ["", 0]] = [...paths].sort(([, a], [, b]) => b - a);
  const nearby = evidence.nearby.flatMap(({ ip, ruleId, template }) =>
    asnOf.has(addressOf(ip)) ? [{ ip: addressOf(ip), ruleId, template: readUrl(template).template }] : [],
  );
  const features: Record<VerdictFeature, number | null> = {
    spread: asnOf.size === 0 ? null : Math.min(1, Math.log10(asnOf.size) / 2),
    usualAsn:
      usual.days < DAYS_OF_ASN
        ? null
        : shareOf([...asnOf.values()].filter(Boolean), (asn) => usual.asns.has(asn)),
    usualJa4:
      usual.days < 1
        ? null
        : shareOf(
            events.filter(({ ja4 }) => ja4 !== ""),
            ({ ja4 }) => usual.ja4s.has(ja4),
          ),
    ...countRules(nearby, top[0]),
    knownPath:
      usual.days < 1
        ? null
        : shareOf(withUrl, ({ url }) => {
            const { plain, template } = readUrl(url);
            return usual.paths.has(plain) || usual.paths.has(template);
          }),
    onePath: withUrl.length === 0 ? null : top[1] / withUrl.length,
    // A zone whose records never have a Cookie may not log it.
    session: usual.hasCookies || sessions.includes(true) ? shareOf(sessions, Boolean) : null,
    referer: shareOf(referers, Boolean),
    idiom: requests.length > 0 ? shareOf(requests, holdsIdiom) : idiomsOfUrls(withUrl.map(({ url }) => url)),
    repeat: shareOf(
      withUrl.filter(({ ip }) => ip !== ""),
      ({ ip, url }) => (sent.get(`${addressOf(ip)} ${url}`) ?? 0) >= REPEATS,
    ),
    botUa: shareOf(
      events.filter(({ ua }) => ua !== ""),
      ({ ua }) => isBot(ua),
    ),
  };
  const { length: records } = requests;
  const sizes = { events: events.length, addresses: asnOf.size, networks: networks.size, paths: paths.size };
  return { features, counts: { ...sizes, ...actions, records } };
}

/** Returns whether the matched text of a request, or its URL, holds an idiom of an attack. */
export function holdsIdiom({ matched, url }: Pick<RequestFacts, "matched"> & { url: string }): boolean {
  return (matched !== null && hasIdiom(matched)) || hasIdiom(withoutHost(url));
}

/** Without records only the URL of a GET is known to hold the whole request, and only one with a query says that it is one. */
function idiomsOfUrls(urls: readonly string[]): number | null {
  const step = Math.ceil(urls.length / MAX_URLS);
  const some = urls.filter((_, index) => index % step === 0);
  const found = some.flatMap((url) => {
    const has = hasIdiom(withoutHost(url));
    return has || url.includes("?") ? [has] : [];
  });
  return shareOf(found, Boolean);
}

/** A host may be an address, which is an idiom in a parameter. */
function withoutHost(url: string): string {
  return url.replace(/^[a-z]{1,10}:\/\/[^/?#]{0,300}/i, "");
}

function countRules(
  nearby: readonly NearbyRule[],
  top: string,
): Record<"dirty" | "rulesPerIp", number | null> {
  const rules = new Map<string, { readonly all: Set<string>; readonly elsewhere: Set<string> }>();
  for (const { ip, ruleId, template } of nearby) {
    const found = rules.get(ip) ?? { all: new Set(), elsewhere: new Set() };
    rules.set(ip, found);
    found.all.add(ruleId);
    if (template !== top) found.elsewhere.add(ruleId);
  }
  const addresses = [...rules.values()];
  const mean = addresses.reduce((sum, { all }) => sum + all.size, 0) / Math.max(addresses.length, 1);
  return {
    dirty: shareOf(addresses, ({ elsewhere }) => elsewhere.size >= DIRTY_RULES),
    rulesPerIp: addresses.length === 0 ? null : Math.min(1, Math.log2(mean) / 4),
  };
}

/** Returns null for none of none. */
function shareOf<T>(all: readonly T[], test: (one: T) => boolean): number | null {
  return all.length === 0 ? null : all.filter((one) => test(one)).length / all.length;
}

function add(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

function remember<T>(read: (text: string) => T): (text: string) => T {
  const known = new Map<string, T>();
  return (text) => {
    const before = known.get(text);
    if (before !== undefined) return before;
    const value = read(text);
    known.set(text, value);
    return value;
  };
}
