import { hash } from "node:crypto";
import { maskText } from "#archive/rules/mask.ts";
import { listValidFiles } from "#db/archive/archive-files.ts";
import { lockArchiveDay } from "#db/archive/day-source.ts";
import type { Queryable } from "#db/client.ts";
import { mayRemoveEvents, readEventKeys, removeEvents } from "#db/ingest/remove-events.ts";
import { writeAuditEntry } from "#db/people/audit-trail.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { readKeptMs } from "#db/proof/horizons.ts";
import { readRuleCounts } from "#jobs/proof/copy-late.ts";
import { many, showTime } from "#lib/format.ts";
import { isObject } from "#lib/json.ts";
import { ownCommand } from "#lib/process.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { firstListedDay, horizonAt, type Span, startOfDay, startOfHour, toDay } from "#model/horizon.ts";
import type { EventKey } from "#model/waf-event.ts";
import { actorOf } from "#operations/caller.ts";
import type { Changing } from "#operations/operation.ts";
import { Refusal } from "#operations/refusal.ts";
import { LogId, readEventTime } from "#platform/contract/values.ts";
import type { EdgeClient } from "#platform/edge-client.ts";
import { eventLogPages, toLogDay } from "#platform/list-event-logs.ts";
import { SETTLE_MS } from "#proof/rules/hour-proof.ts";
import { searchRows } from "../verify/check-events.ts";

/** Whole hours of one UTC day of a zone; times in epoch ms. */
export interface AskedWithdrawal extends Span {
  readonly zoneId: number;
  /** Null: every stored event of the span that the platform does not show. */
  readonly logIds: readonly string[] | null;
  /** True: named events are removed even if the platform has forgotten their hour, so that no answer can confirm them. */
  readonly isUnchecked: boolean;
}

export interface Withdrawal {
  /** Ids of the events to remove, or that were removed. */
  readonly logIds: readonly string[];
  /** Named events that the platform shows. They stay. */
  readonly shown: readonly string[];
  /** Named events that are not stored in the span. */
  readonly unknown: readonly string[];
  /** Null if nothing was to be removed yet. */
  readonly removed: { readonly events: number; readonly records: number } | null;
}

/** The parts of an operation that a withdrawal needs. */
type WithdrawDeps = Pick<Changing, "database" | "edge" | "clock" | "signal" | "caller">;

/** Refuses because of what is stored here or shown by the platform. */
function refusal(detail: string): Refusal {
  return new Refusal(409, { slug: "withdrawal-refused", detail });
}

const NO_RIGHT =
  "the database role of this process may not remove events; use a process with the role ingest, or the command coverage withdraw with its settings";
const CHECK_LONGER =
  "the platform has forgotten earlier hours. Name the ids and ask for an unchecked removal";

/** @throws {Refusal} if the span cannot be checked. `horizon` is the oldest time that the platform shows. */
function refuseSpan(
  { from, to, logIds, isUnchecked }: AskedWithdrawal,
  { now, horizon }: { readonly now: number; readonly horizon: number },
): void {
  const refuse = (field: "from" | "to" | "logIds", rule: string) => {
    throw new Refusal(422, { slug: "invalid-span", mistakes: [{ field, rule }] });
  };
  const last = startOfHour(now - SETTLE_MS);
  if (from % HOUR_MS !== 0) refuse("from", "must be a full hour");
  if (to % HOUR_MS !== 0 || to <= from) refuse("to", "must be a full hour after from");
  if (to > startOfDay(from) + DAY_MS) refuse("to", "must be in the same UTC day as from");
  if (to > last) refuse("to", `must be ${showTime(last)} UTC or earlier: later hours may still get events`);
  if (logIds === null && isUnchecked) refuse("logIds", "must be named for an unchecked removal");
  if (from < horizon && !isUnchecked) {
    const first = Math.ceil(horizon / HOUR_MS) * HOUR_MS;
    refuse("from", `must be ${showTime(first)} UTC or later: ${CHECK_LONGER}`);
  }
}

/**
 * Asks the platform for the span, with an hour on both sides, and for the list of the day. Removes the stored events that
 * the platform does not show, and writes the audit entry in the same transaction. Without a reason, removes nothing.
 * @throws {Refusal} if the answer does not allow that, or the day is in the archive.
 */
export async function withdrawEvents(
  deps: WithdrawDeps,
  asked: AskedWithdrawal,
  reason: string | null,
): Promise<Withdrawal> {
  const { database, clock, caller } = deps;
  const { zoneId, from, to } = asked;
  const now = clock();
  const horizon = horizonAt(now, await readKeptMs(database.db, zoneId, now, 0));
  refuseSpan(asked, { now, horizon });
  await refuseArchived(database.db, asked);
  if (!(await mayRemoveEvents(database.db))) throw refusal(NO_RIGHT);
  // Before the platform is asked: an event that comes later is never removed.
  const stored = await readEventKeys(database.db, zoneId, { from, to });
  const named = asked.logIds === null ? null : new Set(asked.logIds);
  const wanted = named === null ? stored : stored.filter(({ logId }) => named.has(logId));
  const checkedFrom = Math.max(from, Math.ceil(horizon / HOUR_MS) * HOUR_MS);
  const isChecked = wanted.length > 0 && checkedFrom < to;
  const checked = { zoneId, from: checkedFrom, to };
  const shown = isChecked ? await askShown(deps, checked, { now, horizon }) : new Set<string>();
  if (isChecked) refuseUnrecognised(stored, { named, shown, checkedFrom });
  const events = wanted.filter(({ logId }) => !shown.has(logId));
  const known = new Set(wanted.map(({ logId }) => logId));
  return {
    logIds: events.map(({ logId }) => logId),
    shown: named === null ? [] : [...known].filter((logId) => shown.has(logId)),
    unknown: [...(named ?? [])].filter((logId) => !known.has(logId)),
    removed:
      reason === null || events.length === 0
        ? null
        : await inTransaction(database, ({ tx }) =>
            remove(tx, asked, {
              events,
              actor: actorOf(caller),
              reason: maskText(reason),
              atMs: clock(),
              servedFrom: horizon + HOUR_MS,
            }),
          ),
  };
}

