import fc from "fast-check";
import { expect, test } from "vitest";
import { maskText } from "#archive/rules/mask.ts";
import { readAddress } from "#model/ip-address.ts";
import { eraseRecord } from "#people/rules/erasure-guard.ts";
import { replaceAddresses, replaceInJson } from "#people/rules/replace-addresses.ts";
import { draws } from "../support/sample.ts";
import { isAnother, neighbour, spelledIpv4, spelledIpv6 } from "./spelled-address.ts";

const wipe = (ip: string) => (readAddress(ip) === null ? null : "X");

test.each([
  ["from 203.0.113.7, twice: 203.0.113.7.", "from X, twice: X."],
  ["203.0.113.7:443 and [2001:db8::1]:443", "X:443 and [X]:443"],
  ["::1 ::ffff:203.0.113.7 2001:DB8:0:0:0:0:0:1", "X X X"],
  ["at 12:34:56 on 1.2.3, v10.20.300.40, a:b", "at 12:34:56 on 1.2.3, v10.20.300.40, a:b"],
  ["v10.20.30.400", "vX0"],
  ["client:2a03:4ab8:5769:7::5", "client:X"],
  ["code:2a03:4ab8:5769:7::5:blocked", "coXlocked"],
  ["see...194.196.53.110", "see...X"],
  ["v1.194.196.53.110", "vX"],
  ["?ip=2a03%3A4ab8%3A%3A5&x=1", "?ip=X&x=1"],
  ["203.000.113.007", "X"],
  ["64:ff9b::203.0.113.7", "X"],
  ["?ip=203.0.113.7&x=1", "?ip=X&x=1"],
  ["from 203[.]0[.]113[.]7: defanged", "from X: defanged"],
  ["203(.)0{.}113[dot]7 203 dot 0 dot 113 dot 7 203[.0[.113[.7", "X X X"],
  [String.raw`rule ^203\.0\.113\.7$`, "rule ^X$"],
  ["?ip=203%2E0%2e113%252E7 and %32%30%33.0.113.%37", "?ip=X and X"],
  ["２０３．０．１１３．７ 203。0。113｡7 ٢٠٣.٠.١١٣.٧", "X X X"],
  ["203.0.\u200b113.\u00ad7", "X"],
  ["203\ufe0f.0\u034f.113\u115f.\u31647 203.0.1\u{e0100}13.7 203\u{e0030}.0.113\u2064.7", "X X X"],
  ["203&#46;0&#x2E;113&period;7", "X"],
  [
    String.raw`\u00320\u0033.0.113.7 203\u002e0\u002E113\\u002e7 203\x2e0\x2E113\u{2e}7 2001\x3adb8\u003a\u003A1`,
    "X X X X",
  ],
  [String.raw`203.0\udb40\udd00.113.\ud835\udfd5`, "X"],
  ["203&#046;0&#x002e;113&#46;7 203&#46;0&#0000000046;113&#x2E;&#55; 2001&colon;db8&#58;&#x3a;1", "X X X"],
  ["2001[:]db8[:][:]1 ２００１：ｄｂ８：：１", "X X"],
  ["http://3405803783/ ip 3405803783. 0xCB007107 user@16909060", "http://X/ ip X. X user@X"],
  [
    "on 20261124, ticket 12345678, v1.3405803783, a-3405803783, 3405803783000",
    "on 20261124, ticket 12345678, v1.3405803783, a-3405803783, 3405803783000",
  ],
  ["1[.]2 see [.] and 5 dots, naïve café · 12％", "1[.]2 see [.] and 5 dots, naïve café · 12％"],
  ["7.113.0.203.in-addr.arpa, 8.113.0.203.IN-ADDR.ARPA.", "X, X."],
  ["7.0-255.113.0.203.in-addr.arpa 7.0/25.113.0.203.in-addr.arpa 7.0%2F25.113.0.203.in-addr.arpa", "X X X"],
  [`${"7.0.0.0.".repeat(6)}8.b.d.0.1.0.0.2.ip6.arpa`, "X"],
  [
    "203-0-113-7 ec2-203-0-113-7.compute.example ip203-0-113-7 203-0-113-7-static",
    "X ec2-X.compute.example ipX X-static",
  ],
  ["203_0_113_7.dyn.example host_203_0_113_7b 203-000-113-007", "X.dyn.example host_Xb X"],
  ["203 . 0 . 113 . 7, 203. 0. 113. 7 and 203 .0 .113 .7", "X, X and X"],
  ["203 - 0 - 113 - 7, 203–0–113–7, 203\u20110\u2011113\u20117, 203\u22120\u2212113\u22127", "X, X, X, X"],
  ["203%2D0%2D113%2D7", "X"],
  ["0xcb . 0x0 . 0x71 . 0x7 and 2026 - 11 - 20 - 10 - 30", "X and 2026 - 11 - 20 - 10 - 30"],
  ["0xcb.0x0.0x71.0x7 0313.0.0161.07 0xcb.0.0161.7 0xCB.0x7107", "X X X X"],
  ["2001-0db8-0000-0000-0000-0000-0000-0007 2001-db8--7.ipv6-literal.net", "X X.ipv6-literal.net"],
  [
    "host-2001-0db8-0000-0000-0000-0000-0000-0006.isp.example 2001-0DB8-0000-0000-0000-0000-0000-0006-static node2001-0db8-0000-0000-0000-0000-0000-0006b",
    "host-X.isp.example X-static nodeXb",
  ],
  [
    "2026-11-20, 2026-11-20-10-30-00, 942-100-1-2, 555-12-34-56-78, 1. 2. 3. 4. 10.15.19042, 0x7f, t13d1516h2_8daaf6152771_b0da82dd1658",
    "2026-11-20, 2026-11-20-10-30-00, 942-100-1-2, 555-12-34-56-78, 1. 2. 3. 4. 10.15.19042, 0x7f, t13d1516h2_8daaf6152771_b0da82dd1658",
  ],
  [
    "id 550e8400-e29b-41d4-a716-446655440000, ba-d.ipv6-literal.net, x.7.113.0.203.in-addr.arpa",
    "id 550e8400-e29b-41d4-a716-446655440000, ba-d.ipv6-literal.net, x.X",
  ],
  ['{"RemoteIp":"203.0.113.7"}', '{"RemoteIp":"X"}'],
])("in %j every address is found and nothing else", (text, expected) => {
  expect(replaceAddresses(text, wipe)).toBe(expected);
});

