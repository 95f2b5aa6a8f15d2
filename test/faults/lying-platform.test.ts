import { expect, onTestFinished, test } from "vitest";
import { EventLogEntry, EventLogListResponse } from "../../src/edge/contract/event-log-list.ts";
import { EventGroup, EventLogsSearchResponse, EventRow } from "../../src/edge/contract/event-logs-search.ts";
import { WafRuleMetricsResponse } from "../../src/edge/contract/waf-rule-metrics.ts";
import { HOUR_MS } from "../../src/lib/units.ts";
import { NOW, openEmulator, oracle, type SearchBody, TODAY } from "../emulator/support.ts";
import { KINDS, type Lie, type LieKind, ROUTES, type Route } from "../support/liar/lie.ts";
import { startLyingPlatform } from "../support/liar/lying-platform.ts";

const ZONE = 101;

async function openLiar({ isWitnessed = true } = {}) {
  const emulator = await openEmulator({
    zones: [ZONE],
    historyHours: 6,
    eventsPerSecond: 0.03,
    pageSize: 100,
    lateShare: 0,
  });
  const liar = await startLyingPlatform({ url: emulator.url, now: () => emulator.now(), isWitnessed });
  onTestFinished(() => liar.close());
  const get = async (path: string, body?: unknown) => {
    const headers = { AccessKey: emulator.accessKey, "content-type": "application/json" };
    const posted = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
    return fetch(liar.url + path, { headers, ...posted });
  };
  const window = { from: NOW - 6 * HOUR_MS - 1_800_000, to: NOW };
  const search = async (more: Record<string, unknown> = {}) => {
    const answer = await get(`/shield/event-logs/${ZONE}/search`, { ...window, pageSize: 500, ...more });
    return (await answer.json()) as SearchBody;
  };
  async function searchAll() {
    const rows: NonNullable<SearchBody["rows"]> = [];
    for (let page = 0; ; page++) {
      const answer = await search({ page });
      rows.push(...(answer.rows ?? []));
      if (page + 1 >= answer.totalPages) return { rows, total: answer.total };
    }
  }
  async function listAll() {
    const pages: { logs: { logId: string; timestamp: number }[] }[] = [];
    let token = "";
    for (;;) {
      const answer = await get(`/shield/event-logs/${ZONE}/${TODAY}/${encodeURIComponent(token)}`);
      const page = (await answer.json()) as (typeof pages)[number] & {
        continuationToken: string;
        hasMoreData: boolean;
      };
      pages.push(page);
      if (!page.hasMoreData) return { pages, logs: pages.flatMap(({ logs }) => logs) };
      token = page.continuationToken;
    }
  }
  const count = async (buckets = 7) => {
    const from = NOW - (NOW % HOUR_MS) - 6 * HOUR_MS;
    const answer = await search({ from, to: from + 7 * HOUR_MS - 1_800_000, groupBy: ["ruleId"], buckets });
    return answer.groups ?? [];
  };
  const exportAll = async () => (await get(`/shield/event-logs/${ZONE}/export`, window)).text();
  const measure = async (rule: string) => {
    const answer = await get(`/shield/metrics/shield-zone/${ZONE}/waf-rule/${rule}`);
    const { data } = (await answer.json()) as {
      data: { totalTriggers: number; overviewPastTwentyEightDays: Record<string, { totalTriggers: number }> };
    };
    return data;
  };
  const events = await oracle(emulator);
  return { emulator, liar, get, search, searchAll, listAll, count, exportAll, measure, events };
}

const told = (kind: LieKind, routes: readonly Route[], more: Partial<Lie> = {}): Lie => ({
  kind,
  routes,
  salt: "s",
  ...more,
});
const sum = (groups: readonly { count: number }[]) => groups.reduce((total, { count }) => total + count, 0);

test("without lies every answer is the emulator's own, and every event counts as shown and counted", async () => {
  const { emulator, liar, searchAll, listAll, count, events } = await openLiar();
  const { rows, total } = await searchAll();
  expect(total).toBe(events.length);
  expect(rows.map(({ logId }) => logId).sort()).toEqual(events.map(({ logId }) => logId).sort());
  expect((await listAll()).logs.length).toBe(events.length);
  expect(sum(await count())).toBe(events.length);
  const { testimonies } = liar.witness;
  expect([...testimonies.values()].filter((one) => one.shownAt === null || one.countedAt === null)).toEqual(
    [],
  );
  expect(testimonies.size).toBe(events.length);
  const refused = await fetch(`${liar.url}/shield/event-logs/${ZONE}/${TODAY}`);
  expect(refused.status).toBe((await fetch(`${emulator.url}/shield/event-logs/${ZONE}/${TODAY}`)).status);
  expect(liar.requests().get(ZONE)).toMatchObject({ counts: 1, export: 0, metrics: 0 });
});

