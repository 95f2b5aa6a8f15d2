import { expect, test } from "vitest";
import { createEmulator, type Emulator } from "#emulator/emulator.ts";
import type { FaultInput } from "#emulator/faults.ts";
import {
  bodyOf,
  call,
  type ListBody,
  listPath,
  openEmulator,
  oracle,
  search,
  send,
  TODAY,
  walkDay,
} from "./support.ts";

const first = (emulator: Emulator) => call(emulator, listPath(TODAY));
const idsOf = (pages: readonly ListBody[]) =>
  pages.flatMap((page) => page.logs ?? []).map((entry) => entry.logId);

async function withFault(fault: FaultInput): Promise<Emulator> {
  return openEmulator({ pageSize: 100, faults: [fault] });
}

test.each([
  { retryAfter: "seconds", header: "7" },
  { retryAfter: "date", header: "Fri, 20 Nov 2026 15:30:07 GMT" },
  { retryAfter: "none", header: null },
] as const)("a rate limit tells when to come back as $retryAfter", async ({ retryAfter, header }) => {
  const response = await first(await withFault({ kind: "rate-limit", retryAfter, seconds: 7 }));
  expect(response.status).toBe(429);
  expect(response.headers.get("retry-after")).toBe(header);
});

test.each([
  { body: "json", type: "application/json", text: '"status":503' },
  { body: "plain", type: "text/plain", text: "Service Unavailable" },
  { body: "html", type: "text/html", text: "<h1>Service Unavailable</h1>" },
  { body: "empty", type: null, text: "" },
] as const)("a 503 comes with a $body body", async ({ body, type, text }) => {
  const response = await first(await withFault({ kind: "status", status: 503, body }));
  expect(response.status).toBe(503);
  expect(response.headers.get("content-type")?.split(";")[0] ?? null).toBe(type);
  expect(await response.text()).toContain(text);
});

test("an error can be labelled as what it is not", async () => {
  const emulator = await withFault({
    kind: "status",
    operation: "export-event-logs",
    status: 400,
    contentType: "text/csv",
  });
  const response = await send(emulator, "POST", "/shield/event-logs/101/export", {});
  expect([response.status, response.headers.get("content-type")]).toEqual([400, "text/csv"]);
});

test("a 401 comes bare or with an errorKey", async () => {
  const bare = await first(await withFault({ kind: "unauthorized" }));
  expect(bare.status).toBe(401);
  expect(await bare.json()).toMatchObject({ title: "Unauthorized", status: 401 });
  const keyed = await first(
    await withFault({ kind: "unauthorized", errorKey: "invalid_datetime_window.event_logs" }),
  );
  expect(keyed.status).toBe(401);
  expect(await keyed.json()).toMatchObject({
    logs: null,
    errorResponse: { statusCode: 401, errorKey: "invalid_datetime_window.event_logs" },
  });
});

test("a failure can hide in a 202", async () => {
  const response = await first(
    await withFault({ kind: "envelope", errorKey: "invalid_plan_type.event_logs" }),
  );
  expect(response.status).toBe(202);
  expect(await response.json()).toMatchObject({
    logs: null,
    errorResponse: { success: false, errorKey: "invalid_plan_type.event_logs" },
  });
});

test("a truncated body is a complete answer that is no JSON", async () => {
  const response = await first(await withFault({ kind: "truncated-body", keep: 0.9 }));
  const text = await response.text();
  expect(Buffer.byteLength(text)).toBe(Number(response.headers.get("content-length")));
  expect(() => JSON.parse(text) as unknown).toThrow(SyntaxError);
});

test("a slow drip arrives whole, in many pieces", async () => {
  const emulator = await openEmulator({
    pageSize: 1,
    faults: [{ kind: "slow-drip", bytes: 100, everyMs: 1 }],
  });
  const body = await bodyOf<ListBody>(first(emulator));
  expect(body.logs).toHaveLength(1);
});

test("closing does not wait for a drip or a delay", async () => {
  const emulator = await createEmulator({
    historyHours: 0.1,
    faults: [
      { kind: "slow-drip", bytes: 1, everyMs: 60_000, next: 1 },
      { kind: "latency", ms: 600_000, operation: "list-api-keys" },
    ],
  });
  const dripping = first(emulator).then((response) => response.text());
  const waiting = call(emulator, "/apikey");
  const failed = Promise.allSettled([dripping, waiting]);
  await expect.poll(() => emulator.requests().last.length).toBe(2);
  await emulator.close();
  expect((await failed).map((result) => result.status)).toEqual(["rejected", "rejected"]);
});

