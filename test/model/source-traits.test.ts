import fc from "fast-check";
import ipaddr from "ipaddr.js";
import { expect, test } from "vitest";
import { createKnownSources, findTooManyKnown, type KnownSource } from "#model/known-source.ts";
import { isAddressPattern, toTraitTest } from "#model/subject.ts";

/** Few different bits, so that random networks and addresses meet. */
const ipv4 = fc
  .tuple(fc.constantFrom(10, 203), fc.nat(1), fc.nat(1), fc.nat(7))
  .map((bytes) => bytes.join("."));
const ipv6 = fc.tuple(fc.nat(1), fc.nat(1), fc.nat(3)).map(([a, b, c]) => `2001:db8:0:${a}:0:0:${b}:${c}`);
const network = fc.oneof(
  fc.tuple(ipv4, fc.integer({ min: 0, max: 32 })).map(([ip, bits]) => `${ip}/${bits}`),
  fc.tuple(ipv6, fc.integer({ min: 0, max: 128 })).map(([ip, bits]) => `${ip}/${bits}`),
);
const address = fc.oneof(ipv4, ipv6);

/** Compares each pattern with the value by the library, as a person reads them. */
function isIn(pattern: string, value: string): boolean {
  const found = ipaddr.process(value);
  const [base = "", bits] = pattern.split("/");
  const wanted = ipaddr.parse(base);
  const length = bits === undefined ? wanted.toByteArray().length * 8 : Number(bits);
  return wanted.kind() === found.kind() && found.match(wanted, length);
}

test("an address matches a list if it is in one of its addresses and networks, however they overlap", () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(address, network), { maxLength: 12 }), address, (patterns, value) => {
      expect(toTraitTest("ip", patterns)(value)).toBe(patterns.some((pattern) => isIn(pattern, value)));
    }),
  );
});

test("a beginning matches a list if one of its patterns begins or is the value", () => {
  const text = fc
    .array(fc.constantFrom("a", "b", "/", "\uffff"), { maxLength: 4 })
    .map((all) => all.join(""));
  const pattern = fc.tuple(text, fc.boolean()).map(([begun, isOpen]) => begun + (isOpen ? "*" : ""));
  fc.assert(
    fc.property(fc.array(pattern, { maxLength: 8 }), text, (patterns, value) => {
      const isLike = (one: string) =>
        one.endsWith("*") ? value.startsWith(one.slice(0, -1)) : one === value;
      expect(toTraitTest("ua", patterns)(value)).toBe(patterns.some(isLike));
    }),
  );
});

test.each([
  ["203.0.113.9", "::ffff:203.0.113.9", true],
  ["::ffff:203.0.113.9", "203.0.113.9", true],
  ["::ffff:203.0.113.0/120", "203.0.113.9", true],
  ["2001:db8::9", "2001:db8::/64", true],
  ["2001:db8::/48", "2001:db8:0:7::/64", true],
  ["2001:db8:0:0:1::/80", "2001:db8::/64", true],
  ["2001:db8:0:1::/64", "2001:db8::/64", false],
  ["203.0.113.*", "203.0.113.*", true],
  ["203.0.113.0/24", "203.0.113.*", false],
  ["0.0.0.0/0", "2001:db8::9", false],
  ["::/0", "203.0.113.9", false],
  ["203.0.113.9", "0xcb.0.113.9", false],
  ["203.0.113.9", "203.0.113.009", false],
])("an address %s and the value %s match: %s", (pattern, value, expected) => {
  expect(toTraitTest("ip", [pattern])(value)).toBe(expected);
});

test.each([
  "203.0.113.9/33",
  "1.2",
  "3405803785",
  "2001:db8::/129",
  "::ffff:203.0.113.0/24",
  " 203.0.113.9",
  "203.0.113.9,198.51.100.0/24",
  "[2001:db8::1]:443/64",
  "",
])("%j is no address and no network", (text) => {
  expect(isAddressPattern(text)).toBe(false);
});

test("a list's patterns are read once, whatever the number of values", () => {
  let reads = 0;
  const patterns = new Proxy(
    Array.from({ length: 500 }, (_, i) => `198.51.100.${i % 256}`),
    {
      get(target, key, receiver) {
        if (typeof key === "string" && /^\d+$/.test(key)) reads += 1;
        return Reflect.get(target, key, receiver) as unknown;
      },
    },
  );
  const list: KnownSource[] = patterns.map((pattern) => ({ kind: "ip", pattern, ...EVERYWHERE }));
  const test = toTraitTest("ip", patterns);
  const before = reads;
  for (let i = 0; i < 10_000; i += 1) test(`10.0.${i >> 8}.${i & 255}`);
  expect(reads).toBe(before);
  // Zones that name none of their own share what is made for all.
  const known = createKnownSources(list, 0);
  expect(known(1)).toBe(known(2));
});

const EVERYWHERE = { zoneIds: null, reason: "a test", untilMs: null } as const;

test("at most 500 patterns hold in one zone, those for every zone among them, and at most 2,000 in all", () => {
  let next = 0;
  const many = (count: number, zoneIds: readonly number[] | null, more: Partial<KnownSource> = {}) =>
    Array.from(
      { length: count },
      (): KnownSource => ({
        kind: "ua",
        pattern: `p${next++}`,
        zoneIds,
        reason: "x",
        untilMs: null,
        ...more,
      }),
    );
  const find = (list: readonly KnownSource[], zone?: number) =>
    findTooManyKnown(list, { nowMs: 1_000, zone });
  expect(find([...many(400, null), ...many(100, [7]), ...many(100, [8])])).toBeNull();
  expect(find([...many(400, null), ...many(101, [8, 8])])).toMatchObject({
    count: 501,
    rule: expect.stringContaining("500 known sources in zone 8,") as string,
  });
  expect(find(many(501, null))).toMatchObject({ count: 501 });
  expect(find(many(501, [8]), 7)).toBeNull();
  expect(find(many(501, null), 7)).toMatchObject({ count: 501 });
  const spread = Array.from({ length: 2_001 }, (_, i) => many(1, [i])).flat();
  expect(find(spread, 7)).toMatchObject({ count: 2_001 });
  // What has ended, and the same pattern again, recognise nothing more.
  expect(find([...many(500, [7]), ...many(600, [7], { untilMs: 1_000 })])).toBeNull();
  expect(find([...many(499, [7]), ...many(3_000, [7], { pattern: "same" })])).toBeNull();
  expect(
    find([...many(499, [7]), ...many(1, null, { pattern: "same" }), ...many(1, [7], { pattern: "same" })]),
  ).toBeNull();
  expect(find([...many(500, [7]), ...many(1, [7], { untilMs: 1_001 })])).toMatchObject({ count: 501 });
});
