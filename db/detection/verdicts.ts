/** Verdicts as they are stored, and what is usual for a zone. */
import { and, asc, desc, eq, inArray, isNotNull, isNull, type SQLWrapper, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import { cleanText, MAX_TEXT_CHARS } from "#lib/text.ts";
import { DAY_MS } from "#lib/units.ts";
import type { Span } from "#model/horizon.ts";
import { RULE_SPIKE_KINDS, USUAL_DIMENSIONS, VERDICT_TIMES, type VerdictTime } from "#model/kinds.ts";
import { toUrlPartSql } from "#model/record-parts.ts";
import type { FirstUse, UsualValue } from "#model/stored-sources.ts";
import { type StoredVerdict, VERDICT_AFTER_MS } from "#model/verdict.ts";
import { readFile } from "../archive/day-files.ts";
import type { Queryable } from "../client.ts";
import type { Duckdb } from "../duckdb/duckdb.ts";
import { epochMs, names } from "../postgres/terms.ts";
import { wafEvents } from "../schema/events.ts";
import { zoneUsual } from "../schema/sources.ts";
import { spikes, verdicts } from "../schema/spikes.ts";
import type { SpikeRow } from "./spikes.ts";

const s = alias(spikes, "s");
const v = alias(verdicts, "v");

/** Spikes older than this are not judged. */
const JUDGED_FOR_MS = 2 * DAY_MS;

/**
 * Stores the verdict on a spike at one time, in place of one than which a newer one was asked for. Returns false and keeps what is
 * stored if another replica was faster, or if the newer one saw no event: those of an old alert may be in files by now.
 */
export async function storeVerdict(
  db: Queryable,
  { id, zoneId }: { readonly id: number; readonly zoneId: number },
  verdict: StoredVerdict,
): Promise<boolean> {
  // JSON in Postgres holds neither NUL nor half a character, which a request may.
  const clean = JSON.parse(JSON.stringify(verdict), (_key, value: unknown) =>
    typeof value === "string" ? cleanText(value, MAX_TEXT_CHARS) : value,
  ) as StoredVerdict;
  const { look, said, judgedAt } = clean;
  const judged = { said, judgedAt: new Date(judgedAt), verdict: clean, askedAt: null };
  const answer = () =>
    db
      .update(verdicts)
      .set({ askedAt: null })
      .where(and(eq(verdicts.spikeId, id), isNotNull(verdicts.askedAt)))
      .returning({ id: verdicts.spikeId });
  if (clean.counts.events === 0 && (await answer()).length > 0) return false;
  const stored = await db
    .insert(verdicts)
    .values({ spikeId: id, zoneId, look, ...judged })
    .onConflictDoUpdate({
      target: [verdicts.spikeId, verdicts.look],
      set: judged,
      setWhere: isNotNull(verdicts.askedAt),
    })
    .returning({ id: verdicts.spikeId });
  await answer();
  return stored.length > 0;
}

/** Asks for newer verdicts on these spikes than those that are stored, because messages wait for them. */
export async function askForVerdicts(
  db: Queryable,
  spikeIds: readonly number[],
  nowMs: number,
): Promise<void> {
  if (spikeIds.length === 0) return;
  await db
    .update(verdicts)
    .set({ askedAt: new Date(nowMs) })
    .where(and(inArray(verdicts.spikeId, [...spikeIds]), isNull(verdicts.askedAt)));
}

/** Returns the verdicts of each of these spikes, the oldest first. Spikes without any are left out. */
export async function readVerdicts(
  db: Queryable,
  spikeIds: readonly number[],
): Promise<ReadonlyMap<number, readonly StoredVerdict[]>> {
  if (spikeIds.length === 0) return new Map();
  const rows = await db
    .select({ spikeId: verdicts.spikeId, verdict: verdicts.verdict })
    .from(verdicts)
    .where(inArray(verdicts.spikeId, [...spikeIds]))
    .orderBy(asc(verdicts.spikeId), asc(verdicts.judgedAt));
  const bySpike = Map.groupBy(rows, ({ spikeId }) => spikeId);
  return new Map(Array.from(bySpike, ([id, ofSpike]) => [id, ofSpike.map(({ verdict }) => verdict)]));
}

export type DueVerdict = Readonly<{ spike: SpikeRow; look: VerdictTime }>;

/**
 * Returns the verdicts that are due: the latest of each spike whose time has come, unless it or a later one is stored and no newer one
 * was asked for. Verdicts before it are left out, because the events that they would have seen are in it. Those that were asked for
 * come first, then incidents, and members of incidents last; of both the open ones first, the newest first. Spikes that were found late
 * come after all others: they notify nobody, but an exclusion may follow from them.
 */
export async function findDueVerdicts(db: Queryable, nowMs: number, limit: number): Promise<DueVerdict[]> {
  // The latest time first. A spike may open later than now, by the clock of another process.
  const cases = VERDICT_TIMES.slice(1)
    .toReversed()
    .map((look) => sql`when ${s.openedAt} <= ${new Date(nowMs - VERDICT_AFTER_MS[look])} then ${look}`);
  const look = sql<VerdictTime>`case ${sql.join(cases, sql` `)} else ${VERDICT_TIMES[0]} end`;
  const placeOf = (one: SQLWrapper) => sql`array_position(${sql.param([...VERDICT_TIMES])}::text[], ${one})`;
  const since = new Date(nowMs - JUDGED_FOR_MS);
  const isAsked = sql`${s.id} = any(array(select ${v.spikeId} from ${verdicts} ${v} where ${v.askedAt} is not null))`;
  return db
    .select({ spike: s, look })
    .from(s)
    .where(
      // The third condition has an index.
      sql`(${isAsked} or ${s.openedAt} > ${since} and (${s.closedAt} is null or ${s.closedAt} > ${since})
          and not exists (select from ${verdicts} ${v} where ${v.spikeId} = ${s.id} and ${placeOf(v.look)} >= ${placeOf(look)}))
        and ${inArray(s.kind, [...RULE_SPIKE_KINDS, "sources"])} and not ${s.isShadow}`,
    )
    .orderBy(
      sql`${isAsked} desc, ${s.isLate}, ${s.kind} = 'sources' desc, ${s.memberOf} is null desc, ${s.closedAt} is null desc`,
      desc(s.openedAt),
      asc(s.id),
    )
    .limit(limit);
}

const e = alias(wafEvents, "e");
const u = alias(zoneUsual, "u");

/** A value is usual once so many users had it at most, so more of a day change nothing. */
const MOST_USERS = 20;
/** Values of a dimension that are read of a day: those that most addresses had. An attacker may send a million. */
const MOST_VALUES = 5_000;

const PATH = toUrlPartSql("path", "url");
const USES = USUAL_DIMENSIONS.map((dimension) => {
  const user = dimension === "asn" ? "day" : "ip";
  return `select '${dimension}' as dimension, ${dimension} as value, ${user} as used_by, min(ms) as first_ms
    from e where ${dimension} <> '' and ${user} not in ('', 'erased') group by 2, 3`;
});
/**
 * Reads `e` with the columns ms, day, ip, asn, ja4 and path, in Postgres and in DuckDB. A value is usual after enough
 * different users. The first users of each day are enough, because the first users of all days are among them. Sorted by time.
 */
const FIRST_USES = `
  used as (${USES.join(" union all ")}),
  placed as (select *, row_number() over (partition by dimension, value order by first_ms, used_by) as place,
    count(*) over (partition by dimension, value) as users from used),
  ranked as (select *, dense_rank() over (partition by dimension order by users desc, value) as value_rank from placed
    where place <= ${MOST_USERS})
  select dimension, value, used_by as "user", first_ms as at from ranked where value_rank <= ${MOST_VALUES}
  order by first_ms`;

/** Returns the first uses of the values of a UTC day's events in Postgres, without the hours (since the epoch) `leftOut`. */
export async function readFirstUses(
  db: Queryable,
  zoneId: number,
  { from, to }: Span,
  leftOut: readonly number[],
): Promise<FirstUse[]> {
  const { rows } = await db.execute<{ [Key in keyof FirstUse]: FirstUse[Key] }>(sql`
    with e as (select ${epochMs(e.occurredAt)} as ms, (${e.occurredAt} at time zone 'UTC')::date::text as day, ${e.ip},
        ${e.asn}, ${e.ja4}, ${sql.raw(PATH)} as path
      from ${wafEvents} ${e} where ${e.zoneId} = ${zoneId} and ${e.occurredAt} >= ${new Date(from)}
        and ${e.occurredAt} < ${new Date(to)}
        and floor(extract(epoch from ${e.occurredAt}) / 3600) <> all(${sql.param([...leftOut])}::integer[])),
    ${sql.raw(FIRST_USES)}`);
  return rows;
}

/** Returns the same of the events file of an archive day. */
export async function readFirstUsesOfFile(
  duckdb: Duckdb,
  file: string,
  leftOut: readonly number[],
  signal: AbortSignal,
): Promise<FirstUse[]> {
  const hours = leftOut.map((hour) => Math.trunc(hour)).join(", ");
  const statement = `
    with e as (select epoch_ms(occurred_at)::double as ms, strftime(occurred_at, '%Y-%m-%d') as day, ip, asn, ja4, ${PATH} as path
      from ${readFile(file)} where not list_contains([${hours}]::integer[], (epoch_ms(occurred_at) // 3600000)::integer)),
    ${FIRST_USES}`;
  const maxRows = USUAL_DIMENSIONS.length * MOST_VALUES * MOST_USERS;
  const [rows = []] = await duckdb.run([{ sql: statement }], { signal, maxRows });
  return rows.map(([dimension, value, user, at]) => ({ dimension, value, user, at }) as FirstUse);
}

/** Makes these the usual values of a zone. A value that is usual already keeps its time. */
export async function storeUsual(db: Queryable, zoneId: number, found: readonly UsualValue[]): Promise<void> {
  const column = <T>(read: (one: UsualValue) => T) => sql.param(found.map(read));
  await db.execute(sql`
    with found as (select * from unnest(${column((one) => one.dimension)}::text[], ${column((one) => one.value)}::text[],
        ${column((one) => new Date(one.since))}::timestamptz[]) as f(dimension, value, since)),
      gone as (delete from ${zoneUsual} ${u} where ${u.zoneId} = ${zoneId} and not exists (
        select from found f where f.dimension = ${u.dimension} and f.value = ${u.value}))
    insert into ${zoneUsual} (${names(u.zoneId, u.dimension, u.value, u.since)})
    select ${zoneId}::integer, dimension, value, since from found order by dimension, value on conflict do nothing`);
}
