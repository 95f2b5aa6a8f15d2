import type pg from "pg";
import { readBinary } from "../read-binary.ts";
import { TALLIED_COLUMNS } from "../tally-day.ts";
import type { CountedDay } from "./search-days.ts";

/** One dimension of a day; null is what was not asked for. `db/tally-day.ts` says what the bytes are. */
interface PackedTally {
  readonly heads: Buffer | null;
  readonly tallies: Buffer | null;
  readonly codes: Buffer | null;
}

/** The times of days of one zone, by day, days since 1970. */
export async function readPackedTimes(
  client: pg.PoolClient,
  days: readonly CountedDay[],
): Promise<Map<number, Buffer>> {
  const [first] = days;
  if (first === undefined) return new Map();
  const rows = await readBinary(
    client,
    `select ${DAY}, times from cube_days where zone_id = ${first.zoneId} and ${isOneOf(days)}`,
  );
  return new Map(rows.map(([day, times]) => [day?.readInt32BE() ?? 0, times ?? Buffer.alloc(0)]));
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
