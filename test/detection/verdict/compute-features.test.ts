import { expect, test } from "vitest";
import type { Features } from "#model/verdict.ts";
import { computeFeatures } from "#stages/detection/verdict/compute-features.ts";
import { ATTACK, evidenceOf, type Told } from "./evidence-of.ts";

const read = (told: Told) => computeFeatures(evidenceOf(told));

test.each<[string, Told, Partial<Features>]>([
  ["a hundred addresses", { number: 100, event: (index) => ({ ip: `10.0.0.${index}` }) }, { spread: 1 }],
  ["ten", { number: 100, event: (index) => ({ ip: `10.0.0.${index % 10}` }) }, { spread: 0.5 }],
  ["one", { event: () => ({ ip: "10.0.0.1" }) }, { spread: 0 }],
  ["masked addresses", { event: () => ({ ip: "203.0.113.*" }) }, { spread: 0 }],
  ["one network of 64 bits", { event: (index) => ({ ip: `2001:db8::${index}` }) }, { spread: 0 }],
  [
    "no addresses",
    { event: () => ({ ip: "" }) },
    { spread: null, usualAsn: null, dirty: null, repeat: null },
  ],
  ["a network in four", { usual: { asns: new Set(["64500"]) } }, { usualAsn: 0.25 }],
  ["networks of nobody", { event: () => ({ asn: "" }) }, { usualAsn: null }],
  ["four days of history", { usual: { days: 4 } }, { usualAsn: null, usualJa4: 1, knownPath: 1 }],
  ["no day of history", { usual: { days: 0.9 } }, { usualAsn: null, usualJa4: null, knownPath: null }],
  ["half of the JA4", { event: (index) => ({ ja4: index % 2 === 0 ? "" : "other" }) }, { usualJa4: 0 }],
  ["no JA4", { event: () => ({ ja4: "" }) }, { usualJa4: null }],
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
  ["idioms", { request: (index) => ({ matched: index % 5 === 0 ? "{{7*7}}" : null }) }, { idiom: 0.2 }],
  ["idioms of URLs", { ...ATTACK, request: () => ({ matched: null }) }, { idiom: 1 }],
  ["idioms of URLs without records", { ...ATTACK, request: null }, { idiom: 1 }],
  ["a host that is an address", { event: () => ({ url: "http://192.0.2.1/a.php" }) }, { idiom: 0 }],
  [
    "queries without records",
    { request: null, event: (index) => ({ url: index % 2 === 0 ? "/a?q=1" : "/a" }) },
    { idiom: 0 },
  ],
  ["URLs three times", { number: 120, event: () => ({ url: "/a" }) }, { repeat: 1 }],
  ["URLs twice", { number: 80, event: () => ({ url: "/a" }) }, { repeat: 0 }],
  [
    "bots",
    { event: (index) => ({ ua: ["", "Examplebot", "UptimeMonitor", "curl"][index % 4] ?? "" }) },
    { botUa: 2 / 3 },
  ],
  ["no agents", { event: () => ({ ua: "" }) }, { botUa: null }],
])("of events with %s the numbers are as expected", (_, told, expected) => {
  const { features } = read(told);
  const rounded = (value: number | null) => (value === null ? null : Number(value.toFixed(9)));
  const names = Object.keys(expected) as (keyof Features)[];
  expect(names.map((name) => [name, rounded(features[name])])).toEqual(
    names.map((name) => [name, rounded(expected[name] ?? null)]),
  );
});

test("a zone that never logs cookies knows nothing of sessions until one is seen", () => {
  const usual = { hasCookies: false };
  expect(read({ usual, request: () => ({ hasSession: false }) }).features.session).toBeNull();
  expect(read({ usual, request: (index) => ({ hasSession: index % 2 === 0 }) }).features.session).toBe(0.5);
});

test("slugs of one section are one path, as they are when they were learnt", () => {
  const told = {
    event: (index: number) => ({ url: `/blog/on-${String.fromCharCode(97 + (index % 20))}-things` }),
  };
  expect(read(told)).toMatchObject({ features: { onePath: 1, knownPath: 0 }, counts: { paths: 1 } });
  expect(read({ ...told, usual: { paths: new Set(["/blog/{slug}"]) } }).features.knownPath).toBe(1);
  expect(read({ ...told, usual: { paths: new Set(["/blog/on-a-things"]) } }).features.knownPath).toBeCloseTo(
    1 / 20,
    9,
  );
});

test("the counts are of the window", () => {
  const actions = ["blocked", "challenged", "logged", "other"] as const;
  const { counts } = read({
    number: 300,
    event: (index) => ({ action: actions[index % 10] ?? "blocked", url: index < 150 ? "/a" : "/b" }),
  });
  expect(counts).toEqual({
    events: 300,
    addresses: 40,
    networks: 4,
    paths: 2,
    blocked: 210,
    challenged: 30,
    logged: 30,
    other: 30,
    records: 200,
  });
});
