import fc from "fast-check";
import { expect, test } from "vitest";
import { openRawBlock } from "#model/raw-block.ts";
import { openChangingPlatform } from "../ingest/ingest-support.ts";
import { sample } from "../support/sample.ts";
import { openFaultyWorld, runUntilDone } from "./faulty-world.ts";
import { findBreaches, readShown } from "./invariants.ts";
import { ZONE } from "./replica.ts";

const INGEST = ["poll-events", "walk-days"];
const codeOf = (run: Promise<void>) =>
  run.then(
    () => null,
    ({ code }: { code?: unknown }) => code,
  );

async function readCursors(world: {
  database: { pool: { query(text: string): Promise<{ rows: unknown[] }> } };
}) {
  const { rows } = await world.database.pool.query(
    "select pass, pages_seen, pass_result, full_pass_started_at is not null as proves from ingest_cursors order by day",
  );
  return rows as { pass: number; pages_seen: number; pass_result: string | null; proves: boolean }[];
}

test.each([
  ["refuses connections", "EDGE_NETWORK"],
  ["goes silent after the request", "EDGE_TIMEOUT"],
  ["resets every connection half-way", "EDGE_NETWORK"],
] as const)(
  "F41, F42: while the network to the platform %s the jobs fail in time, and afterwards nothing is missing",
  async (how, code) => {
    const world = await openFaultyWorld({ historyHours: 2 });
    const replica = world.openReplica({ callTimeoutMs: 400 });
    if (how === "refuses connections") await world.toPlatform.refuse();
    if (how.startsWith("goes silent")) world.toPlatform.behave({ isDeaf: true });
    if (how.startsWith("resets")) world.emulator.addFault({ kind: "cut-socket", at: "middle" });
    for (const job of INGEST) expect(await codeOf(replica.run(job))).toBe(code);
    expect(await world.inspect(false)).toEqual([]);
    if (how === "refuses connections") await world.toPlatform.accept();
    world.toPlatform.behave({ isDeaf: false });
    world.toPlatform.cut();
    world.emulator.clearFaults();
    await runUntilDone(world, replica, INGEST);
    expect(await world.inspect()).toEqual([]);
  },
);

test("F45: pages that come twice, and events on two pages, are stored and counted once", async () => {
  const world = await openFaultyWorld({ pageSize: 40 });
  world.emulator.addFault({ kind: "duplicate-page", probability: 0.4 });
  const replica = world.openReplica();
  for (let pass = 0; pass < 3; pass++) {
    await runUntilDone(world, replica, ["walk-days", "poll-events", "walk-days"]);
    world.emulator.advance(16 * 60_000);
  }
  world.emulator.clearFaults();
  await runUntilDone(world, replica, INGEST);
  expect(await world.inspect()).toEqual([]);
});

test.each(sample([1, 2, 5], (pages) => pages === 5))(
  "F46: a list whose tokens go in a circle of %i is left, asks little and proves nothing",
  async (pages) => {
    const world = await openFaultyWorld({ pageSize: 30 });
    world.emulator.addFault({ kind: "token-loop", pages });
    const replica = world.openReplica();
    const asked = () => world.emulator.requests().counts["list-event-logs"] ?? 0;
    await replica.run("walk-days");
    const once = asked();
    expect(once).toBeLessThan(75);
    await replica.run("walk-days");
    // The days that looped wait for their next pass; the others have one page each.
    expect(asked() - once).toBeLessThan(5);
    const looped = (await readCursors(world)).filter(({ pass_result }) => pass_result === "looped");
    expect(looped.length).toBeGreaterThan(0);
    expect(looped.every(({ proves }) => !proves)).toBe(true);
    world.emulator.clearFaults();
    world.emulator.advance(16 * 60_000);
    await runUntilDone(world, replica, INGEST);
    expect(await world.inspect()).toEqual([]);
  },
);

test("F47: a token that expires after any number of pages costs a new pass and no event", async () => {
  const world = await openFaultyWorld({ historyHours: 2, pageSize: 70 });
  const refused = () => world.emulator.requests().last.filter(({ status }) => status === 400).length;
  let k = 0;
  do {
    k++;
    await world.database.pool.query("delete from ingest_cursors; delete from pages");
    const before = refused();
    let answered = 0;
    const url = await openChangingPlatform(world.emulator, (body, path) => {
      if (path.includes("/11-20-2026") && ++answered === k)
        world.emulator.addFault({ kind: "token-expiry", next: 1 });
      return body;
    });
    const walker = world.openReplica({ platformUrl: url });
    const areFull = async () =>
      (await readCursors(world)).map(({ pass_result, proves }) => pass_result === "full" && proves);
    await walker.run("walk-days");
    // After a full pass, the next one over today's list begins at its last page and is short.
    if ((await areFull()).includes(false)) await walker.run("walk-days");
    await walker.close();
    expect(refused() - before).toBeLessThan(2);
    expect(await areFull()).toEqual([true, true, true]);
    expect(await world.inspect()).toEqual([]);
    world.emulator.clearFaults();
    // Repeats until no request follows the k-th page.
  } while (refused() === k);
  expect(k).toBeGreaterThan(3);
});

/**
 * Answers that another version of the platform might send: known fields missing, null or of another type, new ones of
 * any type.
 */
const drift = fc.record({
  added: fc.dictionary(fc.stringMatching(/^[a-z]{3,9}X$/), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 }),
  changed: fc.constantFrom("labels", "log", "logId", "timestamp"),
  to: fc.oneof(fc.constant(undefined), fc.jsonValue({ maxDepth: 1 })),
});

const ONE_ID_FOR_MANY = [
  ...Array.from({ length: 4 }, () => ({ added: {}, changed: "labels" as const, to: {} })),
  { added: {}, changed: "logId" as const, to: " " },
];

