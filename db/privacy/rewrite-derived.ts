import { type SQL, sql } from "drizzle-orm";
import type { Span } from "#model/span.ts";
import type { Database, Queryable } from "../client.ts";
import { inTransaction } from "../postgres/transaction.ts";

const ROWS_PER_TRANSACTION = 200;

type CountedTable = "spikes" | "alerts" | "notifications" | "advice" | "silences";

/** Copies of what is counted elsewhere, and texts that are about no event. */
const UNCOUNTED = [
  "alert_transitions",
  "channel_states",
  "saved_views",
  "known_sources",
  "event_revisions",
] as const;
type UncountedTable = (typeof UNCOUNTED)[number];

interface DerivedTable {
  readonly name: CountedTable | UncountedTable;
  /** The key columns and their types. */
  readonly key: readonly (readonly [string, string])[];
  readonly json: readonly string[];
  readonly text: readonly string[];
  /** SQL for when the row was over, which is the day of its data. */
  readonly over: string;
  /** SQL for the first and last time at which the row was written. */
  readonly written: readonly [string, string];
  readonly isZone: (zoneId: number) => SQL;
}

const ofZone = (zoneId: number) => sql`zone_id = ${zoneId}`;
const ID = [["id", "bigint"]] as const;
const TRANSITION_AT = `coalesce(to_timestamp((entry ->> 'at')::float8 / 1000),
  (select fired_at from alerts where alerts.id = alert_id))`;

/** Every table outside the events that may repeat an address. */
const TABLES: readonly DerivedTable[] = [
  {
    name: "spikes",
    key: ID,
    json: ["evidence", "sources"],
    text: [],
    over: "closed_at",
    // An open spike keeps the evidence of its strongest minute.
    written: ["(evidence ->> 'from')::timestamptz", "judged_through"],
    isZone: ofZone,
  },
  {
    name: "alerts",
    key: ID,
    json: ["transitions", "details"],
    text: ["acknowledged_by"],
    over: "resolved_at",
    written: ["fired_at", "fired_at"],
    isZone: ofZone,
  },
  {
    name: "alert_transitions",
    key: ID,
    json: ["entry"],
    text: ["headline"],
    over: "(select resolved_at from alerts where alerts.id = alert_id)",
    written: [TRANSITION_AT, TRANSITION_AT],
    isZone: (zoneId) => sql`alert_id in (select id from alerts where ${ofZone(zoneId)})`,
  },
  {
    name: "notifications",
    key: ID,
    json: ["content"],
    text: ["last_error"],
    // For an undeliverable message, next_attempt_at is when the service gave up.
    over: "coalesce(delivered_at, next_attempt_at)",
    written: ["created_at", "created_at"],
    isZone: (zoneId) => sql`alert_id in (select id from alerts where ${ofZone(zoneId)})`,
  },
  {
    name: "advice",
    key: [
      ["asked_at", "timestamptz"],
      ["zone_id", "integer"],
      ["rule_id", "text"],
    ],
    json: [],
    text: ["text"],
    over: "asked_at",
    written: ["asked_at", "asked_at"],
    isZone: ofZone,
  },
  {
    name: "silences",
    key: ID,
    json: ["matchers"],
    text: ["reason", "created_by"],
    over: "expires_at",
    written: ["created_at", "created_at"],
    isZone: () => sql`true`,
  },
  {
    name: "event_revisions",
    key: [
      ["zone_id", "integer"],
      ["occurred_at", "timestamptz"],
      ["log_id", "text"],
      ["field", "text"],
      ["seen_at", "timestamptz"],
    ],
    json: [],
    text: ["before", "after"],
    over: "occurred_at",
    written: ["occurred_at", "occurred_at"],
    isZone: ofZone,
  },
  {
    name: "channel_states",
    key: [["channel", "text"]],
    json: [],
    text: ["last_error"],
    over: "opened_at",
    written: ["opened_at", "'infinity'"],
    isZone: () => sql`true`,
  },
  {
    name: "saved_views",
    key: ID,
    json: [],
    text: ["name", "state", "created_by"],
    over: "changed_at",
    written: ["created_at", "changed_at"],
    isZone: () => sql`true`,
  },
  {
    name: "known_sources",
    key: ID,
    json: [],
    text: ["pattern", "reason", "created_by"],
    over: "expires_at",
    written: ["created_at", "created_at"],
    isZone: () => sql`true`,
  },
];

export interface DerivedScope {
  /** Null: every zone. */
  readonly zoneId: number | null;
  /** Only rows that were over in this time, or written in it; all rows if neither is given. */
  readonly overIn?: Span;
  readonly writtenIn?: Span;
  /** Only messages that no channel has accepted. */
  readonly isUndelivered?: boolean;
}

export interface DerivedRewrite {
  /** `json` and `text` return their argument if nothing has to change. */
  readonly json: (value: unknown) => unknown;
  readonly text: (text: string) => string;
  /** True to write, false to only count. */
  readonly write: boolean;
}

/**
 * Number of rows by table. The feed's copy of an alert's transitions is counted with the alert. A channel's last
 * error, saved views and known sources are not counted.
 */
