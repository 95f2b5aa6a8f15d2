import { type SQL, sql } from "drizzle-orm";
import { toSnakeCase } from "drizzle-orm/casing";
import { alias } from "drizzle-orm/pg-core";
import { from as copyFrom } from "pg-copy-streams";
import { readSqlState } from "#lib/errors.ts";
import { startOfDay } from "#model/horizon.ts";
import type { FactColumns } from "#model/request-facts.ts";
import { type EventKey, spanOf, type WafEvent } from "#model/waf-event.ts";
import { holdDays } from "../archive/day-source.ts";
import type { Database, Queryable } from "../client.ts";
import { createTimeWriter, toCopyField } from "../postgres/copy.ts";
import { assertFence } from "../postgres/leases.ts";
import { epochMs, names } from "../postgres/terms.ts";
import { inOneTrip, inTransaction, type Transaction } from "../postgres/transaction.ts";
import { LATE_EVENT, REOPENED_FOR_MS, reopening } from "../proof/reopen-hours.ts";
import { coverageWindows as w } from "../schema/coverage.ts";
import { eventAliases as a, wafEvents } from "../schema/events.ts";
import { learnFacts, markStale } from "./event-rows.ts";
import {
  blankStaged,
  type Cover,
  enterEmptied,
  type GuardedPage,
  guardOthers,
  lastUntil,
  planCover,
  takeStaged,
} from "./guard-page.ts";
import { settleStagedDoubles } from "./merge-doubles.ts";
import { quarantineEntries } from "./quarantine.ts";
import { insertRawBlocks, setAsideArchived, setAsideEvent, WAITS_FOR_KEY } from "./raw-blocks.ts";
import { fillStatement, reviseEvents } from "./revise-events.ts";

/** Staged events: a temporary table with the columns of `waf_events`. */
const s = alias(wafEvents, "s");
const KEY = names(wafEvents.zoneId, wafEvents.occurredAt, wafEvents.logId);

/** The columns of `toEventRows`, in the same order. */
const EVENT_COLUMNS = [
  ...(["occurredAt", "zoneId", "logId", "route", "feature", "ruleId", "ip"] as const),
  ...(["ja4", "ua", "url", "asn", "country", "action", "message"] as const),
  ...(["method", "requestId", "matchedKey", "facts"] as const),
]
  .map((key) => toSnakeCase(wafEvents[key].name))
  .join(", ");
const COLUMNS = sql.raw(EVENT_COLUMNS);
const UNIQUE_VIOLATION = "23505";

export interface StoredEvents {
  /** Events that were not stored before. */
  readonly inserted: number;
  /** Stored events that gained a dimension, or whose values a later look has changed. */
  readonly filled: number;
  /** Sealed hours that gained an event and were reopened; epoch ms of their starts. */
  readonly reopened: readonly number[];
}

interface EventsToStore {
  readonly zoneId: number;
  readonly events: readonly WafEvent[];
  /** True if the events are probably all new. */
  readonly expectNew: boolean;
  /** Stored as the time at which the hours last gained an event; epoch ms. */
  readonly storedAt: number;
}

interface NewPage extends EventsToStore, GuardedPage {
  readonly lease: { readonly name: string; readonly fence: number };
}

export interface StoredPage extends StoredEvents {
  readonly quarantined: number;
}

type Conclude<T> = (tx: Queryable, stored: StoredPage) => Promise<T>;

/**
 * Stores one page of the platform in one transaction: events, stale minutes, hour counts, records, quarantined
 * entries, and whatever `conclude` adds (ledger, cursor). Stores nothing if another process has taken the lease over.
 * With `expectNew` the events are copied straight into the table if nothing may cover them, and again staged and merged if
 * one of them turns out to be stored. Pass it if the page before had only new events. Erased data is never stored again.
 * While the pseudonym key is missing, events and records that an erasure may cover are held in the quarantine and the rest
 * is stored. Events and records of archive days are quarantined.
 * @throws {FenceLostError}
 */
