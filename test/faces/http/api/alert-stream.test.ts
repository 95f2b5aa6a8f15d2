import { promisify } from "node:util";
import { beforeEach, expect, test, vi } from "vitest";
import { readFeed, readFeedEnd } from "#db/alerts/feed-transitions.ts";
import { alerts, alertTransitions } from "#db/schema/alerts.ts";
import { ask, openApiWorld } from "./api-world.ts";
import { HOSTILE } from "./hostile.ts";
import { openStream, sequencesOf } from "./open-stream.ts";

const world = openApiWorld();
let rules = 0;

beforeEach(() => world.alerts().clear());

/** So many alerts, each of a rule of its own and with one transition. */
async function fire(count: number, over: Partial<typeof alerts.$inferInsert> = {}): Promise<void> {
  const rows = Array.from({ length: count }, () => {
    rules += 1;
    return {
      firedAt: new Date(),
      zoneId: 101,
      ruleId: `rule ${rules}`,
      kind: "spike",
      fingerprint: `${rules}`,
      transitions: [{ transition: 1, at: Date.now(), reason: "first", state: "firing", severity: "error" }],
      details: { message: { headline: `headline ${rules}` } },
      ...over,
    };
  });
  await world.database().db.insert(alerts).values(rows);
}

const feed = () => readFeed(world.database().db, { after: 0, zoneIds: null, limit: 10_000 });

test("a transition is streamed at once, with its number, and in the order of the commits", async () => {
  const { port } = await world.start();
  const stream = await openStream(port, { key: await world.key("reader") });
  expect(stream.head).toMatch(/^HTTP\/1.1 200 .*content-type: text\/event-stream; charset=utf-8/s);
  expect(stream.head).toContain("x-content-type-options: nosniff");

  await fire(1);
  const [first] = await stream.until((blocks) => sequencesOf(blocks).length === 1);
  await fire(2);
  const blocks = await stream.until((seen) => sequencesOf(seen).length === 3);

  expect(first).toMatchObject({
    event: "alert",
    data: {
      reason: "first",
      state: "firing",
      severity: "error",
      zoneId: 101,
      ruleId: `rule ${rules - 2}`,
      headline: `headline ${rules - 2}`,
    },
  });
  expect(sequencesOf(blocks)).toEqual((await feed()).map(({ sequence }) => sequence));
  stream.socket.destroy();
});

test("after a cut the client gets exactly what it missed, from another replica", async () => {
  const [one, other] = [await world.start(), await world.start()];
  const key = await world.key("reader");
  await fire(3);
  const lastId = (await feed())[1]?.sequence;
  const stream = await openStream(one.port, { key, lastId });
  await stream.until((blocks) => sequencesOf(blocks).length === 1);
  await fire(4);
  const seen = await stream.until((blocks) => sequencesOf(blocks).length === 5);
  stream.socket.destroy();
  await fire(7);
  const again = await openStream(other.port, { key, lastId: seen.at(-1)?.id ?? undefined });
  await fire(2);
  const rest = await again.until((blocks) => sequencesOf(blocks).length === 9);

  const known = (await feed()).map(({ sequence }) => sequence);
  expect([...sequencesOf(seen), ...sequencesOf(rest)]).toEqual(known.slice(2));
  again.socket.destroy();
});

test("cut at random while alerts fire from many transactions, nothing is missed, doubled or out of order", async () => {
  const replicas = [await world.start(), await world.start()];
  const key = await world.key("reader");
  const begun = await readFeedEnd(world.database().db);
  const writers = Array.from({ length: 6 }, async () => {
    for (let n = 0; n < 10; n++) await fire(1 + (n % 3));
  });
  const total = 6 * (10 + 3 + 6);
  const got: number[] = [];
  let lastId = begun;
  for (let cut = 0; got.length < total; cut++) {
    const stream = await openStream(replicas[cut % 2]?.port ?? 0, { key, lastId });
    const wanted = Math.min(1 + ((cut * 7) % 20), total - got.length);
    const blocks = await stream.until((seen) => sequencesOf(seen).length >= wanted);
    stream.socket.destroy();
    got.push(...sequencesOf(blocks));
    lastId = got.at(-1) ?? lastId;
  }
  await Promise.all(writers);

  expect(got).toEqual((await feed()).map(({ sequence }) => sequence));
});

test("a client that knows more than the replica it comes to gets nothing twice", async () => {
  const { port } = await world.start({ feedPollMs: 500 });
  const key = await world.key("reader");
  const holder = await openStream(port, { key });
  await fire(3);
  const known = (await feed()).map(({ sequence }) => sequence);
  const stream = await openStream(port, { key, lastId: known[1] });
  const blocks = await stream.until((seen) => sequencesOf(seen).length > 0);

  expect(blocks.map(({ event, id }) => [event, id])).toEqual([["alert", known[2]]]);
  for (const one of [holder, stream]) one.socket.destroy();
});

test("a client that missed too much, or has an id of another service, gets a reset and continues from the newest", async () => {
  await fire(1_001);
  const rows = await feed();
  const first = (rows[0]?.sequence ?? 0) - 1;
  const { port } = await world.start();
  const key = await world.key("reader");
  const late = await openStream(port, { key, lastId: first });
  const [reset] = await late.until((blocks) => blocks.length === 1);
  const just = await openStream(port, { key, lastId: first + 1 });
  const replayed = await just.until((blocks) => blocks.length === 1_000);
  const foreign = await openStream(port, { key, lastId: first + 1_000_000 });
  const [unknown] = await foreign.until((blocks) => blocks.length === 1);

  expect(reset).toMatchObject({ event: "reset", id: rows.at(-1)?.sequence, data: { reason: "too-old" } });
  expect(sequencesOf(replayed)).toEqual(rows.slice(1).map(({ sequence }) => sequence));
  expect(unknown).toMatchObject({ event: "reset", data: { reason: "unknown-id" } });
  for (const stream of [late, just, foreign]) stream.socket.destroy();
});

