import { expect, onTestFinished, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import {
  EventGroup,
  EventLogEntry,
  EventLogListResponse,
  EventLogsSearchResponse,
  EventRow,
} from "#platform/contract/event-logs.ts";
import { WafRuleMetricsResponse } from "#platform/contract/rules.ts";
import { NOW, openEmulator, oracle, type SearchBody, TODAY } from "../emulator/support.ts";
import { KINDS, type Lie, type LieKind, ROUTES, type Route } from "../support/liar/lie.ts";
import { startLyingPlatform } from "../support/liar/lying-platform.ts";

const ZONE = 101;
const OTHER_ZONE = 102;

interface ListAnswer {
  readonly logs: {
    readonly logId: string;
    readonly timestamp: number;
    readonly log: string;
    readonly labels: Record<string, string>;
  }[];
  readonly continuationToken: string;
  readonly hasMoreData: boolean;
}

async function openLiar({ isWitnessed = true, zones = [ZONE] } = {}) {
  const emulator = await openEmulator({
    zones,
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
  const window = { from: NOW - 9 * HOUR_MS, to: NOW };
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
    const pages: Pick<ListAnswer, "logs">[] = [];
    let token = "";
    for (;;) {
      const answer = await get(`/shield/event-logs/${ZONE}/${TODAY}/${encodeURIComponent(token)}`);
      const page = (await answer.json()) as ListAnswer;
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

test("an empty platform shows nothing of the span on the named routes, and other routes answer truthfully", async () => {
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

test.each([-90, 90])(
  "events that move by %d minutes on every route have the same time on all of them",
  async (minutes) => {
    const { liar, searchAll, listAll, count, exportAll, events } = await openLiar();
    liar.tell(told("shifted", ROUTES, { share: 0.3, shiftMs: minutes * MINUTE_MS }));
    const { rows } = await searchAll();
    const times = new Map(rows.map(({ logId, timestamp }) => [logId, timestamp]));
    const moved = events.filter(
      ({ logId, timestamp }) => times.get(logId) === timestamp + minutes * MINUTE_MS,
    );
    expect(moved.length / events.length).toBeGreaterThan(0.15);
    const { logs } = await listAll();
    expect(new Map(logs.map(({ logId, timestamp }) => [logId, timestamp]))).toEqual(times);
    const exported = (await exportAll())
      .split("\r\n")
      .slice(1, -1)
      .map((line) => line.split(","));
    expect(new Map(exported.map(([at, id]) => [id, Number(at)]))).toEqual(times);
    const from = NOW - (NOW % HOUR_MS) - 6 * HOUR_MS;
    const ofHour = (hour: number) =>
      [...times.values()].filter((at) => Math.floor((at - from) / (HOUR_MS - 1_800_000 / 7)) === hour).length;
    const groups = await count();
    const counted = (hour: number) =>
      groups.reduce((total, group) => total + (group.sparkline?.[hour] ?? 0), 0);
    expect([0, 1, 2, 3, 4, 5, 6].map(counted)).toEqual([0, 1, 2, 3, 4, 5, 6].map(ofHour));
    expect(sum(groups)).toBe([0, 1, 2, 3, 4, 5, 6].reduce((total, hour) => total + counted(hour), 0));
  },
);

test("a phantom is one more event on the named routes only, the same at each read, and no truth", async () => {
  const { liar, searchAll, listAll, count, measure, events } = await openLiar();
  const hour = { from: NOW - 3 * HOUR_MS, to: NOW - 2 * HOUR_MS };
  const before = await count();
  const { tally } = liar.tell(told("phantom", ["search", "counts", "metrics"], { events: hour, count: 1 }));
  const { rows, total } = await searchAll();
  expect([rows.length, total]).toEqual([events.length + 1, events.length + 1]);
  const own = new Map(events.map((event) => [event.logId, event]));
  const invented = rows.filter(({ logId }) => !own.has(logId));
  expect(invented.length).toBe(1);
  const { logId = "", timestamp = 0, fields } = invented[0] ?? {};
  const original = events.find((event) => event.timestamp === timestamp - 1);
  expect(fields?.["ruleId"]).toBe(original?.ruleId);
  expect((await searchAll()).rows.filter(({ logId: id }) => !own.has(id)).map((row) => row.logId)).toEqual([
    logId,
  ]);
  expect(sum(await count())).toBe(sum(before) + 1);
  const rule = original?.ruleId ?? "";
  const metric = await measure(rule);
  expect((await listAll()).logs.length).toBe(events.length);
  liar.stop();
  expect(metric.totalTriggers).toBe((await measure(rule)).totalTriggers + 1);
  expect(liar.witness.phantomIds).toEqual(new Set([logId]));
  expect(liar.witness.testimonies.has(logId)).toBe(false);
  expect(tally.answers).toBeGreaterThan(2);
});

test("a foreign answer is the emulator's own for the other zone, with its totals, tokens and counts", async () => {
  const { emulator, liar, searchAll, listAll, count, measure } = await openLiar({
    zones: [ZONE, OTHER_ZONE],
  });
  const others = await oracle(emulator, OTHER_ZONE);
  const measured = await measure("942100");
  const before = liar.witness.testimonies.size;
  liar.tell(told("foreign", ROUTES, { zones: [ZONE], otherZone: OTHER_ZONE }));
  const ids = others.map(({ logId }) => logId).sort();
  const { rows, total } = await searchAll();
  expect(total).toBe(others.length);
  expect(rows.map(({ logId }) => logId).sort()).toEqual(ids);
  const { pages, logs } = await listAll();
  expect(pages.length).toBeGreaterThan(1);
  expect(logs.map(({ logId }) => logId).sort()).toEqual(ids);
  expect(sum(await count())).toBe(others.length);
  expect(await measure("942100")).not.toEqual(measured);
  expect(liar.witness.foreignIds).toEqual(new Set(ids));
  expect(liar.witness.phantomIds).toEqual(new Set(ids));
  expect(liar.witness.testimonies.size).toBe(before);
});

test("false values stand in rows, records, list entries, groups, filtered searches and metrics alike", async () => {
  const { liar, search, searchAll, listAll, count, measure, events } = await openLiar();
  const fields = { ruleId: "999001", ip: "192.0.2.66", url: "/false" };
  const before = await measure("999001");
  liar.tell(told("wrongValue", ROUTES, { share: 0.1, fields }));
  const { rows, total } = await searchAll();
  expect(total).toBe(events.length);
  const wrong = rows.filter((row) => row.fields["ruleId"] === "999001");
  expect(wrong.length / total).toBeGreaterThan(0.05);
  expect(wrong.length / total).toBeLessThan(0.15);
  for (const { log, fields: shown } of wrong) {
    expect(shown).toMatchObject(fields);
    expect(log).toMatchObject({ Url: "/false", RemoteIp: "192.0.2.*" });
  }
  const ids = new Set(wrong.map(({ logId }) => logId));
  const listed = (await listAll()).logs.filter(({ labels }) => labels["ruleId"] === "999001");
  expect(new Set(listed.map(({ logId }) => logId))).toEqual(ids);
  expect(listed.map(({ log }) => JSON.parse(log) as unknown)).toEqual(
    listed.map(() => expect.objectContaining({ Url: "/false", RemoteIp: "192.0.2.*" })),
  );
  const groups = await count();
  expect(groups.find(({ key }) => key["ruleId"] === "999001")?.count).toBe(ids.size);
  expect(sum(groups)).toBe(events.length);
  const filtered = await search({ filters: [{ field: "ruleId", op: "eq", value: ["999001"] }] });
  expect([filtered.total, filtered.rows?.length]).toEqual([ids.size, ids.size]);
  const rule = events.find(({ logId }) => ids.has(logId))?.ruleId ?? "";
  const fewer = await search({ filters: [{ field: "ruleId", op: "eq", value: [rule] }] });
  expect(fewer.total).toBe(events.filter(({ logId, ruleId }) => ruleId === rule && !ids.has(logId)).length);
  const counted = [(await measure("999001")).totalTriggers, (await measure(rule)).totalTriggers];
  liar.stop();
  const lost = events.filter(({ logId, ruleId }) => ruleId === rule && ids.has(logId)).length;
  expect(counted).toEqual([before.totalTriggers + ids.size, (await measure(rule)).totalTriggers - lost]);
  expect(new Set(liar.witness.falseValues.keys())).toEqual(ids);
  for (const names of liar.witness.falseValues.values())
    expect(["ruleId", "ip", "url"].filter((name) => names.has(name as "url"))).toContain("ruleId");
  const shown = [...ids].map((id) => liar.witness.testimonies.get(id)?.shownAt);
  expect(shown).toEqual(shown.map(() => NOW));
});

test("a platform that keeps two hours shows and counts nothing older, on the named routes", async () => {
  const { emulator, liar, searchAll, listAll, count, events } = await openLiar();
  liar.tell(told("forgets", ["search", "list", "counts"], { keptMs: 2 * HOUR_MS }));
  const keptOf = (now: number) => events.filter(({ timestamp }) => timestamp >= now - 2 * HOUR_MS).length;
  expect((await searchAll()).total).toBe(keptOf(NOW));
  expect((await listAll()).logs.length).toBe(keptOf(NOW));
  expect(sum(await count())).toBe(keptOf(NOW));
  emulator.advance(HOUR_MS);
  expect((await searchAll()).rows.filter(({ timestamp }) => timestamp < NOW).length).toBe(
    keptOf(NOW + HOUR_MS),
  );
});

test("the metrics of a day that grow count one event more at each read, and measure no event truthfully", async () => {
  const { liar, measure, events } = await openLiar();
  const rule = events[0]?.ruleId ?? "";
  const before = (await measure(rule)).totalTriggers;
  const measured = new Map([...liar.witness.testimonies].map(([id, one]) => [id, one.measuredAt]));
  liar.tell(told("grows", ["metrics"], { events: { from: NOW - HOUR_MS, to: NOW } }));
  expect((await measure(rule)).totalTriggers).toBe(before + 1);
  expect((await measure("941100")).totalTriggers).toBeGreaterThan(0);
  const { overviewPastTwentyEightDays: days, totalTriggers } = await measure(rule);
  expect(totalTriggers).toBe(before + 2);
  expect(Object.values(days).reduce((total, day) => total + day.totalTriggers, 0)).toBe(totalTriggers);
  const since = [...liar.witness.testimonies].filter(
    ([id, one]) => one.measuredAt !== (measured.get(id) ?? null),
  );
  expect(since).toEqual([]);
});

test("from the third page on a list page repeats entries of the page before the last one, and has its own", async () => {
  const { liar, listAll, events } = await openLiar();
  const own = (await listAll()).pages;
  expect(own.length).toBeGreaterThan(3);
  const { tally } = liar.tell(told("repeats", ["list"]));
  const { pages } = await listAll();
  for (const [index, page] of pages.entries()) {
    const repeated = own[index - 2]?.logs.slice(-3) ?? [];
    expect(page.logs).toEqual([...repeated, ...(own[index]?.logs ?? [])]);
  }
  expect(tally.events).toBe(3 * (pages.length - 2));
  expect(events.length).toBe(own.reduce((total, page) => total + page.logs.length, 0));
});

test.each(["logId", "timestamp"] as const)(
  "an entry without a readable %s is on the list in addition to the true ones, and nowhere else",
  async (broken) => {
    const { liar, searchAll, listAll, events } = await openLiar();
    liar.tell(told("unreadable", ROUTES, { count: 2, broken }));
    for (let read = 0; read < 2; read++) {
      const { logs } = await listAll();
      const readable = logs.filter((entry) => EventLogEntry.safeParse(entry).success);
      expect([logs.length, readable.length]).toEqual([events.length + 2, events.length]);
    }
    expect((await searchAll()).total).toBe(events.length);
  },
);

test("an event on the end of a bucket is counted in two buckets, and the group counts the sum of its buckets", async () => {
  const { liar, search, events } = await openLiar();
  const { timestamp = 0, ruleId = "" } = events.find(({ timestamp: at }) => at > NOW - 3 * HOUR_MS) ?? {};
  const at = timestamp;
  const body = { groupBy: ["ruleId"], buckets: 2, from: at - HOUR_MS, to: at + HOUR_MS };
  const read = async (more: Record<string, unknown> = {}) => {
    const { groups } = await search({ ...body, ...more });
    return groups?.find(({ key }) => key["ruleId"] === ruleId) ?? { count: 0, sparkline: [] };
  };
  const before = await read();
  const endingHere = { from: at - HOUR_MS, to: at, buckets: 1 };
  const shorter = await read(endingHere);
  liar.tell(told("endInclusive", ["counts"]));
  const after = await read();
  const [first = 0, second = 0] = before.sparkline ?? [];
  expect(after).toMatchObject({ count: before.count + 1, sparkline: [first + 1, second] });
  expect((await read(endingHere)).count).toBe(shorter.count + 1);
});

test("a refused route answers 429 with Retry-After, and the other routes and zones answer", async () => {
  const { liar, get, searchAll, events } = await openLiar({ zones: [ZONE, OTHER_ZONE] });
  const list = (zone: number) => get(`/shield/event-logs/${zone}/${TODAY}`);
  const { end } = liar.tell(told("refuses", ["list"], { zones: [ZONE] }));
  const refused = await list(ZONE);
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "86400"]);
  expect((await list(OTHER_ZONE)).status).toBe(200);
  expect((await searchAll()).total).toBe(events.length);
  end();
  expect((await list(ZONE)).status).toBe(200);
  liar.tell(told("refuses", ROUTES, { retryAfter: 60 }));
  expect((await list(OTHER_ZONE)).headers.get("retry-after")).toBe("60");
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

const FORMED = KINDS.filter((kind) => kind !== "unreadable" && kind !== "refuses");
test.each(FORMED)("an answer that is %s has the form of the platform's answers", async (kind) => {
  const { liar, get } = await openLiar({ zones: [ZONE, OTHER_ZONE] });
  const fields = { ruleId: "999001", action: "log" };
  const more = { shiftMs: -1_500, keptMs: HOUR_MS, otherZone: OTHER_ZONE, fields };
  liar.tell(told(kind, ROUTES, { share: 0.5, ...more }));
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
