import { expect, test } from "vitest";
import { computeFeatures } from "#detection/rules/verdict/compute-features.ts";
import { groupRequests } from "#detection/rules/verdict/requests.ts";
import type { Features } from "#model/verdict.ts";
import { ATTACK, evidenceOf, type Told, USUAL_PATHS } from "./evidence-of.ts";

/** Nobody is "few addresses" if the address is not known. */
const NOBODY = { spread: null, usualAsn: 1, dirty: null, rulesPerIp: null, repeat: null };

function read(told: Told) {
  const evidence = evidenceOf(told);
  return computeFeatures(evidence, groupRequests(evidence.events));
}

test.each<[string, Told, Partial<Features>]>([
  ["a hundred addresses", { number: 100, event: (index) => ({ ip: `10.0.0.${index}` }) }, { spread: 1 }],
  ["ten", { number: 100, event: (index) => ({ ip: `10.0.0.${index % 10}` }) }, { spread: 0.5 }],
  ["one", { event: () => ({ ip: "10.0.0.1" }) }, { spread: 0 }],
  ["masked addresses", { event: () => ({ ip: "203.0.113.*" }) }, { spread: 0 }],
  ["one network of 64 bits", { event: (index) => ({ ip: `2001:db8::${index}` }) }, { spread: 0 }],
  ["no addresses", { event: () => ({ ip: "" }) }, NOBODY],
  ["a network in four", { usual: { asns: new Set(["64500"]) } }, { usualAsn: 0.25 }],
  ["networks of nobody", { event: () => ({ asn: "" }) }, { usualAsn: null }],
  ["four days of history", { usual: { days: 4 } }, { usualAsn: null, usualJa4: 1, knownPath: 1 }],
  ["no day of history", { usual: { days: 0.9 } }, { usualAsn: null, usualJa4: null, knownPath: null }],
  ["half of the JA4", { event: (index) => ({ ja4: index % 2 === 0 ? "" : "other" }) }, { usualJa4: 0 }],
  ["no JA4", { event: () => ({ ja4: "" }) }, { usualJa4: null }],
  ["three JA4", {}, { oneJa4: 0 }],
  [
    "nine of ten JA4 alike",
    { event: (index) => ({ ja4: index % 10 === 0 ? "other" : "one" }) },
    { oneJa4: 1 },
  ],
  [
    "eight of ten JA4 alike",
    { event: (index) => ({ ja4: index % 5 === 0 ? "other" : "one" }) },
    { oneJa4: 0 },
  ],
  [
    "one JA4 of four addresses",
    { event: (index) => ({ ja4: "one", ip: `10.0.0.${index % 4}` }) },
    { oneJa4: null },
  ],
  [
    "one JA4 of five addresses",
    { event: (index) => ({ ja4: "one", ip: `10.0.0.${index % 5}` }) },
    { oneJa4: 1 },
  ],
  ["one JA4 without addresses", { event: () => ({ ja4: "one", ip: "" }) }, { oneJa4: 1 }],
  ["a rule that reads no texts", { event: () => ({ ruleId: "2097160" }) }, { idiom: null }],
  [
    "a rule that reads no texts and idioms",
    { event: () => ({ ruleId: "2097160" }), request: (index) => ({ matched: index < 20 ? "{{7*7}}" : "a" }) },
    { idiom: 1 },
  ],
  ["one rule", {}, { dirty: 0, rulesPerIp: 0 }],
  ["two rules elsewhere", { rulesElsewhere: 2 }, { dirty: 0 }],
  ["three rules elsewhere", { rulesElsewhere: 3 }, { dirty: 1, rulesPerIp: 0.5 }],
  ["a hundred rules elsewhere", { rulesElsewhere: 100 }, { dirty: 1, rulesPerIp: 1 }],
  [
    "two paths",
    { event: (index) => ({ url: index % 3 === 0 ? "/new" : `/reviews/${index}` }) },
    { onePath: 2 / 3, knownPath: 2 / 3 },
  ],
  ["no URL", { event: () => ({ url: "" }) }, { onePath: null, knownPath: null, repeat: null }],
  ["sessions", { request: (index) => ({ hasSession: index % 4 === 0 }) }, { session: 0.25 }],
  [
    "no headers",
    { request: () => ({ hasSession: null, hasOwnReferer: null }) },
    { session: null, referer: null },
  ],
  ["no records", { request: null }, { session: null, referer: null, idiom: null }],
  ["idioms", { request: (index) => ({ matched: index % 5 === 0 ? "{{7*7}}" : "a" }) }, { idiom: 0.2 }],
  ["idioms of URLs", { ...ATTACK, request: () => ({ matched: null }) }, { idiom: 1 }],
  ["idioms of URLs without records", { ...ATTACK, request: null }, { idiom: 1 }],
  ["a host that is an address", { event: () => ({ url: "http://192.0.2.1/a.php" }) }, { idiom: 0 }],
  [
    "queries without records",
    { request: null, event: (index) => ({ url: index % 2 === 0 ? "/a?q=1" : "/a" }) },
    { idiom: 0 },
  ],
  ["texts five times", { number: 200, event: () => ({ url: "/a" }) }, { repeat: 1 }],
  ["texts four times", { number: 160, event: () => ({ url: "/a" }) }, { repeat: 0 }],
  [
    "texts five times with five agents",
    { number: 200, event: (index) => ({ url: "/a", ua: `Mozilla/${Math.floor(index / 40)}` }) },
    { repeat: 0 },
  ],
  ["texts on other pages", { number: 200, event: (index) => ({ url: `/a/${index}` }) }, { repeat: 0 }],
  [
    "other texts on one page",
    {
      number: 200,
      event: () => ({ url: "/a" }),
      request: (index) => ({ matched: `${Math.floor(index / 100)} -- a` }),
    },
    { repeat: 0 },
  ],
  [
    "URLs five times without records",
    { number: 200, request: null, event: () => ({ url: "/a?q=1" }) },
    { repeat: 1 },
  ],
  [
    "URLs without query and records",
    { number: 200, request: null, event: () => ({ url: "/a" }) },
    { repeat: null },
  ],
  [
    "bots",
    { event: (index) => ({ ua: ["", "Examplebot", "UptimeMonitor", "curl"][index % 4] ?? "" }) },
    { botUa: 0.5, program: 1 },
  ],
  ["no agents and headers", { event: () => ({ ua: "" }) }, { botUa: 0, program: 1, tool: 0 }],
  [
    "no agents and no headers",
    { event: () => ({ ua: "" }), request: () => ({ hasSession: null }) },
    { botUa: null, program: null },
  ],
  [
    "tools by their agents",
    { event: (index) => ({ ua: index % 2 === 0 ? "sqlmap/1.8" : "Mozilla/5.0" }) },
    { tool: 0.5, program: 0.5 },
  ],
  ["tools by their rule", { event: () => ({ ruleId: "913100" }) }, { tool: 1 }],
  ["tools without records", { request: null, event: () => ({ ua: "sqlmap/1.8" }) }, { tool: null }],
  ["addresses of nobody", { event: () => ({ ip: "0.0.0.0" }) }, NOBODY],
  ["the address of the edge", { event: () => ({ ip: "127.0.0.1" }) }, NOBODY],
  ["an unknown address", { event: () => ({ ip: "unknown" }) }, NOBODY],
])("of events with %s the numbers are as expected", (_, told, expected) => {
  const { features } = read(told);
  const rounded = (value: number | null) => (value === null ? null : Number(value.toFixed(9)));
  const names = Object.keys(expected) as (keyof Features)[];
  expect(names.map((name) => [name, rounded(features[name])])).toEqual(
    names.map((name) => [name, rounded(expected[name] ?? null)]),
  );
});

