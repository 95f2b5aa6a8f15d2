import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  compareLeads,
  findSameCause,
  findSummed,
  type LeadRank,
} from "#detection/rules/incidents/member-share.ts";
import type { MinuteEvent } from "#detection/rules/sources/usual-rules.ts";
import { isResponseRule, isSumRule } from "#model/rules.ts";

const START = 29_000_000;

/** Events of different visitors, each on a page of its own, two a minute. */
function eventsOf(number: number, over: (index: number) => Partial<MinuteEvent> = () => ({})): MinuteEvent[] {
  return Array.from({ length: number }, (_, index) => ({
    minute: START + Math.floor(index / 2),
    ruleId: "941100",
    ip: `198.51.100.${index}`,
    asn: `AS${64_500 + index}`,
    ja4: "t13d",
    ua: "browser",
    url: `https://shop.example/page/${index}?q=1`,
    ...over(index),
  }));
}

/** The events of which the first ones are also of another rule, and the others of nobody else. */
const shared = (number: number, of = 10) =>
  eventsOf(of, (index) => ({ ruleId: "942100", ...(index < number ? {} : { ip: `203.0.113.${index}` }) }));

/** Events of as many senders, the first of which has that number, with two browsers on one path. */
const crowd = (first: number, senders: number, over: (index: number) => Partial<MinuteEvent> = () => ({})) =>
  eventsOf(senders, (index) => ({
    ip: `192.0.2.${first + index}`,
    ja4: `browser ${index % 2}`,
    url: `/search?q=${first + index}`,
    ...over(index),
  }));
const start = () => ({ url: "https://shop.example/?a=1" });
const unknown = () => ({ ja4: null, ua: null });

const isSame = (events: readonly MinuteEvent[], other: readonly MinuteEvent[]) =>
  findSameCause(events, [{ events: other }]) !== null;

describe("the cause of a rule's events is another rule's", () => {
  test.each<[string, readonly MinuteEvent[], readonly MinuteEvent[], boolean]>([
    ["if seven of ten requests are also the other's", shared(7), eventsOf(10), true],
    ["not if six of ten requests are", shared(6), eventsOf(10), false],
    ["however many more requests the other has", shared(7), eventsOf(200), true],
    [
      "not if the requests are of other minutes",
      eventsOf(10, (i) => ({ ip: "0.0.0.0", ja4: `tool ${i}` })),
      eventsOf(10, (i) => ({ ip: "0.0.0.0", ja4: `tool ${i}`, minute: START + 30 + i })),
      false,
    ],
    [
      "not if the same senders are on other pages",
      shared(10),
      eventsOf(10, (i) => ({ url: `/other/${i}` })),
      false,
    ],
    [
      "if seven of ten senders are the other's, on one path",
      shared(7).map((event) => ({ ...event, url: "/login?a=1" })),
      eventsOf(10, (i) => ({ minute: START + 30 + i, url: "https://shop.example/login" })),
      true,
    ],
    [
      "not if six of ten senders are, on one path with other clients",
      shared(6).map((event) => ({ ...event, url: "/login?a=1", ja4: "other" })),
      eventsOf(10, (i) => ({ minute: START + 30 + i, url: "https://shop.example/login" })),
      false,
    ],
    [
      "if the addresses are no visitors' and the fingerprints are the same",
      shared(10).map((event) => ({ ...event, ip: "0.0.0.0" })),
      eventsOf(10, () => ({ ip: "0.0.0.0" })),
      true,
    ],
    [
      "not if no visitor's address is all that they share, on one path",
      eventsOf(10, (i) => ({ ip: "0.0.0.0", url: "/login", ja4: `one ${i}` })),
      eventsOf(10, (i) => ({ ip: "0.0.0.0", url: "/login", ja4: `other ${i}` })),
      false,
    ],
    [
      "not if neither sender nor page of a request is known",
      eventsOf(10, () => ({ ip: null, ja4: null, ua: null, url: null })),
      eventsOf(10, () => ({ ip: null, ja4: null, ua: null, url: null })),
      false,
    ],
    [
      "not if the page of a request is not known",
      eventsOf(10, () => ({ ip: null, url: null })),
      eventsOf(10, () => ({ ip: null, url: null })),
      false,
    ],
    [
      "not if the sender of a request is not known",
      eventsOf(10, () => ({ ip: null, ja4: null, ua: null })),
      eventsOf(10, () => ({ ip: null, ja4: null, ua: null })),
      false,
    ],
    [
      "if both senders are one IPv6 customer",
      eventsOf(10, (i) => ({ ip: `2001:db8::${i}`, url: "/login", minute: START + i })),
      eventsOf(10, (i) => ({ ip: `2001:db8::a${i}`, url: "/login", minute: START + i })),
      true,
    ],
    [
      "if both are mostly of several addresses with one agent in one network",
      eventsOf(10, (i) => ({ ip: `192.0.2.${i}`, asn: i < 7 ? "AS1" : "AS2", ua: "app/2", url: `/a/${i}` })),
      eventsOf(10, (i) => ({ ip: `192.0.3.${i}`, asn: "AS1", ua: "app/2", url: `/b/${i}` })),
      true,
    ],
    [
      "not if six of ten requests have that agent in that network",
      eventsOf(10, (i) => ({ ip: `192.0.2.${i}`, asn: i < 6 ? "AS1" : "AS2", ua: "app/2", url: `/a/${i}` })),
      eventsOf(10, (i) => ({ ip: `192.0.3.${i}`, asn: "AS1", ua: "app/2", url: `/b/${i}` })),
      false,
    ],
    [
      "not if the agents in one network are others",
      eventsOf(10, (i) => ({ ip: `192.0.2.${i}`, asn: "AS1", ua: "app/2", url: `/a/${i}` })),
      eventsOf(10, (i) => ({ ip: `192.0.3.${i}`, asn: "AS1", ua: "app/3", url: `/b/${i}` })),
      false,
    ],
    ["if many other senders with the same clients are on one path", crowd(1, 5), crowd(100, 40), true],
    ["if few other senders are, with the same clients as few", crowd(1, 2), crowd(100, 4), true],
    ["not if few senders are among many", crowd(1, 4), crowd(100, 40), false],
    [
      "if few senders are among many, all with one tool",
      crowd(1, 4, () => ({ ja4: "tool" })),
      crowd(100, 40, () => ({ ja4: "tool" })),
      true,
    ],
    [
      "if seven tenths of the clients are the other's",
      crowd(1, 10, (i) => (i < 3 ? { ja4: "else" } : {})),
      crowd(100, 40),
      true,
    ],
    [
      "not if six tenths of the clients are",
      crowd(1, 10, (i) => (i < 4 ? { ja4: "else" } : {})),
      crowd(100, 40),
      false,
    ],
    [
      "not if only six tenths of the other's requests are on the path",
      crowd(1, 10),
      crowd(100, 40, (i) => (i < 16 ? { url: `/page/${i}` } : {})),
      false,
    ],
    ["not if the path is the start page", crowd(1, 10, start), crowd(100, 40, start), false],
    ["not if no client is known", crowd(1, 10, unknown), crowd(100, 40, unknown), false],
    ["not without events", [], eventsOf(10), false],
    ["not if the other has no events", shared(10), [], false],
  ])("%s", (_what, events, other, expected) => {
    expect(isSame(events, other)).toBe(expected);
  });

  test("of several with the largest share", () => {
    const others = [8, 10, 9].map((number) => ({ number, events: eventsOf(10).slice(0, number) }));
    expect(findSameCause(shared(10), others)?.number).toBe(10);
  });
});

