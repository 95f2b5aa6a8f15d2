import { describe, expect, test } from "vitest";
import {
  EventGroup,
  EventLog,
  EventLogEntry,
  EventLogListResponse,
  EventLogsSearchResponse,
  EventRow,
} from "#platform/contract/event-logs.ts";
import { parseLogDay, toLogDay } from "#platform/list-event-logs.ts";
import { parseMetricsDay } from "#platform/rules.ts";

const good = {
  logId: "7c1e5a0e",
  timestamp: 1_793_275_200_123,
  log: '{"Url":"x"}',
  labels: { asn: "64500", status: "Blocked" },
};

describe("one bad entry never costs its page", () => {
  const bad = [
    null,
    7,
    "x",
    [],
    {},
    { ...good, logId: null },
    { ...good, logId: "" },
    { ...good, timestamp: "soon" },
    { ...good, timestamp: 1e300 },
    { ...good, labels: [] },
  ];

  test("entries of a list are read one by one", () => {
    const page = EventLogListResponse.parse({ logs: [good, ...bad], hasMoreData: false });
    expect(page.logs.map((entry) => EventLogEntry.safeParse(entry).success)).toEqual([
      true,
      ...bad.map(() => false),
    ]);
  });

  test("rows of a search are read one by one", () => {
    const rows = [
      { ...good, log: {}, fields: { ip: "203.0.113.*" } },
      ...bad.slice(0, 9),
      { ...good, fields: [] },
    ];
    const page = EventLogsSearchResponse.parse({ rows, total: rows.length });
    expect(page.rows.map((row) => EventRow.safeParse(row).success)).toEqual([
      true,
      ...rows.slice(1).map(() => false),
    ]);
  });
});

describe("null, absent and empty are the same", () => {
  test.for([
    { logs: [], hasMoreData: false },
    { logs: [], hasMoreData: false, continuationToken: "" },
    { logs: [], hasMoreData: false, continuationToken: null, errorResponse: null },
  ])("list page %j", (body) => {
    expect(EventLogListResponse.parse(body)).toMatchObject({
      logs: [],
      hasMoreData: false,
      continuationToken: null,
      errorResponse: null,
    });
  });

  test.for([
    { rows: [], total: 0 },
    { rows: [], groups: null, total: 0, totalPages: null },
    { groups: [], total: 0 },
  ])("search page %j", (body) => {
    expect(EventLogsSearchResponse.parse(body)).toMatchObject({
      rows: [],
      groups: [],
      total: 0,
      totalPages: 0,
      page: 0,
    });
  });

  test("labels that are null, missing or partly there read as empty texts", () => {
    const none = {
      asn: "",
      country: "",
      ruleId: "",
      severity: "",
      method: "",
      ruleGroup: "",
      status: "",
      serverZone: "",
    };
    for (const labels of [null, undefined, {}, { asn: null }]) {
      expect(EventLogEntry.parse({ ...good, labels }).labels).toMatchObject(none);
    }
    expect(EventLogEntry.parse({ ...good, labels: { asn: 64_500 } }).labels.asn).toBe("64500");
  });

  test("a row may come without log and fields, a group without context and sparkline", () => {
    expect(EventRow.parse({ logId: "a", timestamp: 1, fields: null })).toMatchObject({ fields: {} });
    expect(EventGroup.parse({ key: null, count: 3 })).toEqual({
      key: {},
      count: 3,
      firstSeen: null,
      lastSeen: null,
      context: {},
      sparkline: null,
    });
  });
});

test("unknown members stay, at every level", () => {
  const entry = EventLogEntry.parse({ ...good, zone: 9, labels: { asn: "1", tag: "new" } });
  expect(entry).toMatchObject({ zone: 9, labels: { tag: "new" } });
  expect(EventLogListResponse.parse({ logs: [], hasMoreData: false, next: { a: 1 } })).toMatchObject({
    next: { a: 1 },
  });
});

test("stray JSON is not a page", () => {
  for (const stray of [{}, [], null, "x", { title: "OK" }, 1]) {
    expect(EventLogListResponse.safeParse(stray).success).toBe(false);
    expect(EventLogsSearchResponse.safeParse(stray).success).toBe(false);
  }
});

describe("the log inside an entry", () => {
  test("reads in full", () => {
    const log = {
      ServerZoneId: 11,
      Message: "Path probe blocked",
      Url: "https://shop.example.test/.git/config",
      RemoteIp: "203.0.113.*",
      UrlEncodedBody: null,
      Headers: [{ Name: "Host", Value: "shop.example.test" }],
      TriggerMatch: { Key: "PMF", Value: "/.git/" },
      Later: true,
    };
    expect(EventLog.parse(log)).toEqual(log);
  });

  test("a member of the wrong type reads as missing and takes nothing with it", () => {
    const log = EventLog.parse({
      ServerZoneId: "x",
      Message: {},
      Url: "u",
      UrlEncodedBody: 7,
    });
    expect(log).toMatchObject({
      ServerZoneId: null,
      Message: "",
      Url: "u",
      UrlEncodedBody: null,
    });
  });

  test("a member called __proto__ changes no object's prototype", () => {
    const hostile: unknown = JSON.parse(
      '{"logId":"a","timestamp":1,"fields":{"__proto__":{"polluted":"1"},"ip":"1"},"__proto__":{"polluted":"1"}}',
    );
    const row = EventRow.parse(hostile) as Record<string, unknown>;
    expect(row["polluted"]).toBeUndefined();
    expect((row["fields"] as Record<string, unknown>)["polluted"]).toBeUndefined();
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  });
});

describe("days", () => {
  test("the list's day is UTC and goes both ways", () => {
    expect(toLogDay(Date.UTC(2026, 0, 2, 23, 59, 59, 999))).toBe("01-02-2026");
    expect(parseLogDay("01-02-2026")).toBe(Date.UTC(2026, 0, 2));
  });

  test.for(["13-01-2026", "02-30-2026", "2026-01-02", "1-2-2026", "", "01-02-2026x"])(
    "%j is no day of the list",
    (text) => {
      expect(parseLogDay(text)).toBeNull();
    },
  );

  test.for([
    ["25-10-2026", "2026-10-25"],
    ["02-01-2026", "2026-01-02"],
    ["2026-10-25", "2026-10-25"],
    ["2026-10-25T00:00:00Z", "2026-10-25"],
    ["31-02-2026", null],
    ["10-25-2026", null],
    ["", null],
  ] as const)("the metrics day %j is %j", ([key, day]) => {
    expect(parseMetricsDay(key)).toBe(day);
  });
});
