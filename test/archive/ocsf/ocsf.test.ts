import { readFile } from "node:fs/promises";
import path from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { finishOcsfLine } from "#archive/rules/export-lines.ts";
import { formatEvent, toOcsf } from "#archive/rules/records/format-event.ts";
import type { ZonedEvent } from "#archive/rules/records/to-row.ts";
import { exportEvents } from "#archive/rules/sql/export-events.ts";
import { createActionStates } from "#model/action-class.ts";
import { ARCHIVE_FORMAT } from "#model/archive-layout.ts";
import { SEED } from "../../support/random-tests.ts";
import { draws } from "../../support/sample.ts";
import { findOcsfMistakes } from "../../support/validate-ocsf.ts";
import { type ArchiveFolder, openFolder } from "../archive-folder.ts";
import { writeEventsFile } from "../sql/write-events-file.ts";
import { anyEvent, anyRecord } from "./random-records.ts";

const actions = createActionStates({ stopped: ["tarpit"], through: ["it's"] });
const VENDOR = { vendor: "Example", actions };

let archive: ArchiveFolder;
beforeAll(async () => {
  archive = await openFolder();
});
afterAll(() => archive.close());

const isSafe = (text: string) =>
  !/[^\P{Cc}\t\n\r]|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u.test(text);

test("random events with hostile records are valid objects of OCSF 1.8, and nothing of the record is lost", () => {
  fc.assert(
    fc.property(anyEvent, fc.option(anyRecord, { nil: undefined }), (event, record) => {
      const ocsf = JSON.parse(toOcsf(event, record, VENDOR)) as Record<string, unknown>;
      expect(findOcsfMistakes("http_activity", ocsf)).toEqual([]);
      expect(ocsf["raw_data"]).toBe(record?.toString());
      expect(ocsf).toMatchObject({ time: event.occurredAt, metadata: { uid: event.logId } });
    }),
    { numRuns: draws(150, 1_000), seed: SEED },
  );
});

test("random events are valid for a masked key too, and show neither the record nor a whole address", () => {
  fc.assert(
    fc.property(anyEvent, anyRecord, fc.ipV4(), (event, record, ip) => {
      const whole = { ...event, fields: { ...event.fields, ip } };
      const ocsf = JSON.parse(toOcsf(whole, record, { ...VENDOR, isMasked: true })) as Record<
        string,
        unknown
      >;
      expect(findOcsfMistakes("http_activity", ocsf)).toEqual([]);
      expect(ocsf).toEqual(JSON.parse(toOcsf(whole, undefined, { ...VENDOR, isMasked: true })));
      expect(ocsf["src_endpoint"]).toMatchObject({ name: ip.replace(/\d+$/, "*") });
      expect(ocsf).not.toHaveProperty("raw_data");
    }),
    { numRuns: draws(150, 1_000), seed: SEED },
  );
});

const LISTED: ZonedEvent = {
  zoneId: 101,
  logId: "a1",
  occurredAt: 1_795_219_200_000,
  route: "list",
  message: "SQL injection",
  method: "",
  requestId: "",
  fields: {
    feature: "waf",
    ruleId: "942100",
    ip: "203.0.113.7",
    ja4: "t13d1516h2_8daaf6152771_b186095e22b6",
    ua: "sqlmap/1.8",
    url: "https://Shop.example:8443/login?next=/a#top",
    asn: "64500",
    country: "NL",
    action: "block",
  },
};
const recordOf = (over: object, log: object = {}) =>
  Buffer.from(
    JSON.stringify({
      log: JSON.stringify({
        ServerZoneId: 11,
        UrlEncodedBody: "q=1",
        Headers: [
          { Name: "Host", Value: "shop.example" },
          { Name: "CDN-RequestId", Value: "0a1b" },
        ],
        TriggerMatch: { Key: "ARGS:q", Value: "1' or '1'='1" },
        ...log,
      }),
      labels: {
        method: "POST",
        severity: "",
        ruleGroup: "sqli",
        status: "Blocked",
        serverZone: "DE",
        ...over,
      },
    }),
  );

