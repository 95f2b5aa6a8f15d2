import { setTimeout } from "node:timers/promises";
import { maskText } from "#archive/rules/mask.ts";
import { planFilters } from "#archive/rules/query/plan-search.ts";
import { formatEvent } from "#archive/rules/records/format-event.ts";
import type { OnwardQuery } from "#db/archive/open-rows.ts";
import type { Queryable } from "#db/client.ts";
import type { ForwardedZone } from "#db/delivery/forwarding/forward-cursors.ts";
import { isDecided } from "#db/delivery/forwarding/forward-hours.ts";
import {
  type Answered,
  readReceipts,
  readTally,
  storeAnswer,
} from "#db/delivery/forwarding/forward-receipts.ts";
import type { OwnedLease } from "#db/postgres/hold-lease.ts";
import { assertFence } from "#db/postgres/leases.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { DeliveryError } from "#delivery/receivers/delivery-error.ts";
import type { Destination } from "#delivery/receivers/sinks/destination.ts";
import type { BatchAnswer } from "#delivery/receivers/sinks/sink.ts";
import { type Sifted, siftEvents } from "#delivery/rules/plan-spans.ts";
import { digest } from "#model/fingerprint.ts";
import { type Span, startOfHour } from "#model/horizon.ts";
import { DIMENSIONS } from "#model/kinds.ts";
import type { OcsfSettings } from "#model/ocsf.ts";
import { type ArchivedEvent, spanOf, toReceipt } from "#model/waf-event.ts";
import type { JobContext } from "../../context.ts";

const REASON_CHARS = 300;
/** Pauses before events that the destination has postponed are sent again within a run. */
const PAUSES_MS = [1_000, 2_000, 4_000];
/** One read for several batches, because it takes as many statements as a batch does. */
const PAGE_EVENTS = 2_000;

/** A stored event, with its record if it was asked for and is kept. */
interface StoredEvent extends ArchivedEvent {
  readonly record: Buffer | undefined;
}

export interface SpanDeps extends Pick<JobContext, "database" | "clock"> {
  /** Returns the next events of a part of one UTC day, oldest first, wherever they are kept. */
  readonly readStored: (
    zoneId: number,
    page: OnwardQuery & { readonly withRecords: boolean },
    signal: AbortSignal,
  ) => Promise<readonly StoredEvent[]>;
  readonly ocsf: OcsfSettings;
  /** How long events are kept. */
  readonly eventDays: number;
  /** Waits before postponed events are sent again. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Called after each acknowledged batch. */
  readonly onForwarded: (destination: string, counts: { events: number; refused: number }) => void;
}

/** Result of forwarding a part of an hour. */
export interface ForwardedSpan {
  /** Stored events that pass the filter. */
  readonly stored: number;
  /** How many of them the destination has acknowledged with their present values. */
  readonly acknowledged: number;
  /** Span from the first to the last event that waits to be complete, or whose refusal is doubted; null without one. */
  readonly waiting: Span | null;
}

export interface SpanRun {
  readonly destination: Destination;
  readonly zoneId: number;
  readonly lease: OwnedLease;
  readonly span: Span;
  readonly tally: RunTally;
  readonly signal: AbortSignal;
}

/** Counts of one run over all hours and zones of a destination. */
export interface RunTally {
  acknowledged: number;
  /** Refused events that are not listed, because the destination may be set up wrongly. */
  doubted: number;
  doubtedBatches: number;
  /** Why one of them was refused. */
  reason: string;
}

/** Batches with doubted refusals after which a run ends that has nothing acknowledged. */
const MOST_DOUBTED_BATCHES = 3;

/**
 * Throws if a destination that has refused events is probably set up wrongly. Then they are not listed: they wait until a
 * person has corrected it.
 * @throws {DeliveryError}
 */
export function refuseWrongSetting({ doubted, acknowledged, reason }: RunTally): void {
  if (doubted < FEW_REFUSED || doubted <= acknowledged) return;
  const text = `it refused ${doubted} of ${doubted + acknowledged} events, for example: ${reason}`;
  throw new DeliveryError({ code: "ENDPOINT_REJECTED", disposition: "give-up", text });
}

