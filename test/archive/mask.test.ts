import fc from "fast-check";
import { expect, it } from "vitest";
import { toCsvLine } from "#archive/rules/export-lines.ts";
import { maskAddress, maskRecord } from "#archive/rules/mask.ts";
import { toListEntry, toSearchRow } from "#archive/rules/records/to-row.ts";

const FIELDS = {
  feature: "waf",
  ruleId: "930130",
  ip: "203.0.113.7",
  ja4: "",
  ua: "curl",
  url: "https://a.example.test/",
  asn: "1",
  country: "DE",
  action: "block",
};
const EVENT = {
  logId: "a",
  occurredAt: 5,
  route: "list",
  fields: FIELDS,
  message: "m",
  method: "POST",
  requestId: "0a1b",
};

it("hides what names one visitor in an address of either kind, and whatever is no address", () => {
  for (const [address, masked] of [
    ["203.0.113.7", "203.0.113.*"],
    ["203.0.113.*", "203.0.113.*"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1::*"],
    ["2001:db8::7", "2001:db8::*"],
    ["::1", "::*"],
    ["::ffff:203.0.113.7", "203.0.113.*"],
    ["203.0.113.7:51234", "203.0.113.*"],
    ["[2001:db8:1:2::7]:443", "2001:db8:1::*"],
    ["2001:db8:1::*", "2001:db8:1::*"],
    ["::*", "::*"],
    ["2002:cb00:71cf::1", "2002::*"],
    ["2002:CB00:71CF:1:2:3:4:5", "2002::*"],
    ["2002:cb00:71cf::*", "2002::*"],
    ["2002::*", "2002::*"],
    ["203.0.113.9:", "*"],
    ["203.0.113.009:443", "*"],
    ["203.0.113.9:123456", "*"],
    ["203.0.113.9:443:", "*"],
    ["a:203.0.113.9", "*"],
    ["203.0.113.9:443::*", "*"],
    ["2001:db8:1:2:3:4:5:6:7", "*"],
    ["fe80::1%eth0", "*"],
    ["visitor 203.0.113.7", "*"],
    ["anon-abcdefghijklm-nopqrstuvwxyz", "anon-abcdefghijklm-*"],
    ["erased", "erased"],
    ["", ""],
  ] as const) {
    expect(maskAddress(address)).toBe(masked);
  }
});

it("shows no more than the network of an IPv4 address, whatever is around it", () => {
  const around = fc.string({
    unit: fc.constantFrom("1", "a", ":", ".", "*", "[", "]", ",", " "),
    maxLength: 6,
  });
  fc.assert(
    fc.property(around, around, (before, after) => {
      expect(maskAddress(`${before}203.0.113.97${after}`)).not.toContain("113.97");
    }),
    { numRuns: 2_000 },
  );
});

it("keeps nothing of a record that a visitor sent but its URL", () => {
  const record = {
    ServerZoneId: 11,
    Message: "m",
    Url: "https://a.example.test/",
    RemoteIp: "2001:db8:1:2::7",
    UrlEncodedBody: "q=secret",
    Headers: [{ Name: "Cookie", Value: "secret" }],
    TriggerMatch: { Key: "RX", Value: "secret" },
    Later: "secret",
  };
  const masked = maskRecord(JSON.stringify(record)) ?? "";
  expect(masked).not.toContain("secret");
  expect(JSON.parse(masked)).toEqual({
    ServerZoneId: 11,
    Message: "m",
    Url: "https://a.example.test/",
    RemoteIp: "2001:db8:1::*",
    UrlEncodedBody: null,
    Headers: [],
    TriggerMatch: null,
  });
  for (const other of ["no JSON", "[]", "null", '"text"', ""]) expect(maskRecord(other)).toBeNull();
});

it("quotes what needs quotes and nothing else, after the guard against formulas", () => {
  expect(toCsvLine(["1", "", 'a"b', "a,b", "a\nb", "=1", "=1,2", "\r", "é"])).toBe(
    `1,,"a""b","a,b","a\nb",'=1,"'=1,2","'\r",é\r\n`,
  );
});

it("writes controls and what turns text around so that a terminal shows them, and every cell can be read back", () => {
  const cells = [
    "a\u001b[2Jb",
    "\u202egnp.exe",
    "\u009b1m,",
    String.raw`\u001b`,
    "tab\tin",
    "\u007f\u2066x\u0000",
    "é\u00a0漢",
  ];
  const line = toCsvLine(cells);
  expect(line).toBe(
    String.raw`a\u001b[2Jb,\u202egnp.exe,"\u009b1m,",\u005cu001b,tab` +
      "\tin," +
      String.raw`\u007f\u2066x\u0000,` +
      "é\u00a0漢\r\n",
  );
  const decoded = line
    .slice(0, -2)
    .replaceAll(/\\u([0-9a-f]{4})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  expect(decoded).toBe(cells.map((cell) => (cell.includes(",") ? `"${cell}"` : cell)).join(","));
});

it("puts only an object into a row's log, whatever a record holds", () => {
  const logOf = (log: unknown) => {
    const row = toSearchRow(EVENT, Buffer.from(JSON.stringify({ logId: "a", log })), false);
    return (JSON.parse(row) as { log: unknown }).log;
  };
  expect(logOf('{"a":1}')).toEqual({ a: 1 });
  expect(logOf({ a: 1 })).toEqual({ a: 1 });
  for (const other of ['1,"x":2', "[]", "null", '"x"', "{}}", '{"a":1},"rows":[]', "", 7, null, [{}]])
    expect(logOf(other)).toEqual(null);
  expect((JSON.parse(toSearchRow(EVENT, Buffer.from("no JSON"), false)) as { log: unknown }).log).toBeNull();
});

it("makes a list's entry of a search's row, which is all that is kept of a day that had left the list", () => {
  const log = {
    ServerZoneId: 11,
    Message: "m",
    Url: FIELDS.url,
    RemoteIp: "203.0.113.*",
    UrlEncodedBody: "q=secret",
    Headers: [],
    TriggerMatch: null,
  };
  const row = Buffer.from(JSON.stringify({ logId: "a", timestamp: 5, log, fields: FIELDS }));
  const entryOf = (record: Buffer | undefined, isMasked: boolean) => {
    const { log, ...rest } = JSON.parse(toListEntry(EVENT, record, isMasked)) as { log: string };
    return { ...rest, log: JSON.parse(log) as unknown };
  };
  const labels = {
    asn: "1",
    country: "DE",
    ruleId: "930130",
    severity: "",
    method: "",
    ruleGroup: "",
    status: "Blocked",
    serverZone: "",
  };
  expect(entryOf(row, false)).toEqual({ logId: "a", timestamp: 5, labels, log });
  expect(entryOf(row, true)).toEqual({
    logId: "a",
    timestamp: 5,
    labels,
    log: { ...log, UrlEncodedBody: null },
  });
  const without = Buffer.from(JSON.stringify({ logId: "a", timestamp: 5, log: null, fields: FIELDS }));
  expect(entryOf(without, false)).toEqual(entryOf(undefined, false));
});

it("gives back from the record what could not be stored, and nothing that was not this text", () => {
  const kept = { ...EVENT, fields: { ...FIELDS, ua: "a\uFFFDb", url: `${"x".repeat(8_191)}…` } };
  const fieldsOf = (url: string, ua: string) => {
    const log = JSON.stringify({ Url: url, Headers: [{ Name: "user-AGENT", Value: ua }] });
    const row = JSON.parse(toSearchRow(kept, Buffer.from(JSON.stringify({ log })), false));
    return (row as { fields: typeof FIELDS }).fields;
  };
  expect(fieldsOf("x".repeat(9_000), "a\0b")).toMatchObject({ url: "x".repeat(9_000), ua: "a\0b" });
  expect(fieldsOf("y".repeat(9_000), "a\0c")).toMatchObject({ url: kept.fields.url, ua: kept.fields.ua });
});