test("an event of the list becomes the object that docs/ocsf.md describes", () => {
  const record = recordOf({});
  expect(JSON.parse(toOcsf(LISTED, record, VENDOR))).toEqual({
    category_uid: 4,
    class_uid: 4002,
    activity_id: 6,
    type_uid: 400_206,
    time: 1_795_219_200_000,
    severity_id: 0,
    action_id: 2,
    disposition_id: 2,
    metadata: {
      version: "1.8.0",
      uid: "a1",
      profiles: ["security_control"],
      product: { name: "Shield", vendor_name: "Example", feature: { uid: "101", name: "waf" } },
    },
    src_endpoint: {
      ip: "203.0.113.7",
      location: { country: "NL" },
      autonomous_system: { number: 64_500 },
    },
    http_request: {
      uid: "0a1b",
      http_method: "POST",
      user_agent: "sqlmap/1.8",
      url: {
        url_string: "https://Shop.example:8443/login?next=/a#top",
        hostname: "shop.example",
        path: "/login",
        query_string: "next=/a",
      },
    },
    ja4_fingerprint_list: [{ type_id: 1, value: "t13d1516h2_8daaf6152771_b186095e22b6" }],
    firewall_rule: {
      uid: "942100",
      desc: "SQL injection",
      category: "sqli",
      condition: "ARGS:q",
      match_details: ["1' or '1'='1"],
    },
    raw_data: record.toString(),
    unmapped: { ServerZoneId: 11, UrlEncodedBody: "q=1", serverZone: "DE" },
  });
});

test.each([
  ["GET", { activity_id: 3, type_uid: 400_203, http_request: { http_method: "GET" } }],
  ["PATCH", { activity_id: 9, type_uid: 400_209, http_request: { http_method: "PATCH" } }],
])("the method %j has its activity", (method, wanted) => {
  expect(JSON.parse(toOcsf(LISTED, recordOf({ method }), VENDOR))).toMatchObject(wanted);
});

test.each([
  ["PROPFIND", { activity_id: 99, activity_name: "PROPFIND", type_uid: 400_299 }],
  ["get", { activity_id: 99, activity_name: "get", type_uid: 400_299 }],
  ["", { activity_id: 0, type_uid: 400_200 }],
])("the method %j, which OCSF does not list, is no method of the request", (method, wanted) => {
  const ocsf = JSON.parse(toOcsf(LISTED, recordOf({ method }), VENDOR)) as object;
  expect(ocsf).toMatchObject(wanted);
  expect(ocsf).not.toHaveProperty("http_request.http_method");
});

test.each([
  ["Blocked", { action_id: 2, disposition_id: 2 }],
  ["challenge", { action_id: 4, disposition_id: 23 }],
  ["log", { action_id: 3, disposition_id: 17 }],
  ["allow", { action_id: 1, disposition_id: 1 }],
  ["Bypassed", { action_id: 1, disposition_id: 1 }],
  ["monitor", { action_id: 3, disposition_id: 17 }],
  ["Rate Limited", { action_id: 2, disposition_id: 2 }],
  ["429", { action_id: 2, disposition_id: 2 }],
  ["Tar-Pit", { action_id: 2, disposition_id: 2 }],
  ["rewrite", { action_id: 99, action: "rewrite", disposition_id: 99, disposition: "rewrite" }],
])("the action %j has its disposition", (action, wanted) => {
  const event = { ...LISTED, fields: { ...LISTED.fields, action } };
  expect(JSON.parse(toOcsf(event, undefined, VENDOR))).toMatchObject(wanted);
});

test.each([
  ["High", { severity_id: 4 }],
  ["NOTICE", { severity_id: 99, severity: "NOTICE" }],
])("the severity %j of the record keeps its rank or its word", (severity, wanted) => {
  expect(JSON.parse(toOcsf(LISTED, recordOf({ severity }), VENDOR))).toMatchObject(wanted);
});

test("a URL and a User-Agent that were cut for storage are whole if the record has them", () => {
  const long = `https://shop.example/${"x".repeat(10_000)}`;
  const event = { ...LISTED, fields: { ...LISTED.fields, url: `${long.slice(0, 8_191)}…` } };
  const ocsf = JSON.parse(toOcsf(event, recordOf({}, { Url: long }), VENDOR)) as object;
  expect(ocsf).toHaveProperty("http_request.url.url_string", long);
});

