import type pg from "pg";
import type { Database } from "#db/client.ts";
import { compareBuckets } from "#db/detection/compare-buckets.ts";
import { HOUR_MS } from "#lib/units.ts";

/** An event that the platform ever showed, as `GET /_emulator/events/<zone>/ids` returns it. */
export interface ShownEvent {
  readonly logId: string;
  readonly timestamp: number;
}

/** The false statements of a lying platform about its events. */
export interface ToldLies {
  /** By log id, times that are not the event's own. */
  readonly falseTimes: ReadonlyMap<string, ReadonlySet<number>>;
  /** Log ids that an answer showed and that are no events of the zone. They may be stored. */
  readonly phantomIds: ReadonlySet<string>;
  /** Returns whether an answer has shown or counted the event truthfully. The service cannot know other events. */
  readonly isKnown: (event: ShownEvent) => boolean;
}

export async function readShown(platformUrl: string, zoneId: number): Promise<ShownEvent[]> {
  const text = await (await fetch(`${platformUrl}/_emulator/events/${zoneId}/ids`)).text();
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as ShownEvent);
}

const UNIQUE = "I2: no event is stored twice, whatever its partition";
const TWICE_IN_SEALED = `select e.zone_id, e.log_id, count(*) from waf_events e
  join coverage_windows w on w.zone_id = e.zone_id and w.starts_at = date_trunc('hour', e.occurred_at) and w.state = 'sealed'
  group by 1, 2 having count(*) > 1`;

/** Each query returns the rows that break the promise, so an empty result means that the promise holds. */
const NEVER: readonly { readonly promise: string; readonly query: string }[] = [
  {
    promise: UNIQUE,
    query: "select zone_id, log_id, count(*) from waf_events group by 1, 2 having count(*) > 1",
  },
  {
    promise: "I3: a list cursor stands exactly behind the pages of its pass",
    query: `select c.zone_id, c.day, c.pass, c.pages_seen, count(p.page), max(p.page), c.new_entries, sum(p.new_entries)
      from ingest_cursors c left join pages p using (zone_id, day, pass)
      group by c.zone_id, c.day, c.pass, c.pages_seen, c.new_entries
      having c.pages_seen <> count(p.page) or coalesce(max(p.page) + 1, 0) <> c.pages_seen
        or c.new_entries <> coalesce(sum(p.new_entries), 0)`,
  },
  {
    promise: "I3: an hour counts what it holds",
    query: `select zone_id, starts_at, w.stored_count, e.n from coverage_windows w full join (
        select zone_id, date_trunc('hour', occurred_at) as starts_at, count(*) as n from waf_events group by 1, 2) e
        using (zone_id, starts_at)
      where coalesce(w.stored_count, 0) <> coalesce(e.n, 0)`,
  },
  {
    promise: "I4, I5: a sealed hour has its evidence, a gap its reason, and no hour is both",
    query: `select zone_id, starts_at, state from coverage_windows
      where (state = 'gap') <> (gap_reason is not null) or state = 'open' and sealed_at is not null
        or state = 'sealed' and (evidence is null or sealed_at is null)`,
  },
  {
    promise:
      "I4: an hour holds what it had when it was sealed: no platform here is later than the settle time",
    query: `select zone_id, starts_at, stored_count, evidence from coverage_windows
      where state = 'sealed' and (evidence->'stored'->>'count')::int is distinct from stored_count`,
  },
  {
    // A group's alert names its leading spike, which has an alert of its own.
    promise: "I7: a spike has one alert, a rule one open spike, a transition one message per channel",
    query: `select 'alert', spike_id::text, count(*) from alerts where spike_id is not null and kind <> 'group'
        group by 2 having count(*) > 1
      union all select 'spike', zone_id || ' ' || rule_id, count(*) from spikes where closed_at is null
        group by 2 having count(*) > 1
      union all select 'message', channel || ' ' || alert_id || ' ' || transition, count(*) from notifications
        group by 2 having count(*) > 1`,
  },
];

/**
 * Returns the broken promises among those that hold at every moment, each with the rows that break it. `read` returns
 * what the platform has shown; it is called last, so that events stored meanwhile do not count as invented.
 */
