import { describe, expect, test } from "vitest";
import { createVerifyCrawler } from "#app/verify-crawler.ts";
import { crawlerOfHost, crawlerOfNetwork, findCrawler } from "#detection/rules/verdict/crawlers.ts";

const GOOGLE = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";
const events = (ua: string, ...ips: string[]) => ips.map((ip) => ({ ip, ua }));

test("a crawler is found if most events claim it and all of the three most frequent addresses are verified", async () => {
  const all = [
    ...events(GOOGLE, "1.1.1.1", "1.1.1.1", "1.1.1.2", "1.1.1.2", "1.1.1.3", "1.1.1.3", "1.1.1.4"),
    ...events("Mozilla", "2.2.2.2"),
  ];
  const verify = (list: readonly string[]) => async (ip: string) => (list.includes(ip) ? "Googlebot" : null);
  expect(await findCrawler(all, verify(["1.1.1.1", "1.1.1.2", "1.1.1.3"]))).toBe("Googlebot");
  expect(await findCrawler(all, verify(["1.1.1.1", "1.1.1.2", "1.1.1.4"]))).toBeNull();
  expect(await findCrawler(all, async () => "Bingbot")).toBeNull();
});

test("without a claim by most events nobody is asked", async () => {
  const verify = async () => {
    throw new Error("asked");
  };
  expect(await findCrawler([], verify)).toBeNull();
  expect(
    await findCrawler([...events(GOOGLE, "1.1.1.1"), ...events("Mozilla", "2.2.2.2")], verify),
  ).toBeNull();
  expect(await findCrawler(events(GOOGLE, "", ""), verify)).toBeNull();
});

test("only hosts within an operator's domain are the operator's", () => {
  expect(crawlerOfHost("crawl-66-249-66-1.GOOGLEBOT.com")).toBe("Googlebot");
  for (const host of ["googlebot.com.evil.test", "evilgooglebot.com", "googlebot.com", ""])
    expect(crawlerOfHost(host)).toBeNull();
});

describe("the crawler of a network", () => {
  const from = (asn: string, ua: string, number: number) =>
    Array.from({ length: number }, () => ({ asn, ua }));

  test.each([
    ["AS15169", GOOGLE, "Googlebot"],
    ["15169", GOOGLE, "Googlebot"],
    ["AS32934", "facebookexternalhit/1.1", "facebookexternalhit"],
    ["AS8075", GOOGLE, null],
    ["AS151690", GOOGLE, null],
    ["", GOOGLE, null],
    ["AS15169", "Mozilla/5.0", null],
    ["AS64500", "Mozilla/5.0 (compatible; PetalBot)", null],
  ])("is that of the agent if the operator has network '%s' of '%s'", (asn, ua, name) => {
    expect(crawlerOfNetwork(from(asn, ua, 20))).toBe(name);
  });

  test("is known only if most events claim the crawler, and 19 of 20 of these are in the network", () => {
    const forged = from("AS64500", GOOGLE, 1);
    expect(crawlerOfNetwork([...from("AS15169", GOOGLE, 19), ...forged])).toBe("Googlebot");
    expect(crawlerOfNetwork([...from("AS15169", GOOGLE, 18), ...forged])).toBeNull();
    expect(crawlerOfNetwork([...from("AS15169", GOOGLE, 5), ...from("AS64500", "Mozilla", 5)])).toBeNull();
    expect(crawlerOfNetwork([...from("AS15169", GOOGLE, 5), ...from("AS64500", "Mozilla", 4)])).toBe(
      "Googlebot",
    );
    expect(crawlerOfNetwork([])).toBeNull();
  });
});

function createDns(names: Record<string, string[]>, addresses: Record<string, string[]>) {
  const asked: string[] = [];
  const find = (from: Record<string, string[]>) => async (key: string) => {
    asked.push(key);
    const found = from[key];
    if (found === undefined) throw new Error("ENOTFOUND");
    return found;
  };
  return {
    asked,
    dns: { reverse: find(names), resolve4: find(addresses), resolve6: find(addresses) } as never,
  };
}

test("an address is an operator's if its name is in the operator's domain and leads back to the address", async () => {
  const { dns } = createDns(
    {
      "66.249.66.1": ["crawl.googlebot.com"],
      "203.0.113.7": ["crawl.googlebot.com"],
      "203.0.113.8": ["host.evil.test"],
      "2001:4860:4801:10::1": ["six.googlebot.com"],
    },
    { "crawl.googlebot.com": ["66.249.66.1"], "six.googlebot.com": ["2001:4860:4801:0010:0:0:0:1"] },
  );
  const verify = createVerifyCrawler(dns);
  expect(await verify("66.249.66.1")).toBe("Googlebot");
  expect(await verify("2001:4860:4801:10::1")).toBe("Googlebot");
  for (const ip of ["203.0.113.7", "203.0.113.8", "203.0.113.9"]) expect(await verify(ip)).toBeNull();
});

test("a masked address, a pseudonym and any other text are never asked about, and a verified address only once", async () => {
  const { dns, asked } = createDns(
    { "66.249.66.1": ["a.googlebot.com"] },
    { "a.googlebot.com": ["66.249.66.1"] },
  );
  const verify = createVerifyCrawler(dns);
  for (const ip of ["203.0.113.*", "anon-74r3l3nd4ia4o-25b2kpscrmniq", "", "a.googlebot.com"])
    expect(await verify(ip)).toBeNull();
  expect(await Promise.all([verify("66.249.66.1"), verify("66.249.66.1")])).toEqual([
    "Googlebot",
    "Googlebot",
  ]);
  expect(asked).toEqual(["66.249.66.1", "a.googlebot.com"]);
});

test("an address with a thousand names causes few look-ups", async () => {
  const names = Array.from({ length: 1_000 }, (_, i) => `n${i}.googlebot.com`);
  const { dns, asked } = createDns({ "203.0.113.7": names }, {});
  expect(await createVerifyCrawler(dns)("203.0.113.7")).toBeNull();
  expect(asked.length).toBeLessThan(5);
});