test("formatEvent writes the record as received, or the zone's id beside the event", () => {
  const record = recordOf({});
  expect(formatEvent("raw", LISTED, record, VENDOR)).toBe(record.toString());
  expect(JSON.parse(formatEvent("event", LISTED, record, VENDOR))).toMatchObject({
    zoneId: 101,
    logId: "a1",
    fields: { method: "POST", address: "203.0.113.7" },
  });
  expect(formatEvent("ocsf", LISTED, record, VENDOR)).toBe(toOcsf(LISTED, record, VENDOR));
  expect(formatEvent("raw", LISTED, record, { ...VENDOR, isMasked: true })).not.toContain("203.0.113.7");
});

test("an event without a record has the method and the request id of its columns, and a masked key sees no request id", () => {
  const event = { ...LISTED, method: "POST", requestId: "0a1b" };
  const ocsf = JSON.parse(toOcsf(event, undefined, VENDOR));
  expect(ocsf).toMatchObject({ activity_id: 6, http_request: { uid: "0a1b", http_method: "POST" } });
  for (const record of [undefined, recordOf({})])
    expect(toOcsf(event, record, { ...VENDOR, isMasked: true })).not.toContain("0a1b");
});

test("DuckDB writes the objects of toOcsf without records for random events, in lines that no terminal obeys", async () => {
  const events = fc.sample(anyEvent, { numRuns: draws(300, 2_000), seed: SEED });
  const file = path.join(archive.folder, "any.parquet");
  const target = path.join(archive.folder, "any.ndjson");
  // The file holds null and '' alike.
  const rows = events.map(({ fields, ...event }, index) => ({
    ...event,
    ...Object.fromEntries(
      Object.entries(fields).map(([name, text]) => [name, text === "" && index % 2 === 0 ? null : text]),
    ),
    logId: `${String(index).padStart(5, "0")}${event.logId}`,
    occurredAt: 1_795_219_200_000 + index,
  }));
  await writeEventsFile(archive.duckdb, file, rows as never);
  const plan = { from: 0, to: 2_000_000_000_000, clauses: [] };
  const form = { zoneId: 101, vendor: "Ex'ample", actions };
  await archive.duckdb.run(
    exportEvents({ file: { path: file, format: ARCHIVE_FORMAT }, first: 0, end: rows.length }, plan, {
      form,
      target,
    }),
    {},
  );
  const lines = (await readFile(target, "utf8")).split("\n").slice(0, -1).reverse();
  expect(lines).toHaveLength(rows.length);
  for (const [index, line] of lines.entries()) {
    const { logId, occurredAt } = rows[index] as (typeof rows)[number];
    const event = { ...(events[index] as ZonedEvent), zoneId: 101, logId, occurredAt };
    const wanted = toOcsf(event, undefined, form);
    const whole = finishOcsfLine(line);
    expect(JSON.parse(whole)).toEqual(JSON.parse(wanted));
    const masked = finishOcsfLine(line, true);
    expect(JSON.parse(masked)).toEqual(JSON.parse(toOcsf(event, undefined, { ...form, isMasked: true })));
    expect([isSafe(whole), isSafe(masked)]).toEqual([true, true]);
  }
}, 60_000);

test("the check refuses what the definitions do not allow", () => {
  const valid = JSON.parse(toOcsf(LISTED, recordOf({}), VENDOR)) as Record<string, unknown>;
  const mistakes = (over: object) => findOcsfMistakes("http_activity", { ...valid, ...over });
  expect(mistakes({})).toEqual([]);
  expect(mistakes({ time: "now" })).toEqual([expect.stringContaining("time must be a whole number")]);
  expect(mistakes({ http_request: undefined })).not.toEqual([]);
  expect(mistakes({ invented: 1 })).toEqual(["http_activity.invented is no attribute"]);
  expect(mistakes({ metadata: { ...(valid["metadata"] as object), profiles: [] } })).toContain(
    "http_activity.action_id needs the profile security_control",
  );
  expect(mistakes({ disposition_id: 98 })).toEqual([
    expect.stringContaining("disposition_id must be one of"),
  ]);
  expect(mistakes({ src_endpoint: { ip: "203.0.113.*" } })).toEqual([
    expect.stringContaining("must be ip_t"),
  ]);
  expect(mistakes({ src_endpoint: { location: { country: "DE" } } })).toEqual([
    expect.stringContaining("src_endpoint needs one of"),
  ]);
  expect(mistakes({ type_uid: 400_203 })).toEqual(["type must be 400206"]);
});
