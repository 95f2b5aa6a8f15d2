/** A search as a condition of SQL, and the transaction in which it runs. */
import { type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type pg from "pg";
import { readSqlState } from "#lib/errors.ts";
import { formatIso } from "#lib/format.ts";
import { columnOf, type SearchColumn, toColumnSql, toOlderSpelling } from "#model/fields.ts";
import type { Span } from "#model/horizon.ts";
import { type Database, onConnection, type Queryable } from "../client.ts";
import { transact } from "../postgres/transaction.ts";
import { wafEvents } from "../schema/events.ts";

const e = alias(wafEvents, "e");

/** Returns a moment as a parameter. A time outside 1970 to 9999, when nothing is stored, becomes the nearer end. */
export function toMoment(ms: number): SQL {
  return sql`${formatIso(ms)}::timestamptz`;
}

/**
 * Returns the condition for the events `e` of waf_events that a query asks for, of its whole window or of parts of it. The
 * zone and the time come first: they decide which partitions are read. Every text of the caller's is a parameter.
 */
export function toCondition(zoneId: number, query: EventQuery, spans: readonly Span[] = [query]): SQL {
  const times = spans.map(
    ({ from, to }) => sql`(${e.occurredAt} >= ${toMoment(from)} and ${e.occurredAt} < ${toMoment(to)})`,
  );
  return and([sql`${e.zoneId} = ${zoneId}::integer`, or(times), ...query.clauses.map(toClause)]);
}

/** A clause over `e`, of any table that has these columns. */
function toClause({ columns, tests, isNegated }: SearchClause): SQL {
  const passes = or(columns.flatMap((column) => tests.map((test) => toTest(column, test))));
  // A test of an absent text is neither true nor false.
  return isNegated === true ? sql`(${passes}) is not true` : passes;
}

function toTest(column: SearchColumn, test: SearchTest): SQL {
  const written = toColumnSql(columnOf(column), "e.");
  const passes = toTextTest(column, sql.raw(written), test);
  const older = toOlderSpelling(column, written, test);
  if (older === null) return passes;
  return or([passes, and([sql.raw(older.isOlder), toTextTest(column, sql.raw(older.plain), test)])]);
}

function toTextTest(column: SearchColumn, text: SQL, test: SearchTest): SQL {
  switch (test.kind) {
    case "anything":
      return sql`true`;
    case "equals":
      return and([toEquals(text, test.texts), ...(column === "path" ? [mayHavePath(test.texts)] : [])]);
    case "within":
      return or(test.networks.map((network) => toWithin(text, network)));
    case "withinAny":
      return sql`event_network(${text}) <<= any(${sql.param([...test.networks])}::inet[])`;
    case "like":
      return toLike(text, test);
    case "likeAny":
      return toLikeAny(text, test);
    default:
      return test satisfies never;
  }
}

function toEquals(text: SQL, texts: readonly string[]): SQL {
  const known = texts.filter((wanted) => wanted !== "");
  const tests: SQL[] = [];
  if (known.length === 1) tests.push(sql`${text} = ${known[0]}`);
  else if (known.length > 1) tests.push(sql`${text} = any(${sql.param(known)}::text[])`);
  if (known.length < texts.length) tests.push(sql`${text} is null`, sql`${text} = ''`);
  return or(tests);
}

/** Rules most URLs out for a fraction of what finding their path costs. Only the path / can be missing in its URL. */
function mayHavePath(texts: readonly string[]): SQL {
  const [path = ""] = texts;
  return texts.length === 1 && path.length > 1 ? sql`strpos(${e.url}, ${path}) > 0` : sql`true`;
}

/** Ignores case. The "C" collation folds ASCII letters only, whatever the database's locale; others are folded by name. */
function toLike(text: SQL, { pattern, foldFrom, foldTo }: Extract<SearchTest, { kind: "like" }>): SQL {
  return sql`${fold(text, foldFrom, foldTo)} like ${pattern}`;
}

function toLikeAny(text: SQL, { patterns, foldFrom, foldTo }: Extract<SearchTest, { kind: "likeAny" }>): SQL {
  return sql`${fold(text, foldFrom, foldTo)} like any(${sql.param([...patterns])}::text[])`;
}

function fold(text: SQL, foldFrom: string, foldTo: string): SQL {
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

export function and(conditions: readonly SQL[]): SQL {
  return sql`(${sql.join([...conditions], sql` and `)})`;
}

/** Returns `false` for an empty list: no test means no match. */
function or(conditions: readonly SQL[]): SQL {
  return conditions.length === 0 ? sql`false` : sql`(${sql.join([...conditions], sql` or `)})`;
}

/** Test of one text; the stage `search` says how each form comes about. A null counts as ''. */
type SearchTest =
  | { readonly kind: "anything" }
  | { readonly kind: "equals"; readonly texts: readonly string[] }
  | { readonly kind: "within" | "withinAny"; readonly networks: readonly string[] }
  | {
      readonly kind: "like";
      readonly pattern: string;
      readonly foldFrom: string;
      readonly foldTo: string;
    }
  | {
      readonly kind: "likeAny";
      readonly patterns: readonly string[];
      readonly foldFrom: string;
      readonly foldTo: string;
    };

/** Some column passes some test; negated, none does. */
export interface SearchClause {
  readonly isNegated?: true;
  readonly columns: readonly SearchColumn[];
  readonly tests: readonly SearchTest[];
}

/** Events in [from, to), epoch ms, for which every clause holds. */
export interface EventQuery {
  readonly from: number;
  readonly to: number;
  readonly clauses: readonly SearchClause[];
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

/** Once more where retention dropped a day that the search had seen a moment before: then it sees none. */
async function againWithoutTable<T>(search: () => Promise<T>): Promise<T> {
  try {
    return await search();
  } catch (thrown) {
    if (readSqlState(thrown) !== NO_TABLE) throw thrown;
    return search();
  }
}
