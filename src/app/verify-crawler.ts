import { Resolver } from "node:dns/promises";
import ipaddr from "ipaddr.js";
import { LRUCache } from "lru-cache";
import { crawlerOfHost, type VerifyCrawler } from "#detection/rules/verdict/crawlers.ts";
import { DAY_MS } from "#lib/units.ts";

const LIMIT_MS = 1_000;
const MOST_REMEMBERED = 1_000;
/** An attacker's DNS may return a thousand names of an address. Only so many are looked up. */
const MOST_HOSTS = 3;

type Dns = Pick<Resolver, "reverse" | "resolve4" | "resolve6">;

/**
 * Returns a function that asks DNS for the names of an address and, if one is an operator's, for the addresses of that name:
 * the owner of an address may give it any name, and only the operator names the address back. DNS that does not answer within
 * a second verifies nothing.
 */
export function createVerifyCrawler(dns: Dns = new Resolver({ timeout: LIMIT_MS, tries: 1 })): VerifyCrawler {
  const known = new LRUCache<string, Promise<string | null>>({ max: MOST_REMEMBERED, ttl: DAY_MS });
  return (ip) => {
    const before = known.get(ip);
    if (before !== undefined) return before;
    const found = ask(dns, ip).catch(() => {
      // The next verdict asks again.
      known.delete(ip);
      return null;
    });
    known.set(ip, found);
    return found;
  };
}

async function ask(dns: Dns, ip: string): Promise<string | null> {
  // A masked address or a pseudonym has no name.
  if (!ipaddr.isValid(ip)) return null;
  const address = ipaddr.parse(ip).toString();
  const resolve = (host: string) => (address.includes(":") ? dns.resolve6(host) : dns.resolve4(host));
  for (const host of (await dns.reverse(ip)).slice(0, MOST_HOSTS)) {
    const name = crawlerOfHost(host);
    if (name === null) continue;
    const back = await resolve(host);
    if (back.some((one) => ipaddr.isValid(one) && ipaddr.parse(one).toString() === address)) return name;
  }
  return null;
}
