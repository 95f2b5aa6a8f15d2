/** Replaces addresses by pseudonyms, and erases what is left of an erased address. */

import { z } from "zod";
import { listValidFiles } from "#db/archive/archive-files.ts";
import type { Database } from "#db/client.ts";
import type { ErasureGuard } from "#db/ingest/guard-page.ts";
import { eraseSourceUsual } from "#db/people/erase-quarantine.ts";
import {
  type EventSpan,
  findBatchEnd,
  isDayWalked,
  listAddresses,
  listZonesOf,
  markDayDone,
  readDoneDays,
  replaceAddressesOf,
} from "#db/people/pseudonymise.ts";
import { listDays } from "#db/people/retention.ts";
import { type DerivedScope, readFirstOver, rewriteDerived } from "#db/people/rewrite-derived.ts";
import { readTombstones } from "#db/people/tombstones.ts";
import { holdLease } from "#db/postgres/hold-lease.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { toDay } from "#model/horizon.ts";
import { readSentAddress } from "#model/ip-address.ts";
import { readSender } from "#people/rules/erasure-target.ts";
import {
  ERASED,
  isFullAddress,
  NETWORK_PREFIX,
  type PseudonymKey,
  toPseudonym,
} from "#people/rules/pseudonym.ts";
import { replaceAddresses, replaceInJson } from "#people/rules/replace-addresses.ts";
import { INGEST_DAYS, keptFrom } from "#people/rules/retention.ts";
import { type AnyJob, defineJob, LEASE_TAKEN } from "#store/queue/define-job.ts";
import type { ArchiveStore } from "../archive/archive-store.ts";
import { rewriteDay } from "../archive/rewrite-day.ts";
import type { JobContext } from "../context.ts";

const LEASE_TTL_MS = 15_000;
const EVENTS_PER_TRANSACTION = 5_000;

interface PseudonymiseIpsDeps extends Pick<JobContext, "database" | "clock" | "log" | "openKey"> {
  readonly ipDays: number;
  /** Null or left out: no files, which is for databases without archive days. */
  readonly archive?: ArchiveStore | null;
}

/**
 * Replaces the full addresses of days past their retention by pseudonyms and drops the ids of requests, oldest day first,
 * in small transactions.
 * Masked addresses identify no person and stay. After a kill the next run reads the day again and finds only what is
 * left. Of two concurrent runs one works. A day whose list is being read waits. A day that ingest might still write
 * to is checked again.
 */
export function createPseudonymiseIpsJob(deps: PseudonymiseIpsDeps): AnyJob {
  const catchUp = { isDone: false };
  return defineJob({
    name: "pseudonymise-ips",
    queue: "derive",
    payload: z.object({}),
    attempts: 3,
    timeoutMs: 900_000,
    async run(_, signal) {
      const lease = { name: "pseudonymise-ips", ttlMs: LEASE_TTL_MS };
      const due = await holdLease(deps.database, lease, ({ lost }) =>
        pseudonymise(deps, catchUp, AbortSignal.any([signal, lost])),
      );
      if (due === null) return LEASE_TAKEN;
      return due === 0 ? "no day has reached LONGWATCH_IP_DAYS" : undefined;
    },
  });
}

/** Returns the number of days that were due. */
async function pseudonymise(
  deps: PseudonymiseIpsDeps,
  catchUp: { isDone: boolean },
  signal: AbortSignal,
): Promise<number> {
  const { database, clock, log, ipDays, openKey, archive = null } = deps;
  const done = await readDoneDays(database.db);
  const now = clock();
  const due = (await listDueDays(database, keptFrom(now, ipDays))).filter((day) => !done.has(day));
  if (due.length === 0) return 0;
  const key = await openKey();
  // Earlier versions left undeliverable messages out of the days that they marked as done.
  if (!catchUp.isDone)
    await pseudonymiseDerived(database, key, {
      overIn: { from: 0, to: keptFrom(now, ipDays) },
      isUndelivered: true,
    });
  catchUp.isDone = true;
  for (const day of due) {
    if (signal.aborted) break;
    if (await isDayWalked(database.db, day)) continue;
    const stored = await pseudonymiseDay(database, { key, day }, signal);
    if (stored === null) break;
    // After the events in Postgres: a day that was being archived meanwhile is in the manifest by now.
    const events = Math.max(stored, await pseudonymiseFiles({ database, archive, signal }, { key, day }));
    if (events > 0) log.info({ day, events }, "addresses replaced by pseudonyms");
    const isSettled = Date.parse(day) < keptFrom(now, INGEST_DAYS);
    if (isSettled) await markDayDone(database.db, { day, events, keyId: key.id });
  }
  return due.length;
}

/**
 * Returns every day from the first stored event, or the first end of a spike, an alert or a message, on. Days without
 * events are included, because spikes and alerts ended on them and are kept for longer than events.
 */