test("a short platform hides the same events on every route, and its totals, counts and metrics fit", async () => {
  const { liar, searchAll, listAll, count, exportAll, measure, events } = await openLiar();
  const rule = events[0]?.ruleId ?? "";
  const before = await measure(rule);
  const { tally } = liar.tell(told("short", ROUTES, { share: 0.2 }));
  const { rows, total } = await searchAll();
  expect(total).toBe(rows.length);
  expect(total / events.length).toBeGreaterThan(0.7);
  expect(total / events.length).toBeLessThan(0.9);
  const shown = new Set(rows.map(({ logId }) => logId));
  expect(new Set((await listAll()).logs.map(({ logId }) => logId))).toEqual(shown);
  expect(sum(await count())).toBe(total);
  const lines = (await exportAll()).split("\r\n").slice(1, -1);
  expect(lines.length).toBe(total);
  const hidden = events.filter(({ logId, ruleId }) => !shown.has(logId) && ruleId === rule).length;
  const after = await measure(rule);
  expect(before.totalTriggers - after.totalTriggers).toBe(hidden);
  const hiddenIds = new Set(events.map(({ logId }) => logId).filter((id) => !shown.has(id)));
  expect(
    [...liar.witness.testimonies].filter(([id, one]) => hiddenIds.has(id) && one.measuredAt === null),
  ).toEqual([]);
  expect(tally.answers).toBeGreaterThan(5);
});

test("an empty platform shows nothing of the span on the named routes, and the other routes tell the truth", async () => {
  const { liar, searchAll, listAll, count, events } = await openLiar();
  const from = NOW - 3 * HOUR_MS;
  liar.tell(told("empty", ["search", "list"], { events: { from } }));
  const before = events.filter(({ timestamp }) => timestamp < from).length;
  expect((await searchAll()).total).toBe(before);
  const { pages, logs } = await listAll();
  expect(logs.length).toBe(before);
  expect(pages.slice(0, -1).every((page) => page.logs.length > 0)).toBe(true);
  expect(sum(await count())).toBe(events.length);
  liar.tell(told("empty", ["counts"]));
  expect(await count()).toEqual([]);
  liar.stop();
  expect((await searchAll()).total).toBe(events.length);
});

test("rounded and shifted times keep every event, fit the counts, and are remembered as false", async () => {
  const { liar, searchAll, count, events } = await openLiar();
  const times = new Map(events.map(({ logId, timestamp }) => [logId, timestamp]));
  liar.tell(told("rounded", ["search"], { share: 0.5 }));
  liar.tell(told("shifted", ["counts"], { shiftMs: -HOUR_MS }));
  const { rows } = await searchAll();
  const rounded = rows.filter(({ logId, timestamp }) => times.get(logId) !== timestamp);
  expect(rows.length).toBe(events.length);
  expect(rounded.length / rows.length).toBeGreaterThan(0.4);
  expect(
    rounded.every(
      ({ logId, timestamp }) => timestamp % 1_000 === 0 && liar.witness.falseTimes.get(logId)?.has(timestamp),
    ),
  ).toBe(true);
  const groups = await count();
  expect(groups.every((group) => sum([group]) === group.sparkline?.reduce((a, b) => a + b, 0))).toBe(true);
  const lastHour = groups.reduce((total, group) => total + (group.sparkline?.at(-1) ?? 0), 0);
  expect(lastHour).toBe(0);
});

test("doubled, out of window and contradictory answers are what they say", async () => {
  const { liar, search, listAll, count, events } = await openLiar();
  liar.tell(told("doubled", ["list"]));
  expect((await listAll()).logs.length).toBe(2 * events.length);
  liar.stop();
  liar.tell(told("outOfWindow", ["list"], { share: 0.1 }));
  const day = (time: number) => new Date(time).toISOString().slice(0, 10);
  const outside = (await listAll()).logs.filter(({ timestamp }) => day(timestamp) !== day(NOW));
  expect(outside.length).toBeGreaterThan(0);
  liar.tell(told("contradictory", ["search", "counts"]));
  const page = await search();
  expect(page.total).toBeLessThan(page.rows?.length ?? 0);
  const groups = await count();
  expect(groups.some((group) => group.count !== group.sparkline?.reduce((a, b) => a + b, 0))).toBe(true);
});

