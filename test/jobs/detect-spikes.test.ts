import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { ensurePartitions } from "../../db/partitions.ts";
import type { NewEvent } from "../../db/queries/store-events.ts";
import { EVIDENCE_DIMENSIONS, spikes } from "../../db/schema/spikes.ts";
import { createDetectSpikesJob } from "../../jobs/detect-spikes.ts";
import { findEpisodes } from "../../src/spike/scan-history.ts";
import { HOUR_MS, MINUTE_MS } from "../../src/trend/bucket.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { createFractions, drawCounts, shapes } from "../spike/support/histories.ts";
import { silent } from "./ingest-support.ts";
import { createRollUp, makeEvent, runJob, storeAll, ZONE } from "./trend-support.ts";

/** The minute after the last one that any test looks at. */
const END = Date.UTC(2026, 10, 20, 12, 30) / MINUTE_MS;
const WATCHED_MINUTES = 150;
const START = END - WATCHED_MINUTES;
const GAP_ZONE = 102;
const DAYS = ["15", "16", "17", "18", "19", "20"].map((day) => `2026-11-${day}`);

let database: MigratedDatabase;
let now = 0;

beforeAll(async () => {
  database = await createMigratedDatabase();
  await ensurePartitions(database, DAYS);
});
afterAll(() => database.drop());
beforeEach(() =>
  database.pool.query(
    "truncate waf_events, rule_buckets, rule_peaks, dirty_buckets, coverage_windows, spikes cascade",
  ),
);

function createDetector(): () => Promise<void> {
  return () =>
    runJob(createDetectSpikesJob({ database, clock: () => now, log: silent, afterSpikes: () => undefined }));
}

/** Ticks as the clock shows the beginning of each minute of (from, to]. */
async function tickThrough(from: number, to: number, ticks = createDetector()): Promise<void> {
  for (let minute = from + 1; minute <= to; minute += 1) {
    now = minute * MINUTE_MS + 1;
    await ticks();
  }
}

/** `counts[i]` events in minute `firstMinute + i`. */
function eventsOf(counts: readonly number[], firstMinute: number, event: Partial<NewEvent> = {}): NewEvent[] {
  return counts.flatMap((count, i) =>
    Array.from({ length: count }, (_, n) => {
      const occurredAt = (firstMinute + i) * MINUTE_MS + Math.floor((n * 59_000) / count);
      return makeEvent({ ...event, occurredAt, logId: `${event.ruleId ?? ""}/${i}/${n}` });
    }),
  );
}

/** Stores the events, rolls them up, and records every hour of the last week as searched, or else as a gap. */
async function keep(events: readonly NewEvent[], { zoneId = ZONE, gaps = [] as number[] } = {}) {
  await storeAll(database, events, { zoneId });
  await createRollUp(database)();
  await database.pool.query(
    `insert into coverage_windows (zone_id, starts_at, searched_through, state, gap_reason)
     select $1, to_timestamp(hour * 3600),
       case when hour <> all ($4) then to_timestamp(hour * 3600 + 3600) end,
       case when hour = any ($4) then 'gap' else 'open' end, case when hour = any ($4) then 'expired' end
     from generate_series($2::integer, $3::integer) as hour
     on conflict (zone_id, starts_at) do update set searched_through = excluded.searched_through,
       state = excluded.state, gap_reason = excluded.gap_reason`,
    [zoneId, Math.floor(END / 60) - 200, Math.floor(END / 60), gaps],
  );
}

async function readSpikes() {
  const rows = await database.db.select().from(spikes).orderBy(spikes.zoneId, spikes.ruleId, spikes.openedAt);
  return rows.map(({ id, ...row }) => ({ ...row, key: `${row.zoneId}/${row.ruleId}` }));
}

const minuteOf = (date: Date | null) => (date === null ? null : date.getTime() / MINUTE_MS);

test("two detectors at a time open exactly one spike per attack, and close it after a quiet quarter of an hour", async () => {
  const rules = ["941100", "942100", "943100", "944100"];
  const attack = [40, 60, 50];
  await keep(rules.flatMap((ruleId) => eventsOf(attack, START + 5, { ruleId })));
  const [one, other] = [createDetector(), createDetector()];

  await tickThrough(START, START + 60, async () => void (await Promise.all([one(), other()])));

  const found = await readSpikes();
  expect(found.map(({ ruleId }) => ruleId)).toEqual(rules);
  for (const spike of found) {
    expect(spike).toMatchObject({ peak: 150, windowMinutes: 3, kind: "spike", severity: "error" });
    expect(minuteOf(spike.openedAt)).toBe(START + 6);
    expect(minuteOf(spike.closedAt)).toBe((minuteOf(spike.lastActiveAt) ?? 0) + 15);
    // The windows of a quarter of an hour let go of the attack first.
    expect(minuteOf(spike.closedAt)).toBe(START + 5 + 3 + 14 + 15);
  }
});

