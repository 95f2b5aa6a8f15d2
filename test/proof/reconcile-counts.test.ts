import { expect, test } from "vitest";
import type { Emulator } from "#emulator/emulator.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { shareDatabase } from "../db/migrated-database.ts";
import { NOW, openEmulator, oracle, type SearchBody } from "../emulator/support.ts";
import { type IngestTest, openChangingPlatform, openIngest, ZONE } from "../ingest/ingest-support.ts";
import { cellsOf, countStates, hoursOf, prove, sealedIds } from "./coverage-support.ts";

const database = await shareDatabase();
const SPARSE = { zones: [ZONE], historyHours: 6, eventsPerSecond: 0.01, lateShare: 0 } as const;
/** The zone was watched before the history began. */
const WATCHED = { database, openHours: 6 } as const;

interface Grouped {
  readonly from: number;
  readonly to: number;
  readonly buckets: number;
  readonly page?: number;
  readonly pageSize: number;
}

/** Whether a search compares settled hours; others count the minutes of the running one. */
function isHourly(request: string): boolean {
  if (!request.includes("groupBy")) return false;
  const { from, to, buckets } = JSON.parse(request) as Grouped;
  return (to - from) / buckets === HOUR_MS;
}

/** The undecided hours, oldest first. */
const readOpen = async (ingest: IngestTest) =>
  (await hoursOf(ingest)).filter(({ state }) => state === "open");

/** The bodies of the grouped searches of settled hours that reach the platform. */
async function watchGrouped(
  emulator: Parameters<typeof openChangingPlatform>[0],
  change = (body: string) => body,
) {
  const asked: Grouped[] = [];
  const url = await openChangingPlatform(emulator, (body, _path, request) => {
    if (!isHourly(request)) return body;
    asked.push(JSON.parse(request));
    return change(body);
  });
  return { asked, url };
}

test("one grouped call a cycle compares every hour that the platform still has, with one bucket for each", async () => {
  const emulator = await openEmulator(SPARSE);
  const { asked, url } = await watchGrouped(emulator);
  const ingest = await openIngest(emulator, { ...WATCHED, url });
  await ingest.poll();
  emulator.advance(1_000);
  await ingest.reconcile();
  expect(asked).toHaveLength(1);
  const [{ from, to, buckets } = { from: 0, to: 0, buckets: 0 }] = asked;
  expect((to - from) / HOUR_MS).toBe(buckets);
  expect(buckets).toBe(71);
  const hours = (await readOpen(ingest)).filter(({ startsAt }) => startsAt >= from && startsAt < to);
  expect(hours).toHaveLength(6);
  for (const hour of hours) {
    expect(hour).toMatchObject({ missingCells: 0, surplusCells: 0, reconciledAt: NOW + 1_000 });
    expect(hour.upstreamCount).toBe(hour.storedCount);
  }
  await prove(emulator, ingest);
  await prove(emulator, ingest);
  expect(await countStates(ingest)).toMatchObject({ open: 1, gap: 0 });
  const before = asked.length;
  await ingest.reconcile();
  expect(asked.slice(before).map((call) => call.buckets)).toEqual([71]);
});

test("while one replica compares, another leaves it alone", async () => {
  const emulator = await openEmulator(SPARSE);
  const answered = Promise.withResolvers<void>();
  const isAsked = Promise.withResolvers<void>();
  const asked: string[] = [];
  const url = await openChangingPlatform(emulator, async (body, _path, request) => {
    if (!isHourly(request)) return body;
    asked.push(request);
    isAsked.resolve();
    await answered.promise;
    return body;
  });
  const first = await openIngest(emulator, { ...WATCHED, url });
  const second = await openIngest(emulator, { url, database: first.database });
  await first.poll();
  emulator.advance(1_000);
  const comparing = first.reconcile();
  await isAsked.promise;
  await second.reconcile();
  answered.resolve();
  await comparing;
  expect(asked).toHaveLength(1);
});

