import { listValidFiles } from "#db/archive/archive-files.ts";
import { bringFile } from "#db/archive/bring-file.ts";
import { isDayStored } from "#db/archive/hot-days.ts";
import { removeKeptHours } from "#db/archive/kept-files.ts";
import { countFileAddresses } from "#db/archive/rewrite-files.ts";
import type { Database } from "#db/client.ts";
import { writeAuditEntry } from "#db/people/audit-trail.ts";
import { countAddresses, eraseEvents, lockEventsOf, type ZonedEventKey } from "#db/people/erase-events.ts";
import { eraseSourceUsual, rewriteQuarantine } from "#db/people/erase-quarantine.ts";
import { addErased, endErasure, openErasure, type RemainingFile } from "#db/people/erasures.ts";
import { listDays } from "#db/people/retention.ts";
import { rewriteDerived } from "#db/people/rewrite-derived.ts";
import { waitForIngest } from "#db/people/tombstones.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import type { ErasedCounts } from "#db/schema/privacy.ts";
import type { ArchiveStore } from "#jobs/archive/archive-store.ts";
import { rewriteDay } from "#jobs/archive/rewrite-day.ts";
import type { JobContext } from "#jobs/context.ts";
import { DAY_MS } from "#lib/units.ts";
import { containsAddress, eraseUnreadable, recordEraser } from "#people/rules/erasure-guard.ts";
import { createErasureTarget, type ErasureTarget, type Network } from "#people/rules/erasure-target.ts";
import { ERASED, type PseudonymKey } from "#people/rules/pseudonym.ts";
import { replaceAddresses, replaceInJson } from "#people/rules/replace-addresses.ts";
import { deleteReplaced } from "./delete-replaced.ts";

const EVENTS_PER_TRANSACTION = 1_000;

export interface EraseAddressDeps extends Pick<JobContext, "database" | "clock"> {
  readonly key: PseudonymKey;
  /** Null or left out: no files, which is for databases without archive days. */
  readonly archive?: ArchiveStore | null;
  /** How long to wait for a process that copies or writes the archive. Default: half a minute. */
  readonly waitMs?: number;
  /** Called with the number of processed events and days. */
  readonly onProgress?: (progress: {
    readonly events: number;
    readonly day: number;
    readonly days: number;
  }) => void;
}

export interface AddressToErase {
  readonly network: Network;
  /** Null means every zone. */
  readonly zoneId: number | null;
  readonly includeMasked: boolean;
  /** Events up to here are covered; epoch ms. */
  readonly untilAt: number;
}

export interface ErasableCounts extends Omit<ErasedCounts, "records"> {
  /** Events with a masked address that may match but is not covered. */
  readonly maskedEvents: number;
}

/** Counts the rows that an erasure would change. */
export async function countErasable(
  { database, key, archive = null }: EraseAddressDeps,
  asked: AddressToErase,
  signal: AbortSignal,
): Promise<ErasableCounts> {
  const target = createErasureTarget(key, asked.network, asked);
  let events = 0;
  let maskedEvents = 0;
  const add = (counts: readonly { ip: string; events: number }[]) => {
    for (const { ip, events: ofIp } of counts) {
      if (target.covers(ip)) events += ofIp;
      else if (target.mayBeMasked(ip)) maskedEvents += ofIp;
    }
  };
  for (const span of await listSpans(database, asked.untilAt)) {
    signal.throwIfAborted();
    add(await countAddresses(database.db, { ...span, zoneId: asked.zoneId }));
  }
  if (archive !== null) {
    for (const file of await listValidFiles(database.db, { kind: "events", zoneId: asked.zoneId })) {
      signal.throwIfAborted();
      if (Date.parse(file.day) > asked.untilAt || (await isDayStored(database.db, file))) continue;
      const local = await bringFile(archive.storage, file, signal);
      add(await countFileAddresses(archive.duckdb, local, asked.untilAt));
    }
  }
  return { events, maskedEvents, ...(await rewriteOthers(database, asked, { target, key, write: false })) };
}

export interface Erased {
  readonly id: number;
  readonly isResumed: boolean;
  readonly hash: string;
  /** The counts since the erasure began. */
  readonly counts: ErasedCounts;
  /** The archive files that still hold erased events. */
  readonly remaining: readonly RemainingFile[];
}

/**
 * Removes a person's data from everything that is stored, and writes a tombstone, so that ingest does not store the data
 * again. The tombstone is written first, while no page is being stored: earlier events are erased here, later events by
 * ingest. After a kill, the same call continues. Two calls at once erase nothing twice.
 */
