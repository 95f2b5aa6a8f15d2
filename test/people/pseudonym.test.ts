import fc from "fast-check";
import { expect, test } from "vitest";
import { createSecret } from "#lib/secret.ts";
import {
  createPseudonymKey,
  isFullAddress,
  isPseudonym,
  splitPseudonym,
  toPseudonym,
} from "#people/rules/pseudonym.ts";

const KEY = createPseudonymKey(createSecret("a key of thirty-two characters!!"));
const OTHER = createPseudonymKey(createSecret("another key of thirty-two chars!"));

test("equal addresses have one pseudonym, however they are written, and others another", () => {
  expect(toPseudonym(KEY, "203.0.113.7")).toBe(toPseudonym(KEY, "::ffff:203.0.113.7"));
  expect(toPseudonym(KEY, "2001:DB8::1")).toBe(toPseudonym(KEY, "2001:db8:0:0:0:0:0:1"));
  fc.assert(
    fc.property(fc.ipV4(), fc.ipV4(), (a, b) => {
      expect(toPseudonym(KEY, a) === toPseudonym(KEY, b)).toBe(a === b);
      expect(isPseudonym(toPseudonym(KEY, a))).toBe(true);
    }),
  );
});

test("addresses of one network still group together: a /24 of IPv4, a /64 of IPv6", () => {
  const network = (ip: string) => splitPseudonym(toPseudonym(KEY, ip)).network;
  expect(network("203.0.113.7")).toBe(network("203.0.113.250"));
  expect(network("203.0.113.7")).not.toBe(network("203.0.112.7"));
  expect(network("2001:db8:1:2::1")).toBe(network("2001:db8:1:2:ffff::1"));
  expect(network("2001:db8:1:2::1")).not.toBe(network("2001:db8:1:3::1"));
});

test("another key makes other pseudonyms, in the network's part as well, and has another id", () => {
  const [mine, theirs] = [KEY, OTHER].map((key) => splitPseudonym(toPseudonym(key, "203.0.113.7")));
  expect(mine?.network).not.toBe(theirs?.network);
  expect(mine?.address).not.toBe(theirs?.address);
  expect(KEY.id).not.toBe(OTHER.id);
  expect(createPseudonymKey(createSecret("a key of thirty-two characters!!")).id).toBe(KEY.id);
});

test("a masked, empty, erased or pseudonymous address is no full address; hostile text counts as one", () => {
  for (const ip of ["", "203.0.113.*", "erased", toPseudonym(KEY, "203.0.113.7")])
    expect(isFullAddress(ip)).toBe(false);
  for (const ip of ["203.0.113.7", "2001:db8::1", "anon-x", "' or 1=1"]) expect(isFullAddress(ip)).toBe(true);
  expect(isPseudonym(toPseudonym(KEY, "' or 1=1 \u0000"))).toBe(true);
});
