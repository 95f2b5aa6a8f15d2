import type { VerdictEvent } from "./evidence.ts";
import { mostFrequent } from "./requests.ts";

/**
 * Crawlers by what their user agents hold, the domains in which their operators name the addresses, and the networks (ASN) from
 * which they crawl. A network in which others can rent machines is left out, unless the crawler comes from no other.
 */
export const CRAWLERS = [
  {
    name: "Googlebot",
    agent: /googlebot|googleother|google-inspection/i,
    domains: ["googlebot.com", "google.com"],
    networks: ["15169"],
  },
  { name: "Bingbot", agent: /bingbot|bingpreview/i, domains: ["search.msn.com"], networks: ["8075"] },
  { name: "Applebot", agent: /applebot/i, domains: ["applebot.apple.com"], networks: ["714", "6185"] },
  {
    name: "YandexBot",
    agent: /yandex\w*bot/i,
    domains: ["yandex.ru", "yandex.net", "yandex.com"],
    networks: ["13238", "208722"],
  },
  {
    name: "Baiduspider",
    agent: /baiduspider/i,
    domains: ["crawl.baidu.com", "crawl.baidu.jp"],
    networks: ["55967"],
  },
  { name: "PetalBot", agent: /petalbot/i, domains: ["petalsearch.com"], networks: [] },
  { name: "SeznamBot", agent: /seznambot/i, domains: ["seznam.cz"], networks: ["43037"] },
  { name: "SemrushBot", agent: /semrushbot|siteauditbot/i, domains: [], networks: ["209366"] },
  {
    name: "facebookexternalhit",
    agent: /facebookexternalhit|meta-externalagent/i,
    domains: [],
    networks: ["32934"],
  },
];
/** The most frequent addresses, all of which must be the operator's. */
const ASKED = 3;
/** The share of the events that have to come from the operator's network. */
const CONFIRMED = 0.95;

/** Returns the crawler of an address that DNS confirms in both directions; null if there is none. */
export type VerifyCrawler = (ip: string) => Promise<string | null>;

/** Returns the crawler whose operator names addresses so; null for every other host. */
export function crawlerOfHost(host: string): string | null {
  const isIn = (domain: string) => host.toLowerCase().endsWith(`.${domain}`);
  return CRAWLERS.find(({ domains }) => domains.some(isIn))?.name ?? null;
}

/** Returns whether any event claims to be of a crawler whose operator can be verified. */
export function claimsCrawler(events: readonly Pick<VerdictEvent, "ua">[]): boolean {
  return events.some(({ ua }) => CRAWLERS.some(({ agent }) => agent.test(ua)));
}

/** Returns the crawler that most of the events claim to be, if nearly all of these come from a network of its operator. */
export function crawlerOfNetwork(events: readonly Pick<VerdictEvent, "asn" | "ua">[]): string | null {
  for (const { name, agent, networks } of CRAWLERS) {
    const claims = events.filter(({ ua }) => agent.test(ua));
    if (claims.length * 2 <= events.length) continue;
    const confirmed = claims.filter(({ asn }) => networks.includes(asn.replace(/^AS/i, "")));
    return confirmed.length >= CONFIRMED * claims.length ? name : null;
  }
  return null;
}

/**
 * Returns the crawler that most of the events claim to be, if the addresses that send most of them are its operator's. Anybody
 * can send a crawler's user agent.
 */
export async function findCrawler(
  events: readonly Pick<VerdictEvent, "ip" | "ua">[],
  verify: VerifyCrawler,
): Promise<string | null> {
  for (const { name, agent } of CRAWLERS) {
    const claims = events.filter(({ ua }) => agent.test(ua));
    if (claims.length * 2 <= events.length) continue;
    const asked = mostFrequent(claims.map(({ ip }) => ip)).slice(0, ASKED);
    const found = await Promise.all(asked.map(verify));
    return found.length > 0 && found.every((one) => one === name) ? name : null;
  }
  return null;
}
