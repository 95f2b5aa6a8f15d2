import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import {
  bodyOf,
  call,
  type ListBody,
  listPath,
  NOW,
  openEmulator,
  oracle,
  search,
  shareEmulator,
  TODAY,
  walkDay,
  YESTERDAY,
} from "./support.ts";

const emulator = await shareEmulator();

test.each(["oldest", "newest"] as const)(
  "paging %s first gives exactly what the oracle holds, in that order",
  async (order) => {
    const emulator = await openEmulator({ historyHours: 20, eventsPerSecond: 0.05, order, pageSize: 133 });
    const expected = await oracle(emulator);
    const today = await walkDay(emulator, TODAY);
    const yesterday = await walkDay(emulator, YESTERDAY);
    const days = order === "oldest" ? [...yesterday, ...today] : [...today, ...yesterday];
    const ids = days.flatMap((page) => page.logs ?? []).map((entry) => entry.logId);
    const expectedIds = expected.map((event) => event.logId);
    expect(ids).toEqual(order === "oldest" ? expectedIds : expectedIds.toReversed());
    expect(today.slice(0, -1).every((page) => page.logs?.length === 133)).toBe(true);
  },
);

test("an entry carries its record as text with a masked address, and labels that are all strings", async () => {
  const [page] = await walkDay(emulator, TODAY);
  const byId = new Map((await oracle(emulator)).map((event) => [event.logId, event]));
  expect(page?.logs?.length).toBeGreaterThan(100);
  for (const entry of page?.logs ?? []) {
    const event = byId.get(entry.logId);
    expect(entry.logId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    const log = JSON.parse(entry.log) as Record<string, unknown>;
    expect(log).toEqual(event?.log);
    expect(Object.keys(log)).toEqual([
      "ServerZoneId",
      "Message",
      "Url",
      "RemoteIp",
      "UrlEncodedBody",
      "Headers",
      "TriggerMatch",
    ]);
    expect(log["RemoteIp"]).toBe(event?.ip.includes(":") ? event.ip : event?.ip.replace(/\d+$/, "*"));
    const status = { block: "Blocked", log: "Logged", challenge: "Challenged" }[event?.action ?? ""];
    expect(entry.labels).toEqual({
      asn: event?.asn,
      country: event?.country,
      ruleId: event?.ruleId,
      severity: "",
      method: expect.stringMatching(/^[A-Z]+$/),
      ruleGroup: "",
      status,
      serverZone: expect.stringMatching(/^[A-Z]{2}$/),
    });
  }
});

test("the first page needs no token, takes an empty one, and `start` by switch", async () => {
  const emulator = await openEmulator();
  const ids = async (path: string) =>
    (await bodyOf<ListBody>(call(emulator, path))).logs?.map((entry) => entry.logId);
  const first = await ids(listPath(TODAY));
  expect(await ids(`${listPath(TODAY)}/`)).toEqual(first);
  expect(await ids(listPath(TODAY, "start"))).toEqual(first);
  emulator.setSwitches({ startToken: "reject" });
  expect((await call(emulator, listPath(TODAY, "start"))).status).toBe(400);
});

test("tokens are opaque, need encoding, and belong to one zone and day", async () => {
  const emulator = await openEmulator({ pageSize: 100 });
  const page = await bodyOf<ListBody>(call(emulator, listPath(TODAY)));
  const token = page.continuationToken ?? "";
  expect(token).toMatch(/^\/.*=$/);
  expect((await call(emulator, `${listPath(TODAY)}/${token}`)).status).toBe(404);
  expect((await call(emulator, listPath(TODAY, token))).status).toBe(200);
  expect((await call(emulator, listPath(YESTERDAY, token))).status).toBe(400);
  expect((await call(emulator, listPath(TODAY, token, 102))).status).toBe(400);
  const wrong = await call(emulator, listPath(TODAY, `${token.slice(0, -6)}AAAA==`));
  expect(wrong.status).toBe(400);
  expect(wrong.headers.get("content-type")).toContain("application/problem+json");
  const second = await bodyOf<ListBody>(call(emulator, listPath(TODAY, token)));
  expect(second.startToken).toBe(page.startToken);
});

test("a token with any character changed is refused, whichever it is", async () => {
  const emulator = await openEmulator({ pageSize: 100, eventsPerSecond: 0.05 });
  const page = await bodyOf<ListBody>(call(emulator, listPath(TODAY)));
  const token = page.continuationToken ?? "";
  const characters = ["A", "/", "=", "%", "*"];
  const taken: [number, string, number][] = [];
  for (let at = 0; at < token.length; at++) {
    for (const character of [characters[at % 5], characters[(at + 2) % 5]] as string[]) {
      if (token[at] === character) continue;
      const changed = token.slice(0, at) + character + token.slice(at + 1);
      const { status } = await call(emulator, listPath(TODAY, changed));
      if (status !== 400) taken.push([at, character, status]);
    }
  }
  expect(taken).toEqual([]);
  expect((await call(emulator, `${listPath(TODAY)}/${encodeURIComponent(token)}%zz`)).status).toBe(400);
  expect((await call(emulator, listPath(TODAY, token))).status).toBe(200);
});

test("a page stays in place while events arrive, and a token can outlive its time", async () => {
  const emulator = await openEmulator({ pageSize: 50, order: "newest" });
  const first = await bodyOf<ListBody>(call(emulator, listPath(TODAY)));
  const second = await bodyOf<ListBody>(call(emulator, listPath(TODAY, first.continuationToken ?? "")));
  emulator.advance(HOUR_MS);
  const again = await bodyOf<ListBody>(call(emulator, listPath(TODAY, first.continuationToken ?? "")));
  const lateIds = new Set(again.logs?.map((entry) => entry.logId));
  const kept = second.logs?.filter((entry) => lateIds.has(entry.logId)).length ?? 0;
  expect(kept).toBeGreaterThan(40);
  emulator.setSwitches({ tokenLifetimeMs: MINUTE_MS });
  expect((await call(emulator, listPath(TODAY, first.continuationToken ?? ""))).status).toBe(400);
});

test.each(["11-17-2026", "11-21-2026", "01-01-2099"])(
  "the day %s lies outside the three served days: a 401 of the response's shape",
  async (day) => {
    const response = await call(emulator, listPath(day));
    expect(response.status).toBe(401);
    expect(await response.json()).toEqual({
      logs: null,
      hasMoreData: false,
      continuationToken: null,
      startToken: null,
      errorResponse: {
        statusCode: 401,
        success: false,
        message: "You can only view the past 3 days (72 hours) of Event Logs.",
        errorKey: "invalid_datetime_window.event_logs",
      },
    });
  },
);

test.each(["2026-11-20", "20-11-2026", "11-31-2026", "2-3-2026", "today"])(
  "the date %s is a 400 problem that names it",
  async (day) => {
    const response = await call(emulator, listPath(day));
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ status: 400, detail: expect.stringContaining(`'${day}'`) });
  },
);