test("rules that an address triggers on each of its paths are no rules elsewhere", () => {
  const evidence = evidenceOf();
  const dirtyBy = (elsewhere: readonly string[]) => {
    const nearby = evidence.events.flatMap(({ ip }) => [
      ...["1", "2", "3"].map((ruleId) => ({ ip, ruleId, template: "/reviews/{n}" })),
      ...elsewhere.map((ruleId) => ({ ip, ruleId, template: "/cart" })),
    ]);
    return computeFeatures({ ...evidence, nearby }, groupRequests(evidence.events)).features.dirty;
  };
  expect(dirtyBy(["1", "2", "3"])).toBe(0);
  expect(dirtyBy(["4", "5", "6"])).toBe(1);
});

test("a zone that never logs cookies knows nothing of sessions or referers until one is seen", () => {
  const usual = { hasCookies: false };
  expect(read({ usual, request: () => ({ hasOwnReferer: false }) }).features.referer).toBeNull();
  expect(read({ usual, request: () => ({ hasOwnReferer: true }) }).features.referer).toBe(1);
  expect(read({ usual, request: () => ({ hasSession: false }) }).features.session).toBeNull();
  expect(read({ usual, request: (index) => ({ hasSession: index % 2 === 0 }) }).features.session).toBe(0.5);
});