interface Removal {
  readonly events: readonly EventKey[];
  readonly actor: string;
  readonly reason: string;
  readonly atMs: number;
  readonly servedFrom: number;
}

async function remove(
  tx: Queryable,
  asked: AskedWithdrawal,
  { events, actor, reason, ...times }: Removal,
): Promise<{ events: number; records: number }> {
  const { zoneId, from, to, isUnchecked } = asked;
  await tx.execute("set local statement_timeout = 0");
  await lockArchiveDay(tx, toDay(from));
  await refuseArchived(tx, asked);
  const removed = await removeEvents(tx, zoneId, events, { reason, ...times });
  const ids = events.map(({ logId }) => logId).toSorted();
  await writeAuditEntry(tx, {
    actor,
    action: "events.withdrawn",
    subject: `zone ${zoneId}`,
    details: {
      from: new Date(from).toISOString(),
      to: new Date(to).toISOString(),
      reason,
      ...removed,
      ids: hash("sha256", ids.join("\n"), "hex"),
      ...(isUnchecked ? { unchecked: true } : {}),
    },
  });
  return removed;
}

/** Returns the ids that the platform shows now, in whole hours that it still serves and in an hour on both sides. */
async function askShown(
  { edge, signal }: Pick<WithdrawDeps, "edge" | "signal">,
  { zoneId, from, to }: Span & { readonly zoneId: number },
  { now, horizon }: { readonly now: number; readonly horizon: number },
): Promise<ReadonlySet<string>> {
  if (edge === null) throw refusal("the platform cannot be asked: EDGE_API_URL is not set");
  const shown = new Set<string>();
  const found = new Map<number, number>();
  const around = { from: Math.max(from - HOUR_MS, horizon), to: to + HOUR_MS };
  for await (const row of searchRows(edge, zoneId, around, signal)) {
    const hour = startOfHour((isObject(row) ? readEventTime(row["timestamp"]) : null) ?? Number.NaN);
    if (addId(row, shown)) found.set(hour, (found.get(hour) ?? 0) + 1);
  }
  const { cells } = await readRuleCounts(edge, zoneId, { from, buckets: (to - from) / HOUR_MS }, signal);
  for (const [hour, rules] of cells) {
    const counted = [...rules.values()].reduce((sum, count) => sum + count, 0);
    const searched = found.get(hour) ?? 0;
    if (counted > searched)
      throw refusal(
        `the platform counts ${counted} events from ${showTime(hour)} UTC on, and its search shows ${searched}; try again later`,
      );
  }
  if (startOfDay(from) >= firstListedDay(now)) await addListed(edge, { zoneId, from }, shown, signal);
  return shown;
}

async function refuseArchived(db: Queryable, { zoneId, from }: AskedWithdrawal): Promise<void> {
  const day = toDay(from);
  if ((await listValidFiles(db, { zoneId, day })).length === 0) return;
  throw refusal(
    `${day} is an archive day, whose files lose no events. Bring it back first: ${ownCommand(`archive restore --zone ${zoneId} --day ${day}`)}. The service archives the day again afterwards.`,
  );
}

/**
 * An answer that shows none of an hour's stored events may be that of another zone, or of a failing platform. It is
 * believed only if all of them are named.
 * @throws {Refusal}
 */
function refuseUnrecognised(
  stored: readonly EventKey[],
  {
    named,
    shown,
    checkedFrom,
  }: { named: ReadonlySet<string> | null; shown: ReadonlySet<string>; checkedFrom: number },
): void {
  const checked = stored.filter(({ occurredAt }) => occurredAt >= checkedFrom);
  for (const [hour, events] of Map.groupBy(checked, ({ occurredAt }) => startOfHour(occurredAt))) {
    if (events.some(({ logId }) => shown.has(logId))) continue;
    if (events.every(({ logId }) => named?.has(logId) === true)) continue;
    throw refusal(
      `the platform shows none of the ${many(events.length, "stored event")} from ${showTime(hour)} UTC on, so its answer may be wrong; if all of them are foreign, name their ids`,
    );
  }
}

/**
 * Adds the ids that the list of the day shows.
 * @throws {Refusal} if the list cannot be read to its end.
 */
async function addListed(
  edge: Pick<EdgeClient, "listEventLogs">,
  { zoneId, from }: { readonly zoneId: number; readonly from: number },
  shown: Set<string>,
  signal: AbortSignal,
): Promise<void> {
  const params = { shieldZoneId: zoneId, date: toLogDay(from), continuationToken: null };
  for await (const { page, looped } of eventLogPages(edge.listEventLogs, params, signal)) {
    for (const entry of page.logs) addId(entry, shown);
    if (looped)
      throw refusal("the platform's list repeats its pages and cannot be read to its end; try again later");
  }
}

/** Returns whether the id is new. */
function addId(entry: unknown, shown: Set<string>): boolean {
  const id = LogId.safeParse(isObject(entry) ? entry["logId"] : undefined);
  const { size } = shown;
  if (id.success) shown.add(id.data);
  return shown.size > size;
}