test("the oldest served day can be read to its beginning", async () => {
  const emulator = await openEmulator({ historyHours: 72, eventsPerSecond: 0.02 });
  const [page] = await walkDay(emulator, "11-18-2026");
  const dayMs = Date.UTC(2026, 10, 18);
  const expected = (await oracle(emulator)).filter(
    (event) => event.timestamp >= dayMs && event.timestamp < dayMs + 24 * HOUR_MS,
  );
  expect(page?.logs).toHaveLength(expected.length);
});

test("an unknown zone is a filled 202, a zone that is no number a 400", async () => {
  const unknown = await call(emulator, listPath(TODAY, undefined, 7));
  expect(unknown.status).toBe(202);
  expect(await unknown.json()).toMatchObject({
    logs: null,
    errorResponse: { success: false, errorKey: "not_found_or_unauthorised_access.shieldzone" },
  });
  expect((await call(emulator, `/shield/event-logs/abc/${TODAY}`)).status).toBe(400);
});

test("switches choose the last token and the status block of a success", async () => {
  const emulator = await openEmulator({ historyHours: 0.1 });
  const last = () => bodyOf<ListBody>(call(emulator, listPath(TODAY)));
  expect(await last()).toMatchObject({ hasMoreData: false, continuationToken: "", errorResponse: null });
  emulator.setSwitches({ lastToken: "null", errorResponse: "default" });
  const block = { statusCode: 0, success: false, message: null, errorKey: null };
  expect(await last()).toMatchObject({ hasMoreData: false, continuationToken: null, errorResponse: block });
  emulator.setSwitches({ errorResponse: "absent" });
  expect(await last()).not.toHaveProperty("errorResponse");
  expect((await search(emulator, {})).groups).toBeNull();
  emulator.setSwitches({ emptySide: "list" });
  expect((await search(emulator, {})).groups).toEqual([]);
  expect((await search(emulator, { groupBy: ["ip"] })).rows).toEqual([]);
});

test("a list that shows the WAF only leaves out the events of other features, which the search shows", async () => {
  const emulator = await openEmulator({ historyHours: 12, pageSize: 100 });
  const ofDay = (await oracle(emulator)).filter(({ timestamp }) => timestamp >= NOW - (NOW % DAY_MS));
  const waf = ofDay.filter(({ feature }) => feature === "waf").map(({ logId }) => logId);
  expect(waf.length).toBeLessThan(ofDay.length);
  const listed = async () => (await walkDay(emulator, TODAY)).flatMap(({ logs }) => logs ?? []);
  expect((await listed()).length).toBe(ofDay.length);
  emulator.setSwitches({ listFeatures: "waf" });
  expect((await listed()).map(({ logId }) => logId)).toEqual(waf);
  expect((await search(emulator, {})).total).toBe((await oracle(emulator)).length);
});