test("evidence names what an attack has in common, capped, with hostile text kept as it is", async () => {
  const hostile = "\u202e<script>alert(1)</script>\u001b[31m=cmd|' /C calc'!A0 ${jndi:ldap://x}";
  const long = "\u{1f600}".repeat(1_000);
  const events = eventsOf([90], START + 5).map((event, i) => ({
    ...event,
    ip: `203.0.113.${i % 9}`,
    ua: i % 3 === 0 ? long : hostile,
    url: `https://shop.example/${i < 60 ? `login${hostile.replaceAll(/[?#]/g, "")}` : long}?id=${i}#x`,
    country: "",
    action: i < 30 ? "block" : null,
  }));
  const distinct = eventsOf([20], START + 4).map((event, i) => ({ ...event, ua: `agent ${i}`, ja4: null }));
  await keep([...events, ...distinct]);

  await tickThrough(START + 5, START + 6);

  const [spike] = await readSpikes();
  const { evidence } = spike ?? expect.fail("no spike");
  expect(evidence).toMatchObject({ total: 110, sampled: 110 });
  expect(evidence.firstEventAt).toBe(new Date((START + 4) * MINUTE_MS).toISOString());
  expect(evidence.sparkline.slice(-3)).toEqual([0, 20, 90]);
  expect(evidence.top.ua.slice(0, 2)).toEqual([
    { value: hostile, count: 60, share: 60 / 110 },
    { value: "\u{1f600}".repeat(300), count: 30, share: 30 / 110 },
  ]);
  expect(evidence.top.path.map(({ count }) => count)).toEqual([60, 30]);
  expect(evidence.top.path[0]?.value).toMatch(/^\/login/);
  expect(evidence.top.action).toEqual([{ value: "block", count: 50, share: 50 / 110 }]);
  expect([evidence.top.country, evidence.top.ja4]).toEqual([[], []]);
  for (const dimension of EVIDENCE_DIMENSIONS) {
    expect(evidence.top[dimension].length).toBeLessThanOrEqual(5);
    for (const { value } of evidence.top[dimension])
      expect(Array.from(value).length).toBeLessThanOrEqual(300);
  }
});

test("a late burst in a minute that was judged already is judged again, one in a spike that is over is not", async () => {
  await keep(eventsOf([1, 0, 0, 1], START - 3_000));
  await tickThrough(START + 8, START + 10);
  expect(await readSpikes()).toEqual([]);

  await keep(eventsOf([30], START + 2));
  await tickThrough(START + 10, START + 11);
  const [spike] = await readSpikes();
  expect(minuteOf(spike?.openedAt ?? null)).toBe(START + 3);

  await tickThrough(START + 11, START + 50);
  const closed = minuteOf((await readSpikes())[0]?.closedAt ?? null) ?? expect.fail("still open");
  await tickThrough(START + 50, closed + 3);
  const before = await readSpikes();
  await keep(
    eventsOf([500], closed - 4, { feature: "late" }).map((event) => ({
      ...event,
      logId: `late${event.logId}`,
    })),
  );
  await tickThrough(closed + 3, closed + 9);
  expect(await readSpikes()).toEqual(before);
});

test("hours of a gap do not pass for quiet ones", async () => {
  const counts = Array.from({ length: 60 * 60 }, () => 1);
  const first = END - 90 - counts.length;
  const hours = Array.from({ length: 60 }, (_, i) => Math.ceil(first / 60) + i);
  const gaps = hours.filter((hour) => hour % 3 === 0);
  const seen = counts.map((count, i) => (gaps.includes(Math.floor((first + i) / 60)) ? 0 : count));
  await keep(eventsOf([...seen, 90], first), { gaps });

  await tickThrough(END - 90, END - 89);

  const [spike] = await readSpikes();
  // One event a minute; with the gaps as zeros it would be two thirds of that.
  expect(spike?.baseline).toBe(spike?.windowMinutes);
  expect(spike).toMatchObject({ kind: "spike", windowMinutes: 3 });
});

/** Histories of many shapes with an attack or two in the minutes that are watched; those of one zone have gaps. */
function drawHistories(seed: number) {
  const fraction = createFractions(seed);
  return fc.sample(shapes, { seed, numRuns: 24 }).map((shape, i) => {
    const counts = drawCounts({
      ...shape,
      hours: 20 + (shape.hours % 70),
      perMinute: Math.min(shape.perMinute, 0.5),
      burstFactor: Math.min(shape.burstFactor, 30),
    });
    const firstMinute = END - counts.length;
    for (let attacks = i % 3; attacks > 0; attacks -= 1) {
      const at = counts.length - Math.floor(fraction() * WATCHED_MINUTES);
      for (let k = at; k < Math.min(at + 5, counts.length); k += 1)
        counts[k] = 20 + Math.floor(fraction() * 60);
    }
    const zoneId = i % 2 === 0 ? ZONE : GAP_ZONE;
    const isGap = (hour: number) =>
      zoneId === GAP_ZONE && hour % 5 === 0 && hour < Math.floor(START / 60) - 1;
    const seen = counts.map((count, k) => (isGap(Math.floor((firstMinute + k) / 60)) ? 0 : count));
    return { zoneId, ruleId: `9${i}`, key: `${zoneId}/9${i}`, counts: seen, firstMinute, isGap };
  });
}

async function keepHistories(histories: ReturnType<typeof drawHistories>): Promise<void> {
  for (const zoneId of [ZONE, GAP_ZONE]) {
    const inZone = histories.filter((history) => history.zoneId === zoneId);
    const hours = Array.from({ length: 200 }, (_, i) => Math.floor(END / 60) - i);
    const gaps = hours.filter((hour) => inZone[0]?.isGap(hour));
    const events = inZone.flatMap(({ counts, firstMinute, ruleId }) =>
      eventsOf(counts, firstMinute, { ruleId }),
    );
    await keep(events, { zoneId, gaps });
  }
}

test.each([11, 12])("the job finds what a scan of the whole history finds (seed %d)", async (seed) => {
  const histories = drawHistories(seed);
  await keepHistories(histories);
  await tickThrough(START, END);
  const found = await readSpikes();

  let compared = 0;
  for (const { key, counts, firstMinute, isGap } of histories) {
    // Neither gaps nor hours from before the coverage are known.
    const isUnknownHour = (hour: number) => isGap(hour) || hour < Math.floor(END / 60) - 200;
    const episodes = findEpisodes(counts, firstMinute, { z: 3.5, isUnknownHour });
    // What went on when the watch began has an earlier beginning in the scan.
    const isCut = ({ openedAt, closedAt }: (typeof episodes)[number]) =>
      openedAt <= START && (closedAt === null || closedAt > START - 75);
    if (episodes.some(isCut)) continue;
    const expected = episodes.filter(({ openedAt }) => openedAt > START);
    const actual = found.filter((spike) => spike.key === key);
    expect(
      actual.map((spike) => ({
        openedAt: minuteOf(spike.openedAt),
        closedAt: minuteOf(spike.closedAt),
        lastActiveAt: minuteOf(spike.lastActiveAt),
        windowMinutes: spike.windowMinutes,
        count: spike.windowCount,
        usual: spike.baseline,
        threshold: spike.threshold,
        score: spike.score,
        peak: spike.peak,
        severity: spike.severity,
        kind: spike.kind,
      })),
      key,
    ).toEqual(expected);
    compared += expected.length;
  }
  expect(compared).toBeGreaterThanOrEqual(8);
});

test("detectors that are killed and start anew end where one that never stopped does", async () => {
  await keepHistories(drawHistories(21));
  await tickThrough(START, END);
  const uninterrupted = (await readSpikes()).map(({ evidence, ...row }) => row);
  expect(uninterrupted.some(({ closedAt }) => closedAt !== null)).toBe(true);

  await database.pool.query("truncate spikes cascade");
  const fraction = createFractions(21);
  for (let minute = START; minute < END; ) {
    const pause = 1 + Math.floor(fraction() * 9);
    minute = Math.min(minute + pause, END);
    await tickThrough(minute - 1, minute);
    // What comes after a spike that closed within the pause is found by the next tick.
    await tickThrough(minute - 1, minute);
  }
  expect((await readSpikes()).map(({ evidence, ...row }) => row)).toEqual(uninterrupted);
});