describe("the lead of a rule that adds others up", () => {
  const part = (from: number, to: number) => ({ from, events: eventsOf(10).slice(from, to) });
  const findOf = (...others: ReturnType<typeof part>[]) => findSummed(eventsOf(10), others)?.from ?? null;

  test("is the rule with the same requests, or the one with most of them if several have them together", () => {
    expect(findOf(part(0, 10))).toBe(0);
    expect(findOf(part(0, 3), part(3, 7))).toBe(3);
    expect(findOf(part(0, 4), part(2, 7))).toBe(2);
  });

  test("is none if others have less than seven tenths of the requests together", () => {
    expect(findOf(part(0, 3), part(3, 6))).toBeNull();
    expect(findOf(part(0, 3), part(0, 5), part(1, 6))).toBeNull();
    expect(findOf()).toBeNull();
    expect(findSummed([], [part(0, 10)])).toBeNull();
  });
});

describe("a lead", () => {
  const rank = (over: Partial<LeadRank> = {}): LeadRank => ({ id: 5, ruleId: "942100", score: 4, ...over });

  test.each<[string, LeadRank, LeadRank]>([
    ["is the older spike", rank({ id: 4, score: 3.5 }), rank({ id: 5, score: 9 })],
    ["is a stored spike before one that opens", rank({ score: 3.5 }), rank({ id: null, score: 9 })],
    [
      "is the strongest of those that open together",
      rank({ id: null, score: 5 }),
      rank({ id: null, score: 4 }),
    ],
    [
      "is the lower rule id of equals",
      rank({ id: null, ruleId: "941100" }),
      rank({ id: null, ruleId: "942100" }),
    ],
    [
      "is not a sum rule, however old",
      rank({ id: null, score: 3.5 }),
      rank({ id: 1, ruleId: "949110", score: 20 }),
    ],
  ])("%s", (_what, first, second) => {
    expect([second, first].toSorted(compareLeads)).toEqual([first, second]);
    expect(compareLeads(first, second)).toBeLessThan(0);
    expect(compareLeads(second, first)).toBeGreaterThan(0);
  });

  test("is the same one in whatever order the spikes are read", () => {
    const ranks = fc.uniqueArray(
      fc.record({
        id: fc.option(fc.integer({ min: 1, max: 5 })),
        ruleId: fc.constantFrom("941100", "942100", "949110", "980130"),
        score: fc.constantFrom(3.5, 4, 9),
      }),
      { selector: ({ ruleId }) => ruleId, minLength: 2 },
    );
    fc.assert(
      fc.property(ranks, (drawn) => {
        const sorted = drawn.toSorted(compareLeads);
        expect(drawn.toReversed().toSorted(compareLeads)).toEqual(sorted);
        const sums = sorted.map(({ ruleId }) => isSumRule(ruleId));
        expect(sums).toEqual(sums.toSorted((a, b) => Number(a) - Number(b)));
      }),
    );
  });
});

test("the families of rules are those of the core rule set", () => {
  const rules = [
    "901340",
    "913100",
    "949110",
    "950100",
    "953100",
    "955100",
    "956100",
    "957100",
    "959100",
    "980130",
    "949",
    "9491100",
  ];
  expect(rules.filter(isSumRule)).toEqual(["901340", "949110", "959100", "980130"]);
  expect(rules.filter(isResponseRule)).toEqual(["950100", "953100", "955100", "956100"]);
});