test.each(["before", "headers", "middle"] as const)("a socket cut %s is no answer", async (at) => {
  const emulator = await withFault({ kind: "cut-socket", at });
  await expect(first(emulator).then((response) => response.text())).rejects.toThrow(
    /fetch failed|terminated/,
  );
});

test("a fault with `next` strikes so often and is gone; one for an operation leaves the others alone", async () => {
  const emulator = await withFault({ kind: "status", operation: "list-event-logs", next: 2 });
  expect((await call(emulator, "/apikey")).status).toBe(200);
  const statuses = [await first(emulator), await first(emulator), await first(emulator)].map(
    (response) => response.status,
  );
  expect(statuses).toEqual([503, 503, 200]);
});

test("the same seed and requests meet the same faults", async () => {
  const statuses = async () => {
    const emulator = await openEmulator({ historyHours: 0, faults: [{ kind: "status", probability: 0.5 }] });
    const seen: number[] = [];
    for (let i = 0; i < 40; i++) seen.push((await call(emulator, "/apikey")).status);
    return seen;
  };
  const seen = await statuses();
  expect(new Set(seen)).toEqual(new Set([200, 503]));
  expect(await statuses()).toEqual(seen);
});

test("a duplicate page repeats its entries and the walk still reaches the end", async () => {
  const emulator = await openEmulator({ pageSize: 100, faults: [{ kind: "duplicate-page", next: 1 }] });
  const pages = await walkDay(emulator, TODAY);
  expect(idsOf(pages.slice(1, 2))).toEqual(idsOf(pages.slice(0, 1)));
  expect(pages[1]?.continuationToken).not.toBe(pages[0]?.continuationToken);
  expect(idsOf(pages.slice(1))).toEqual((await oracle(emulator)).map((event) => event.logId));
});

test("a shortened page drops entries and goes on behind them, or ends the walk too early", async () => {
  const emulator = await openEmulator({
    pageSize: 100,
    faults: [{ kind: "shortened-page", next: 1, keep: 0.25 }],
  });
  const all = (await oracle(emulator)).map((event) => event.logId);
  expect(idsOf(await walkDay(emulator, TODAY))).toEqual([...all.slice(0, 25), ...all.slice(100)]);
  emulator.addFault({ kind: "shortened-page", keep: 0.25, endsEarly: true });
  const [only, ...rest] = await walkDay(emulator, TODAY);
  expect(rest).toEqual([]);
  expect(only).toMatchObject({ hasMoreData: false, continuationToken: "" });
  expect(only?.logs).toHaveLength(25);
});

test("dropped events are missing from the first pass and there in the second", async () => {
  const emulator = await withFault({ kind: "dropped-events", share: 0.2, passes: 1 });
  const all = (await oracle(emulator)).map((event) => event.logId);
  const seen = idsOf(await walkDay(emulator, TODAY));
  expect(seen.length).toBeLessThan(all.length * 0.9);
  expect(seen.length).toBeGreaterThan(all.length * 0.7);
  expect(idsOf(await walkDay(emulator, TODAY))).toEqual(all);
});

test("hidden rows are missing from the pages of a flat search, and counted all the same", async () => {
  const emulator = await withFault({ kind: "hidden-rows", share: 0.2 });
  const all = (await oracle(emulator)).map((event) => event.logId);
  const pages = [];
  for (let page = 0; page * 500 < all.length; page++)
    pages.push(await search(emulator, { page, pageSize: 500 }));
  const seen = new Set(pages.flatMap(({ rows }) => rows ?? []).map(({ logId }) => logId));
  expect(pages.every(({ total }) => total === all.length)).toBe(true);
  expect(seen.size).toBeLessThan(all.length * 0.9);
  expect(seen.size).toBeGreaterThan(all.length * 0.7);
  expect(all.filter((id) => seen.has(id))).toHaveLength(seen.size);
  const { groups } = await search(emulator, { groupBy: ["ruleId"], pageSize: 500 });
  expect(groups?.reduce((sum, { count }) => sum + count, 0)).toBe(all.length);
});