export type DerivedCounts = Readonly<Record<CountedTable, number>>;

/**
 * Rewrites the copies of event data in spikes, alerts, messages and advice. Returns how many rows of each were
 * changed.
 */
export async function rewriteDerived(
  database: Database,
  scope: DerivedScope,
  rewrite: DerivedRewrite,
): Promise<DerivedCounts> {
  const counts = { spikes: 0, alerts: 0, notifications: 0, advice: 0, silences: 0 };
  for (const table of TABLES) {
    if (scope.isUndelivered === true && table.name !== "notifications") continue;
    let after: readonly string[] | null = null;
    do {
      const behind: readonly string[] | null = after;
      const page: RewrittenPage = await inTransaction(database, ({ tx }) =>
        rewritePage(tx, table, { scope, behind }, rewrite),
      );
      if (isCounted(table.name)) counts[table.name] += page.changed;
      after = page.last;
    } while (after !== null);
  }
  return counts;
}

/** Returns when the first stored spike, alert, message, advice or silence was over; epoch ms, null if none was. */
export async function readFirstOver(db: Queryable): Promise<number | null> {
  const first = TABLES.filter(({ name }) => isCounted(name)).map(
    ({ name, over }) => sql`(select min(${sql.raw(over)}) from ${sql.identifier(name)})`,
  );
  const { rows } = await db.execute<{ at: number | null }>(
    sql`select (extract(epoch from least(${sql.join(first, sql`, `)})) * 1000)::float8 as at`,
  );
  return rows[0]?.at ?? null;
}

function isCounted(name: DerivedTable["name"]): name is CountedTable {
  return !(UNCOUNTED as readonly string[]).includes(name);
}

interface RewrittenPage {
  readonly changed: number;
  /** Key of the last row; null after the last page. */
  readonly last: readonly string[] | null;
}

type Row = { readonly key: readonly string[] } & Readonly<Record<string, unknown>>;

async function rewritePage(
  tx: Queryable,
  table: DerivedTable,
  { scope, behind }: { scope: DerivedScope; behind: readonly string[] | null },
  { json, text, write }: DerivedRewrite,
): Promise<RewrittenPage> {
  const rows = await readPage(tx, table, scope, behind);
  let changed = 0;
  for (const row of rows) {
    const changes = [
      ...table.json.map((name) => ({ name, before: row[name], after: json(row[name]), type: "jsonb" })),
      ...table.text.map((name) => {
        const before = row[name];
        return { name, before, after: typeof before === "string" ? text(before) : before, type: "text" };
      }),
    ].filter(({ before, after }) => before !== after);
    if (changes.length === 0) continue;
    changed++;
    if (!write) continue;
    const set = changes.map(({ name, after, type }) => {
      const value = type === "jsonb" ? JSON.stringify(after) : after;
      return sql`${sql.identifier(name)} = ${value}::${sql.raw(type)}`;
    });
    await tx.execute(
      sql`update ${sql.identifier(table.name)} set ${sql.join(set, sql`, `)} where ${keyOf(table)} = ${valueOf(table, row.key)}`,
    );
  }
  return { changed, last: rows.length < ROWS_PER_TRANSACTION ? null : (rows.at(-1)?.key ?? null) };
}

async function readPage(
  tx: Queryable,
  table: DerivedTable,
  { zoneId, overIn, writtenIn, isUndelivered = false }: DerivedScope,
  behind: readonly string[] | null,
): Promise<Row[]> {
  const over = sql.raw(table.over);
  const [first, last] = table.written;
  const conditions = [
    zoneId === null ? sql`true` : table.isZone(zoneId),
    overIn === undefined
      ? sql`true`
      : sql`${over} >= ${new Date(overIn.from)} and ${over} < ${new Date(overIn.to)}`,
    writtenIn === undefined
      ? sql`true`
      : sql`${sql.raw(first)} < ${new Date(writtenIn.to)} and ${sql.raw(last)} >= ${new Date(writtenIn.from)}`,
    isUndelivered ? sql`delivered_at is null` : sql`true`,
    behind === null ? sql`true` : sql`${keyOf(table)} > ${valueOf(table, behind)}`,
  ];
  const columns = sql.raw([...table.json, ...table.text].join(", "));
  const key = sql.raw(table.key.map(([name]) => `${name}::text`).join(", "));
  const { rows } = await tx.execute<Row & Record<string, unknown>>(sql`
    select array[${key}] as key, ${columns} from ${sql.identifier(table.name)}
    where ${sql.join(conditions, sql` and `)}
    order by ${sql.raw(table.key.map(([name]) => name).join(", "))} limit ${ROWS_PER_TRANSACTION} for update`);
  return rows;
}

function keyOf({ key }: DerivedTable): SQL {
  return sql.raw(`(${key.map(([name]) => name).join(", ")})`);
}

function valueOf({ key }: DerivedTable, values: readonly string[]): SQL {
  const parts = key.map(([, type], index) => sql`${values[index] ?? null}::${sql.raw(type)}`);
  return sql`(${sql.join(parts, sql`, `)})`;
}
