import fc from "fast-check";
import ipaddr from "ipaddr.js";
import { expect, test } from "vitest";
import { createSecret } from "#lib/secret.ts";
import { readAddress } from "#model/ip-address.ts";
import { matchTombstones } from "#people/rules/erasure-guard.ts";
import {
  createErasureTarget,
  type Network,
  readNetwork,
  singleAddress,
} from "#people/rules/erasure-target.ts";
import { createPseudonymKey, toPseudonym } from "#people/rules/pseudonym.ts";
import { replaceInJson } from "#people/rules/replace-addresses.ts";

const KEY = createPseudonymKey(createSecret("a key of thirty-two characters!!"));

function target(network: Network | null, includeMasked = false) {
  if (network === null) throw new Error("no network");
  return createErasureTarget(KEY, network, { includeMasked });
}

/** Matches an address and a network with another library than ours. */
function isWithin(ip: string, cidr: string): boolean {
  const [address, network] = [ipaddr.process(ip), ipaddr.parseCIDR(cidr)];
  return address.kind() === network[0].kind() && address.match(network);
}

const v4 = fc.tuple(fc.ipV4(), fc.ipV4(), fc.integer({ min: 14, max: 32 }));
/** The library reads `::1.2.3.4` as the IPv4 address as well; of such a one there is no IPv6 network. */
const ipv6 = fc.ipV6().filter((ip) => ipaddr.process(ip).kind() === "ipv6");
const v6 = fc.tuple(
  ipv6,
  fc.ipV6(),
  fc.oneof(fc.integer({ min: 53, max: 64 }), fc.integer({ min: 117, max: 128 })),
);

test("a network covers exactly its addresses, full or as pseudonyms, and its tombstone the same ones", () => {
  fc.assert(
    fc.property(fc.oneof(v4, v6), fc.boolean(), ([base, other, prefix], isNear) => {
      const asked = target(readNetwork(`${base}/${prefix}`));
      const ip = isNear ? base : other;
      const expected = isWithin(ip, `${base}/${prefix}`);
      expect(asked.covers(ip)).toBe(expected);
      expect(asked.covers(toPseudonym(KEY, ip))).toBe(expected);
      const tombstone = { ...asked, untilAt: 5, maskedHash: null, maskedPrefix: null };
      expect(matchTombstones(KEY, [tombstone])(ip)).toBe(expected ? 5 : null);
    }),
    { numRuns: 60 },
  );
});

test("a masked address matches only if requested, and is reported as possible in any case", () => {
  const shy = target(singleAddress("203.0.113.7"));
  expect([shy.covers("203.0.113.*"), shy.mayBeMasked("203.0.113.*"), shy.mayBeMasked("203.0.112.*")]).toEqual(
    [false, true, false],
  );
  const bold = target(singleAddress("203.0.113.7"), true);
  expect([bold.covers("203.0.113.*"), bold.covers("203.0.112.*")]).toEqual([true, false]);
  const { masked } = bold;
  const tombstone = {
    ...bold,
    untilAt: 5,
    maskedHash: masked?.hash ?? null,
    maskedPrefix: masked?.prefix ?? null,
  };
  const match = matchTombstones(KEY, [tombstone]);
  expect([match("203.0.113.*"), match("203.0.112.*"), match("203.0.113.7"), match("203.0.113.8")]).toEqual([
    5,
    null,
    5,
    null,
  ]);
  expect(target(readNetwork("203.0.0.0/16"), true).covers("203.0.99.*")).toBe(true);
});

test("the later end of two tombstones of one address counts, and hashes reveal nothing without the key", () => {
  const { family, prefix, hash } = target(singleAddress("2001:db8::1"));
  const stone = (untilAt: number) => ({
    family,
    prefix,
    hash,
    untilAt,
    maskedHash: null,
    maskedPrefix: null,
  });
  expect(matchTombstones(KEY, [stone(9), stone(4)])("2001:DB8::1")).toBe(9);
  const other = createPseudonymKey(createSecret("another key of thirty-two chars!"));
  expect(matchTombstones(other, [stone(9)])("2001:db8::1")).toBeNull();
});

test.each([
  "203.0.113.0/33",
  "203.0.113.0/7",
  "203.0.113.0",
  "2001:db8::/47",
  "2001:db8::/80",
  "::ffff:203.0.113.0/120",
  "203.0.113/24",
  "0x7f.0.0.1/32",
  "",
])("%j is no network that can be erased", (text) => expect(readNetwork(text)).toBeNull());

test.each([
  "203.0.113.*",
  "erased",
  "1",
  "0x7f000001",
  "127.1",
  "203.0.113.7:http",
  "",
  "::g",
  "a:".repeat(30),
])("%j is no address", (text) => {
  expect(singleAddress(text)).toBeNull();
  expect(target(singleAddress("127.0.0.1"), true).covers(text)).toBe(false);
});

test("networks are taken as wide as their pseudonyms can be found, and not a bit wider", () => {
  const taken = ["10.0.0.0/8", "203.0.113.0/25", "2001:db8::/48", "2001:db8::/112", "2001:db8::1/128"];
  expect(taken.filter((text) => readNetwork(text) === null)).toEqual([]);
  const refused = [
    "10.0.0.0/7",
    "203.0.113.0/33",
    "2001:db8::/47",
    "2001:db8::/111",
    "2001:db8::/65",
    "2001:db8::/129",
  ];
  expect(refused.filter((text) => readNetwork(text) !== null)).toEqual([]);
});

test("the longest way to write an address is one, and a longer text is none", () => {
  const mapped = "2001:0db8:1111:2222:3333:4444:203.100.113.107";
  expect(mapped).toHaveLength(45);
  expect(readAddress(mapped)?.family).toBe(6);
  expect(readAddress(`0${mapped}`)).toBeNull();
});

test("a source that is named by its IPv6 network is erased with an address of it, and no other", () => {
  const { covers, isSenderOf } = target(singleAddress("2001:db8:1:2:5::1"));
  const replace = (ip: string) => (covers(ip) || isSenderOf(ip) ? "erased" : null);
  const sources = { findings: [{ key: "2001:db8:1:2::/64" }, { key: "2001:db8:1:3::/64" }] };
  expect(replaceInJson(sources, replace, { dropTraits: true })).toEqual({
    findings: [{ key: "erased/64" }, { key: "2001:db8:1:3::/64" }],
  });
  expect(isSenderOf("2001:db8:1:2::9")).toBe(false);
});

test("a source that is named by its IPv6 network gets a pseudonym", () => {
  const replaced = replaceInJson({ key: "2001:db8:1:2::/64" }, (ip) => toPseudonym(KEY, ip), {
    dropTraits: false,
  });
  expect(replaced).toEqual({ key: expect.stringMatching(/^anon-[a-z2-7]{13}-[a-z2-7]{13}\/64$/) });
});
