import { and, eq, isNull, type SQL, type SQLWrapper, sql } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";
import type { Span } from "#model/horizon.ts";
import type { Database, Queryable } from "../client.ts";
import { epochMs, names } from "../postgres/terms.ts";
import { inTransaction } from "../postgres/transaction.ts";
import { advice, alerts, alertTransitions, exclusions, notes, silences } from "../schema/alerts.ts";
import { eventRevisions as revisions } from "../schema/events.ts";
import { channelStates, notifications } from "../schema/notifications.ts";
import { savedViews } from "../schema/people.ts";
import { reviewPlans } from "../schema/rules.ts";
import { knownSources } from "../schema/sources.ts";
import { customConditions, spikes, verdicts } from "../schema/spikes.ts";

const ROWS_PER_TRANSACTION = 200;

interface DerivedTable {
  readonly table: PgTable;
  /** Left out for copies of what is counted elsewhere, and for texts that are about no event. */
  readonly counted?: keyof DerivedCounts;
  readonly key: readonly PgColumn[];
  readonly json: readonly PgColumn[];
  readonly text: readonly PgColumn[];
  /** When the row was over, which is the day of its data. */
  readonly over: SQLWrapper;
  /** The first and last time at which the row was written. */
  readonly written: readonly [SQLWrapper, SQLWrapper];
  /** Left out for a table of all zones. */
  readonly isZone?: (zoneId: number) => SQL;
}

const transitionAt = sql`coalesce(to_timestamp((${alertTransitions.entry} ->> 'at')::float8 / 1000),
  (select ${alerts.firedAt} from ${alerts} where ${alerts.id} = ${alertTransitions.alertId}))`;
const ofAlert = (alertId: PgColumn) => (zoneId: number) =>
  sql`${alertId} in (select ${alerts.id} from ${alerts} where ${alerts.zoneId} = ${zoneId})`;

/** Every table outside the events that may repeat an address. */
const TABLES: readonly DerivedTable[] = [
  {
    table: spikes,
    counted: "spikes",
    key: [spikes.id],
    json: [spikes.evidence, spikes.sources, spikes.resolvedAttackers, spikes.condition],
    text: [],
    over: spikes.closedAt,
    // An open spike keeps the evidence of its strongest minute.
    written: [sql`(${spikes.evidence} ->> 'from')::timestamptz`, spikes.judgedThrough],
    isZone: (zoneId) => eq(spikes.zoneId, zoneId),
  },
  {
    table: verdicts,
    key: [verdicts.spikeId, verdicts.look],
    json: [verdicts.verdict],
    text: [],
    over: verdicts.judgedAt,
    written: [verdicts.judgedAt, verdicts.judgedAt],
    isZone: (zoneId) => eq(verdicts.zoneId, zoneId),
  },
  {
    table: alerts,
    counted: "alerts",
    key: [alerts.id],
    json: [alerts.transitions, alerts.details],
    text: [alerts.acknowledgedBy],
    over: alerts.resolvedAt,
    written: [alerts.firedAt, alerts.firedAt],
    isZone: (zoneId) => eq(alerts.zoneId, zoneId),
  },
  {
    table: alertTransitions,
    key: [alertTransitions.id],
    json: [alertTransitions.entry],
    text: [alertTransitions.headline],
    over: sql`(select ${alerts.resolvedAt} from ${alerts} where ${alerts.id} = ${alertTransitions.alertId})`,
    written: [transitionAt, transitionAt],
    isZone: ofAlert(alertTransitions.alertId),
  },
  {
    table: notifications,
    counted: "notifications",
    key: [notifications.id],
    json: [notifications.content],
    text: [notifications.lastError],
    // For an undeliverable message, next_attempt_at is when the service gave up.
    over: sql`coalesce(${notifications.deliveredAt}, ${notifications.nextAttemptAt})`,
    written: [notifications.createdAt, notifications.createdAt],
    isZone: ofAlert(notifications.alertId),
  },
  {
    table: advice,
    counted: "advice",
    key: [advice.askedAt, advice.zoneId, advice.ruleId],
    json: [],
    text: [advice.text],
    over: advice.askedAt,
    written: [advice.askedAt, advice.askedAt],
    isZone: (zoneId) => eq(advice.zoneId, zoneId),
  },
  {
    table: silences,
    counted: "silences",
    key: [silences.id],
    json: [silences.matchers],
    text: [silences.reason, silences.createdBy],
    over: silences.expiresAt,
    written: [silences.createdAt, silences.createdAt],
  },
  {
    table: revisions,
    key: [revisions.zoneId, revisions.occurredAt, revisions.logId, revisions.field, revisions.seenAt],
    json: [],
    text: [revisions.before, revisions.after],
    over: revisions.occurredAt,
    written: [revisions.occurredAt, revisions.occurredAt],
    isZone: (zoneId) => eq(revisions.zoneId, zoneId),
  },
  {
    table: channelStates,
    key: [channelStates.channel],
    json: [],
    text: [channelStates.lastError],
    over: channelStates.openedAt,
    written: [channelStates.openedAt, sql`'infinity'`],
  },
  {
    table: savedViews,
    key: [savedViews.id],
    json: [],
    text: [savedViews.name, savedViews.state, savedViews.createdBy],
    over: savedViews.changedAt,
    written: [savedViews.createdAt, savedViews.changedAt],
  },
  {
    table: notes,
    key: [notes.id],
    json: [],
    text: [notes.text, notes.link, notes.createdBy],
    over: notes.at,
    written: [notes.createdAt, notes.createdAt],
  },
  {
    table: knownSources,
    key: [knownSources.id],
    json: [],
    text: [knownSources.pattern, knownSources.reason, knownSources.createdBy],
    over: knownSources.expiresAt,
    written: [knownSources.createdAt, knownSources.createdAt],
  },
  {
    table: customConditions,
    key: [customConditions.id],
    json: [customConditions.condition],
    text: [customConditions.createdBy],
    over: customConditions.createdAt,
    written: [customConditions.createdAt, customConditions.createdAt],
  },
  {
    table: exclusions,
    key: [exclusions.id],
    json: [exclusions.clause],
    text: [],
    over: exclusions.proposedAt,
    written: [exclusions.proposedAt, exclusions.proposedAt],
    isZone: (zoneId) => eq(exclusions.zoneId, zoneId),
  },
  {
    table: reviewPlans,
    key: [reviewPlans.id],
    json: [reviewPlans.plan, reviewPlans.watch],
    text: [reviewPlans.name, reviewPlans.note, reviewPlans.createdBy],
    over: reviewPlans.createdAt,
    written: [reviewPlans.createdAt, sql`'infinity'`],
    isZone: (zoneId) => eq(reviewPlans.zoneId, zoneId),
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
 * error, verdicts, saved views, notes, plans, known sources, conditions and exclusions are not counted.
 */
export type DerivedCounts = Readonly<
  Record<"spikes" | "alerts" | "notifications" | "advice" | "silences", number>
>;

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
    if (scope.isUndelivered === true && table.table !== notifications) continue;
    let after: readonly string[] | null = null;
    do {
      const behind: readonly string[] | null = after;
      const page: RewrittenPage = await inTransaction(database, ({ tx }) =>
        rewritePage(tx, table, { scope, behind }, rewrite),
      );
      if (table.counted !== undefined) counts[table.counted] += page.changed;
      after = page.last;
    } while (after !== null);
  }
  return counts;
}

