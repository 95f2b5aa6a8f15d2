import { sql } from "drizzle-orm";
import type pg from "pg";
import { readSqlState } from "../../src/lib/sql-state.ts";
import type { Database, Queryable } from "../client.ts";
import { ADVISORY_LOCKS } from "../postgres/advisory-locks.ts";
import { inTransaction } from "../postgres/transaction.ts";

/** What searches by address, network, fingerprint and text need, built once a day has stopped growing. */
const INDEXES: readonly { readonly suffix: string; readonly needsTrigrams: boolean; readonly on: string }[] =
  [
    { suffix: "ip", needsTrigrams: false, on: `using btree (zone_id, ip collate "C", occurred_at)` },
    { suffix: "ja4", needsTrigrams: false, on: `using btree (zone_id, ja4 collate "C", occurred_at)` },
    // IPv4 networks are ranges of the texts above.
    {
      suffix: "network",
      needsTrigrams: false,
      on: `using btree (event_network(ip)) where strpos(ip, ':') > 0`,
    },
    {
      suffix: "texts",
      needsTrigrams: true,
      on: `using gin (${["url", "ua", "message", "ip", "rule_id"]
        .map((column) => `lower(${column} collate "C") gin_trgm_ops`)
        .join(", ")})`,
    },
  ];
const MARKER = "waf_events_mark_cube_day";

export interface DayToClose {
  readonly day: string;
  readonly partition: string;
}

/**
 * Days of waf_events that still lack what a closed day has, oldest first, of those before `before` and those before
 * `sealedBefore` of which every hour's coverage is decided. Days are UTC, `yyyy-mm-dd`.
 */
export async function listDaysToClose(
  db: Queryable,
  { before, sealedBefore, hasTrigrams }: { before: string; sealedBefore: string; hasTrigrams: boolean },
): Promise<DayToClose[]> {
  const wanted = INDEXES.filter(({ needsTrigrams }) => hasTrigrams || !needsTrigrams).length;
  const suffixes = sql.param(INDEXES.map(({ suffix }) => suffix));
  const found = await db.execute<{ day: string; partition: string }>(sql`
    select to_char(day, 'YYYY-MM-DD') as day, partition from (
      select c.oid, c.relname::text as partition, to_date(right(c.relname, 8), 'YYYYMMDD') as day
      from pg_inherits i join pg_class c on c.oid = i.inhrelid
      where i.inhparent = 'waf_events'::regclass) p
    where (day < ${before}::date or (day < ${sealedBefore}::date and not exists (
        select from coverage_windows w where w.state = 'open'
          and w.starts_at >= day::timestamp at time zone 'UTC'
          and w.starts_at < (day + 1)::timestamp at time zone 'UTC')))
      and (not exists (select from pg_trigger t where t.tgrelid = p.oid and t.tgname = ${MARKER})
        or (select count(*) from pg_index x join pg_class n on n.oid = x.indexrelid
            where x.indrelid = p.oid and x.indisvalid
              and n.relname = any(select p.partition || '_' || unnest(${suffixes}::text[]))) < ${wanted})
    order by day`);
  return found.rows;
}

/** Whether indexes on parts of texts can be had: makes the extension where this role may. */
export async function hasTrigrams({ db }: Pick<Database, "db">): Promise<boolean> {
  const present = await db.execute(sql`select 1 from pg_extension where extname = 'pg_trgm'`);
  if (present.rows.length > 0) return true;
  try {
    await db.execute(sql`create extension if not exists pg_trgm`);
    return true;
  } catch (thrown) {
    // Not installed on the host, not allowed to this role, or made by another replica at this moment.
    if (["0A000", "58P01", "42501", "23505"].includes(readSqlState(thrown) ?? "")) return false;
    throw thrown;
  }
}

/**
 * Gives a day all that a closed day has; false when another replica is closing one. Writers are kept out for no longer
 * than the catalogue takes. What a killed run left half made is made anew, what is there stays. Runs as long as it takes.
 */
export async function closeDay(
  database: Database,
  day: DayToClose,
  { hasTrigrams }: { hasTrigrams: boolean },
): Promise<boolean> {
  const client = await database.pool.connect();
  try {
    await client.query("set statement_timeout = 0; set lock_timeout = 0; set maintenance_work_mem = '256MB'");
    // One at a time: a concurrent index build and the lock that the watch needs would wait for each other.
    const key = ADVISORY_LOCKS.closedDays;
    const taken = await client.query<{ ours: boolean }>("select pg_try_advisory_lock($1) as ours", [key]);
    if (taken.rows[0]?.ours !== true) return false;
    await watchDay(database, day);
    for (const { suffix, needsTrigrams, on } of INDEXES) {
      if (hasTrigrams || !needsTrigrams) await buildIndex(client, day.partition, suffix, on);
    }
    await client.query(`vacuum (analyze) ${quoted(client, day.partition)}`);
    // The end of the session would give it back as well, but only after the next day was refused.
    await client.query("select pg_advisory_unlock($1)", [key]);
    return true;
  } finally {
    // Closing the session takes its settings away, and its lock where a build failed.
    client.release(true);
  }
}

/** From the commit on every change of the day's events is noted. */
async function watchDay(database: Database, { day, partition }: DayToClose): Promise<void> {
  await inTransaction(database, async ({ tx }) => {
    await tx.execute(sql`set local lock_timeout = '2s'`);
    await tx.execute(sql`lock table ${sql.identifier(partition)} in share row exclusive mode`);
    const watched = await tx.execute(sql`
      select 1 from pg_trigger where tgrelid = ${partition}::regclass and tgname = ${MARKER}`);
    if (watched.rows.length > 0) return;
    await tx.execute(sql`
      create trigger ${sql.identifier(MARKER)} after insert or delete
        or update of zone_id, occurred_at, feature, rule_id, asn, country, action
      on ${sql.identifier(partition)} for each row execute function mark_cube_day()`);
    // Its zones, one probe of the key each.
    await tx.execute(sql`
      with recursive zones as (
        (select zone_id from ${sql.identifier(partition)} order by zone_id limit 1)
        union all
        select (select p.zone_id from ${sql.identifier(partition)} p where p.zone_id > z.zone_id
                order by p.zone_id limit 1) from zones z where z.zone_id is not null)
      insert into cube_days as d (zone_id, day)
      select zone_id, ${day}::date from zones where zone_id is not null order by zone_id
      on conflict (zone_id, day) do update set marks = d.marks + 1`);
  });
}

async function buildIndex(
  client: pg.PoolClient,
  partition: string,
  suffix: string,
  on: string,
): Promise<void> {
  const name = `${partition}_${suffix}`;
  const found = await client.query<{ indisvalid: boolean }>(
    "select indisvalid from pg_index where indexrelid = to_regclass($1)",
    [quoted(client, name)],
  );
  if (found.rows[0]?.indisvalid === true) return;
  if (found.rows.length > 0) await client.query(`drop index concurrently if exists ${quoted(client, name)}`);
  await client.query(
    `create index concurrently ${quoted(client, name)} on ${quoted(client, partition)} ${on}`,
  );
}

function quoted(client: pg.PoolClient, name: string): string {
  return client.escapeIdentifier(name);
}