export async function storePage<T>(
  database: Database,
  page: NewPage,
  conclude: Conclude<T>,
): Promise<{ stored: StoredPage; concluded: T }> {
  try {
    return await storeOnce(database, page, conclude);
  } catch (thrown) {
    if (!page.expectNew || readSqlState(thrown) !== UNIQUE_VIOLATION) throw thrown;
    return storeOnce(database, { ...page, expectNew: false }, conclude);
  }
}

function storeOnce<T>(database: Database, given: NewPage, conclude: Conclude<T>) {
  return inTransaction(database, async (transaction) => {
    const { tx, client } = transaction;
    const { zoneId, lease } = given;
    const page = await setAsideArchived(given, await readArchived(transaction, given));
    const cover = await planCover(transaction, page);
    const { held, ...merged } = await storeEvents(transaction, page, cover);
    const { emptied, ...others } = await guardOthers(tx, page, cover);
    const quarantined = await quarantineEntries(tx, zoneId, [...others.quarantined, ...held]);
    const stored = { ...merged, quarantined };
    const [, concluded] = await inOneTrip(client, () => [
      insertRawBlocks(tx, zoneId, others.rawBlocks),
      conclude(tx, stored),
      assertFence(tx, lease.name, lease.fence),
    ]);
    await enterEmptied(tx, emptied);
    return { stored, concluded };
  });
}

/**
 * Returns the archive days among the page's days. Today is never one. Other days stay what they are until the transaction
 * ends.
 */
async function readArchived({ tx, client }: Transaction, page: NewPage): Promise<ReadonlySet<string>> {
  const span = spanOf(page.events);
  if (span === null || span.firstAt >= startOfDay(page.storedAt)) return new Set();
  return holdDays(tx, client, { zoneId: page.zoneId, ...span });
}

/**
 * Stores the page's events. Returns those that cannot be judged as entries for the quarantine. What no key can judge any
 * more is stored empty.
 */
async function storeEvents(transaction: Transaction, page: NewPage, cover: Cover) {
  const { tx } = transaction;
  const { zoneId, events, expectNew } = page;
  if (events.length === 0) return { inserted: 0, filled: 0, reopened: [], held: [] };
  if (expectNew && cover.kind === "none" && !(await hasAliases(tx, page)))
    return { ...(await copyEvents(transaction, page)), held: [] };
  await stageEvents(transaction, page);
  if (cover.kind === "judged" && cover.judge.orphans.length > 0)
    await blankStaged(tx, { zoneId, untilMs: lastUntil(cover.judge.orphans) });
  const taken = cover.kind === "held" ? await takeStaged(tx, { zoneId, untilMs: cover.untilMs }) : [];
  const keys = new Set(taken.map(showKey));
  const held = events.flatMap((event) =>
    keys.has(showKey(event)) ? { ...setAsideEvent(event, () => WAITS_FOR_KEY), isHeld: true } : [],
  );
  return { ...(await mergeStaged(transaction, page, events.length - taken.length)), held };
}

const showKey = ({ occurredAt, logId }: EventKey) => `${occurredAt} ${logId}`;

/**
 * Copies events, none of which is stored, straight into the table, marks their minutes as stale and adds them to the counts
 * of their hours. Costs Postgres half of what staging and merging costs.
 * @throws the driver's 23505 when one of them is stored, 23514 when a day has no partition.
 */