/**
 * Sends the events of a part of one hour that the destination has not acknowledged with their present values, page by page.
 * Each answer is stored before the next batch is sent. A crash in between sends one batch again.
 * @throws {DeliveryError} if the destination has to be left alone for a while
 */
export async function forwardSpan(deps: SpanDeps, run: SpanRun): Promise<ForwardedSpan> {
  const { destination, zoneId, span, signal } = run;
  const { name, format, batchEvents } = destination;
  const limit = Math.max(batchEvents, PAGE_EVENTS);
  const clauses = planFilters(destination.where);
  const zone: ForwardedZone = { destination: name, zoneId };
  const withRecords = format !== "event";
  // Once the hour is decided, nothing more comes.
  const mayWait = !(await isDecided(deps.database.db, zoneId, startOfHour(span.from)));
  const total = { stored: 0, acknowledged: 0 };
  let waiting: Span | null = null;
  let after: StoredEvent | null = null;
  for (;;) {
    signal.throwIfAborted();
    const next = { ...span, clauses, after, limit, withRecords };
    const page: readonly StoredEvent[] = await deps.readStored(zoneId, next, signal);
    const times = spanOf(page);
    if (times === null) break;
    after = page.at(-1) ?? null;
    const sifted = siftEvents(page, {
      ...(await readReceipts(deps.database.db, zone, times)),
      toReceipt: (event) => toReceipt(event, listValues(event, withRecords)),
      mustWait: (event) => mayWait && isIncomplete(event, withRecords),
    });
    total.stored += page.length;
    total.acknowledged += sifted.acknowledged;
    const sent = await sendAll(deps, run, sifted.toSend);
    total.acknowledged += sent.acknowledged;
    const late = spanOf([...sifted.waiting, ...sent.doubted].sort((a, b) => a.occurredAt - b.occurredAt));
    if (late !== null) waiting = { from: (waiting ?? { from: late.firstAt }).from, to: late.lastAt + 1 };
    if (page.length < limit) break;
  }
  return { ...total, waiting };
}

/**
 * Sends events of one hour in batches. Events that the destination postpones are sent again after pauses, so that a few of
 * them do not end the run.
 * @throws {DeliveryError}
 */
async function sendAll(
  deps: SpanDeps,
  run: SpanRun,
  events: readonly Sifted<StoredEvent>[],
): Promise<{ readonly acknowledged: number; readonly doubted: readonly StoredEvent[] }> {
  const { sleep = (ms, signal) => setTimeout(ms, undefined, { signal }) } = deps;
  let acknowledged = 0;
  const doubted: StoredEvent[] = [];
  let toSend = events;
  for (const pauseMs of [...PAUSES_MS, Number.POSITIVE_INFINITY]) {
    const sent = await sendRound(deps, run, toSend);
    acknowledged += toSend.length - sent.left.length - sent.refused;
    doubted.push(...sent.doubted);
    if (sent.left.length === 0) break;
    const waitMs = Math.max(pauseMs, sent.waitMs ?? 0);
    if (waitMs > Math.max(...PAUSES_MS)) throw postponed(sent.left.length, toSend.length, sent.waitMs);
    await sleep(waitMs, run.signal).catch(() => undefined);
    run.signal.throwIfAborted();
    toSend = sent.left;
  }
  return { acknowledged, doubted };
}

/** Sends each event once. A batch of which most is postponed ends the round, because the destination is overloaded. */
async function sendRound(deps: SpanDeps, run: SpanRun, events: readonly Sifted<StoredEvent>[]) {
  const { batchEvents } = run.destination;
  const left: Sifted<StoredEvent>[] = [];
  const doubted: StoredEvent[] = [];
  let refused = 0;
  for (let first = 0; first < events.length; first += batchEvents) {
    const batch = events.slice(first, first + batchEvents);
    const answer = await sendBatch(deps, run, batch);
    refused += answer.refused.length;
    if (answer.isDoubted) doubted.push(...answer.refused.flatMap(({ index }) => batch[index]?.event ?? []));
    left.push(...answer.postponed.flatMap((index) => batch[index] ?? []));
    if (answer.waitMs !== null || answer.postponed.length * 2 > batch.length)
      return {
        refused,
        doubted,
        left: [...left, ...events.slice(first + batchEvents)],
        waitMs: answer.waitMs,
      };
  }
  return { refused, doubted, left, waitMs: null };
}

