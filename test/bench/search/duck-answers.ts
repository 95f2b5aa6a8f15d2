import type { Search } from "#archive/rules/query/plan-search.ts";
import type { Filter } from "#model/fields.ts";
import type { Dimension } from "#model/kinds.ts";
import type { Answer, AnsweredGroup, AnsweredRow } from "./answer.ts";
import type { Duck, DuckRow } from "./duck.ts";

const COLUMNS: Record<Dimension, string> = {
  feature: "feature",
  ruleId: "rule_id",
  ip: "ip",
  ja4: "ja4",
  ua: "ua",
  url: "url",
  asn: "asn",
  country: "country",
  action: "action",
};
const DIMENSIONS = Object.keys(COLUMNS) as Dimension[];
const FREE_TEXT = ["ip", "rule_id", "url", "ua", "message"];

/** How case-insensitive text is looked for: which is faster depends on the text. */
type TextForm = "ilike" | "lower";
/** How the groups' context is counted: in one pass with a histogram per group, or once more for the page's groups alone. */
type GroupForm = "one-pass" | "two-pass";
/** Whether a page's rows are read with the sort, or by their number after it. */
type RowForm = "with-sort" | "after-sort";
export interface DuckForm {
  readonly text: TextForm;
  readonly groups: GroupForm;
  readonly rows: RowForm;
}

/** Every way to ask DuckDB the same: the benchmark takes its fastest for each question. */
export function listForms({ query, filters, groupBy }: Search): DuckForm[] {
  const isText = query !== "" || filters.some(({ op }) => op === "contains");
  const texts: TextForm[] = isText ? ["ilike", "lower"] : ["ilike"];
  const isGrouped = groupBy.length > 0;
  return texts.flatMap((text): DuckForm[] =>
    isGrouped
      ? (["one-pass", "two-pass"] as const).map((groups) => ({ text, groups, rows: "with-sort" }))
      : (["with-sort", "after-sort"] as const).map((rows) => ({ text, groups: "two-pass", rows })),
  );
}

/** The same answer as the archive's, from DuckDB. */
export async function askDuck(duck: Duck, zoneId: number, search: Search, form: DuckForm): Promise<Answer> {
  const where = toWhere(zoneId, search, form.text);
  if (search.groupBy.length > 0) return askGroups(duck, search, where, form.groups);
  const { page, pageSize } = search;
  const order = "order by occurred_at desc, log_id desc";
  const limit = `limit ${pageSize} offset ${page * pageSize}`;
  const columns = `epoch_ms(occurred_at) as at, log_id, ${join(DIMENSIONS.map((name) => COLUMNS[name]))}`;
  const sorted =
    form.rows === "with-sort"
      ? `${where} ${order} ${limit}`
      : `where rowid in (select rowid from waf_events ${where} ${order} ${limit}) ${order}`;
  const rows = await duck.query(`select ${columns} from waf_events ${sorted}`);
  const [counted] = await duck.query(`select count(*) as total from waf_events ${where}`);
  return { total: Number(counted?.["total"]), rows: rows.map(toRow) };
}

function toWhere(zoneId: number, search: Search, form: TextForm): string {
  const contains = (column: string, text: string) =>
    form === "ilike"
      ? `${column} ilike ${quote(`%${text}%`)}`
      : `contains(lower(${column}), ${quote(text.toLowerCase())})`;
  const tests: Record<Filter["op"], (column: string, value: string) => string> = {
    eq: (column, value) => `${column} = ${quote(value)}`,
    in: (column, value) => `${column} = ${quote(value)}`,
    contains,
    wildcard: (column, value) => `${column} ilike ${quote(value.replaceAll("*", "%"))}`,
    cidr: toPrefixTest,
  };
  const clauses = search.filters.map(({ field, op, value }) =>
    value.map((one) => tests[op](COLUMNS[field as Dimension], one)).join(" or "),
  );
  if (search.query !== "")
    clauses.push(FREE_TEXT.map((column) => contains(column, search.query)).join(" or "));
  const time = `zone_id = ${zoneId} and occurred_at >= make_timestamp_ms(${search.from}) and occurred_at < make_timestamp_ms(${search.to})`;
  return `where ${[time, ...clauses.map((clause) => `(${clause})`)].join(" and ")}`;
}

/** A network on an octet's boundary is a prefix of the text, which is the fastest that DuckDB can be asked. */
function toPrefixTest(column: string, network: string): string {
  const [address = "", bits] = network.split("/");
  if (bits !== "8" && bits !== "16" && bits !== "24")
    throw new RangeError(`${network} is on no octet's boundary`);
  return `starts_with(${column}, ${quote(
    `${address
      .split(".")
      .slice(0, Number(bits) / 8)
      .join(".")}.`,
  )})`;
}

async function askGroups(duck: Duck, search: Search, where: string, form: GroupForm): Promise<Answer> {
  const keys = search.groupBy.map((name) => COLUMNS[name as Dimension]);
  const text = form === "one-pass" ? onePass(search, where, keys) : twoPass(search, where, keys);
  const rows = await duck.query(text);
  const total = Number(rows[0]?.["groups"] ?? 0);
  return { total, groups: rows.map((row) => toGroup(row, search, keys)) };
}