test("a zone with thousands of rules is compared over all pages of its groups", async () => {
  const emulator = await openEmulator({ ...SPARSE, historyHours: 1 });
  const rules = 1_203;
  const start = NOW - (NOW % HOUR_MS) - HOUR_MS;
  const asked: number[] = [];
  const url = await openChangingPlatform(emulator, (body, _path, request) => {
    if (!isHourly(request)) return body;
    const { from, buckets, page = 0, pageSize } = JSON.parse(request) as Grouped;
    asked.push(page);
    const bucket = (start - from) / HOUR_MS;
    const groups = Array.from({ length: rules }, (_, n) => ({
      key: { ruleId: `rule-${n}` },
      count: 1,
      sparkline: Array.from({ length: buckets }, (_, at) => (at === bucket ? 1 : 0)),
    }));
    const shown = groups.slice(page * pageSize, (page + 1) * pageSize);
    const pages = { total: rules, totalPages: Math.ceil(rules / pageSize), page };
    return JSON.stringify({ ...(JSON.parse(body) as SearchBody), groups: shown, ...pages });
  });
  const ingest = await openIngest(emulator, { ...WATCHED, url });
  await ingest.poll();
  emulator.advance(1_000);
  await ingest.reconcile();
  expect(asked).toEqual([0, 1, 2]);
  const cells = await cellsOf(ingest);
  const missing = cells.filter((cell) => cell.stored_count < cell.upstream_count);
  expect(missing).toHaveLength(rules);
  expect(missing.every(({ starts_at }) => starts_at.getTime() === start)).toBe(true);
  const hour = (await hoursOf(ingest)).find(({ startsAt }) => startsAt === start);
  expect(hour).toMatchObject({ missingCells: rules, upstreamCount: rules });
});

test("F49: counts that shift while their pages are read prove nothing and are read again", async () => {
  const emulator = await openEmulator(SPARSE);
  let isShifted = true;
  const shift = (body: string) => {
    const answer = JSON.parse(body) as SearchBody;
    return isShifted ? JSON.stringify({ ...answer, groups: answer.groups?.slice(1) }) : body;
  };
  const { url } = await watchGrouped(emulator, shift);
  const ingest = await openIngest(emulator, { ...WATCHED, url });
  await ingest.poll();
  emulator.advance(1_000);
  await expect(ingest.reconcile()).rejects.toMatchObject({ code: "COUNTS_UNREADABLE", disposition: "retry" });
  expect((await readOpen(ingest)).every(({ reconciledAt }) => reconciledAt === null)).toBe(true);
  isShifted = false;
  await ingest.reconcile();
  expect((await readOpen(ingest)).filter(({ reconciledAt }) => reconciledAt !== null)).toHaveLength(6);
});

const DROPPED_FROM = NOW - 5 * HOUR_MS - (NOW % HOUR_MS);

/** A platform whose search and counts have dropped the share of the hour's events whose id begins below `digit`. */
async function openDroppingPlatform(emulator: Emulator, isDropped: (logId: string) => boolean) {
  const dropped = (await oracle(emulator)).filter(
    ({ logId, timestamp }) => isDropped(logId) && timestamp - (timestamp % HOUR_MS) === DROPPED_FROM,
  );
  const ids = new Set(dropped.map(({ logId }) => logId));
  const url = await openChangingPlatform(emulator, (body, path, request) => {
    if (!path.endsWith("/search")) return body;
    const answer = JSON.parse(body) as SearchBody & { rows: { logId: string }[] | null; total: number };
    if (!request.includes("groupBy")) {
      const rows = (answer.rows ?? []).filter(({ logId }) => !ids.has(logId));
      const total = answer.total - ((answer.rows ?? []).length - rows.length);
      return JSON.stringify({ ...answer, rows, total });
    }
    const { from } = JSON.parse(request) as Grouped;
    const bucket = (DROPPED_FROM - from) / HOUR_MS;
    const groups = answer.groups?.map((group) => {
      const gone = dropped.filter(({ ruleId }) => ruleId === group.key["ruleId"]).length;
      const counted = group.sparkline?.[bucket];
      if (counted === undefined || gone === 0) return group;
      return {
        ...group,
        count: group.count - gone,
        sparkline: group.sparkline?.with(bucket, counted - gone),
      };
    });
    return JSON.stringify({ ...answer, groups });
  });
  return { url, ids };
}

const hourAt = async (ingest: IngestTest, at: number) =>
  (await hoursOf(ingest)).find(({ startsAt }) => startsAt === at);

test("events that search and counts have dropped and the list proves are named in the evidence of the seal, after ten minutes", async () => {
  const emulator = await openEmulator(SPARSE);
  const { url, ids } = await openDroppingPlatform(emulator, (logId) => /^[0-3]/.test(logId));
  expect(ids.size).toBeGreaterThan(1);
  const ingest = await openIngest(emulator, { ...WATCHED, url });
  await prove(emulator, ingest);
  emulator.advance(6 * MINUTE_MS);
  await prove(emulator, ingest);
  const open = await hourAt(ingest, DROPPED_FROM);
  expect(open).toMatchObject({ state: "open", looks: { search: { lacks: { count: ids.size } } } });
  emulator.advance(16 * MINUTE_MS);
  await prove(emulator, ingest);
  await prove(emulator, ingest);
  const hour = await hourAt(ingest, DROPPED_FROM);
  expect(hour).toMatchObject({ state: "sealed", missingCells: 0 });
  expect(hour?.storedCount).toBe((hour?.upstreamCount ?? 0) + ids.size);
  expect([...ids]).toEqual(expect.arrayContaining([...(hour?.looks.search?.lacks?.ids ?? [])]));
  const { stored, shown } = await sealedIds(emulator, ingest);
  expect(stored).toEqual(shown);
});