test.each([1, 3])("a token loop of %i pages gives a token again and never ends", async (pages) => {
  const emulator = await withFault({ kind: "token-loop", pages });
  const tokens: string[] = [];
  let token: string | undefined;
  for (let i = 0; i < pages * 3 + 1; i++) {
    const page = await bodyOf<ListBody>(call(emulator, listPath(TODAY, token)));
    expect(page.hasMoreData).toBe(true);
    token = page.continuationToken ?? "";
    tokens.push(token);
  }
  expect(new Set(tokens).size).toBe(pages);
  expect(tokens[pages]).toBe(tokens[0]);
});

test("a long token has at least the bytes that were asked for, and leads to the next page", async () => {
  const emulator = await openEmulator({ pageSize: 100 });
  const plain = idsOf(await walkDay(emulator, TODAY));
  emulator.addFault({ kind: "long-token", bytes: 60_000 });
  const page = await bodyOf<ListBody>(first(emulator));
  expect(page.continuationToken?.length).toBeGreaterThanOrEqual(60_000);
  expect(page.continuationToken?.length).toBeLessThan(60_100);
  expect(idsOf(await walkDay(emulator, TODAY))).toEqual(plain);
});

test("odd entries are the same ones on both routes, and the others stay as they are", async () => {
  const emulator = await withFault({ kind: "odd-entries", share: 0.2, shape: "seconds" });
  const all = (await oracle(emulator)).map((event) => event.timestamp);
  const pages = await walkDay(emulator, TODAY);
  const listed = pages.flatMap(({ logs }) => logs ?? []).map(({ timestamp }) => timestamp);
  expect(listed.map((time) => Math.round(time < 1e11 ? time * 1_000 : time))).toEqual(all);
  expect(listed.filter((time) => time < 1e11).length).toBeGreaterThan(all.length * 0.1);
  const { rows } = await search(emulator, { pageSize: 500 });
  const times = new Set(listed);
  expect(rows?.filter(({ timestamp }) => !times.has(timestamp))).toEqual([]);
});

test("an expired token is refused, and a first page is not", async () => {
  const emulator = await openEmulator({ pageSize: 100 });
  const page = await bodyOf<ListBody>(first(emulator));
  emulator.addFault({ kind: "token-expiry" });
  expect((await call(emulator, listPath(TODAY, page.continuationToken ?? ""))).status).toBe(400);
  expect((await first(emulator)).status).toBe(200);
});

test("faults and switches can be set, shown and removed at run time, and mistakes are reported", async () => {
  const emulator = await openEmulator({ historyHours: 0 });
  await send(emulator, "POST", "/_emulator/faults", [
    { kind: "status" },
    { kind: "latency", ms: 1, next: 5 },
  ]);
  const { faults } = await bodyOf<{ faults: { active: unknown[] } }>(call(emulator, "/_emulator"));
  expect(faults.active).toMatchObject([
    { kind: "status", operation: "any", left: null },
    { kind: "latency", left: 5 },
  ]);
  expect((await call(emulator, "/apikey")).status).toBe(503);
  expect((await call(emulator, "/_emulator/faults", { method: "DELETE" })).status).toBe(204);
  expect((await call(emulator, "/apikey")).status).toBe(200);
  expect((await send(emulator, "POST", "/_emulator/faults", { kind: "gremlins" })).status).toBe(400);
  expect(
    (await send(emulator, "POST", "/_emulator/faults", { kind: "token-loop", operation: "list-api-keys" }))
      .status,
  ).toBe(400);
  expect(await bodyOf(send(emulator, "POST", "/_emulator/switches", { order: "newest" }))).toMatchObject({
    order: "newest",
    pageSize: 1000,
  });
  expect((await send(emulator, "POST", "/_emulator/switches", { order: "random" })).status).toBe(400);
  expect((await send(emulator, "POST", "/_emulator/attacks", "zone=7,rule=1,start=+1s")).status).toBe(400);
});

test("the request log counts and shows what came, with the faults it met", async () => {
  const emulator = await openEmulator({ historyHours: 0, faults: [{ kind: "status", next: 1 }] });
  await call(emulator, "/apikey?page=1");
  await call(emulator, "/apikey");
  const log = await bodyOf<{ counts: object; last: object[] }>(call(emulator, "/_emulator/requests"));
  expect(log.counts).toEqual({ "list-api-keys": 2 });
  expect(log.last).toMatchObject([
    { operation: "list-api-keys", path: "/apikey?page=1", status: 503, faults: ["status"] },
    { status: 200, faults: [] },
  ]);
});
