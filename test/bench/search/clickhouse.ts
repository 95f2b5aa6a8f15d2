import { createRequire } from "node:module";
import path from "node:path";
import type { Search } from "#archive/rules/query/plan-search.ts";
import type { Filter } from "#model/fields.ts";
import { DIMENSIONS, type Dimension } from "#model/kinds.ts";
import type { Answer, AnsweredGroup } from "./answer.ts";

/** The package `chdb`, ClickHouse as a library. */
interface Chdb {
  query(text: string, format: string): string;
}

type Row = Readonly<Record<string, unknown>>;

export interface ClickHouse {
  readonly version: string;
  ask(zoneId: number, search: Search): Answer;
}

const COLUMNS: Partial<Record<Dimension, string>> = { ruleId: "rule_id" };
const columnOf = (name: string) => COLUMNS[name as Dimension] ?? name;
const FREE_TEXT = ["ip", "rule_id", "url", "ua", "message"];

/** Opens the library that was installed into a folder: it is too large for the packages of this repository. */
export function openClickHouse(installedIn: string, source: (zoneId: number) => string): ClickHouse {
  const chdb = createRequire(path.join(installedIn, "index.js"))("chdb") as Chdb;
  const read = (text: string) =>
    chdb
      .query(`${text} settings output_format_json_quote_64bit_integers = 0`, "JSONEachRow")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as Row);
  return {
    version: String(read("select version() as v")[0]?.["v"]),
    ask(zoneId, search) {
      const from = `from ${source(zoneId)} where ${toCondition(search)}`;
      const { page, pageSize } = search;
      const limit = `limit ${pageSize} offset ${page * pageSize}`;
      if (search.groupBy.length > 0) return askGroups(read, search, from, limit);
      const columns = DIMENSIONS.map((name) => `${columnOf(name)} as "${name}"`).join(", ");
      const order = "order by occurred_at desc, log_id desc";
      const rows = read(`select ${AT("occurred_at")} as at, log_id, ${columns} ${from} ${order} ${limit}`);
      return {
        total: Number(read(`select count() as n ${from}`)[0]?.["n"]),
        rows: rows.map(({ at, log_id, ...fields }) => ({
          logId: String(log_id),
          at: Number(at),
          fields: Object.fromEntries(DIMENSIONS.map((name) => [name, String(fields[name])])),
        })),
      };
    },
  };
}

const AT = (time: string) => `toUnixTimestamp64Milli(${time})`;

function toCondition({ from, to, query, filters }: Search): string {
  const contains = (column: string, value: string) => `${column} ilike ${quote(`%${escapeLike(value)}%`)}`;
  const tests: Record<Filter["op"], (column: string, value: string) => string> = {
    eq: (column, value) => `${column} = ${quote(value)}`,
    in: (column, value) => `${column} = ${quote(value)}`,
    contains,
    wildcard: (column, value) => `${column} ilike ${quote(escapeLike(value).replaceAll("*", "%"))}`,
    cidr: (column, value) =>
      `isIPAddressInRange(if(isIPv4String(${column}), ${column}, '::'), ${quote(value)})`,
  };
  const clauses = filters.map(
    ({ field, op, value }) => `(${value.map((one) => tests[op](columnOf(field), one)).join(" or ")})`,
  );
  if (query !== "") clauses.push(`(${FREE_TEXT.map((column) => contains(column, query)).join(" or ")})`);
  const time = [`${AT("occurred_at")} >= ${from}`, `${AT("occurred_at")} < ${to}`];
  return [...time, ...clauses].join(" and ");
}

function askGroups(read: (text: string) => Row[], search: Search, from: string, limit: string): Answer {
  const keys = search.groupBy.map(columnOf);
  const by = keys.join(", ");
  const top = (column: string) =>
    `arraySort(e -> (-e.2, e.1), arrayZip(sumMap([${column}], [1]).1, sumMap([${column}], [1]).2))[1].1`;
  const bucket = `intDiv((${AT("occurred_at")} - ${search.from}) * ${search.buckets}, ${search.to - search.from})`;
  const spark = search.buckets > 0 ? `, sumMap([toInt64(${bucket})], [1]) as spark` : "";
  const actions = ["block", "challenge", "log"].map((word) => `countIf(action = '${word}') as n_${word}`);
  const rows =
    read(`select ${by}, count() as n, min(${AT("occurred_at")}) as first_at, max(${AT("occurred_at")}) as last_at,
    ${actions.join(", ")}, ${top("country")} as top_country, ${top("asn")} as top_asn,
    arrayStringConcat(arraySort(groupUniqArray(feature)), ',') as features,
    arrayStringConcat(arraySort(groupUniqArray(rule_id)), ',') as rules, count() over () as total ${spark}
    ${from} group by ${by} order by n desc, ${by} ${limit}`);
  return { total: Number(rows[0]?.["total"] ?? 0), groups: rows.map((row) => toGroup(row, search, keys)) };
}

function toGroup(row: Row, search: Search, keys: readonly string[]): AnsweredGroup {
  const [places = [], counts = []] = (row["spark"] ?? []) as number[][];
  const sparkline = Array.from({ length: search.buckets }, () => 0);
  places.forEach((place, index) => {
    sparkline[place] = counts[index] ?? 0;
  });
  return {
    key: Object.fromEntries(search.groupBy.map((name, index) => [name, String(row[keys[index] ?? ""])])),
    count: Number(row["n"]),
    firstSeen: Number(row["first_at"]),
    lastSeen: Number(row["last_at"]),
    context: {
      country: String(row["top_country"]),
      asn: String(row["top_asn"]),
      blocked: Number(row["n_block"]),
      challenged: Number(row["n_challenge"]),
      logged: Number(row["n_log"]),
      features: String(row["features"]),
      ruleIds: String(row["rules"]),
    },
    ...(search.buckets > 0 ? { sparkline } : {}),
  };
}

function escapeLike(text: string): string {
  return text.replaceAll(/[\\%_]/g, String.raw`\$&`);
}

function quote(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