async function listDueDays({ db }: Database, before: number): Promise<string[]> {
  const stored = await listDays(db, "waf_events");
  const archived = (await listValidFiles(db, { kind: "events" })).map(({ day }) => day);
  const firstOver = await readFirstOver(db);
  const [first] = [...stored, ...archived, ...(firstOver === null ? [] : [toDay(firstOver)])].sort();
  const days: string[] = [];
  if (first === undefined) return days;
  for (let start = Date.parse(first); start < before; start += DAY_MS) days.push(toDay(start));
  return days;
}

interface DueDay {
  readonly key: PseudonymKey;
  readonly day: string;
}

/** Returns how many events were changed, or null when the signal ended it before the day's end. */
async function pseudonymiseDay(
  database: Database,
  { key, day }: DueDay,
  signal: AbortSignal,
): Promise<number | null> {
  const from = Date.parse(day);
  const to = from + DAY_MS;
  await pseudonymiseDerived(database, key, { overIn: { from, to } });
  let events = 0;
  for (const zoneId of await listZonesOf(database.db, { from, to })) {
    for (let at: number | null = from; at !== null; ) {
      if (signal.aborted) return null;
      const start: number = at;
      const end = await findBatchEnd(database.db, { zoneId, from: start, to }, EVENTS_PER_TRANSACTION);
      events += await pseudonymiseSpan(database, key, { zoneId, from: start, to: end ?? to - 1 });
      at = end === null ? null : end + 1;
    }
  }
  return events;
}

async function pseudonymiseDerived(
  database: Database,
  key: PseudonymKey,
  scope: Pick<DerivedScope, "overIn" | "isUndelivered">,
): Promise<void> {
  const replace = (ip: string) =>
    isFullAddress(ip) && readSentAddress(ip) !== null ? toPseudonym(key, ip) : null;
  await rewriteDerived(
    database,
    { zoneId: null, ...scope },
    {
      json: (value) => replaceInJson(value, replace, { dropTraits: false }),
      text: (text) => replaceAddresses(text, replace),
      write: true,
    },
  );
}

/** Returns how many events of the day's files were changed. */
async function pseudonymiseFiles(
  { database, archive, signal }: { database: Database; archive: ArchiveStore | null; signal: AbortSignal },
  { key, day }: DueDay,
): Promise<number> {
  let events = 0;
  for (const { zoneId, kind } of await listValidFiles(database.db, { day })) {
    if (kind !== "events") continue;
    if (archive === null) throw new Error("there are archive days, but no archive folder was given");
    const rewritten = await rewriteDay(
      { database, archive, signal },
      { zoneId, day },
      {
        replace: (ip) => (isFullAddress(ip) ? toPseudonym(key, ip) : null),
        untilAt: Date.parse(day) + DAY_MS,
        isErasure: false,
      },
    );
    events += rewritten.events;
  }
  return events;
}

async function pseudonymiseSpan(database: Database, key: PseudonymKey, span: EventSpan): Promise<number> {
  return inTransaction(database, async ({ tx }) => {
    const full = (await listAddresses(tx, span)).filter(isFullAddress);
    return replaceAddressesOf(tx, span, new Map(full.map((ip) => [ip, toPseudonym(key, ip)])));
  });
}

/** A job writes what it derived from events within this time of reading them. */
const WRITING_MS = HOUR_MS / 4;

interface EraseLeftoversDeps extends Pick<JobContext, "database" | "clock"> {
  readonly erasures: Pick<ErasureGuard, "judge">;
}

/**
 * Erases data that the service derived from events around an erasure, repeatedly for a day: evidence that was
 * collected before the erasure and written after it would keep an address. Data derived from later events stays. Does
 * nothing while the pseudonym key is missing. Several replicas may run this at once.
 */
export function createEraseLeftoversJob({ database, clock, erasures }: EraseLeftoversDeps): AnyJob {
  return defineJob({
    name: "erase-leftovers",
    queue: "derive",
    payload: z.object({}),
    attempts: 3,
    timeoutMs: 300_000,
    async run() {
      const tombstones = await readTombstones(database.db, clock() - DAY_MS);
      for (const tombstone of tombstones) {
        const { zoneId, requestedAt, untilAt } = tombstone;
        const judge = await erasures.judge([tombstone]);
        // The next run comes in minutes, and another job raises the alert about the missing key.
        if (judge === null) return "the pseudonym key is missing";
        const { match } = judge;
        // The tombstone does not say in which network of 64 bits its address is, so every such sender is erased.
        const isNarrow = tombstone.family === 6 && tombstone.prefix > NETWORK_PREFIX[6];
        const isErased = (ip: string) => match(ip) !== null || (isNarrow && readSender(ip) !== null);
        const replace = (ip: string) => (isErased(ip) ? ERASED : null);
        await eraseSourceUsual(database.db, zoneId, (ip) => match(ip) !== null);
        const writtenIn = { from: requestedAt - HOUR_MS, to: Math.max(requestedAt, untilAt) + WRITING_MS };
        await rewriteDerived(
          database,
          { zoneId, writtenIn },
          {
            json: (value) => replaceInJson(value, replace, { dropTraits: true }),
            text: (text) => replaceAddresses(text, replace),
            write: true,
          },
        );
      }
      return tombstones.length === 0 ? "nothing was erased in the last day" : undefined;
    },
  });
}
