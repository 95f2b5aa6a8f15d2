import { describe, expect } from "vitest";
import { HOUR_MS } from "#lib/units.ts";
import { eventLogPages } from "#platform/list-event-logs.ts";
import { isOutsideDay, isOutsideWindow, searchPages } from "#platform/search-event-logs.ts";
import { collect } from "./support/collect.ts";
import { failure, lastHour, listPage, NOW, test, today } from "./support/edge-test.ts";

const { from, to } = lastHour.request;

/** Rows of the window, as many as asked for. */
function rows(count: number, timestamp = from + 1): unknown[] {
  return Array.from({ length: count }, (_, index) => ({ logId: `${index}`, timestamp }));
}

interface Asked {
  readonly pageSize?: number;
  readonly page?: number;
}

describe("a page of a search that contradicts itself or its request fails, and may be asked for again", () => {
  test.for<[name: string, asked: Asked, page: object]>([
    ["a total below its rows", {}, { rows: rows(3), total: 2, totalPages: 1, page: 0 }],
    ["a total of zero beside a row", {}, { rows: rows(1), total: 0, totalPages: 0, page: 0 }],
    [
      "a total below the rows of the pages before it",
      { pageSize: 10, page: 2 },
      { rows: rows(5), total: 20, totalPages: 3, page: 2 },
    ],
    ["more rows than a page holds", { pageSize: 2 }, { rows: rows(3), total: 3, totalPages: 2, page: 0 }],
    ["fewer pages than its total needs", {}, { rows: rows(50), total: 101, totalPages: 2, page: 0 }],
    ["no pages beside a total", {}, { rows: rows(1), total: 1, totalPages: 0, page: 0 }],
    ["more pages than its total needs", {}, { rows: rows(3), total: 3, totalPages: 5, page: 0 }],
    ["another page than asked for", { page: 1 }, { rows: rows(50), total: 100, totalPages: 2, page: 0 }],
    ["a row before its window", {}, { rows: rows(1, from - 2_000), total: 1, totalPages: 1, page: 0 }],
    ["a row after its window", {}, { rows: rows(1, to + 2_000), total: 1, totalPages: 1, page: 0 }],
    [
      "the answer to another window",
      {},
      { rows: rows(9, from - 5 * HOUR_MS), total: 9, totalPages: 1, page: 0 },
    ],
    [
      "more groups than its total",
      {},
      { groups: [{ count: 1 }, { count: 1 }], total: 1, totalPages: 1, page: 0 },
    ],
  ])("%s", async ([, asked, page], { platform, edge }) => {
    platform.reply(200, page, { "cdn-requestid": "r-7" });
    const groupBy = "groups" in page ? { groupBy: ["ruleId" as const] } : {};
    const params = { ...lastHour, request: { ...lastHour.request, ...asked, ...groupBy } };
    const thrown = await failure(collect(searchPages(edge.client.searchEventLogs, params)));
    expect(thrown).toMatchObject({
      code: "EDGE_CONTRADICTORY",
      disposition: "retry",
      operation: "search-event-logs",
      requestId: "r-7",
    });
    expect(platform.requests).toHaveLength(1);
  });

  test("comes after the pages before it", async ({ platform, edge }) => {
    platform.reply(200, { rows: rows(2), total: 5, totalPages: 3, page: 0 });
    platform.reply(200, { rows: rows(2), total: 1, totalPages: 1, page: 1 });
    const params = { ...lastHour, request: { ...lastHour.request, pageSize: 2 } };
    const pages = searchPages(edge.client.searchEventLogs, params);
    expect((await pages.next()).done).toBe(false);
    expect(await failure(pages.next())).toMatchObject({ code: "EDGE_CONTRADICTORY" });
  });
});

