import { expect, test } from "vitest";
import { looksRising } from "#detection/rules/sources/judge-sources.ts";

const NOW = Date.UTC(2026, 10, 20, 15, 30);
const NOBODY = { ip: null, ruleId: null, ja4: null, url: null, ua: null, asn: null };

type Given = Partial<Record<keyof typeof NOBODY, string>> & { readonly secondsAgo?: number };

function isRisingWith(count: number, draw: (i: number) => Given): boolean {
  const events = Array.from({ length: count }, (_, i) => {
    const { secondsAgo = 1, ...given } = draw(i);
    return { ...NOBODY, ...given, occurredAt: NOW - secondsAgo * 1_000 };
  });
  return looksRising(events, NOW);
}

test("five rules of one address look like a scanner, four do not", () => {
  const scan = (i: number) => ({ ip: "198.51.100.7", ruleId: `94${i}100` });
  expect([isRisingWith(4, scan), isRisingWith(5, scan)]).toEqual([false, true]);
});

test("the rules of an IPv6 network count together", () => {
  expect(isRisingWith(5, (i) => ({ ip: `2001:db8:0:1::${i + 1}`, ruleId: `94${i}100` }))).toBe(true);
});

test("one rule that fires often and rules of many addresses look like no scanner", () => {
  expect(isRisingWith(50, () => ({ ip: "198.51.100.7", ruleId: "942100" }))).toBe(false);
  expect(isRisingWith(50, (i) => ({ ip: `198.51.100.${i}`, ruleId: `94${i}100` }))).toBe(false);
});

test.each<[string, (i: number) => Given]>([
  ["fingerprint", () => ({ ja4: "t13d1516h2_net" })],
  ["path", (i) => ({ url: `https://shop.example/login?try=${i}` })],
])("ten addresses with one %s look like a botnet, nine do not", (_, share) => {
  const bot = (i: number) => ({ ip: `198.51.100.${i}`, ...share(i) });
  expect([isRisingWith(9, bot), isRisingWith(10, bot)]).toEqual([false, true]);
});

test("events older than a minute, and those without an address, do not count", () => {
  expect(isRisingWith(5, (i) => ({ ip: "198.51.100.7", ruleId: `94${i}100`, secondsAgo: 60 }))).toBe(false);
  expect(isRisingWith(50, (i) => ({ ip: "", ruleId: `94${i}100`, ja4: "t13d", url: "/" }))).toBe(false);
});
