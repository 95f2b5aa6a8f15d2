import { mostFrequent } from "./counting.ts";
import type { VerdictEvent } from "./evidence.ts";

/** Crawlers by what their user agents hold, and the domains in which their operators name the addresses. */
const CRAWLERS = [
  {
    name: "Googlebot",
    agent: /googlebot|googleother|google-inspection/i,
    domains: ["googlebot.com", "google.com"],
  },
  { name: "Bingbot", agent: /bingbot|bingpreview/i, domains: ["search.msn.com"] },
  { name: "Applebot", agent: /applebot/i, domains: ["applebot.apple.com"] },
  { name: "YandexBot", agent: /yandex\w*bot/i, domains: ["yandex.ru", "yandex.net", "yandex.com"] },
  { name: "Baiduspider", agent: /baiduspider/i, domains: ["crawl.baidu.com", "crawl.baidu.jp"] },
  { name: "PetalBot", agent: /petalbot/i, domains: ["petalsearch.com"] },
  { name: "SeznamBot", agent: /seznambot/i, domains: ["seznam.cz"] },
];
/** The most frequent addresses, all of which must be the operator's. */
const ASKED = 3;

/** Returns the crawler of an address that DNS confirms in both directions; null if there is none. */
export type VerifyCrawler = (ip: string) => Promise<string | null>;

/** Returns the crawler whose operator names addresses so; null for every other host. */
export function crawlerOfHost(host: string): string | null {
  const isIn = (domain: string) => host.toLowerCase().endsWith(`.${domain}`);
  return CRAWLERS.find(({ domains }) => domains.some(isIn))?.name ?? null;
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
