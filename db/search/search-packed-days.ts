import { sql } from "drizzle-orm";
import type pg from "pg";
import type { Queryable } from "../client.ts";
import { type DayTimes, unpackTimes } from "./day-times.ts";
import { readBinary } from "./read-binary.ts";
import type { CountedDay } from "./search-days.ts";
import type { SearchMemory } from "./search-memory.ts";
import { TALLIED_COLUMNS } from "./tally-day.ts";

/** How packed days are read, and what of them is known already. */
export interface DayReader {
  readonly client: pg.PoolClient;
  readonly memory: SearchMemory;
}

/** One dimension of a day; null is what was not asked for. `db/search/tally-day.ts` says what the bytes are. */
interface PackedTally {
  readonly heads: Buffer | null;
  readonly tallies: Buffer | null;
  readonly codes: Buffer | null;
}

/** The texts that codes of a zone stand for, by TALLIED_COLUMNS. */
export async function readTexts(tx: Queryable, zoneId: number): Promise<string[][]> {
  const found = await tx.execute<{ dimension: string; texts: string[] }>(sql`
    select dimension, texts from tally_texts where zone_id = ${zoneId}`);
  return TALLIED_COLUMNS.map((name) => found.rows.find(({ dimension }) => dimension === name)?.texts ?? []);
}

/** The times of days of one zone, by day. */
export async function readDayTimes(
  { client, memory }: DayReader,
  days: readonly CountedDay[],
): Promise<Map<number, DayTimes>> {
  const times = new Map<number, DayTimes>();
  const unknown = new Map<number, CountedDay>();
  for (const day of days) {
    const known = memory.timesOf(day);
    if (known === undefined) unknown.set(day.day, day);
    else times.set(day.day, known);
  }
  const [first] = unknown.values();
  if (first === undefined) return times;
  const rows = await readBinary(
    client,
    `select ${DAY}, times from cube_days where zone_id = ${first.zoneId} and ${isOneOf([...unknown.values()])}`,
  );
  for (const [day, packed] of rows) {
    const counted = unknown.get(day?.readInt32BE() ?? 0);
    if (counted === undefined) continue;
    const unpacked = unpackTimes(packed ?? Buffer.alloc(0));
    memory.rememberTimes(counted, unpacked);
    times.set(counted.day, unpacked);
  }
  return times;
}

/** The codes of every event of days of one zone: by day, then by place in TALLIED_COLUMNS. */
export async function readCodes(
  client: pg.PoolClient,
  days: readonly CountedDay[],
): Promise<Map<number, Buffer[]>> {
  const cut = days.map((day) => ({ ...day, isWhole: false }));
  const tallies = await readTallies(client, cut, { column: 0, hasCodes: true });
  return new Map(
    [...tallies].map(([day, ofDay]) => [day, ofDay.map(({ codes }) => codes ?? Buffer.alloc(0))]),
  );
}

/**
 * By day and place in TALLIED_COLUMNS: of whole days one dimension's counts, and its codes where wanted; of cut days the
 * codes of every dimension.
 */
export async function readTallies(
  client: pg.PoolClient,
  days: readonly CountedDay[],
  { column, hasCodes }: { column: number; hasCodes: boolean },
): Promise<Map<number, PackedTally[]>> {
  const [first] = days;
  const found = new Map<number, PackedTally[]>();
  if (first === undefined) return found;
  const ofZone = `zone_id = ${first.zoneId}`;
  const places = `case dimension ${TALLIED_COLUMNS.map((name, place) => `when '${name}' then ${place}`).join(" ")} end`;
  const rows = await readBinary(
    client,
    `select ${DAY}, ${places}, heads, tallies, ${hasCodes ? "codes" : "null::bytea"} from day_tallies
      where ${ofZone} and ${isOneOf(days.filter(({ isWhole }) => isWhole))} and dimension = '${TALLIED_COLUMNS[column]}'
    union all select ${DAY}, ${places}, null, null, codes from day_tallies
      where ${ofZone} and ${isOneOf(days.filter(({ isWhole }) => !isWhole))}`,
  );
  for (const [day, place, heads = null, tallies = null, codes = null] of rows) {
    const at = day?.readInt32BE() ?? 0;
    const ofDay = found.get(at) ?? [];
    ofDay[place?.readInt32BE() ?? 0] = { heads, tallies, codes };
    found.set(at, ofDay);
  }
  return found;
}

const DAY = "day - date '1970-01-01'";

function isOneOf(days: readonly CountedDay[]): string {
  return `day = any(array[${days.map(({ day }) => `date '1970-01-01' + ${day}`).join(", ")}]::date[])`;
}