test("a count of 0 for an hour with events seals nothing within an hour", async () => {
  const emulator = await openEmulator(SPARSE);
  const { url } = await openDroppingPlatform(emulator, () => true);
  const ingest = await openIngest(emulator, { ...WATCHED, url });
  for (let round = 0; round < 4; round++) {
    await prove(emulator, ingest);
    emulator.advance(16 * MINUTE_MS);
  }
  const open = await hourAt(ingest, DROPPED_FROM);
  expect(open).toMatchObject({ state: "open", upstreamCount: 0 });
  expect(open?.storedCount).toBeGreaterThan(10);
  emulator.advance(72 * HOUR_MS);
  await ingest.seal();
  expect(await hourAt(ingest, DROPPED_FROM)).toMatchObject({ state: "gap" });
});

test("an event that comes after the comparison makes it worth nothing until the next", async () => {
  const emulator = await openEmulator(SPARSE);
  const ingest = await openIngest(emulator, WATCHED);
  await ingest.poll();
  emulator.advance(1_000);
  await ingest.walk();
  emulator.advance(1_000);
  await ingest.reconcile();
  emulator.advance(1_000);
  const hour = NOW - (NOW % HOUR_MS) - 3 * HOUR_MS;
  emulator.addAttack(
    `zone=${ZONE},rule=942100,start=${new Date(hour + MINUTE_MS).toISOString()},duration=1m,rate=1/s`,
  );
  // Another route brings them.
  const { rows } = await ingest.database.pool.query(
    "update coverage_windows set last_new_at = $1 where starts_at = $2 returning reconciled_at",
    [new Date(emulator.now()), new Date(hour)],
  );
  expect(rows).toHaveLength(1);
  await ingest.seal();
  expect((await hoursOf(ingest)).find(({ startsAt }) => startsAt === hour)?.state).toBe("open");
  await prove(emulator, ingest);
  emulator.advance(16 * MINUTE_MS);
  await prove(emulator, ingest);
  expect((await hoursOf(ingest)).find(({ startsAt }) => startsAt === hour)?.state).toBe("sealed");
  expect(await countStates(ingest)).toMatchObject({ gap: 0 });
  const { stored, shown } = await sealedIds(emulator, ingest);
  expect(stored).toEqual(shown);
});

test("a seal outlasts a comparison that the platform answers after it has begun to forget the hour, and one by an earlier clock", async () => {
  const emulator = await openEmulator({ ...SPARSE, eventsPerSecond: 0.02 });
  let delayMs = 0;
  const url = await openChangingPlatform(emulator, async (body, path, asked) => {
    if (delayMs === 0 || !asked.includes("groupBy")) return body;
    emulator.advance(delayMs);
    const headers = { AccessKey: emulator.accessKey, "content-type": "application/json" };
    return (await fetch(emulator.url + path, { method: "POST", headers, body: asked })).text();
  });
  const ingest = await openIngest(emulator, { ...WATCHED, url });
  await prove(emulator, ingest);
  await prove(emulator, ingest);
  const sealed = (await hoursOf(ingest)).filter(({ state }) => state === "sealed");
  const [startsAt = 0, nextStartsAt = 0] = sealed.map((hour) => hour.startsAt);
  const forgottenAt = startsAt + 72 * HOUR_MS;
  emulator.advance(forgottenAt - 3 * MINUTE_MS - emulator.now());
  delayMs = 4 * MINUTE_MS;
  await ingest.reconcile();
  expect(await hourAt(ingest, startsAt)).toMatchObject({ state: "sealed", reopenedAt: null });
  // The platform's clock is three minutes ahead, so it forgets sooner than the service expects.
  delayMs = 0;
  emulator.advance(nextStartsAt + 72 * HOUR_MS + MINUTE_MS - emulator.now());
  const behind = await openIngest(emulator, {
    database: ingest.database,
    clock: () => emulator.now() - 3 * MINUTE_MS,
  });
  await behind.reconcile();
  expect(await hourAt(ingest, nextStartsAt)).toMatchObject({ state: "sealed", reopenedAt: null });
});