export async function eraseAddress(
  deps: EraseAddressDeps,
  asked: AddressToErase,
  { actor, reason }: { readonly actor: string; readonly reason: string | null },
  signal: AbortSignal,
): Promise<Erased> {
  const { database, key, clock, archive = null, waitMs } = deps;
  const { zoneId, includeMasked } = asked;
  const target = createErasureTarget(key, asked.network, asked);
  const { family, prefix, hash, masked } = target;
  const subject = `address ${hash.toString("hex").slice(0, 16)}`;
  const facts = {
    zoneId,
    family,
    prefix,
    includeMasked,
    keyId: key.id,
    hash: hash.toString("hex"),
    reason,
  };
  const opened = await inTransaction(database, async ({ tx }) => {
    await waitForIngest(tx);
    const requestedAt = clock();
    const erasure = {
      requestedAt,
      untilAt: asked.untilAt,
      zoneId,
      family,
      prefix,
      keyId: key.id,
      hash,
      masked,
    };
    const { id, untilAt, isResumed } = await openErasure(tx, erasure);
    const action = isResumed ? "erasure.resumed" : "erasure.requested";
    const details = { erasure: id, until: new Date(untilAt).toISOString(), ...facts };
    await writeAuditEntry(tx, { actor, action, subject, details });
    return { id, untilAt, isResumed };
  });
  await eraseStored(deps, { ...opened, zoneId, target }, signal);
  // After the events in Postgres: a day that was being archived meanwhile is in the manifest by now.
  await eraseArchived(deps, { ...opened, zoneId, target }, signal);
  if (archive !== null) await removeKeptHours(archive.storage.folder);
  const replaced = { zoneId, untilAt: opened.untilAt, covers: target.covers };
  const remaining =
    archive === null ? [] : await deleteReplaced({ database, archive, clock, waitMs }, replaced, signal);
  const others = await rewriteOthers(database, asked, { target, key, write: true });
  const counts = await inTransaction(database, async ({ tx }) => {
    // A page that is being stored may erase more events. The receipt waits until that page is committed or rolled back.
    await waitForIngest(tx);
    await addErased(tx, opened.id, others);
    const counts = await endErasure(tx, opened.id, clock());
    const details = { erasure: opened.id, ...facts, counts, remaining };
    await writeAuditEntry(tx, { actor, action: "erasure.completed", subject, details });
    return counts;
  });
  return { id: opened.id, isResumed: opened.isResumed, hash: hash.toString("hex"), counts, remaining };
}

interface StoredToErase {
  readonly id: number;
  readonly untilAt: number;
  readonly zoneId: number | null;
  readonly target: ErasureTarget;
}

async function eraseStored(
  { database, onProgress }: EraseAddressDeps,
  { id, untilAt, zoneId, target }: StoredToErase,
  signal: AbortSignal,
): Promise<void> {
  const spans = await listSpans(database, untilAt);
  let events = 0;
  for (const [day, span] of spans.entries()) {
    signal.throwIfAborted();
    onProgress?.({ events, day, days: spans.length });
    const scope = { ...span, zoneId };
    const addresses = (await countAddresses(database.db, scope)).map(({ ip }) => ip).filter(target.covers);
    let after: ZonedEventKey | null = null;
    while (addresses.length > 0) {
      signal.throwIfAborted();
      const behind: ZonedEventKey | null = after;
      const keys = await inTransaction(database, async ({ tx }) => {
        const limits = { after: behind, limit: EVENTS_PER_TRANSACTION };
        const keys = await lockEventsOf(tx, scope, addresses, limits);
        const counts = { events: 0, records: 0 };
        for (const [zone, ofZone] of Map.groupBy(keys, (one) => one.zoneId)) {
          const ofOne = await eraseEvents(tx, zone, ofZone, recordEraser);
          counts.events += ofOne.events;
          counts.records += ofOne.records;
        }
        // Must come last: ingest waits for this row while it holds locks on its events.
        await addErased(tx, id, counts);
        return keys;
      });
      events += keys.length;
      onProgress?.({ events, day, days: spans.length });
      after = keys.at(-1) ?? null;
      if (keys.length < EVENTS_PER_TRANSACTION) break;
    }
  }
}

/**
 * Erases from the archive's files, day by day. Events that are in Postgres too were counted there.
 * @throws {Error} if there are archive days and no archive was given.
 */
async function eraseArchived(
  { database, archive = null, onProgress }: EraseAddressDeps,
  { id, untilAt, zoneId, target }: StoredToErase,
  signal: AbortSignal,
): Promise<void> {
  const days = (await listValidFiles(database.db, { kind: "events", zoneId })).filter(
    ({ day }) => Date.parse(day) <= untilAt,
  );
  if (days.length > 0 && archive === null)
    throw new Error("there are archive days, but no archive folder was given");
  let events = 0;
  for (const [index, day] of days.entries()) {
    signal.throwIfAborted();
    onProgress?.({ events, day: index, days: days.length });
    if (archive === null) return;
    const rewritten = await rewriteDay({ database, archive, signal }, day, {
      replace: (ip) => (target.covers(ip) ? ERASED : null),
      untilAt,
      isErasure: true,
      conclude: async (tx, counts) => {
        if (!(await isDayStored(tx, day))) await addErased(tx, id, counts);
      },
    });
    events += rewritten.events;
  }
}

/** Returns the spans of the stored days up to and including `untilAt`; epoch ms, half-open. */
async function listSpans({ db }: Database, untilAt: number): Promise<{ from: number; to: number }[]> {
  const starts = (await listDays(db, "waf_events")).map((day) => Date.parse(`${day}T00:00:00Z`));
  return starts
    .filter((from) => from <= untilAt)
    .map((from) => ({ from, to: Math.min(from + DAY_MS, untilAt + 1) }));
}

interface Rewriting {
  readonly target: ErasureTarget;
  readonly key: PseudonymKey;
  readonly write: boolean;
}

/** Erases the address in evidence, messages, recommendations, notes and unreadable entries, or only counts them. */
async function rewriteOthers(
  database: Database,
  { zoneId }: Pick<AddressToErase, "zoneId">,
  { target, key, write }: Rewriting,
) {
  const replace = (ip: string) => (target.covers(ip) || target.isSenderOf(ip) ? ERASED : null);
  const text = (written: string) => replaceAddresses(written, replace);
  const derived = await rewriteDerived(
    database,
    { zoneId },
    {
      json: (value) => replaceInJson(value, replace, { dropTraits: true }),
      text,
      write,
    },
  );
  if (write) await eraseSourceUsual(database.db, zoneId, target.covers);
  const quarantined = await rewriteQuarantine(database, zoneId, {
    raw: (raw) => (containsAddress(raw, target.covers) ? eraseUnreadable(key, raw) : raw),
    reason: text,
    write,
  });
  return { ...derived, quarantined };
}
