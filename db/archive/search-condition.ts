/** A search as a condition of SQL, and the transaction in which it runs. */
import { type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type pg from "pg";
import { readSqlState } from "#lib/errors.ts";
import { formatIso } from "#lib/format.ts";
import { toColumnSql } from "#model/fields.ts";
import type { Span } from "#model/horizon.ts";
import {
  connectives,
  type Dialect,
  type EventQuery,
  type LikeTest,
  toCondition,
} from "#model/search-condition.ts";
import { type Database, onConnection, type Queryable } from "../client.ts";
import { runCancellable, transact } from "../postgres/transaction.ts";
import { wafEvents } from "../schema/events.ts";

const e = alias(wafEvents, "e");

/** Returns a moment as a parameter. A time outside 1970 to 9999, when nothing is stored, becomes the nearer end. */
export function toMoment(ms: number): SQL {
  return sql`${formatIso(ms)}::timestamptz`;
}

const join = (parts: readonly SQL[], separator: string) => sql.join([...parts], sql.raw(separator));
const { and, or } = connectives(sql.raw, join);

/** Over `e`, of any table that has these columns. Every text of the caller's is a parameter. */
const POSTGRES: Dialect<SQL> = {
  raw: sql.raw,
  and,
  or,
  toText: (column) => toColumnSql(column, "e."),
  isNot: (condition) => sql`${condition} is not true`,
  isOneOf: (text, texts, column) =>
    and([toEquals(sql.raw(text), texts), ...(column === "path" ? mayHavePath(texts) : [])]),
  isLike: (text, test) => {
    const folded = fold(sql.raw(text), test);
    if (test.kind === "like") return sql`${folded} like ${test.pattern}`;
    return sql`${folded} like any(${sql.param([...test.patterns])}::text[])`;
  },
  isWithin: (text, { kind, networks }) =>
    kind === "within"
      ? or(networks.map((network) => toWithin(sql.raw(text), network)))
      : sql`event_network(${sql.raw(text)}) <<= any(${sql.param([...networks])}::inet[])`,
};

/**
 * Returns the condition for the events `e` of waf_events that a query asks for, of its whole window or of parts of it. The
 * zone and the time come first: they decide which partitions are read.
 */
export function isAsked(zoneId: number, query: EventQuery, spans: readonly Span[] = [query]): SQL {
  return and([isPlaced({ zoneIds: [zoneId], spans }), toCondition(query.clauses, POSTGRES)]);
}

/** Zones, and the parts of the window of a search that are read of them. */
export interface ZoneSpans {
  readonly zoneIds: readonly number[];
  readonly spans: readonly Span[];
}

/** Returns the same for several zones. */
export function isAskedOf(query: EventQuery, parts: readonly ZoneSpans[]): SQL {
  return and([or(parts.map(isPlaced)), toCondition(query.clauses, POSTGRES)]);
}

function isPlaced({ zoneIds, spans }: ZoneSpans): SQL {
  const times = spans.map(
    ({ from, to }) => sql`(${e.occurredAt} >= ${toMoment(from)} and ${e.occurredAt} < ${toMoment(to)})`,
  );
  // Written out, because a parameter of COPY is read anew for each row.
  const isZone =
    zoneIds.length === 1
      ? sql`${e.zoneId} = ${zoneIds[0]}::integer`
      : sql`${e.zoneId} in (${sql.raw(zoneIds.map((id) => String(Math.trunc(id))).join(", "))})`;
  return and([isZone, or(times)]);
}

function toEquals(text: SQL, texts: readonly string[]): SQL {
  return texts.length === 1
    ? sql`${text} = ${texts[0]}`
    : sql`${text} = any(${sql.param([...texts])}::text[])`;
}

/** Rules most URLs out for a fraction of what finding their path costs. Only the path / can be missing in its URL. */
function mayHavePath(texts: readonly string[]): SQL[] {
  const [path = ""] = texts;
  return texts.length === 1 && path.length > 1 ? [sql`strpos(${e.url}, ${path}) > 0`] : [];
}

/** Ignores case. The "C" collation folds ASCII letters only, whatever the database's locale; others are folded by name. */
function fold(text: SQL, { foldFrom, foldTo }: Pick<LikeTest, "foldFrom" | "foldTo">): SQL {
  const lower = sql`lower(${text} collate "C")`;
  return foldFrom === "" ? lower : sql`translate(${lower}, ${foldFrom}, ${foldTo})`;
}

/** The text is looked at first: it rules most addresses out for a fraction of what reading them as addresses costs. */
function toWithin(text: SQL, network: string): SQL {
  const exact = sql`event_network(${text}) <<= ${network}::inet`;
  if (network.includes(":")) return and([sql`strpos(${text}, ':') > 0`, exact]);
  const [address = "", bits = "32"] = network.split("/");
  const octets = Math.floor(Number(bits) / 8);
  if (octets === 0) return exact;
  const prefix = address.split(".").slice(0, octets).join(".");
  if (octets === 4) return sql`${text} collate "C" = ${prefix}`;
  // Every text that begins with the prefix and a dot: "/" is the character behind ".".
  return and([
    sql`${text} collate "C" >= ${`${prefix}.`}`,
    sql`${text} collate "C" < ${`${prefix}/`}`,
    exact,
  ]);
}

const NO_TABLE = "42P01";
const PARALLEL_WORKERS = 4;
/** Megabytes of one sort or hash table in all processes of a search together, and in each of them. */
const TOGETHER_MB = 160;
const MOST_MB = 64;
type SearchDatabase = Pick<Database, "client" | "pool" | "parallelWorkers">;

/**
 * Runs the statements of one search on one view of the data, so that rows, totals and the manifest agree
 * while ingest goes on. Scans of many events are worth several processes and memory; compiling them never was.
 */
export function inSearchTransaction<T>(
  database: SearchDatabase,
  run: (tx: Queryable, client: pg.PoolClient) => Promise<T>,
): Promise<T> {
  const workers = database.parallelWorkers ?? PARALLEL_WORKERS;
  const memory = Math.min(MOST_MB, Math.floor(TOGETHER_MB / (workers + 1)));
  return againWithoutTable(() =>
    onConnection(database, (client) =>
      transact(
        client,
        async (tx) => {
          // Before the snapshot. Otherwise a day that moves into the archive between the snapshot and the scan would be
          // in neither: the snapshot's manifest lacks the file, and a scan never sees a dropped partition.
          await tx.execute(sql`lock table only ${wafEvents} in access share mode`);
          await tx.execute(sql`
            select set_config('jit', 'off', true), set_config('work_mem', ${`${memory}MB`}, true),
              set_config('hash_mem_multiplier', '1', true),
              set_config('max_parallel_workers_per_gather', ${String(workers)}, true),
              set_config('enable_partitionwise_aggregate', 'on', true)`);
          return run(tx, client);
        },
        { config: { isolationLevel: "repeatable read", accessMode: "read only" } },
      ),
    ),
  );
}

/** Does the same for a search that ends when the signal aborts, with the time limit of one statement for all of its statements. */
export function inSearchView<T>(
  queries: Database,
  signal: AbortSignal,
  run: (tx: Queryable, client: pg.PoolClient) => Promise<T>,
): Promise<T> {
  return runCancellable(queries, signal, (database) => inSearchTransaction(database, run));
}

/** Once more where retention dropped a day that the search had seen a moment before: then it sees none. */
async function againWithoutTable<T>(search: () => Promise<T>): Promise<T> {
  try {
    return await search();
  } catch (thrown) {
    if (readSqlState(thrown) !== NO_TABLE) throw thrown;
    return search();
  }
}