test("F50: entries of another shape are stored or set aside with their bytes, each page goes on, and none is lost", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(drift, { minLength: 5, maxLength: 10 }), async (drifts) => {
      const world = await openFaultyWorld({ historyHours: 1 });
      const sent = new Set<string>();
      const url = await openChangingPlatform(world.emulator, (body, path) => {
        if (!path.startsWith("/shield/event-logs") || path.endsWith("/search")) return body;
        const page = JSON.parse(body) as { logs: Record<string, unknown>[] | null };
        for (const [index, entry] of (page.logs ?? []).entries()) {
          const { added, changed, to } = drifts[index % (drifts.length + 3)] ?? {};
          if (changed !== undefined) Object.assign(entry, added, { [changed]: to });
        }
        for (const entry of page.logs ?? []) sent.add(JSON.stringify(entry));
        return JSON.stringify(page);
      });
      const replica = world.openReplica({ platformUrl: url });
      await replica.run("walk-days");
      const { rows: blocks } = await world.database.pool.query<{ block: Buffer }>(
        "select block from raw_blocks",
      );
      const kept = (await Promise.all(blocks.map(({ block }) => openRawBlock(block)))).flat().map(String);
      const { rows: aside } = await world.database.pool.query<{ raw: Buffer }>(
        "select raw from quarantined_entries",
      );
      const all = new Set([...kept, ...aside.map(({ raw }) => raw.toString())]);
      expect([...sent].filter((entry) => !all.has(entry))).toEqual([]);
      expect(sent.size).toBeGreaterThan(0);
      await replica.close();
    }),
    { numRuns: 3, examples: [[ONE_ID_FOR_MANY]] },
  );
});

test("F52: an event of five megabytes is stored cut, its record whole, and the events beside it come through", async () => {
  const world = await openFaultyWorld({ historyHours: 2 });
  const giant = "x".repeat(5_000_000);
  const url = await openChangingPlatform(world.emulator, (body, path) => {
    if (path.endsWith("/search")) return body;
    const page = JSON.parse(body) as { logs: { log: string }[] | null };
    const [first] = page.logs ?? [];
    if (first !== undefined)
      first.log = JSON.stringify({ ...(JSON.parse(first.log) as object), "Request URI": giant });
    return JSON.stringify(page);
  });
  const replica = world.openReplica({ platformUrl: url });
  // While a busy machine reads such a page, the wait for a connection may end.
  await runUntilDone(world, replica, ["walk-days"]);
  const { rows: blocks } = await world.database.pool.query<{ block: Buffer }>("select block from raw_blocks");
  const kept = (await Promise.all(blocks.map(({ block }) => openRawBlock(block)))).flat();
  expect(kept.some((record) => record.length > giant.length)).toBe(true);
  expect(await world.inspect()).toEqual([]);
});

test("F53: with a revoked key two spans and each day are asked for once and not again, and everything comes when it is accepted", async () => {
  const world = await openFaultyWorld();
  world.emulator.addFault({ kind: "unauthorized" });
  const replica = world.openReplica();
  for (const job of INGEST) expect(await codeOf(replica.run(job))).toBe("EDGE_UNAUTHORIZED");
  const { counts } = world.emulator.requests();
  expect(counts).toEqual({ "search-event-logs": 2, "list-event-logs": 3 });
  world.emulator.clearFaults();
  await runUntilDone(world, replica, INGEST);
  expect(await world.inspect()).toEqual([]);
});

test.each([
  ["a plan without event logs", { kind: "envelope", operation: "search-event-logs" }],
  ["a search that is gone", { kind: "status", status: 404, operation: "search-event-logs" }],
] as const)("F54: with %s the list alone brings every event", async (_name, fault) => {
  const world = await openFaultyWorld();
  world.emulator.addFault(fault);
  const replica = world.openReplica();
  expect(await codeOf(replica.run("poll-events"))).not.toBeNull();
  await runUntilDone(world, replica, ["walk-days"]);
  expect(await world.inspect()).toEqual([]);
});

test("F55: a search that shows the future is refused; a list's event of the future waits for its hour and moves no cursor ahead", async () => {
  const world = await openFaultyWorld({ historyHours: 2 });
  const { emulator } = world;
  const future = emulator.now() + 40 * 60_000;
  let showsFuture = true;
  const url = await openChangingPlatform(emulator, (body) => {
    const page = JSON.parse(body) as { rows?: object[] | null; logs?: object[] | null; total?: number };
    const early = { logId: "early", timestamp: future };
    if (showsFuture && Array.isArray(page.rows) && page.rows.length > 0) {
      page.rows.push(early);
      page.total = (page.total ?? 0) + 1;
    }
    if (Array.isArray(page.logs) && page.logs.length > 0) page.logs.push({ ...early, log: "{}", labels: {} });
    return JSON.stringify(page);
  });
  const replica = world.openReplica({ platformUrl: url });
  expect(await codeOf(replica.run("poll-events"))).toBe("EDGE_CONTRADICTORY");
  await world.expireLeases();
  showsFuture = false;
  await runUntilDone(world, replica, INGEST);
  const { rows } = await world.database.pool.query(
    "select count(*)::int as ahead from coverage_windows where searched_through > $1",
    [new Date(emulator.now())],
  );
  expect(rows).toEqual([{ ahead: 0 }]);
  const honest = world.openReplica();
  emulator.advance(90 * 60_000);
  await runUntilDone(world, honest, INGEST);
  const shown = await readShown(emulator.url, ZONE);
  const early = { logId: "early", timestamp: future };
  expect(await findBreaches(world.database, ZONE, async () => [...shown, early])).toEqual([]);
});
