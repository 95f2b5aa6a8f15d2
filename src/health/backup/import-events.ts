/** Stores the events of files as history that nothing has proven. */

import { copyFile } from "node:fs/promises";
import { restoreDay } from "#archive/operations/restore-day.ts";
import { prepareSource, quote, selectEvents } from "#archive/rules/sql/event-source.ts";
import { duck, raw } from "#archive/rules/sql/to-condition.ts";
import { readUnion } from "#archive/search/read-union.ts";
import { isOneOf } from "#archive/search/search-zones.ts";
import type { SearchDeps } from "#archive/search/searching.ts";
import { readArchivedDays } from "#db/archive/archived-days.ts";
import { recountHours } from "#db/archive/days-to-archive.ts";
import type { Database } from "#db/client.ts";
import { readHashKey } from "#db/health/server-facts.ts";
import type { ErasureGuard } from "#db/ingest/guard-page.ts";
import { type NewQuarantinedEntry } from "#db/ingest/quarantine.ts";
import { packNewRecords } from "#db/ingest/raw-blocks.ts";
import { storePage } from "#db/ingest/store-page.ts";
import type { OwnedLease } from "#db/postgres/hold-lease.ts";
import type { PartitionKeeper } from "#db/postgres/partitions.ts";
import { readHourStates } from "#db/proof/coverage-report.ts";
import { enterImported, readWatchedFrom } from "#db/proof/covered-hours.ts";
import { atLine, type EventRecord } from "#ingest/rules/read-page.ts";
import type { ArchiveStore } from "#jobs/archive/archive-store.ts";
import type { Clock } from "#lib/clock.ts";
import { UsageError } from "#lib/errors.ts";
import { formatWhole } from "#lib/format.ts";
import { escapeText, shortenText } from "#lib/text.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { horizonAt, startOfHour, toDay } from "#model/horizon.ts";
import { daysOf, spanOf, type WafEvent } from "#model/waf-event.ts";
import { nameKnown } from "#operations/require-known.ts";
import { isFullAddress, type PseudonymKey, toPseudonym } from "#people/rules/pseudonym.ts";
import { keptFrom, type Retention } from "#people/rules/retention.ts";
import { type ImportedRow, readBytes, readRows } from "#proof/backfill/read-import.ts";

const ROWS_AT_ONCE = 5_000;
const BYTES_AT_ONCE = 64 * 1_024 * 1_024;
/** The platform may show an event a moment earlier or later, and its clock may be ahead. */
const NEAR_MS = 1_000;
const AHEAD_MS = 5 * 60_000;
const MOST_NOTED = 1_000;
const MOST_PARQUET_ROWS = 20_000_000;
const MOST_ZONE_CHARS = 40;

export interface ImportDeps {
  readonly database: Database;
  readonly archive: ArchiveStore;
  readonly search: SearchDeps;
  readonly partitions: PartitionKeeper;
  readonly erasures: ErasureGuard;
  readonly openKey: () => Promise<PseudonymKey>;
  readonly clock: Clock;
  readonly retention: Retention;
  /** The zones that are known, of which rows are accepted. */
  readonly zoneIds: readonly number[];
}

/** How many rows of the files were stored, and why the others were not. */
export interface Imported {
  rows: number;
  stored: number;
  /** Rows of events that were stored before. */
  known: number;
  /** Rows that are no events. They are in the quarantine of their zone, if it is known. */
  unreadable: number;
  /** Rows of events that may not be stored. */
  refused: number;
  /** The first of the rows that were not stored. */
  readonly notes: { file: string; line: number; reason: string }[];
}

interface WantedImport {
  readonly file: string;
  /** The zone of rows that name none; null if there is no such. */
  readonly zone: number | null;
  readonly lease: OwnedLease;
  readonly found: Imported;
  /** Called with the number of bytes that were read, and after each batch with null. */
  readonly onProgress: (bytes: number) => void;
}

/**
 * Stores the events of a file. An event that is stored stays as it is, so a killed import may be run again. An event of an
 * hour that is proven without it is refused. An archive day that gets events is brought back into Postgres first; it is
 * archived again later.
 */
export async function importFile(deps: ImportDeps, wanted: WantedImport, signal: AbortSignal): Promise<void> {
  const lines = wanted.file.endsWith(".parquet") ? await toLines(deps, wanted.file, signal) : null;
  try {
    const bytes = readBytes(lines?.path ?? wanted.file, wanted.onProgress);
    let [batch, size] = [[] as ImportedRow[], 0];
    for await (const row of readRows(wanted.file, bytes)) {
      batch.push(row);
      size += row.raw.length;
      if (batch.length < ROWS_AT_ONCE && size < BYTES_AT_ONCE) continue;
      await storeRows(deps, wanted, batch, signal);
      [batch, size] = [[], 0];
    }
    await storeRows(deps, wanted, batch, signal);
  } finally {
    await lines?.remove();
  }
}