test("any IPv4 or IPv6 address is found between blanks", () => {
  fc.assert(
    fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), (ip) => {
      expect(replaceAddresses(`a ${ip} b`, wipe)).toBe("a X b");
    }),
  );
});

test("any address of either family, in any spelling, is found between any two characters", () => {
  fc.assert(
    fc.property(fc.oneof(spelledIpv4, spelledIpv6), neighbour, neighbour, (one, before, after) => {
      fc.pre(!isAnother(before, one, after));
      const { address, spelling } = one;
      const text = before + spelling + after;
      const wanted = JSON.stringify(readAddress(address)?.bytes);
      const only = (ip: string) => (JSON.stringify(readAddress(ip)?.bytes) === wanted ? "X" : null);
      expect(replaceAddresses(text, only)).toContain("X");
      expect(replaceAddresses(text, only)).not.toContain(spelling);
      expect(replaceInJson([{ note: text }], only, { dropTraits: false })).not.toEqual([{ note: text }]);
    }),
    { numRuns: draws(125, 1_000) },
  );
});

test("a masked text never holds the address, also where a neighbour makes it another", () => {
  fc.assert(
    fc.property(fc.oneof(spelledIpv4, spelledIpv6), neighbour, neighbour, ({ spelling }, before, after) => {
      const masked = maskText(before + spelling + after);
      // A masked address ends like this too.
      fc.pre(!spelling.replaceAll("%3A", ":").endsWith("::"));
      expect(masked).not.toContain(spelling);
    }),
    { numRuns: draws(125, 1_000) },
  );
});

test("an address is found with any invisible character between its digits", () => {
  const codes = Array.from({ length: 0xe1000 }, (_, code) => code);
  const invisible = codes.filter((code) => /[\p{Cf}\p{DI}]/u.test(String.fromCodePoint(code)));
  expect(invisible.length).toBeGreaterThan(4_000);
  for (const character of invisible.map((code) => String.fromCodePoint(code)))
    expect(replaceAddresses(`203.0.1${character}13.7`, wipe)).toBe("X");
});

test("a text that is masked stays as it is when it is masked again", () => {
  for (const text of ["from 203.0.113.*: x", "2001:db8:1::*", "2002::*", "[::*]:443", "anon-abcdefghijklm-*"])
    expect(maskText(text)).toBe(text);
});

test("the name of a reverse lookup is that of one person, and not of the person whose address it reads like", () => {
  const erase = (own: string) =>
    replaceAddresses("7.113.0.203.in-addr.arpa", (ip) => (ip === own ? "X" : null));
  expect(erase("203.0.113.7")).toBe("X");
  expect(erase("7.113.0.203")).toBe("7.113.0.203.in-addr.arpa");
  expect(maskText("7.113.0.203.in-addr.arpa")).toBe("203.0.113.*");
  for (const range of ["0-255", "0/24", "0_255", "000%2f025"])
    expect(maskText(`207.${range}.113.0.203.in-addr.arpa`)).toBe("203.0.113.*");
});