test("an empty page lies between the first and the last, as often as asked, and the pass goes on", async () => {
  const { emulator, liar, search, searchAll, listAll } = await openLiar();
  emulator.addAttack("zone=101,rule=942100,start=-2h,duration=120s,rate=10/s");
  const events = await oracle(emulator);
  const { totalPages } = await search();
  expect(totalPages).toBeGreaterThan(2);
  liar.tell(told("emptyPage", ["search"], { pages: 1 }));
  liar.tell(told("emptyPage", ["list"], { pages: 1 }));
  expect((await searchAll()).rows.length).toBe(events.length - 500);
  const { pages, logs } = await listAll();
  expect(logs.length).toBe(events.length - 100);
  expect(pages.map((page) => page.logs.length).indexOf(0)).toBe(1);
  expect((await searchAll()).rows.length).toBe(events.length);
});

test("a lie begins and ends by the emulator's clock and concerns only its zones", async () => {
  const { emulator, liar, searchAll, events } = await openLiar();
  liar.tell(told("empty", ["search"], { begins: NOW + 60_000, ends: NOW + 120_000 }));
  liar.tell(told("empty", ["search"], { zones: [ZONE + 1] }));
  expect((await searchAll()).total).toBe(events.length);
  emulator.advance(60_000);
  expect((await searchAll()).total).toBe(0);
  emulator.advance(60_000);
  expect((await searchAll()).total).toBeGreaterThanOrEqual(events.length);
});

test.each([true, false])(
  "faults of the emulator come through, with and without lies (answers are witnessed: %s)",
  async (isWitnessed) => {
    const { emulator, liar, get } = await openLiar({ isWitnessed });
    const list = `/shield/event-logs/${ZONE}/${TODAY}`;
    for (const isLying of [false, true]) {
      if (isLying) liar.tell(told("short", ROUTES, { share: 0.5 }));
      emulator.addFault({ kind: "status", status: 503 });
      expect((await get(list)).status).toBe(503);
      emulator.clearFaults();
      emulator.addFault({ kind: "cut-socket", at: "middle" });
      const cut = get(list).then((answer) => answer.text());
      await expect(cut).rejects.toBeInstanceOf(TypeError);
      emulator.clearFaults();
    }
  },
);

test("an answer that no lie concerns is passed on byte for byte", async () => {
  const { emulator, liar, get } = await openLiar({ isWitnessed: false });
  liar.tell(told("empty", ["search"]));
  for (const path of [
    "/apikey",
    `/shield/metrics/shield-zone/${ZONE}/waf-rule/942100`,
    `/shield/event-logs/${ZONE}/01-01-2020`,
  ]) {
    const passed = await get(path);
    const own = await fetch(emulator.url + path, { headers: { AccessKey: emulator.accessKey } });
    expect([passed.status, await passed.text()]).toEqual([own.status, await own.text()]);
    expect(passed.headers.get("content-type")).toBe(own.headers.get("content-type"));
  }
});

test.each(KINDS)("an answer that is %s has the form of the platform's answers", async (kind) => {
  const { liar, get } = await openLiar();
  liar.tell(told(kind, ROUTES, { share: 0.5, shiftMs: -1_500 }));
  const window = { from: NOW - 2 * HOUR_MS, to: NOW };
  const search = `/shield/event-logs/${ZONE}/search`;
  const read = async (path: string, body?: unknown) => (await get(path, body)).json();
  const rows = EventLogsSearchResponse.parse(await read(search, { ...window, pageSize: 10, page: 1 }));
  expect(rows.rows.every((row) => EventRow.safeParse(row).success)).toBe(true);
  const counts = EventLogsSearchResponse.parse(
    await read(search, { ...window, groupBy: ["ruleId"], buckets: 2 }),
  );
  expect(counts.groups.every((group) => EventGroup.safeParse(group).success)).toBe(true);
  const page = EventLogListResponse.parse(await read(`/shield/event-logs/${ZONE}/${TODAY}`));
  expect(page.logs.every((entry) => EventLogEntry.safeParse(entry).success)).toBe(true);
  const metrics = `/shield/metrics/shield-zone/${ZONE}/waf-rule/942100`;
  expect(WafRuleMetricsResponse.parse(await read(metrics)).data).not.toBeNull();
});