test("a key for one zone gets that zone's transitions, and its last id moves past the others", async () => {
  const { port } = await world.start({ heartbeatMs: 20 });
  const key = await world.key("reader", { zoneIds: [101] });
  const stream = await openStream(port, { key, lastId: 0 });
  await fire(1, { zoneId: 102 });
  await fire(1, { zoneId: null });
  await fire(1);
  await fire(1, { zoneId: 102 });
  const end = await readFeedEnd(world.database().db);
  const blocks = await stream.until((seen) => seen.some(({ id, event }) => event === null && id === end));

  expect(sequencesOf(blocks)).toEqual([end - 1]);
  stream.socket.destroy();
  const replay = await openStream(port, { key, lastId: 0 });
  expect(sequencesOf(await replay.until((seen) => sequencesOf(seen).length > 0))).toEqual([end - 1]);
  replay.socket.destroy();
});

test("a revoked key gets no more transitions", async () => {
  const { url, port } = await world.start({ heartbeatMs: 20 });
  const admin = await world.key("admin");
  const made = await ask<{ key: string; id: string }>(url, "/api/v1/keys", admin, {
    method: "POST",
    body: JSON.stringify({ name: "tv", role: "reader" }),
    status: 201,
  });
  const stream = await openStream(port, { key: made.key });
  await stream.until((blocks) => blocks.length > 0);
  await fetch(`${url}/api/v1/keys/${made.id}`, { method: "DELETE", headers: { AccessKey: admin } });

  await stream.ended();
});

test("one key has so many streams and no more, until it closes one", async () => {
  const { port } = await world.start({ streamsPerKey: 2 });
  const key = await world.key("reader");
  const [one, two] = [await openStream(port, { key }), await openStream(port, { key })];
  const refused = await openStream(port, { key });
  expect(refused.status).toBe(429);
  expect(refused.head).toContain("retry-after: 30");
  expect((await openStream(port, { key: await world.key("reader") })).status).toBe(200);

  one.socket.destroy();
  await vi.waitFor(async () => {
    const again = await openStream(port, { key });
    again.socket.destroy();
    expect(again.status).toBe(200);
  });
  two.socket.destroy();
});

test("a client that reads nothing is cut off, and the others go on", async () => {
  const { app, port } = await world.start({ heartbeatMs: 50 });
  const key = await world.key("reader");
  const stuck = await openStream(port, { key });
  const well = await openStream(port, { key });
  const countConnections = promisify(app.server.getConnections.bind(app.server));
  stuck.socket.pause();
  const long = { details: { message: { headline: "x".repeat(20_000) } } };
  // More than the buffers of both sockets hold.
  for (let n = 0; n < 20; n++) await fire(40, long);
  await well.until((blocks) => sequencesOf(blocks).length === 800);
  await vi.waitFor(async () => expect(await countConnections()).toBe(1), 10_000);
  stuck.socket.resume();
  await stuck.ended();

  expect(sequencesOf(stuck.blocks).length).toBeLessThan(800);
  well.socket.destroy();
});

test("a server that stops ends its streams and does not wait for them", async () => {
  const { app, port } = await world.start();
  const stream = await openStream(port, { key: await world.key("reader") });
  await app.close();
  await stream.ended();
});

test("no text of an alert can end its event or begin another", async () => {
  const { port } = await world.start();
  const stream = await openStream(port, { key: await world.key("reader") });
  for (const text of HOSTILE) await fire(1, { ruleId: text, details: { message: { headline: text } } });
  const blocks = await stream.until((seen) => sequencesOf(seen).length === HOSTILE.length);

  expect(blocks.map(({ event }) => event)).toEqual(HOSTILE.map(() => "alert"));
  expect(blocks.map(({ data }) => data?.["headline"])).toEqual(HOSTILE);
  stream.socket.destroy();
});

test("an id that is no number is refused", async () => {
  const { url } = await world.start();
  const headers = { "last-event-id": "1; drop table" };
  const key = await world.key("reader");
  const problem = await ask(url, "/api/v1/alerts/stream", key, { headers, status: 400 });

  expect(problem).toMatchObject({ mistakes: [{ field: "last-event-id" }] });
});

test("every transition of an alert is numbered once, whatever caused it", async () => {
  const { db } = world.database();
  const lived = world.alerts();
  const spike = await lived.openSpike(0);
  await lived.runAt(0);
  await lived.answer(1);
  await lived.runAt(1);
  await lived.closeSpike(spike, 20);
  await lived.runAt(60);
  const [alert] = await lived.alerts();
  const rows = await db.select().from(alertTransitions).orderBy(alertTransitions.id);

  expect(rows.map(({ transition, entry }) => [transition, entry])).toEqual(
    ((alert?.transitions ?? []) as { transition: number }[]).map((entry) => [entry.transition, entry]),
  );
  expect(rows.length).toBeGreaterThanOrEqual(3);
});

test("numbers appear in the order of commits, though a transaction that began first commits last", async () => {
  const { pool } = world.database();
  const slow = await pool.connect();
  const insert = `insert into alerts (fired_at, kind, fingerprint, transitions) values (now(), 'spike', $1, '[{}]')`;
  await slow.query("begin");
  await slow.query(insert, ["slow"]);
  await pool.query(insert, ["fast"]);
  expect(await feed()).toMatchObject([{ fingerprint: "fast" }]);
  await slow.query("commit");
  slow.release();

  expect(await feed()).toMatchObject([{ fingerprint: "fast" }, { fingerprint: "slow" }]);
});