export async function findBreaches(
  { pool, db }: Database,
  zoneId: number,
  read: () => Promise<readonly ShownEvent[]>,
  lies?: ToldLies,
): Promise<string[]> {
  const breaches: string[] = [];
  for (const { promise, query } of NEVER) {
    // An event that a lie shows under a time far from its own is merged by the next comparison of its hour.
    const { rows } = await pool.query(lies !== undefined && promise === UNIQUE ? TWICE_IN_SEALED : query);
    if (rows.length > 0) breaches.push(`${promise}: ${JSON.stringify(rows.slice(0, 5))}`);
  }
  const sealed = await readSealedHours(pool, zoneId);
  const stored = await readStored(pool, zoneId);
  const shown = await read();
  const known = lies === undefined ? shown : shown.filter(lies.isKnown);
  breaches.push(...findForeign(stored, shown, lies), ...findFalseSeals(sealed, stored, known));
  const last = shown.at(-1)?.timestamp ?? 0;
  const range = { from: new Date(last - 200 * HOUR_MS), to: new Date(last + HOUR_MS) };
  const wrong = (await compareBuckets(db, range)).filter(({ isPending }) => !isPending);
  if (wrong.length > 0)
    breaches.push(`I6: a bucket is what its events say: ${JSON.stringify(wrong.slice(0, 3))}`);
  return breaches;
}

/** Returns the time of every stored event of the zone by log id. */
export async function readStored(pool: pg.Pool, zoneId: number): Promise<Map<string, number>> {
  const { rows } = await pool.query<{ id: string; at: number }>(
    `select log_id as id, (extract(epoch from occurred_at) * 1000)::float8 as at from waf_events where zone_id = $1`,
    [zoneId],
  );
  return new Map(rows.map(({ id, at }) => [id, at]));
}

/** Returns the evidence by start of the hour, epoch ms. */
async function readSealedHours(pool: pg.Pool, zoneId: number): Promise<Map<number, unknown>> {
  const { rows } = await pool.query<{ at: number; evidence: unknown }>(
    `select (extract(epoch from starts_at) * 1000)::float8 as at, evidence from coverage_windows
     where zone_id = $1 and state = 'sealed'`,
    [zoneId],
  );
  return new Map(rows.map(({ at, evidence }) => [at, evidence]));
}

function findForeign(
  stored: ReadonlyMap<string, number>,
  shown: readonly ShownEvent[],
  lies: Pick<ToldLies, "falseTimes" | "phantomIds"> | undefined,
): string[] {
  const times = new Map(shown.map(({ logId, timestamp }) => [logId, timestamp]));
  const foreign = [...stored].find(([id, at]) => {
    if (times.get(id) === at || lies?.phantomIds.has(id) === true) return false;
    return lies?.falseTimes.get(id)?.has(at) !== true;
  });
  return foreign === undefined
    ? []
    : [`I1: nothing is stored that the platform never showed: ${foreign.join(" ")}`];
}

/** Returns the broken promises of I4: a sealed hour holds exactly what the platform ever showed of it. */
function findFalseSeals(
  sealed: ReadonlyMap<number, unknown>,
  stored: ReadonlyMap<string, number>,
  shown: readonly ShownEvent[],
): string[] {
  return shown
    .filter(({ logId, timestamp }) => !stored.has(logId) && sealed.has(timestamp - (timestamp % HOUR_MS)))
    .slice(0, 3)
    .map(({ logId, timestamp }) => {
      const hour = timestamp - (timestamp % HOUR_MS);
      const evidence = JSON.stringify(sealed.get(hour));
      return `I4: sealed means complete: ${new Date(hour).toISOString()} lacks ${logId}; evidence ${evidence}`;
    });
}

/** Returns sealed hours and gaps as text. Once written, each stays exactly as it is. */
export async function readVerdicts({ pool }: Database): Promise<Map<string, string>> {
  const { rows } = await pool.query<{ key: string; verdict: string }>(
    `select zone_id || ' ' || starts_at as key,
       jsonb_build_object('state', state, 'sealed', sealed_at, 'evidence', evidence, 'reason', gap_reason)::text as verdict
     from coverage_windows where state <> 'open'`,
  );
  return new Map(rows.map(({ key, verdict }) => [key, verdict]));
}

/**
 * Returns the events that the platform showed and that are not stored. Excepted are hours that are a gap, and the
 * undecided hour that the platform has begun to forget.
 */
export async function findMissing(
  { pool }: Database,
  zoneId: number,
  shown: readonly ShownEvent[],
): Promise<string[]> {
  const { rows } = await pool.query<{ at: number }>(
    `select (extract(epoch from starts_at) * 1000)::float8 as at from coverage_windows
     where zone_id = $1 and (state = 'gap' or state = 'open' and starts_at < $2)`,
    [zoneId, new Date((shown.at(-1)?.timestamp ?? 0) - 72 * HOUR_MS)],
  );
  const gaps = new Set(rows.map(({ at }) => at));
  const stored = await readStored(pool, zoneId);
  return shown
    .filter(({ logId, timestamp }) => !stored.has(logId) && !gaps.has(timestamp - (timestamp % HOUR_MS)))
    .map(({ logId, timestamp }) => `${new Date(timestamp).toISOString()} ${logId}`);
}