async function copyEvents(transaction: Transaction, page: EventsToStore): Promise<StoredEvents> {
  const { events } = page;
  await copy(transaction, "waf_events", page);
  const rules = sql.param(events.map(({ ruleId }) => ruleId));
  const times = sql.param(events.map(({ occurredAt }) => occurredAt));
  const features = sql.param(events.map(({ feature }) => feature));
  const columns = names(wafEvents.ruleId, wafEvents.occurredAt, wafEvents.feature);
  const copied = sql`select rule, to_timestamp(at / 1000), feature
    from unnest(${rules}::text[], ${times}::float8[], ${features}::text[]) as given(rule, at, feature)`;
  const { rows } = await transaction.tx.execute<{ reopened: number[] }>(
    countStatement(page, sql`inserted (${columns}) as (${copied})`),
  );
  return { inserted: events.length, filled: 0, reopened: rows[0]?.reopened ?? [] };
}

/** Copies events into `staged_events`, which is emptied at the end of the transaction. Once per transaction. */
async function stageEvents(transaction: Transaction, page: EventsToStore): Promise<void> {
  const create = "create temp table if not exists staged_events (like waf_events) on commit delete rows";
  await transaction.client.query(create);
  await copy(transaction, "staged_events", page);
}

async function copy(
  { client }: Transaction,
  table: string,
  { zoneId, events }: EventsToStore,
): Promise<void> {
  const stream = client.query(copyFrom(`copy ${table} (${EVENT_COLUMNS}) from stdin`));
  await new Promise<void>((resolve, reject) => {
    stream.on("error", reject).on("finish", resolve);
    stream.end(toEventRows(zoneId, events));
  });
}

/** Returns events in COPY's text format. */
function toEventRows(zoneId: number, events: readonly WafEvent[]): string {
  const toTime = createTimeWriter();
  let rows = "";
  for (const e of events) rows += toRow(zoneId, e, toTime(e.occurredAt));
  return rows;
}

/** Written out, because a list of fields would take three times as long. */
function toRow(zoneId: number, e: WafEvent, time: string): string {
  const [id, feature, rule, ip] = [
    toCopyField(e.logId),
    toCopyField(e.feature),
    toCopyField(e.ruleId),
    toCopyField(e.ip),
  ];
  const [ja4, ua, url, asn] = [toCopyField(e.ja4), toCopyField(e.ua), toCopyField(e.url), toCopyField(e.asn)];
  const [country, action, message] = [toCopyField(e.country), toCopyField(e.action), toCopyField(e.message)];
  const [method, request] = [toCopyField(e.method), toCopyField(e.requestId)];
  return `${time}\t${zoneId}\t${id}\t${e.route}\t${feature}\t${rule}\t${ip}\t${ja4}\t${ua}\t${url}\t${asn}\t${country}\t${action}\t${message}\t${method}\t${request}\t${e.matchedKey ?? "\\N"}\t${e.facts ?? "\\N"}\n`;
}

/**
 * Stores the staged events of a page, of which some may already be stored, marks their minutes as stale and adds the new
 * ones to the counts of their hours. A stored event gains the values and facts that it lacks and loses none. A full address
 * replaces a masked one, never the reverse. Facts alone mark no minute: nothing that is counted or forwarded changes. `size` is the number of staged events.
 * @throws the driver's 23514 when a day has no partition.
 */
async function mergeStaged({ tx }: Transaction, page: EventsToStore, size: number): Promise<StoredEvents> {
  const { zoneId, events, storedAt } = page;
  const span = spanOf(events);
  if (size === 0 || span === null) return { inserted: 0, filled: 0, reopened: [] };
  const { rows: dropped } = await tx.execute<EventKey & FactColumns & Record<string, unknown>>(DROP_ALIASES);
  await learnFacts(tx, zoneId, dropped);
  await settleStagedDoubles(tx, zoneId, storedAt);
  const insert = sql`
    insert into ${wafEvents} (${COLUMNS})
    select ${COLUMNS} from staged_events order by ${KEY}
    on conflict (${KEY}) do nothing
    returning ${wafEvents.ruleId}, ${wafEvents.occurredAt}, ${wafEvents.feature}`;
  const stored = await tx.execute<{ inserted: number; reopened: number[] }>(
    countStatement(page, sql`inserted as (${insert})`),
  );
  const { inserted = 0, reopened = [] } = stored.rows[0] ?? {};
  if (inserted === size) return { inserted, filled: 0, reopened };
  const { firstAt: fromMs, lastAt: toMs } = span;
  const { rows } = await tx.execute<{ filled: number; isContested: boolean }>(
    fillStatement(zoneId, fromMs, toMs),
  );
  const { filled = 0, isContested = false } = rows[0] ?? {};
  const revised = isContested ? await reviseEvents(tx, zoneId, { fromMs, toMs, atMs: storedAt }) : 0;
  return { inserted, filled: filled + revised, reopened };
}