/** Returns when the first stored spike, alert, message, advice or silence was over; epoch ms, null if none was. */
export async function readFirstOver(db: Queryable): Promise<number | null> {
  const first = TABLES.filter(({ counted }) => counted !== undefined).map(
    ({ table, over }) => sql`(select min(${over}) from ${table})`,
  );
  const { rows } = await db.execute<{ at: number | null }>(
    sql`select ${epochMs(sql`least(${sql.join(first, sql`, `)})`)} as at`,
  );
  return rows[0]?.at ?? null;
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
      ...table.json.map((column) => ({ column, before: row[column.name], after: json(row[column.name]) })),
      ...table.text.map((column) => {
        const before = row[column.name];
        return { column, before, after: typeof before === "string" ? text(before) : before };
      }),
    ].filter(({ before, after }) => before !== after);
    if (changes.length === 0) continue;
    changed++;
    if (!write) continue;
    const set = changes.map(({ column, after }) => sql`${names(column)} = ${sql.param(after, column)}`);
    await tx.execute(
      sql`update ${table.table} set ${sql.join(set, sql`, `)} where ${keyOf(table)} = ${valueOf(table, row.key)}`,
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
  const { over, written, json, text, key } = table;
  const [first, last] = written;
  const conditions = [
    zoneId === null ? undefined : table.isZone?.(zoneId),
    overIn === undefined
      ? undefined
      : sql`${over} >= ${new Date(overIn.from)} and ${over} < ${new Date(overIn.to)}`,
    writtenIn === undefined
      ? undefined
      : sql`${first} < ${new Date(writtenIn.to)} and ${last} >= ${new Date(writtenIn.from)}`,
    isUndelivered ? isNull(notifications.deliveredAt) : undefined,
    behind === null ? undefined : sql`${keyOf(table)} > ${valueOf(table, behind)}`,
  ];
  const columns = [...json, ...text].map((column) => sql`${column} as ${sql.identifier(column.name)}`);
  const keys = key.map((column) => sql`${column}::text`);
  const { rows } = await tx.execute<Row & Record<string, unknown>>(sql`
    select array[${list(keys)}] as key, ${list(columns)} from ${table.table}
    where ${and(sql`true`, ...conditions)}
    order by ${list(key)} limit ${ROWS_PER_TRANSACTION} for update`);
  return rows;
}

function keyOf({ key }: DerivedTable): SQL {
  return sql`(${list(key)})`;
}

function valueOf({ key }: DerivedTable, values: readonly string[]): SQL {
  return sql`(${list(key.map((column, index) => sql`${values[index] ?? null}::${sql.raw(column.getSQLType())}`))})`;
}

function list(terms: readonly SQLWrapper[]): SQL {
  return sql.join([...terms], sql`, `);
}
