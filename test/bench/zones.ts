/** Searches of all zones of an account, next to the same searches of one zone with the same events. */
import {
  createWriteStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { planSearch, type Search } from "#archive/rules/query/plan-search.ts";
import { createOpenedBlocks } from "#archive/rules/records/find-records.ts";
import { searchGroups } from "#archive/search/read-union.ts";
import { searchZones } from "#archive/search/search-zones.ts";
import { DAY_MS } from "#lib/units.ts";
import { toDay } from "#model/horizon.ts";
import { atMost, judge, type Verdict } from "./measure.ts";
import { listTree, readCpuMs } from "./process-tree.ts";
import { addRecords } from "./search/add-records.ts";
import { archiveDays, openFiles } from "./search/archive-days.ts";
import { SEARCH_NOW } from "./search/data-set.ts";
import { createDayRenderer, planDays } from "./search/day-events.ts";
import { openPostgres } from "./search/postgres.ts";
import { createWorld } from "./search/world.ts";
import { toSpread } from "./spread.ts";
import { alignColumns, showSpread, toVerdictRow } from "./tables.ts";

const DAYS = 30;
const SEED = "zones";
const ONE_ZONE = 1_000;
/** Each search writes some kept files, until there is one for each day. */
const FILE_WRITERS = 12;
const WARM_UPS = 1;

export interface ZonesBenchOptions {
  readonly zones: number;
  readonly events: number;
  readonly repeats: number;
  /** Where the data set stays for the next run; null to make it anew and remove it. */
  readonly keep: string | null;
  readonly onProgress: (done: number, what: string) => void;
}

/** CPU and time in ms, repeat by repeat, of all processes. */
interface Measured {
  readonly cpuMs: number[];
  readonly ms: number[];
}

export interface TimedZones {
  readonly name: string;
  readonly all: Measured;
  readonly one: Measured;
}

export async function benchZones(options: ZonesBenchOptions): Promise<TimedZones[]> {
  const { zones, events, keep, onProgress } = options;
  const folder = keep ?? mkdtempSync(path.join(tmpdir(), "longwatch-zones-"));
  const manifest = path.join(folder, "zones.json");
  const wanted = JSON.stringify({ zones, events, now: SEARCH_NOW });
  const isThere = existsSync(manifest) && readFileSync(manifest, "utf8") === wanted;
  if (!isThere) rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  const postgres = await openPostgres(path.join(folder, "postgres"));
  const archive = openFiles(folder);
  const zoneIds = Array.from({ length: zones }, (_, index) => ONE_ZONE + 1 + index);
  try {
    if (!isThere) await load(options, folder, postgres, zoneIds);
    let written = 0;
    await archiveDays(postgres.database, archive, SEARCH_NOW, () =>
      onProgress(++written / (DAYS * (zones + 1)), "archiving days"),
    );
    writeFileSync(manifest, wanted);
    const deps = { queries: postgres.database, files: archive.files, openedBlocks: createOpenedBlocks() };
    const ask = async (of: readonly number[], search: Search) => {
      const plan = planSearch(search);
      const { signal } = new AbortController();
      return plan.groupBy.length > 0
        ? searchGroups(deps, of, plan, signal)
        : searchZones(deps, { zoneIds: of, plan, isMasked: false }, signal);
    };
    return await measure(listZonesQuestions(), [zoneIds, [ONE_ZONE]], ask, options);
  } finally {
    await archive.duckdb.close();
    await postgres.stop();
    if (keep === null) rmSync(folder, { recursive: true, force: true });
  }
}

/** The same events twice: all of one zone, and each of another of many. */
async function load(
  { events, onProgress }: ZonesBenchOptions,
  folder: string,
  postgres: Awaited<ReturnType<typeof openPostgres>>,
  zoneIds: readonly number[],
): Promise<void> {
  const render = createDayRenderer(SEED, createWorld(SEED));
  const plans = planDays(SEARCH_NOW - DAYS * DAY_MS, SEARCH_NOW, events);
  let line = 0;
  const inZone = (zone: number, text: string) => text.replace(/^([^,]*),\d+,/, `$1,${zone},`);
  const spread = (text: string) =>
    text
      .split("\n")
      .filter((one) => one !== "")
      // A stride that visits all zones in no order that the times have.
      .flatMap((one) => [inZone(ONE_ZONE, one), inZone(zoneIds[(line++ * 7_919) % zoneIds.length] ?? 0, one)])
      .map((one) => `${one}\n`)
      .join("");
  for (const [index, plan] of plans.entries()) {
    onProgress(index / plans.length, plan.day);
    const file = path.join(folder, `${plan.day}.csv`);
    const texts = function* () {
      for (const text of render(plan)) yield spread(text);
    };
    await pipeline(Readable.from(texts()), createWriteStream(file));
    await postgres.addDay(plan.day, file, SEARCH_NOW);
    rmSync(file);
  }
  for (const zone of [ONE_ZONE, ...zoneIds]) await addRecords(postgres.database, zone, toDay(SEARCH_NOW));
  await postgres.finish(toDay(SEARCH_NOW - DAY_MS));
}

async function measure(
  questions: readonly (readonly [string, Search])[],
  sides: readonly [readonly number[], readonly number[]],
  ask: (of: readonly number[], search: Search) => Promise<{ readonly total: number }>,
  { repeats, onProgress }: ZonesBenchOptions,
): Promise<TimedZones[]> {
  const timed: TimedZones[] = [];
  const clock = async (of: readonly number[], search: Search, into: Measured | null) => {
    const [cpu, start] = [readCpuMs(listTree()), performance.now()];
    const { total } = await ask(of, search);
    into?.ms.push(performance.now() - start);
    into?.cpuMs.push(readCpuMs(listTree()) - cpu);
    return total;
  };
  const [first] = questions;
  if (first === undefined) return [];
  for (let turn = 0; turn < FILE_WRITERS; turn++) for (const zones of sides) await ask(zones, first[1]);
  for (const [place, [name, search]] of questions.entries()) {
    const [all, one]: [Measured, Measured] = [
      { cpuMs: [], ms: [] },
      { cpuMs: [], ms: [] },
    ];
    for (let turn = -WARM_UPS; turn < repeats; turn++) {
      onProgress((place + (turn + WARM_UPS) / (repeats + WARM_UPS)) / questions.length, name);
      const totals = [
        await clock(sides[0], search, turn < 0 ? null : all),
        await clock(sides[1], search, turn < 0 ? null : one),
      ];
      if (totals[0] !== totals[1])
        throw new Error(`${name}: ${totals[0]} of all zones, and ${totals[1]} of one`);
    }
    timed.push({ name, all, one });
  }
  return timed;
}

function listZonesQuestions(): (readonly [string, Search])[] {
  const rest = { to: SEARCH_NOW, query: "", filters: [], groupBy: [], buckets: 0, page: 0, pageSize: 50 };
  const days = (count: number) => ({ ...rest, from: SEARCH_NOW - count * DAY_MS });
  return [
    ["30 days by rule, 500 buckets", { ...days(DAYS), groupBy: ["ruleId"], buckets: 500 }],
    ["30 days by country", { ...days(DAYS), groupBy: ["country"] }],
    ["7 days by address", { ...days(7), groupBy: ["ip"] }],
    ["common text over 30 days", { ...days(DAYS), query: "passwd" }],
    ["newest 50 of 30 days", days(DAYS)],
    ["page 1,000 of 30 days", { ...days(DAYS), page: 1_000 }],
  ];
}

const LIMIT = atMost(1.3);
const median = (values: readonly number[]) => toSpread(values)?.median ?? Number.NaN;

/** The CPU of all zones to that of one: of the sums, because the clock ticks every 10 ms. */
export function judgeZones(timed: readonly TimedZones[]): Verdict[] {
  const sum = ({ cpuMs }: Measured) => cpuMs.reduce((total, one) => total + one, 0);
  return timed.map(({ name, all, one }) => judge(name, LIMIT, [sum(all) / Math.max(1, sum(one))]));
}

export function reportZones(timed: readonly TimedZones[], verdicts: readonly Verdict[]): string {
  const rows = timed.map(({ name, all, one }) => [
    name,
    ...[all, one].flatMap(({ ms, cpuMs }) => [showSpread(toSpread(ms), 0), median(cpuMs).toFixed(0)]),
  ]);
  const heads = ["", "all: ms", "CPU", "one: ms", "CPU"];
  return `${[...alignColumns([heads, ...rows]), "", ...alignColumns(verdicts.map(toVerdictRow))].join("\n")}\n`;
}