/** Writes the rows of a Parquet file as NDJSON. */
async function toLines({ search: { files } }: ImportDeps, file: string, signal: AbortSignal) {
  const [copied, lines] = [files.scratchFile(), files.scratchFile()];
  try {
    // DuckDB may read no other folder.
    await copyFile(file, copied.path);
    const from = raw(`read_parquet(${quote(copied.path)}, hive_partitioning = false)`);
    const [rows = "0"] = await files.read([], [duck`select count(*)::varchar from ${from}`], signal);
    if (Number(rows) > MOST_PARQUET_ROWS)
      throw new UsageError([
        `has ${formatWhole(Number(rows))} rows; at most ${formatWhole(MOST_PARQUET_ROWS)} are read at once`,
      ]);
    const select = duck`select * replace (epoch_ms(occurred_at) as occurred_at) from ${from}`;
    await files.read([], [duck`copy (${select}) to ${raw(quote(lines.path))} (format json)`], signal);
    return lines;
  } catch (thrown) {
    await lines.remove();
    throw thrown;
  } finally {
    await copied.remove();
  }
}

async function storeRows(
  deps: ImportDeps,
  wanted: WantedImport,
  rows: readonly ImportedRow[],
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  const { zone, found } = wanted;
  found.rows += rows.length;
  const byZone = Map.groupBy(rows, (row) => row.zone ?? (zone === null ? "" : String(zone)));
  for (const [text, ofZone] of byZone) {
    const zoneId = deps.zoneIds.find((one) => String(one) === text);
    if (zoneId !== undefined) await storeZone(deps, wanted, { zoneId, rows: ofZone }, signal);
    else
      for (const row of ofZone)
        refuse(
          wanted,
          row,
          text === ""
            ? "the row names no zone; give --zone"
            : `zone ${shortenText(text, MOST_ZONE_CHARS)} must be a shield zone that is configured or has stored data (${nameKnown(deps.zoneIds)})`,
        );
  }
}

function refuse({ file, found }: WantedImport, row: Pick<ImportedRow, "line">, reason: string): void {
  found.refused += 1;
  note(found, { file, line: row.line, reason });
}

function note({ notes }: Imported, one: Imported["notes"][number]): void {
  if (notes.length < MOST_NOTED) notes.push({ ...one, reason: escapeText(one.reason) });
}

interface Candidate {
  readonly row: ImportedRow;
  readonly event: WafEvent;
  readonly record: EventRecord | null;
}

async function storeZone(
  deps: ImportDeps,
  wanted: WantedImport,
  { zoneId, rows }: { readonly zoneId: number; readonly rows: readonly ImportedRow[] },
  signal: AbortSignal,
): Promise<void> {
  const { database, clock, erasures, partitions } = deps;
  const { found, lease } = wanted;
  const now = clock();
  const { candidates, quarantined } = await readCandidates(deps, wanted, rows, now);
  const fresh = await keepFresh(deps, wanted, zoneId, candidates, signal);
  if (fresh.length === 0 && quarantined.length === 0) return;
  const events = fresh.map(({ event }) => event);
  const restored = await restoreDays(deps, zoneId, events);
  const rawFrom = keptFrom(now, deps.retention.rawDays);
  const records = fresh.flatMap(({ record }) =>
    record === null || record.occurredAt < rawFrom ? [] : record,
  );
  const rawBlocks = await packNewRecords(database.db, zoneId, records);
  const horizon = startOfHour(horizonAt(now));
  const beforeMs = Math.min((await readWatchedFrom(database.db, zoneId)) ?? horizon, horizon);
  const hours = [...new Set(events.map(({ occurredAt }) => startOfHour(occurredAt)))];
  // An entry that cannot be read may be of any time.
  const guard = { erasures, entriesFrom: quarantined.length > 0 ? 0 : now };
  const page = { zoneId, lease, events, expectNew: true, storedAt: now, rawBlocks, quarantined, ...guard };
  const { stored } = await partitions.withDays(daysOf(events), () =>
    storePage(database, page, async (tx) => {
      if (events.length > 0) await enterImported(tx, zoneId, { hours, beforeMs, atMs: now });
      for (const day of restored) {
        // The minutes of an archive day may be deleted, and its hours would be the sums of the others.
        const touched = events.filter(({ occurredAt }) => toDay(occurredAt) === day);
        const cells = touched.map(({ occurredAt, ruleId }) => {
          return { hour: new Date(occurredAt).getUTCHours(), ruleId: ruleId ?? "" };
        });
        const once = new Map(cells.map((cell) => [`${cell.hour} ${cell.ruleId}`, cell]));
        await recountHours(tx, { zoneId, day }, [...once.values()]);
      }
    }),
  );
  found.stored += stored.inserted;
}

