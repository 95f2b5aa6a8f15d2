/** Reads and counts the stored events of an hour. */
import { desc, type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import { HOUR_MS } from "#lib/units.ts";
import type { HourContents } from "#model/covered-hour.ts";
import type { Span } from "#model/horizon.ts";
import type { Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { coverageWindows } from "../schema/coverage.ts";
import { eventRevisions, wafEvents } from "../schema/events.ts";

const e = alias(wafEvents, "e");
const r = alias(eventRevisions, "r");

/** Returns the contents of these hours by their starts (epoch ms). Reads every event of the hours. */
export async function readHourContents(
  db: Queryable,
  zoneId: number,
  hours: readonly number[],
): Promise<Map<number, HourContents>> {
  if (hours.length === 0) return new Map();
  const isIn = (table: typeof e | typeof r) => sql`${table.zoneId} = ${zoneId} and ${table.occurredAt} >= hour
    and ${table.occurredAt} < hour + interval '1 hour'`;
  const revisions = sql`from ${eventRevisions} ${r}
    where ${isIn(r)} and ${r.field} not in ('withdrawn', 'removed')`;
  const { rows } = await db.execute<
    { [Key in keyof HourContents]: HourContents[Key] } & { hour: number }
  >(sql`
    select ${epochMs(sql`hour`)} as hour, stored.*,
      (select ${epochMs(sql`max(${r.seenAt}) filter (where ${r.acceptedAt} is null)`)} ${revisions}) as "contestedAt",
      (select count(${r.acceptedAt}) ${revisions})::integer as revised
    from unnest(${sql.param(hours.map((hour) => new Date(hour)))}::timestamptz[]) as hour cross join lateral (
      select count(*)::integer as count, lpad(to_hex(coalesce(bit_xor(hashed), 0)), 16, '0') as ids,
        coalesce(sum(unresolved), 0)::integer as unresolved, (coalesce(sum(rows), 0) - count(*))::integer as doubled
      from (select ${ID_HASH} as hashed, count(*) filter (where ${e.feature} is null) as unresolved, count(*) as rows
        from ${wafEvents} ${e} where ${isIn(e)} group by ${e.logId}) as ids) as stored`);
  return new Map(rows.map(({ hour, ...contents }) => [hour, contents]));
}

/** Returns the contents of one hour (epoch ms of its start). */
export async function readOneHour(db: Queryable, zoneId: number, startsAt: number): Promise<HourContents> {
  const contents = (await readHourContents(db, zoneId, [startsAt])).get(startsAt);
  if (contents === undefined) throw new Error("an aggregate without groups returned no row");
  return contents;
}

/** Returns the digests of an hour's events of each feature. Leaves out events whose feature is not known. */
export function readFeatureIds(
  db: Queryable,
  zoneId: number,
  startsAt: number,
): Promise<{ feature: string; count: number; ids: string }[]> {
  return db
    .select({
      feature: sql<string>`${e.feature}`,
      count: sql<number>`count(*)::integer`,
      ids: sql<string>`lpad(to_hex(bit_xor(${ID_HASH})), 16, '0')`,
    })
    .from(e)
    .where(sql`${isIn(e, zoneId, startsAt)} and ${e.feature} is not null`)
    .groupBy(e.feature)
    .orderBy(e.feature);
}

const ID_HASH = sql`('x' || encode(substr(sha256(convert_to(${e.logId}, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint`;

/** Returns every event of one hour, in the order of their ids. A rule that is not known is ''. */
export function readHourIds(
  db: Queryable,
  zoneId: number,
  startsAt: number,
): Promise<{ logId: string; ruleId: string }[]> {
  return db
    .select({ logId: e.logId, ruleId: sql<string>`coalesce(${e.ruleId}, '')` })
    .from(e)
    .where(isIn(e, zoneId, startsAt))
    .orderBy(e.logId);
}

/** The log ids of [fromMs, toMs) that are stored under another time too, in the span or within an hour of it. */
export async function readDoubledIds(
  db: Queryable,
  zoneId: number,
  { fromMs, toMs }: { fromMs: number; toMs: number },
): Promise<string[]> {
  const [from, to] = [new Date(fromMs - HOUR_MS), new Date(toMs + HOUR_MS)];
  const isInSpan = sql`${e.occurredAt} >= ${new Date(fromMs)} and ${e.occurredAt} < ${new Date(toMs)}`;
  const rows = await db
    .select({ logId: e.logId })
    .from(e)
    .where(sql`${e.zoneId} = ${zoneId} and ${e.occurredAt} >= ${from} and ${e.occurredAt} < ${to}`)
    .groupBy(e.logId)
    .having(sql`count(*) > 1 and bool_or(${isInSpan})`)
    .orderBy(e.logId);
  return rows.map(({ logId }) => logId);
}

/**
 * Returns the log ids of the first `limit` events of a time span (epoch ms, both ends included), or with `isResolved` of
 * those that the search has shown. Null: of all of them.
 */
export async function readKnownIds(
  db: Queryable,
  zoneId: number,
  { fromMs, toMs }: { fromMs: number; toMs: number },
  { isResolved, limit }: { isResolved: boolean; limit: number | null },
): Promise<string[]> {
  const { rows } = await db.execute<Pick<typeof e.$inferSelect, "logId">>(sql`
    select ${e.logId} as "logId" from ${wafEvents} ${e}
    where ${e.zoneId} = ${zoneId} and ${e.occurredAt} between ${new Date(fromMs)} and ${new Date(toMs)}
      and (${e.feature} is not null or not ${isResolved}::boolean)
    order by ${e.occurredAt} limit ${limit}::integer`);
  return rows.map(({ logId }) => logId);
}

/**
 * Returns the time of the newest event that the search has shown, with at least `events - 1` others since it, between
 * `fromMs` and `toMs`; null if there are fewer. Epoch ms.
 */
export async function readKnownSince(
  db: Queryable,
  zoneId: number,
  { fromMs, toMs, events }: { fromMs: number; toMs: number; events: number },
): Promise<number | null> {
  const [row] = await db
    .select({ at: epochMs(e.occurredAt) })
    .from(e)
    .where(
      sql`${e.zoneId} = ${zoneId} and ${e.occurredAt} >= ${new Date(fromMs)} and ${e.occurredAt} < ${new Date(toMs)}
        and ${e.feature} is not null`,
    )
    .orderBy(desc(e.occurredAt))
    .limit(1)
    .offset(events - 1);
  return row?.at ?? null;
}

function isIn(table: typeof e | typeof r, zoneId: number, startsAt: number) {
  return sql`${table.zoneId} = ${zoneId} and ${table.occurredAt} >= ${new Date(startsAt)}
    and ${table.occurredAt} < ${new Date(startsAt + HOUR_MS)}`;
}

const w = alias(coverageWindows, "w");

interface CountedHour {
  readonly startsAt: number;
  readonly events: number;
  /** The count in the hour's row; 0 without a row. */
  readonly counted: number;
}

/** Returns every hour of the span that has events or a row, oldest first. Both counts come from one snapshot. */
export async function countHours(db: Queryable, zoneId: number, span: Span): Promise<CountedHour[]> {
  const { rows } = await db.execute<{ startsAt: number; events: number; counted: number }>(sql`
    select ${epochMs(sql`starts_at`)} as "startsAt", coalesce(events, 0)::integer as events,
      coalesce(stored_count, 0) as counted
    from (select date_trunc('hour', ${e.occurredAt}) as starts_at, count(*) as events
          from ${wafEvents} ${e} where ${isWithin(zoneId, span)} group by 1) e
    full join (select ${w.startsAt}, ${w.storedCount} from ${coverageWindows} ${w}
          where ${w.zoneId} = ${zoneId}
            and ${w.startsAt} >= ${new Date(span.from)} and ${w.startsAt} < ${new Date(span.to)}) w
      using (starts_at)
    order by 1`);
  return rows;
}

/** A stored event with the values that `verify` compares. */
export interface StoredValues {
  readonly logId: string;
  /** Null if the search has not shown the event, or if its person was erased. */
  readonly values: Readonly<Record<ComparedField, string | null>> | null;
  /** Whether every route has withdrawn the event. */
  readonly isWithdrawn: boolean;
}

export const COMPARED = [
  "ruleId",
  "ip",
  "url",
  "ua",
  "country",
  "asn",
  "action",
] as const satisfies (keyof typeof e)[];
export type ComparedField = (typeof COMPARED)[number];

const VALUES = sql.join(
  COMPARED.map((field) => sql`${field}::text, ${e[field]}`),
  sql`, `,
);

/** Returns a span's events. */
export async function readStoredValues(db: Queryable, zoneId: number, span: Span): Promise<StoredValues[]> {
  const { rows } = await db.execute<{ [Key in keyof StoredValues]: StoredValues[Key] }>(sql`
    select ${e.logId} as "logId",
      case when ${e.feature} is not null and ${e.ip} is distinct from 'erased' then jsonb_build_object(${VALUES}) end as values,
      exists (select from ${eventRevisions} ${r} where ${r.zoneId} = ${e.zoneId} and ${r.occurredAt} = ${e.occurredAt}
        and ${r.logId} = ${e.logId} and ${r.field} = 'withdrawn' and ${r.acceptedAt} is not null) as "isWithdrawn"
    from ${wafEvents} ${e} where ${isWithin(zoneId, span)}`);
  return rows;
}

/** Returns the keys of the events that the list showed first; times in epoch ms. */
export function readListedEvents(
  db: Queryable,
  zoneId: number,
  span: Span,
): Promise<{ occurredAt: number; logId: string }[]> {
  return db
    .select({ occurredAt: epochMs(e.occurredAt), logId: e.logId })
    .from(e)
    .where(sql`${isWithin(zoneId, span)} and ${e.route} = 'list'`);
}

function isWithin(zoneId: number, { from, to }: Span): SQL {
  return sql`${e.zoneId} = ${zoneId} and ${e.occurredAt} >= ${new Date(from)} and ${e.occurredAt} < ${new Date(to)}`;
}
