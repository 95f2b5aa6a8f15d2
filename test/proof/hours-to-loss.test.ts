import { afterAll, beforeEach, expect, test } from "vitest";
import { readUndecided } from "#db/proof/coverage-report.ts";
import { writeHorizon } from "#db/proof/horizons.ts";
import { coverageWindows, platformHealth } from "#db/schema/coverage.ts";
import { HOUR_MS } from "#lib/units.ts";
import { hoursToLoss } from "#proof/rules/hour-status.ts";
import { createMigratedDatabase } from "../db/migrated-database.ts";

const NOW = Date.parse("2026-11-20T15:30:00Z");
/** The platform's 72 hours, less the two minutes that are never requested. */
const HORIZON = NOW - 72 * HOUR_MS + 120_000;
const FIRST_HOUR = Date.parse("2026-11-17T15:00:00Z");
const LIVE = 72;
const ZONE = 101;

const database = await createMigratedDatabase();
const { db } = database;

afterAll(() => database.drop());

beforeEach(async () => {
  await db.delete(coverageWindows);
  await db.delete(platformHealth);
});

/** Stores the hours from `from` to the live one, and returns the hours to loss. */
async function read(
  stateOf: (index: number) => "open" | "sealed" | "gap" | null,
  { from = -2, now = NOW }: { readonly from?: number; readonly now?: number } = {},
): Promise<number | null | undefined> {
  const rows = [];
  for (let index = from; index <= LIVE; index++) {
    const state = stateOf(index);
    const startsAt = new Date(FIRST_HOUR + index * HOUR_MS);
    const decided = { sealedAt: new Date(NOW), evidence: {}, gapReason: state === "gap" ? "lost" : null };
    if (state !== null) rows.push({ zoneId: ZONE, startsAt, state, ...(state === "open" ? {} : decided) });
  }
  if (rows.length > 0) await db.insert(coverageWindows).values(rows);
  const [zone] = await readUndecided(db, [ZONE], now);
  return zone && hoursToLoss(zone.oldest);
}

/** Hours until the platform begins to forget the hour with this index. */
const until = (index: number) => expect.closeTo((FIRST_HOUR + index * HOUR_MS - HORIZON) / HOUR_MS, 9);

test("no hour is at risk if every ended hour is decided", async () => {
  expect(await read((i) => (i === LIVE ? "open" : i === 0 ? "gap" : "sealed"))).toBeNull();
});

test("the oldest undecided hour says how long there is, until its first moment is forgotten", async () => {
  expect(await read((i) => (i === 10 || i === 40 ? "open" : "sealed"))).toEqual(until(10));
});

test("an hour that was never entered is undecided as well", async () => {
  expect(await read((i) => (i === 30 ? null : "sealed"))).toEqual(until(30));
});

test("the first two hours of a zone are not at risk: the platform forgets them as the copy begins", async () => {
  expect(await read((i) => (i < 3 ? "open" : "sealed"), { from: 0 })).toEqual(until(2));
  await db.delete(coverageWindows);
  expect(await read((i) => (i < 2 ? "open" : "sealed"), { from: 0 })).toBeNull();
});

test("an undecided hour whose beginning is being forgotten has no time left", async () => {
  expect(await read(() => "open")).toBe(0);
});

test("an hour that was forgotten and never decided has no time left", async () => {
  expect(await read((i) => (i === -1 ? "open" : "sealed"), { from: -9 })).toBe(0);
});

test("a platform that keeps events for 48 hours leaves 24 hours less", async () => {
  const since = NOW - HOUR_MS;
  await writeHorizon(db, ZONE, { keptMs: 48 * HOUR_MS, since, beforeMs: 72 * HOUR_MS }, since);
  expect(await read((i) => (i === 40 ? "open" : "sealed"))).toEqual(until(40 - 24));
});

test("a zone without a known hour has none to lose", async () => {
  expect(await read(() => null)).toBeUndefined();
});