/** Reads the rows. Notes those that are no events, and refuses those of a time that is not kept. */
async function readCandidates(
  { database, retention, openKey }: ImportDeps,
  wanted: WantedImport,
  rows: readonly ImportedRow[],
  now: number,
): Promise<{ readonly candidates: Candidate[]; readonly quarantined: NewQuarantinedEntry[] }> {
  const { file, found } = wanted;
  const source = { receivedAt: now, hashKey: await readHashKey(database) };
  const [eventsFrom, addressesFrom] = [keptFrom(now, retention.eventDays), keptFrom(now, retention.ipDays)];
  const candidates: Candidate[] = [];
  const quarantined: NewQuarantinedEntry[] = [];
  const ids = new Set<string>();
  for (const row of rows) {
    const read = row.read(source);
    if ("problem" in read) {
      found.unreadable += 1;
      note(found, { file, line: row.line, reason: read.problem });
      const reason = `${read.problem}${atLine(row.line)}`;
      quarantined.push({ route: "search", day: null, reason, raw: row.raw });
      continue;
    }
    const { event } = read;
    if (event.occurredAt < eventsFrom)
      refuse(wanted, row, `older than the ${retention.eventDays} days for which events are kept`);
    else if (event.occurredAt > now + AHEAD_MS) refuse(wanted, row, "its time is in the future");
    else if (ids.has(event.logId)) found.known += 1;
    else {
      ids.add(event.logId);
      const isOld = event.occurredAt < addressesFrom;
      candidates.push({ ...read, row, event: isOld ? hidePerson(event, await openKey()) : event });
    }
  }
  return { candidates, quarantined };
}

/** Does at once what is done to events of this age. */
function hidePerson(event: WafEvent, key: PseudonymKey): WafEvent {
  const { ip, requestId } = event;
  const kept = ip !== null && isFullAddress(ip) ? toPseudonym(key, ip) : ip;
  return { ...event, ip: kept, requestId: requestId === null ? null : "" };
}

/** Returns those that are not stored, without those of hours that are proven without them. */
async function keepFresh(
  { database, search }: ImportDeps,
  wanted: WantedImport,
  zoneId: number,
  candidates: readonly Candidate[],
  signal: AbortSignal,
): Promise<Candidate[]> {
  const span = spanOf(candidates.map(({ event }) => event));
  if (span === null) return [];
  const [from, to] = [span.firstAt - NEAR_MS, span.lastAt + NEAR_MS + 1];
  const query = {
    from,
    to,
    clauses: [
      isOneOf(
        ["log_id"],
        candidates.map(({ event }) => event.logId),
      ),
    ],
  };
  const columns = ["log_id"];
  const { rows } = await readUnion(search, [zoneId], query, { columns, signal }, (source) => [
    ...prepareSource(source),
    selectEvents(source, query, columns),
  ]);
  const known = new Set(rows);
  const states = await readHourStates(database.db, [zoneId], { fromMs: from - HOUR_MS, toMs: to });
  const sealed = new Set(states.filter(({ state }) => state === "sealed").map(({ startsAt }) => startsAt));
  const fresh = candidates.filter(({ event }) => !known.has(event.logId));
  wanted.found.known += candidates.length - fresh.length;
  return fresh.filter(({ row, event: { occurredAt } }) => {
    const isProven = sealed.has(startOfHour(occurredAt));
    if (isProven)
      refuse(wanted, row, `the hour of ${toDay(occurredAt)} is proven complete without this event`);
    return !isProven;
  });
}

/** Brings the archive days of these events back into Postgres. Returns them. */
async function restoreDays(
  { database, archive }: ImportDeps,
  zoneId: number,
  events: readonly WafEvent[],
): Promise<string[]> {
  const days = daysOf(events);
  const starts = days.map((day) => Date.parse(day));
  const span = { from: Math.min(...starts), to: Math.max(...starts) + DAY_MS };
  const archived = days.length === 0 ? [] : await readArchivedDays(database.db, zoneId, span);
  const due = archived.map(({ events: { day } }) => day).filter((day) => days.includes(day));
  for (const day of due) await restoreDay({ database, archive }, { zoneId, day }, () => undefined);
  return due;
}