test("an open hour whose counts changed without a stored event is proven by looks since then", async () => {
  const emulator = await openEmulator(SPARSE);
  let gone = 1;
  const start = NOW - (NOW % HOUR_MS) - 5 * HOUR_MS;
  const url = await openChangingPlatform(emulator, (body, _path, request) => {
    if (!request.includes("groupBy")) return body;
    const answer = JSON.parse(body) as SearchBody;
    const bucket = (start - (JSON.parse(request) as Grouped).from) / HOUR_MS;
    const index = answer.groups?.findIndex(({ sparkline }) => (sparkline?.[bucket] ?? 0) > 0) ?? -1;
    const groups = answer.groups?.map((group, at) => {
      const counted = group.sparkline?.[bucket] ?? 0;
      if (at !== index) return group;
      return {
        ...group,
        count: group.count - gone,
        sparkline: group.sparkline?.with(bucket, counted - gone),
      };
    });
    return JSON.stringify({ ...answer, groups });
  });
  const ingest = await openIngest(emulator, { ...WATCHED, url });
  await prove(emulator, ingest);
  expect(await hourAt(ingest, start)).toMatchObject({ state: "open", surplusCells: 1 });
  gone = 0;
  emulator.advance(11 * MINUTE_MS);
  await ingest.reconcile();
  const changedAt = emulator.now();
  expect(await hourAt(ingest, start)).toMatchObject({ surplusCells: 0, proofFrom: changedAt });
  await ingest.seal();
  expect(await hourAt(ingest, start)).toMatchObject({ state: "open" });
});

test("an event that is stored while the platform counts remains counted, and makes the comparison no look at its hour", async () => {
  const emulator = await openEmulator(SPARSE);
  const hour = NOW - (NOW % HOUR_MS) - 3 * HOUR_MS;
  const url = await openChangingPlatform(emulator, async (body, _path, request) => {
    if (isHourly(request))
      await ingest.database.pool.query(
        "update coverage_windows set stored_count = stored_count + 1, last_new_at = $1 where starts_at = $2",
        [new Date(emulator.now()), new Date(hour)],
      );
    return body;
  });
  const ingest = await openIngest(emulator, { ...WATCHED, url });
  await ingest.poll();
  emulator.advance(1_000);
  const before = await hourAt(ingest, hour);
  await ingest.reconcile();
  const after = await hourAt(ingest, hour);
  expect(after?.storedCount).toBe((before?.storedCount ?? 0) + 1);
  expect(after?.looks.counts).toBeUndefined();
  expect((await hourAt(ingest, hour - HOUR_MS))?.looks.counts).toBeDefined();
});

test("a counter that is wrong is set right by the comparison", async () => {
  const emulator = await openEmulator(SPARSE);
  const ingest = await openIngest(emulator, WATCHED);
  await ingest.poll();
  emulator.advance(1_000);
  await ingest.database.pool.query(
    "update coverage_windows set stored_count = stored_count + 7 where state = 'open'",
  );
  await ingest.reconcile();
  const { rows } = await ingest.database.pool.query(`
    select w.starts_at from coverage_windows w left join (
      select date_trunc('hour', occurred_at) as hour, count(*) as n from waf_events group by 1) e on e.hour = w.starts_at
    where w.reconciled_at is not null and w.stored_count <> coalesce(e.n, 0)`);
  expect(rows).toEqual([]);
});

test("F6: a runner that lost its lease while the platform answered records nothing", async () => {
  const emulator = await openEmulator(SPARSE);
  const ingest = await openIngest(emulator, {
    ...WATCHED,
    url: await openChangingPlatform(emulator, async (body, _path, request) => {
      if (request.includes("groupBy"))
        await ingest.database.pool.query("update leases set fence = fence + 1, holder = 'another'");
      return body;
    }),
  });
  await ingest.poll();
  emulator.advance(1_000);
  await expect(ingest.reconcile()).rejects.toMatchObject({ code: "FENCE_LOST" });
  expect((await readOpen(ingest)).every(({ reconciledAt }) => reconciledAt === null)).toBe(true);
});

test("a comparison enqueues the repair for missing events and the sealing for equal counts", async () => {
  const emulator = await openEmulator(SPARSE);
  const told: string[] = [];
  let isForeign = false;
  const { url } = await watchGrouped(emulator, (body) => {
    const answer = JSON.parse(body) as SearchBody;
    const groups = answer.groups?.map((group) => ({
      ...group,
      count: group.count + (group.sparkline?.length ?? 0),
      sparkline: group.sparkline?.map((events) => events + 1),
    }));
    return isForeign ? JSON.stringify({ ...answer, groups }) : body;
  });
  const ingest = await openIngest(emulator, { ...WATCHED, url, told });
  await ingest.poll();
  emulator.advance(1_000);
  isForeign = true;
  await ingest.reconcile();
  expect(told).toEqual(["missing"]);
  isForeign = false;
  emulator.advance(10 * MINUTE_MS);
  told.length = 0;
  await ingest.reconcile();
  expect(told).toEqual(["match"]);
});