const COUNTS = `count(*) as n, epoch_ms(min(occurred_at)) as first_at, epoch_ms(max(occurred_at)) as last_at,
  count(*) filter (action = 'block') as blocked, count(*) filter (action = 'challenge') as challenged, count(*) filter (action = 'log') as logged`;

function bucketOf({ from, to, buckets }: Search): string {
  return `(epoch_ms(occurred_at) - ${from}) * ${buckets} // ${to - from}`;
}

function toPage({ page, pageSize }: Search, keys: readonly string[]): string {
  return `order by n desc, ${join(keys)} limit ${pageSize} offset ${page * pageSize}`;
}

function onePass(search: Search, where: string, keys: readonly string[]): string {
  const mostCommon = (column: string) => `histogram(${column}) as ${column}_counts`;
  const spark = search.buckets > 0 ? `, histogram(${bucketOf(search)}) as spark` : "";
  const pick = (column: string) =>
    `list_sort(list_transform(map_entries(${column}_counts), lambda e: {n: -e.value::bigint, k: e.key}))[1].k as top_${column}`;
  return `with g as (select ${join(keys)}, ${COUNTS}, ${join(["country", "asn"].map(mostCommon))},
      list_distinct(list(distinct feature)) as features, list(distinct rule_id) as rules ${spark} from waf_events ${where} group by ${join(keys)}),
    p as (select *, count(*) over () as groups from g ${toPage(search, keys)})
    select ${join(keys.map((key) => `${key} as "key ${key}"`))}, n, first_at, last_at, blocked, challenged, logged, groups,
      array_to_string(list_sort(features), ',') as features, array_to_string(list_sort(rules), ',') as rules,
      ${join(["country", "asn"].map(pick))} ${search.buckets > 0 ? ", map_keys(spark) as spark_at, map_values(spark) as spark_n" : ""} from p ${toPage({ ...search, page: 0 }, keys)}`;
}

function twoPass(search: Search, where: string, keys: readonly string[]): string {
  const mostCommon = (column: string) =>
    `${column}_top as (select ${join(keys)}, arg_min(v, (-m, v)) as top_${column} from (select ${join(keys)}, ${column} as v, count(*) as m from e group by all) group by ${join(keys)})`;
  const spark =
    search.buckets > 0
      ? `, s as (select ${join(keys)}, list(b order by b) as spark_at, list(m order by b) as spark_n from (select ${join(keys)}, ${bucketOf(search)} as b, count(*) as m from e group by all) group by ${join(keys)})`
      : "";
  const columns = [...new Set([...keys, "occurred_at", "country", "asn", "action", "feature", "rule_id"])];
  const joins = ["country_top", "asn_top", "t", ...(search.buckets > 0 ? ["s"] : [])].map(
    (name) => `join ${name} using (${join(keys)})`,
  );
  return `with c as (select ${join(keys)}, ${COUNTS} from waf_events ${where} group by ${join(keys)}),
    p as (select *, count(*) over () as groups from c ${toPage(search, keys)}),
    e as materialized (select ${join(columns)} from waf_events semi join p using (${join(keys)}) ${where}),
    ${join(["country", "asn"].map(mostCommon))},
    t as (select ${join(keys)}, array_to_string(list_sort(list(distinct feature)), ',') as features, array_to_string(list_sort(list(distinct rule_id)), ',') as rules from e group by ${join(keys)})
    ${spark}
    select ${join(keys.map((key) => `p.${key} as "key ${key}"`))}, * exclude (${join(keys)}) from p ${joins.join(" ")} ${toPage({ ...search, page: 0 }, keys)}`;
}

function toGroup(row: DuckRow, search: Search, keys: readonly string[]): AnsweredGroup {
  const number = (name: string) => Number(row[name]);
  const sparkline = Array.from({ length: search.buckets }, () => 0);
  const counts = row["spark_n"] as readonly unknown[] | undefined;
  (row["spark_at"] as readonly unknown[] | undefined)?.forEach((bucket, index) => {
    sparkline[Number(bucket)] = Number(counts?.[index]);
  });
  return {
    key: Object.fromEntries(search.groupBy.map((name, index) => [name, String(row[`key ${keys[index]}`])])),
    count: number("n"),
    firstSeen: number("first_at"),
    lastSeen: number("last_at"),
    context: {
      country: String(row["top_country"]),
      asn: String(row["top_asn"]),
      blocked: number("blocked"),
      challenged: number("challenged"),
      logged: number("logged"),
      features: String(row["features"]),
      ruleIds: String(row["rules"]),
    },
    ...(search.buckets > 0 ? { sparkline } : {}),
  };
}

function toRow(row: DuckRow): AnsweredRow {
  return {
    logId: String(row["log_id"]),
    at: Number(row["at"]),
    fields: Object.fromEntries(DIMENSIONS.map((name) => [name, String(row[COLUMNS[name]])])),
  };
}

function join(parts: readonly string[]): string {
  return parts.join(", ");
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