describe("an honest platform's answers are no contradiction while events arrive and expire", () => {
  test.for<[name: string, pageSize: number | undefined, pages: readonly object[]]>([
    ["nothing, in no pages", undefined, [{ rows: [], total: 0, totalPages: 0, page: 0 }]],
    ["nothing, in one page", undefined, [{ rows: [], total: 0, totalPages: 1, page: 0 }]],
    [
      "a total that grows between pages",
      2,
      [
        { rows: rows(2), total: 3, totalPages: 2, page: 0 },
        { rows: rows(2), total: 5, totalPages: 3, page: 1 },
        { rows: rows(1), total: 5, totalPages: 3, page: 2 },
      ],
    ],
    [
      "a total that shrinks between pages",
      2,
      [
        { rows: rows(2), total: 5, totalPages: 3, page: 0 },
        { rows: rows(1), total: 3, totalPages: 2, page: 1 },
      ],
    ],
    [
      "a page beyond the end, because events expired",
      2,
      [
        { rows: rows(2), total: 3, totalPages: 2, page: 0 },
        { rows: [], total: 2, totalPages: 1, page: 0 },
      ],
    ],
    ["fewer rows than the total promises", undefined, [{ rows: rows(7), total: 9, totalPages: 1, page: 0 }]],
    ["a page size above the limit", 9_999, [{ rows: rows(500), total: 500, totalPages: 1, page: 0 }]],
    ["a page size below the limit", -1, [{ rows: rows(1), total: 1, totalPages: 1, page: 0 }]],
    [
      "an empty page behind a full one",
      2,
      [
        { rows: rows(2), total: 2, totalPages: 2, page: 0 },
        { rows: [], total: 2, totalPages: 2, page: 1 },
      ],
    ],
    [
      "an event at the end of the window",
      undefined,
      [{ rows: rows(1, to), total: 1, totalPages: 1, page: 0 }],
    ],
    [
      "times that were compared by the second",
      undefined,
      [{ rows: [...rows(1, from - 999), ...rows(1, to + 999)], total: 2, totalPages: 1, page: 0 }],
    ],
    [
      "single rows with broken times",
      undefined,
      [
        {
          rows: [{ timestamp: 0 }, { timestamp: Math.floor(NOW / 1_000) }, { timestamp: "x" }, null, {}],
          total: 5,
          totalPages: 1,
          page: 0,
        },
      ],
    ],
  ])("%s", async ([, pageSize, pages], { platform, edge }) => {
    for (const page of pages) platform.reply(200, page);
    const size = pageSize === undefined ? {} : { pageSize };
    const params = { ...lastHour, request: { ...lastHour.request, ...size } };
    expect(await collect(searchPages(edge.client.searchEventLogs, params))).toHaveLength(pages.length);
  });
});

test("a list entry of another day is shown as it is: it is an event all the same", async ({
  platform,
  edge,
}) => {
  const entry = { logId: "a", timestamp: NOW - 30 * HOUR_MS };
  platform.reply(200, listPage({ logs: [entry] }));
  const [page] = await collect(eventLogPages(edge.client.listEventLogs, today));
  expect(page?.page.logs).toEqual([entry]);
});

test("an entry is outside its day before the first and after the last millisecond of it", () => {
  const day = Date.UTC(2026, 10, 21);
  const times = [day - 1, day, day + 24 * HOUR_MS - 1, day + 24 * HOUR_MS];
  expect(times.map((time) => isOutsideDay(time, "11-21-2026"))).toEqual([true, false, false, true]);
  expect(isOutsideDay(day, "2026-11-21")).toBe(true);
});

test("an event is outside a window that the platform may hold, not in the far past or future", () => {
  const window = { from: NOW, to: NOW + HOUR_MS };
  const times = [-73 * HOUR_MS, -72 * HOUR_MS, -1_001, -1_000, 0, HOUR_MS, HOUR_MS + 1_001, 74 * HOUR_MS];
  expect(times.map((time) => isOutsideWindow(NOW + time, window))).toEqual([
    false,
    true,
    true,
    false,
    false,
    false,
    true,
    false,
  ]);
});
