import { type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import { formatIso } from "#lib/format.ts";
import { columnOf, type SearchColumn, toColumnSql, toOlderSpelling } from "#model/search-columns.ts";
import type { Span } from "#model/span.ts";
import { wafEvents } from "../schema/waf-events.ts";
import type { EventQuery, SearchClause, SearchTest } from "./search-query.ts";

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