/** Returns whether an event in the page's time span is stored under another time. Such a page has to be staged. */
async function hasAliases(tx: Queryable, { zoneId, events }: EventsToStore): Promise<boolean> {
  const span = spanOf(events);
  if (span === null) return false;
  const { rowCount } = await tx.execute(sql`select from ${a} where ${a.zoneId} = ${zoneId}
    and ${a.otherAt} between ${new Date(span.firstAt)} and ${new Date(span.lastAt)} limit 1`);
  return rowCount !== 0;
}

/**
 * Drops list rows whose event is stored under another time, and returns their facts under that time. A search row has the
 * right time, so it stays.
 */
const DROP_ALIASES = sql`delete from staged_events s using ${a}
  where ${a.zoneId} = ${s.zoneId} and ${a.otherAt} = ${s.occurredAt} and ${a.logId} = ${s.logId}
    and ${s.feature} is null
  returning ${epochMs(a.keptAt)} as "occurredAt", ${s.logId} as "logId", ${s.method} as method,
    ${s.requestId} as "requestId", ${s.matchedKey} as "matchedKey", ${s.facts} as facts`;

/** Returns the statement that marks the minutes and counts the hours of the events that its step `inserted` shows. */
function countStatement({ zoneId, storedAt }: EventsToStore, inserted: SQL): SQL {
  const { ruleId, occurredAt, feature } = wafEvents;
  const [rule, time, dimension] = [names(ruleId), names(occurredAt), names(feature)];
  const at = new Date(storedAt);
  return sql`
    with ${inserted},
    marked as (${markStale(
      zoneId,
      sql`select distinct coalesce(${rule}, '') as rule, date_trunc('minute', ${time}) as minute from inserted`,
    )}),
    counted as (
      insert into ${w} (${names(w.zoneId, w.startsAt, w.storedCount, w.lastNewAt, w.unresolvedSince)})
      select ${zoneId}, date_trunc('hour', ${time}), count(*), ${at}::timestamptz,
        case when bool_or(${dimension} is null) then ${at}::timestamptz end
      from inserted group by 2 order by 2
      on conflict (${names(w.zoneId, w.startsAt)}) do update set ${gain(storedAt)}
      returning ${w.startsAt}, ${w.reopenedAt})
    select count(*)::integer as inserted, array(select ${epochMs(names(w.startsAt))} from counted
      where ${names(w.reopenedAt)} = ${at}) as reopened
    from inserted`;
}

/**
 * Returns the assignments to an hour that gains events. A sealed hour that the platform still serves is reopened,
 * because its seal says that there are no further events. An older hour counts the events and keeps its seal.
 */
function gain(storedAt: number): SQL {
  const isReopened = sql`${w.state} = 'sealed' and ${w.startsAt} > ${new Date(storedAt - REOPENED_FOR_MS)}`;
  const given = alias(w, "excluded");
  return sql`${names(w.storedCount)} = ${w.storedCount} + ${given.storedCount},
    ${names(w.lastNewAt)} = greatest(${w.lastNewAt}, ${given.lastNewAt}),
    ${names(w.unresolvedSince)} = greatest(${w.unresolvedSince}, ${given.unresolvedSince}),
    ${reopening(isReopened, new Date(storedAt), LATE_EVENT)}`;
}