test("any address is found as the names of hosts and as programs spell it", () => {
  fc.assert(
    fc.property(fc.ipV4(), fc.nat(8), (ip, form) => {
      const parts = ip.split(".");
      const hex = parts.map((part) => `0x${Number(part).toString(16)}`);
      const spelled = [
        `${parts.toReversed().join(".")}.in-addr.arpa`,
        parts.join("-"),
        `ec2-${parts.join("-")}`,
        `ip${parts.join("-")}.example.net`,
        parts.join("_"),
        parts.join(" . "),
        parts.join(" - "),
        parts.join("\u2013"),
        hex.join(" . "),
        hex.join("."),
        [hex[0], ...parts.slice(1)].join("."),
        parts.map((part) => Number(part).toString(8).padStart(4, "0")).join("."),
      ][form];
      expect(replaceAddresses(`a ${spelled} b`, (found) => (found === ip ? "X" : null))).toContain("X");
    }),
    { numRuns: draws(100, 500) },
  );
});

test("an IPv6 address is found between the words of a host's name", () => {
  const word = fc.string({ unit: fc.constantFrom("a", "f", "g", "-", ".", "_", "1"), maxLength: 6 });
  fc.assert(
    fc.property(spelledIpv6, word, word, ({ address }, before, after) => {
      const groups = address.split(":").map((group) => group.padStart(4, "0"));
      const only = (ip: string) => (ip === groups.join(":") ? "X" : null);
      expect(replaceAddresses(`${before}${groups.join("-")}${after}`, only)).toBe(`${before}X${after}`);
    }),
  );
});

test("an address that only begins or ends like an erased one stays", () => {
  const only = (ip: string) => (ip === "203.0.113.7" || ip === "2001:db8::5" ? "X" : null);
  for (const other of ["203.0.113.70", "1203.0.113.70", "2001:db8::5a", "12001:db8::51", "2001:db8::5:1"])
    expect(replaceAddresses(`from ${other}.`, only)).toBe(`from ${other}.`);
});

test("a member that is nothing but a number is an identifier and stays", () => {
  const value = { ruleId: "3405803783", note: "of 3405803783" };
  expect(replaceInJson(value, wipe, { dropTraits: false })).toEqual({ ruleId: "3405803783", note: "of X" });
});

test("text made to be slow is read like any other", () => {
  for (const part of [
    "[.]",
    "\\u002e",
    "\\u{0000",
    "&#0",
    "&#x0",
    "%25",
    "１．",
    "1 dot ",
    "\u200b",
    "\\",
    "1.",
    ":",
    "a:",
    "1.2.3.",
    "f".repeat(50),
    "anon-",
    "1::2:3:4:",
    "1-",
    "1_",
    "1 . ",
    "1 - ",
    "0x1 . ",
    "0x1.",
    "abcd-",
    "7.113.0.203.in-addr.",
    "7.0-255.113.0.203.in-addr.",
    "7.113.0.203.in-addr.arpa ",
    "1-2-3-4 ",
    "1",
    "1.2.3.1",
  ]) {
    const text = part.repeat(200_000 / part.length);
    expect(replaceAddresses(text, () => null)).toBe(text);
  }
});

test("values that were counted together with a replaced address are removed, and an untouched value is the same object", () => {
  const list = (...values: string[]) => values.map((value) => ({ value, count: 1 }));
  const evidence = {
    total: 3,
    top: { ip: list("203.0.113.7", "198.51.100.1"), path: list("/a"), ua: list("curl"), asn: list("64500") },
  };
  const only = (ip: string) => (ip === "203.0.113.7" ? "erased" : null);
  expect(replaceInJson(evidence, only, { dropTraits: true })).toEqual({
    total: 3,
    top: { ip: list("erased", "198.51.100.1"), path: [], ua: [], asn: list("64500") },
  });
  expect(replaceInJson(evidence, only, { dropTraits: false })).toMatchObject({ top: { path: list("/a") } });
  expect(replaceInJson(evidence, () => null, { dropTraits: true })).toBe(evidence);
});

test("an erased record says that the event was, and nothing of the person; twice it is the same", () => {
  const raw = JSON.stringify({
    logId: "a-1",
    timestamp: 1_700_000_000_000,
    log: '{"RemoteIp":"203.0.113.7","Url":"/me"}',
    labels: { ruleId: "942100", asn: "64500", status: "Blocked", note: "203.0.113.7" },
    extra: "203.0.113.7",
  });
  const erased = eraseRecord(Buffer.from(raw));
  expect(JSON.parse(erased.toString())).toEqual({
    logId: "a-1",
    timestamp: 1_700_000_000_000,
    log: "{}",
    labels: { ruleId: "942100", status: "Blocked" },
  });
  expect(eraseRecord(erased)).toEqual(erased);
  expect(
    eraseRecord(Buffer.from('{"logId":12345678901234567890,"timestamp":1,"log":null}')).toString(),
  ).toContain('"logId":"12345678901234567890"');
});