test("slugs of one section are one path, as they are when they were learnt", () => {
  const told = {
    event: (index: number) => ({ url: `/blog/on-${String.fromCharCode(97 + (index % 20))}-things` }),
  };
  expect(read(told)).toMatchObject({ features: { onePath: 1, knownPath: 0 }, counts: { paths: 1 } });
  expect(
    read({ ...told, usual: { paths: new Set(["/blog/{slug}", ...USUAL_PATHS]) } }).features.knownPath,
  ).toBe(1);
  expect(
    read({ ...told, usual: { paths: new Set(["/blog/on-a-things", ...USUAL_PATHS]) } }).features.knownPath,
  ).toBeCloseTo(1 / 20, 9);
});

test("with fewer than five usual paths, no path is known to be new", () => {
  const paths = (number: number) => new Set(["/reviews/{n}", ...USUAL_PATHS].slice(0, number));
  expect(read({ usual: { paths: paths(4) } }).features.knownPath).toBeNull();
  expect(read({ usual: { paths: paths(5) } }).features.knownPath).toBe(1);
});

test("the counts are of the requests, and an unknown action is neither stopped nor through", () => {
  const actions = ["blocked", "challenged", "logged", "other"] as const;
  const { counts } = read({
    number: 300,
    event: (index) => ({ action: actions[index % 10] ?? "blocked", url: index < 150 ? "/a" : "/b" }),
    request: (index) => ({ matched: index < 30 ? "' or 1=1" : "a" }),
  });
  expect(counts).toEqual({
    requests: 300,
    addresses: 40,
    networks: 4,
    paths: 2,
    blocked: 210,
    challenged: 30,
    logged: 30,
    other: 30,
    hostile: 30,
    hostileThrough: 3,
    injectedThrough: 3,
    records: 300,
  });
});

test("a request that matches three rules is one request, and repeats nothing", () => {
  const rules = ["942100", "942200", "949110"];
  const told = (requestId: (index: number) => string): Told => ({
    number: 60,
    event: (index) => ({
      at: 1_000_000 - Math.floor(index / 3) * 60_000,
      ip: "198.51.100.7",
      url: "/a",
      ruleId: rules[index % 3] ?? "",
      action: index % 3 === 0 ? "logged" : "blocked",
    }),
    request: (index) => ({ requestId: requestId(index), matched: `text ${Math.floor(index / 3)}` }),
  });
  for (const requestId of [(index: number) => `r${Math.floor(index / 3)}`, () => ""]) {
    const { counts, features } = read(told(requestId));
    // One rule stops what others let through.
    expect(counts).toMatchObject({ requests: 20, blocked: 20, logged: 0, records: 20 });
    expect(features.repeat).toBe(0);
    // 949110 only adds the others up.
    expect(features.rulesPerIp).toBe(0.25);
  }
});

test("events without a request's name are two requests if they are far apart or of one rule", () => {
  const two = (ruleId: string, apartMs: number) =>
    read({
      number: 2,
      event: (index) => ({
        at: 1_000_000 - index * apartMs,
        ip: "198.51.100.7",
        url: "/a",
        ruleId: index === 0 ? "942100" : ruleId,
      }),
    }).counts.requests;
  expect(two("942200", 2_000)).toBe(1);
  expect(two("942200", 2_001)).toBe(2);
  expect(two("942100", 0)).toBe(2);
});