function postponed(left: number, sent: number, waitMs: number | null): DeliveryError {
  const text = `it postponed ${left} of ${sent} events`;
  return new DeliveryError({
    code: "ENDPOINT_BUSY",
    disposition: "wait",
    text,
    waitMs: waitMs ?? undefined,
  });
}

/**
 * Sends events of one hour and stores the answer, which it returns. The refusals are doubted, and not stored, while
 * the destination has refused more than it has acknowledged.
 * @throws {DeliveryError}
 */
async function sendBatch(
  { database, ocsf, onForwarded }: SpanDeps,
  { destination, zoneId, lease, tally, signal }: SpanRun,
  batch: readonly Sifted<StoredEvent>[],
): Promise<BatchAnswer & { readonly isDoubted: boolean }> {
  const { name, format, sink } = destination;
  const answer = await sink.send(
    batch.map(({ event, isRevised }) => ({
      zoneId,
      isRevised,
      logId: event.logId,
      occurredAt: event.occurredAt,
      fields: event.fields,
      body: formatEvent(format, { ...event, zoneId }, event.record, ocsf),
    })),
    { batchId: digest([name, zoneId, ...batch.map(({ receipt }) => receipt)]), signal },
  );
  const answered = toAnswered(batch, answer);
  const isDoubted =
    refusesMost(batch.length, answered.refused.length) &&
    (await isSuspect(database.db, name, tally, answered));
  const refused = isDoubted ? [] : answered.refused;
  await inTransaction(database, async ({ tx }) => {
    await storeAnswer(tx, { destination: name, zoneId }, { ...answered, refused });
    await assertFence(tx, lease.name, lease.fence);
  });
  onForwarded(name, { events: answered.receipts.length, refused: refused.length });
  if (isDoubted) {
    tally.doubted += answered.refused.length;
    tally.doubtedBatches += 1;
    tally.reason = answered.refused[0]?.reason ?? "";
    if (tally.acknowledged === 0 && tally.doubtedBatches >= MOST_DOUBTED_BATCHES) refuseWrongSetting(tally);
  }
  return { ...answer, isDoubted };
}

/**
 * Returns whether a route has yet to show the event: the list brings records some minutes after the search, and the search
 * brings addresses and fingerprints of events that the list has shown first.
 */
function isIncomplete({ route, fields, record }: StoredEvent, withRecord: boolean): boolean {
  return (route === "list" && fields.feature === "") || (withRecord && record === undefined);
}

function listValues({ fields, message, record }: StoredEvent, withRecord: boolean): string[] {
  return [...DIMENSIONS.map((name) => fields[name]), message, String(withRecord && record !== undefined)];
}

function toAnswered(batch: readonly Sifted<StoredEvent>[], answer: BatchAnswer): Answered {
  const reasons = new Map(answer.refused.map(({ index, reason }) => [index, reason] as const));
  const postponed = new Set(answer.postponed);
  const accepted = batch.filter((_, index) => !reasons.has(index) && !postponed.has(index));
  return {
    firstAt: batch[0]?.event.occurredAt ?? 0,
    lastAt: batch.at(-1)?.event.occurredAt ?? 0,
    receipts: accepted.map(({ receipt }) => receipt),
    first: accepted.filter(({ isRevised }) => !isRevised).length,
    refused: batch.flatMap(({ event: { occurredAt, logId }, receipt }, index) => {
      const reason = reasons.get(index);
      if (reason === undefined) return [];
      return [{ occurredAt, logId, receipt, reason: maskText(reason).slice(0, REASON_CHARS) }];
    }),
  };
}

const FEW_REFUSED = 10;

/** Returns whether so many events of a batch are refused that the destination may be set up wrongly. */
function refusesMost(sent: number, refused: number): boolean {
  return refused >= FEW_REFUSED && refused * 2 > sent;
}

/** Returns whether the destination has refused more than it has acknowledged in the last hour, over all zones and hours. */
async function isSuspect(
  db: Queryable,
  destination: string,
  { doubted }: RunTally,
  { receipts, refused }: Answered,
): Promise<boolean> {
  const recent = await readTally(db, destination);
  return doubted + refused.length + recent.refused > recent.acknowledged + receipts.length;
}
