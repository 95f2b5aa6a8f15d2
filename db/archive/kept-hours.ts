/**
 * Keeps what searches copy out of Postgres: files of sealed hours, which are read instead of their events until one of these events
 * changes. Postgres stays the truth. Without the files, searches take longer and find the same.
 */
import { createHash, randomUUID } from "node:crypto";
import { chmod, mkdir, readdir, rename, rm, stat } from "node:fs/promises";
import path from "node:path";
import { getTableName, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type pg from "pg";
import { ServiceError } from "#lib/errors.ts";
import { hashFile } from "#lib/files.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { ARCHIVE_FORMAT } from "#model/archive-layout.ts";
import { KEPT_FOLDER, TEMPORARY_FOLDER } from "#model/archive-storage.ts";
import { type Span, startOfDay, toDay } from "#model/horizon.ts";
import type { Database, Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { archiveFiles } from "../schema/archive.ts";
import { coverageWindows } from "../schema/coverage.ts";
import { hourChanges, wafEvents } from "../schema/events.ts";
import type { ArchiveReader } from "./archive-reader.ts";
import { type ArchivedDay, readArchivedDays } from "./archived-days.ts";
import { writeEventsFile } from "./day-files.ts";
import { copyEvents } from "./day-source.ts";
import { inSearchView, toMoment } from "./search-condition.ts";

/** A larger file takes too long to write within a search. */
const MOST_EVENTS = 100_000;
/** To open a smaller file takes longer than to copy its events. */
const FEWEST_EVENTS = 500;
/** Of all files together. Beyond it, the oldest hours are removed. */
const MOST_BYTES = 2_000_000_000;
/** How long a process writes no file after it could not. */
const PAUSE_MS = 5 * MINUTE_MS;
/** A file that is being written for longer belongs to a process that was killed. */
const LEFT_BEHIND_MS = HOUR_MS;

const [w, c, f] = [alias(coverageWindows, "w"), alias(hourChanges, "c"), alias(archiveFiles, "f")];

/** Consecutive sealed hours of a zone's day. */
interface Run extends Span {
  readonly zoneId: number;
  readonly rows: number;
  /** Beginning of the file's name: the first hour and the zone, then a hash that changes with every change of the events. */
  readonly place: string;
  readonly version: string;
}

interface NewFile {
  readonly run: Run;
  readonly temporary: string;
}

/** The files of kept hours in a folder, which any number of processes share. */
export interface KeptHours {
  /** False for some minutes after a failure. */
  mayWrite(): boolean;
  fail(error: unknown): void;
  /** Returns the files of these runs, as far as they are there and whole. */
  find(runs: readonly Run[]): Promise<Map<Run, string>>;
  /** Returns names for new files. */
  begin(runs: readonly Run[]): Promise<NewFile[]>;
  /** Publishes new files, and removes those that they replace. */
  publish(files: readonly NewFile[]): Promise<void>;
}

/** Thrown when a kept file has disappeared or cannot be read. The same search can do without. */
export class KeptFileError extends ServiceError {
  override readonly name = "KeptFileError";
  readonly code = "KEPT_FILE";
  readonly disposition = "retry";
}

const keptFolder = (archiveFolder: string) => path.join(archiveFolder, TEMPORARY_FOLDER, KEPT_FOLDER);
/** The place and version of the run that a file is of. */
const runOf = (name: string) => name.split(".").slice(0, 3).join(".");
const nameOf = ({ place, version }: Run) => `${place}.${version}`;

/** Returns the kept hours of an archive folder. `onFailure` is called once. */
export function openKeptHours(
  archiveFolder: string,
  { mostBytes = MOST_BYTES, onFailure }: { mostBytes?: number; onFailure?: (error: unknown) => void } = {},
): KeptHours {
  const folder = keptFolder(archiveFolder);
  const remove = (name: string) => rm(path.join(folder, name), { force: true });
  /** Size and times of the files that were found to match the hash in their name. */
  const checked = new Map<string, string>();
  let pausedUntil = 0;
  let isReported = false;

  async function isWhole(name: string): Promise<boolean> {
    const { size, mtimeMs, ctimeMs, ino } = await stat(path.join(folder, name));
    const stamp = [size, mtimeMs, ctimeMs, ino].join(" ");
    if (checked.get(name) === stamp) return true;
    const { sha256 } = await hashFile(path.join(folder, name));
    checked.set(name, stamp);
    if (name.endsWith(`.${sha256.slice(0, 16)}.parquet`)) return true;
    checked.delete(name);
    await remove(name);
    return false;
  }

  /** Removes what killed writers left, and the oldest hours beyond the limit. */
  async function trim(): Promise<void> {
    let bytes = 0;
    for (const name of (await readdir(folder)).sort().reverse()) {
      const isFile = name.endsWith(".parquet");
      const found = await stat(path.join(folder, name)).catch(() => null);
      if (isFile) bytes += found?.size ?? 0;
      const isLeft = found !== null && found.mtimeMs < Date.now() - LEFT_BEHIND_MS;
      if (isFile ? bytes > mostBytes : isLeft) await remove(name);
    }
  }

  return {
    mayWrite: () => performance.now() >= pausedUntil,
    fail(error) {
      pausedUntil = performance.now() + PAUSE_MS;
      if (!isReported) onFailure?.(error);
      isReported = true;
    },
    async find(runs) {
      const names = new Map((await readdir(folder).catch(() => [])).map((name) => [runOf(name), name]));
      const found = new Map<Run, string>();
      for (const run of runs) {
        const name = names.get(nameOf(run));
        if (name !== undefined && (await isWhole(name).catch(() => false)))
          found.set(run, path.join(folder, name));
      }
      return found;
    },
    async begin(runs) {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      return runs.map((run) => ({ run, temporary: path.join(folder, `${randomUUID()}.tmp`) }));
    },
    async publish(files) {
      for (const { run, temporary } of files) {
        await chmod(temporary, 0o600);
        const { sha256 } = await hashFile(temporary);
        const name = `${nameOf(run)}.${sha256.slice(0, 16)}.parquet`;
        await rename(temporary, path.join(folder, name));
        const others = (await readdir(folder)).filter((other) => other.startsWith(`${run.place}.`));
        for (const other of others) if (other !== name) await remove(other);
      }
      await trim();
    },
  };
}

/**
 * Runs the statements of a search on one view of the data, with the days and hours that files answer for, oldest first: archive days,
 * and kept hours. If sealed hours of the window have no file yet, some are copied first, and the search takes a new view.
 */
export async function inKeptView<T>(
  { queries, files }: { readonly queries: Database; readonly files: ArchiveReader },
  { zoneIds, window }: { readonly zoneIds: readonly number[]; readonly window: Span },
  signal: AbortSignal,
  run: (tx: Queryable, client: pg.PoolClient, days: readonly ArchivedDay[]) => Promise<T>,
): Promise<T> {
  const { kept } = files;
  for (let mayCopy = kept?.mayWrite() === true; ; mayCopy = false) {
    let copying: ReturnType<typeof copyRuns> | null = null;
    const view = inSearchView(queries, signal, async (tx, client) => {
      const archived = await readArchivedDays(tx, zoneIds, window);
      if (kept === null) return { value: await run(tx, client, archived) };
      const runs = (await listRuns(tx, zoneIds, window)).filter(
        ({ from, to }) => from < window.to && to > window.from,
      );
      const found = await kept.find(runs);
      const missing = mayCopy
        ? pickMissing(
            runs.filter((one) => !found.has(one)),
            window,
          )
        : [];
      if (missing.length > 0) {
        copying = copyRuns(client, files, missing);
        return { write: await copying };
      }
      const days = [...archived, ...Array.from(found, ([one, file]) => toKeptDay(one, file))];
      return {
        value: await run(
          tx,
          client,
          days.sort((one, other) => one.from - other.from),
        ),
      };
    });
    try {
      const viewed = await view;
      if ("value" in viewed) return viewed.value;
      await viewed.write(signal);
    } catch (thrown) {
      signal.throwIfAborted();
      if (copying === null) throw thrown;
      kept?.fail(thrown);
    }
  }
}

/** Copies runs out of Postgres, and returns what writes their files. */
async function copyRuns(client: pg.PoolClient, files: ArchiveReader, runs: readonly Run[]) {
  const copies = runs.map((run) => ({ run, csv: files.scratchFile() }));
  const removeAll = () => Promise.all(copies.map(({ csv }) => csv.remove()));
  const zoneDayOf = ({ zoneId, from }: Run) => ({ zoneId, day: toDay(from) });
  try {
    for (const { run, csv } of copies) {
      const rows = await copyEvents(client, zoneDayOf(run), csv.path, run);
      if (rows !== run.rows)
        throw new Error(`${rows} events from ${run.place} on, and coverage counts ${run.rows}`);
    }
  } catch (thrown) {
    await removeAll();
    throw thrown;
  }
  return async (signal: AbortSignal) => {
    let written: NewFile[] = [];
    try {
      written = (await files.kept?.begin(runs)) ?? [];
      const statements = written.map(({ run, temporary }, index) =>
        writeEventsFile(copies[index]?.csv.path ?? "", temporary, zoneDayOf(run), run.rows),
      );
      await files.read(
        [],
        statements.map((one) => ({ ...one, values: [] })),
        signal,
      );
      await files.kept?.publish(written);
    } finally {
      await removeAll();
      for (const { temporary } of written) await rm(temporary, { force: true });
    }
  };
}

/** Returns the runs that the window holds whole, the oldest first, as many as one search may copy. */
function pickMissing(runs: readonly Run[], { from, to }: Span): Run[] {
  let events = 0;
  return runs
    .filter((run) => run.from >= from && run.to <= to && run.rows >= FEWEST_EVENTS)
    .sort((one, other) => one.from - other.from)
    .filter(({ rows }) => (events += rows) - rows < MOST_EVENTS);
}

function toKeptDay({ zoneId, from, to, rows }: Run, file: string): ArchivedDay {
  const events = { path: "", sha256: "", bytes: 0, day: toDay(from), format: ARCHIVE_FORMAT, kept: file };
  return { zoneId, from, to, rows, events, records: null };
}

interface Hour extends Record<string, unknown> {
  readonly zoneId: number;
  readonly from: number;
  readonly rows: number;
  readonly version: string;
}

/**
 * Returns the runs of the sealed hours of zones that are not archived, by zone and time. A page of ingest raises `stored_count` of the
 * hours that gain events; a trigger notes every other change; a restored day has another partition. A time of each makes sure
 * that a server that has lost its latest commits counts to no version that was there before.
 */
async function listRuns(tx: Queryable, zoneIds: readonly number[], window: Span): Promise<Run[]> {
  const zones = sql`any(${sql.param([...zoneIds])}::integer[])`;
  const day = sql`(${w.startsAt} at time zone 'UTC')::date`;
  const { rows } = await tx.execute<Hour>(sql`
    with p as materialized (
      select i.inhrelid as oid, to_date(right(r.relname, 8), 'YYYYMMDD') as day
      from pg_inherits i join pg_class r on r.oid = i.inhrelid
      where i.inhparent = ${getTableName(wafEvents)}::regclass offset 0),
    first as materialized (select min(day)::timestamp at time zone 'UTC' as at from p),
    changes as (
      select ${c.zoneId}, ${c.startsAt}, count(*) as changes, max(${c.changedAt}) as changed_at from ${hourChanges} ${c}
      where ${c.zoneId} = ${zones} and ${c.startsAt} >= (select at from first) group by 1, 2)
    select ${w.zoneId} as "zoneId", ${epochMs(w.startsAt)} as from, ${w.storedCount}::float8 as rows,
      concat_ws(' ', p.oid, ${w.sealedAt}, ${w.storedCount}, changes, changed_at) as version
    from ${coverageWindows} ${w}
    join p on p.day = ${day}
    left join changes c on c.zone_id = ${w.zoneId} and c.starts_at = ${w.startsAt}
    where ${w.zoneId} = ${zones} and ${w.state} = 'sealed' and ${w.startsAt} >= (select at from first)
      and ${w.startsAt} >= ${toMoment(startOfDay(window.from))} and ${w.startsAt} < ${toMoment(startOfDay(window.to) + DAY_MS)}
      and (${w.zoneId}, ${day}) not in (select ${f.zoneId}, ${f.day} from ${archiveFiles} ${f}
        where ${f.zoneId} = ${zones} and ${f.day} >= (select at from first)::date and ${f.kind} = 'events' and ${f.retiredAt} is null)
    order by 1, 2`);
  const runs: Hour[][] = [];
  for (const hour of rows) {
    const run = runs.at(-1) ?? [];
    const last = run.at(-1);
    const isNext =
      last?.zoneId === hour.zoneId && last.from + HOUR_MS === hour.from && hour.from % DAY_MS > 0;
    if (isNext && run.reduce((sum, one) => sum + one.rows, hour.rows) <= MOST_EVENTS) run.push(hour);
    else runs.push([hour]);
  }
  return runs.flatMap(([first, ...others]) => (first === undefined ? [] : [toRun([first, ...others])]));
}

function toRun(hours: readonly [Hour, ...Hour[]]): Run {
  const [{ zoneId, from }] = hours;
  const version = JSON.stringify([ARCHIVE_FORMAT, hours.map((hour) => hour.version)]);
  return {
    zoneId,
    from,
    to: from + hours.length * HOUR_MS,
    rows: hours.reduce((sum, hour) => sum + hour.rows, 0),
    place: `${new Date(from).toISOString().slice(0, 13)}.${zoneId}`,
    version: createHash("sha256").update(version).digest("hex").slice(0, 16),
  };
}

/** Removes the kept files whose events have changed or are in the archive by now. */
export async function removeStaleHours(tx: Queryable, archiveFolder: string): Promise<void> {
  const folder = keptFolder(archiveFolder);
  const names = (await readdir(folder).catch(() => [])).filter((name) => name.endsWith(".parquet"));
  if (names.length === 0) return;
  const zoneIds = [...new Set(names.map((name) => Number(name.split(".")[1])))];
  const valid = new Set((await listRuns(tx, zoneIds, { from: 0, to: Date.now() })).map(nameOf));
  for (const name of names) if (!valid.has(runOf(name))) await rm(path.join(folder, name), { force: true });
}

/** Removes all kept files. */
export function removeKeptHours(archiveFolder: string): Promise<void> {
  return rm(keptFolder(archiveFolder), { recursive: true, force: true });
}
