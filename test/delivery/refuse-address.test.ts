import { expect, test } from "vitest";
import { refuseAddress, refuseHost } from "#delivery/receivers/endpoint.ts";

/** Address, class without and with private networks allowed; null where it may be connected to. */
test.each<[string, string | null, string | null]>([
  ["93.184.216.34", null, null],
  ["2606:2800:220:1::1", null, null],
  ["127.0.0.1", "loopback", null],
  ["127.255.255.254", "loopback", null],
  ["0.0.0.0", "unspecified", "unspecified"],
  ["10.1.2.3", "private", null],
  ["172.16.0.1", "private", null],
  ["172.31.255.255", "private", null],
  ["172.32.0.1", null, null],
  ["192.168.1.1", "private", null],
  ["169.254.1.1", "linkLocal", "linkLocal"],
  ["169.254.169.254", "metadata", "metadata"],
  ["100.64.0.1", "carrierGradeNat", null],
  ["100.100.100.200", "metadata", "metadata"],
  ["168.63.129.16", "metadata", "metadata"],
  ["192.0.0.192", "metadata", "metadata"],
  ["192.0.2.1", "reserved", "reserved"],
  ["198.18.0.1", "reserved", "reserved"],
  ["203.0.113.9", "reserved", "reserved"],
  ["224.0.0.1", "multicast", "multicast"],
  ["255.255.255.255", "broadcast", "broadcast"],
  ["240.0.0.1", "reserved", "reserved"],
  ["::1", "loopback", null],
  ["::", "unspecified", "unspecified"],
  ["fe80::1", "linkLocal", "linkLocal"],
  ["fe80::1%eth0", "linkLocal", "linkLocal"],
  ["fc00::1", "uniqueLocal", null],
  ["fd12:3456::1", "uniqueLocal", null],
  ["fd00:ec2::254", "metadata", "metadata"],
  ["fd00:ec2::254%2", "metadata", "metadata"],
  ["fd00:ec2::23", "metadata", "metadata"],
  ["fd20:ce::254", "metadata", "metadata"],
  ["ff02::1", "multicast", "multicast"],
  ["2001:db8::1", "reserved", "reserved"],
  ["::ffff:127.0.0.1", "ipv4Mapped", null],
  ["::ffff:7f00:1", "ipv4Mapped", null],
  ["::ffff:93.184.216.34", "ipv4Mapped", null],
  ["::ffff:169.254.169.254", "ipv4Mapped", "metadata"],
  ["::127.0.0.1", "ipv4Mapped", null],
  ["::7f00:1", "not global", "not global"],
  ["64:ff9b::10.0.0.1", "rfc6052", null],
  ["64:ff9b::169.254.169.254", "rfc6052", "metadata"],
  ["2002:7f00:1::", "6to4", "6to4"],
  ["2001:0:7f00:1::", "teredo", "teredo"],
  ["4000::1", "not global", "not global"],
  ["", "not an address", "not an address"],
  ["example.com", "not an address", "not an address"],
])("%s is %s, with private networks allowed %s (F73)", (address, strict, relaxed) => {
  expect(refuseAddress(address, false)).toBe(strict);
  expect(refuseAddress(address, true)).toBe(relaxed);
});

test.each([
  "127.0.0.1",
  "127.0.0.1.",
  "127.1",
  "2130706433",
  "0x7f000001",
  "0x7f.0.0.1",
  "0177.0.0.1",
  "017700000001",
  "[::1]",
  "[0:0:0:0:0:0:0:1]",
  "[::ffff:127.0.0.1]",
  "[::ffff:7f00:1]",
  "[64:ff9b::7f00:1]",
])("the host %s is refused as given and as a URL normalises it (F73)", (host) => {
  expect(refuseHost(host, false)).not.toBeNull();
  expect(refuseHost(new URL(`https://${host}/`).hostname, false)).not.toBeNull();
});

test("a URL's other spellings of loopback end as loopback", () => {
  for (const host of ["①②⑦.0.0.1", "127。0。0。1", "１２７.0.0.1", "%31%32%37.0.0.1"]) {
    expect(refuseHost(new URL(`https://${host}/`).hostname, false)).toBe("loopback");
  }
});

test("a name is not refused before it is resolved", () => {
  expect(refuseHost("localhost", false)).toBeNull();
  expect(refuseHost("metadata.google.internal", false)).toBeNull();
});
