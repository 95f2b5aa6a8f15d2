/**
 * Keeps what searches copy out of Postgres: files of sealed hours, which are read instead of their events until one of these events
 * changes. Postgres stays the truth. Without the files, searches take longer and find the same.
 */
import { createHash } from "node:crypto";
import { readdir, rm, stat } from "node:fs/promises";
import path from "node:path";
import { getTableName, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type pg from "pg";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { ARCHIVE_FORMAT } from "#model/archive-layout.ts";
import { type Span, startOfDay, toDay } from "#model/horizon.ts";
import type { Database, Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { archiveFiles } from "../schema/archive.ts";
import { coverageWindows } from "../schema/coverage.ts";
import { hourChanges, wafEvents } from "../schema/events.ts";
import type { ArchiveReader } from "./archive-reader.ts";
import { type ArchivedDay, readArchivedDays } from "./archived-days.ts";
import { eventFormat, quote, writeEventsFile } from "./day-files.ts";
import { copyEvents } from "./day-source.ts";
import { keptFolder, type NewFile, nameOf, type Run, runOf } from "./kept-files.ts";
import { inSearchView, toMoment } from "./search-condition.ts";

/** A larger file takes too long to write within a search. */
const MOST_EVENTS = 100_000;
/** To open a smaller file takes longer than to copy its events. */
const FEWEST_EVENTS = 500;
/** If a search reads several zones, runs of the same hours with fewer events are put into one file, for the same reason. */
const JOINED_EVENTS = 10_000;
/** Files of the archive are joined from so many on. */
const FEWEST_JOINED = 10;
/** Longer than a change takes to commit, and than the clocks of two machines differ. */
const CLOCKS_MS = 10 * MINUTE_MS;

const [w, c, f] = [alias(coverageWindows, "w"), alias(hourChanges, "c"), alias(archiveFiles, "f")];

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
      const stored = await listRuns(tx, zoneIds, window);
      const runs = joinRuns([
        ...stored,
        ...(zoneIds.length < FEWEST_JOINED ? [] : archived.flatMap(toSource)),
      ]).filter(({ from, to, sources }) => from < window.to && to > window.from && isWorthwhile(sources));
      const found = await kept.find(runs);
      const copied = new Set([...found.keys()].flatMap(({ sources }) => sources));
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
      const days = [
        ...archived.filter((one) => !copied.has(one)),
        ...Array.from(found, ([one, file]) => toKeptDay(one, file)),
      ];
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

const isWorthwhile = ({ length }: readonly ArchivedDay[]) => length === 0 || length >= FEWEST_JOINED;

function toSource(day: ArchivedDay): Run[] {
  const { zoneId, events, ...run } = day;
  if (events.format !== ARCHIVE_FORMAT) return [];
  return [
    {
      ...run,
      zoneIds: [zoneId],
      sources: [day],
      place: toPlace(run.from, String(zoneId)),
      version: events.path,
    },
  ];
}

/** Puts small runs of the same hours together. */
function joinRuns(runs: readonly Run[]): Run[] {
  const groups = Map.groupBy(runs, ({ from, to, rows, place, sources }) =>
    rows < JOINED_EVENTS ? `${from} ${to} ${sources.length}` : place,
  );
  return Array.from(groups.values(), ([first, ...others]): Run[] => {
    if (first === undefined || others.length === 0) return first === undefined ? [] : [first];
    const all = [first, ...others];
    const zoneIds = all.flatMap((run) => run.zoneIds);
    return [
      {
        ...first,
        zoneIds,
        sources: all.flatMap(({ sources }) => sources),
        rows: all.reduce((sum, { rows }) => sum + rows, 0),
        place: toPlace(first.from, `z${toVersion(zoneIds.map(String))}`),
        version: toVersion(all.map(({ version }) => version)),
      },
    ];
  }).flat();
}

/** Copies runs out of Postgres, and returns what writes their files. */
async function copyRuns(client: pg.PoolClient, files: ArchiveReader, runs: readonly Run[]) {
  const copies = runs.map((run) => ({ run, csv: files.scratchFile() }));
  const removeAll = () => Promise.all(copies.map(({ csv }) => csv.remove()));
  try {
    for (const { run, csv } of copies) {
      if (run.sources.length > 0) continue;
      const rows = await copyEvents(client, { zoneId: 0, day: toDay(run.from) }, csv.path, run);
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
      const statements = written.map(({ run, temporary }, index) => {
        const names = run.sources.map(({ events }) => quote(files.pathOf(events))).join(", ");
        if (names === "")
          return writeEventsFile(
            copies[index]?.csv.path ?? "",
            temporary,
            { zoneId: null, day: toDay(run.from) },
            run.rows,
          );
        return {
          sql: `copy (from read_parquet([${names}], hive_partitioning = false)) to ${quote(temporary)} (${eventFormat(run.rows)})`,
        };
      });
      const read = runs.flatMap(({ sources }) => sources.map(({ events }) => events));
      await files.read(
        read,
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

/** Returns the runs that the window holds whole, and archive days, the oldest first, as many as one search may copy. */
function pickMissing(runs: readonly Run[], { from, to }: Span): Run[] {
  const isRead = (run: Run) => run.sources.length > 0 || (run.from >= from && run.to <= to);
  let events = 0;
  return runs
    .filter((run) => isRead(run) && run.rows >= FEWEST_EVENTS)
    .sort((one, other) => one.from - other.from)
    .filter(({ rows }) => (events += rows) - rows < MOST_EVENTS);
}

function toKeptDay({ zoneIds, from, to, rows, sources }: Run, file: string): ArchivedDay {
  const isCopy = sources.length > 0;
  const events = { path: "", sha256: "", bytes: 0, day: toDay(from), format: ARCHIVE_FORMAT, kept: file };
  return { zoneId: zoneIds[0] ?? 0, zoneIds, isCopy, from, to, rows, events, records: null };
}

/**
 * Returns the runs of the sealed hours of zones that are not archived. A page of ingest raises `stored_count` of the hours that gain
 * events; a trigger notes every other change; a restored day has another partition. A time of each makes sure that a
 * server that has lost its latest commits counts to no version that was there before.
 */
async function listRuns(tx: Queryable, zoneIds: readonly number[], window: Span): Promise<Run[]> {
  const zones = sql`any(${sql.param([...zoneIds])}::integer[])`;
  const day = sql`(${w.startsAt} at time zone 'UTC')::date`;
  const { rows } = await tx.execute<{
    zoneId: number;
    from: number;
    hours: number;
    rows: number;
    version: string;
  }>(sql`
    with p as materialized (
      select i.inhrelid as oid, to_date(right(r.relname, 8), 'YYYYMMDD') as day
      from pg_inherits i join pg_class r on r.oid = i.inhrelid
      where i.inhparent = ${getTableName(wafEvents)}::regclass offset 0),
    first as materialized (select min(day)::timestamp at time zone 'UTC' as at from p),
    changes as (
      select ${c.zoneId}, ${c.startsAt}, count(*) as changes, max(${c.changedAt}) as changed_at from ${hourChanges} ${c}
      where ${c.zoneId} = ${zones} and ${c.startsAt} >= (select at from first) group by 1, 2),
    sealed as (
      select ${w.zoneId} as zone, p.day, ${w.startsAt} as at, ${w.storedCount} as events,
        concat_ws(' ', p.oid, ${w.sealedAt}, ${w.storedCount}, changes, changed_at) as version,
        ${w.startsAt} - row_number() over by_day * interval '1 hour' as run,
        (sum(${w.storedCount}) over by_day - 1) / ${MOST_EVENTS}::integer as part
      from ${coverageWindows} ${w}
      join p on p.day = ${day}
      left join changes c on c.zone_id = ${w.zoneId} and c.starts_at = ${w.startsAt}
      where ${w.zoneId} = ${zones} and ${w.state} = 'sealed' and ${w.startsAt} >= (select at from first)
        and ${w.startsAt} >= ${toMoment(startOfDay(window.from))} and ${w.startsAt} < ${toMoment(startOfDay(window.to) + DAY_MS)}
        and (${w.zoneId}, ${day}) not in (select ${f.zoneId}, ${f.day} from ${archiveFiles} ${f}
          where ${f.zoneId} = ${zones} and ${f.day} >= (select at from first)::date and ${f.kind} = 'events' and ${f.retiredAt} is null)
      window by_day as (partition by ${w.zoneId}, p.day order by ${w.startsAt}))
    select zone as "zoneId", ${epochMs(sql`min(at)`)} as from, count(*)::integer as hours, sum(events)::float8 as rows,
      md5(string_agg(version, ',' order by at)) as version
    from sealed group by zone, day, run, part order by 2, 1`);
  return rows.map(({ zoneId, hours, version, ...run }) => ({
    ...run,
    zoneIds: [zoneId],
    sources: [],
    to: run.from + hours * HOUR_MS,
    place: toPlace(run.from, String(zoneId)),
    version: toVersion([version]),
  }));
}

const toPlace = (from: number, zone: string) => `${new Date(from).toISOString().slice(0, 13)}.${zone}`;

function toVersion(parts: readonly string[]): string {
  const text = JSON.stringify([ARCHIVE_FORMAT, parts]);
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

/**
 * Removes the kept files whose events have changed or are in the archive by now. The name of a file of several zones does not say
 * which: it goes once anything of its day has changed.
 */
export async function removeStaleHours(tx: Queryable, archiveFolder: string): Promise<void> {
  const folder = keptFolder(archiveFolder);
  const names = (await readdir(folder).catch(() => [])).filter((name) => name.endsWith(".parquet"));
  if (names.length === 0) return;
  const zoneIds = names.map((name) => Number(name.split(".")[1])).filter((zoneId) => zoneId > 0);
  const valid = new Set((await listRuns(tx, [...new Set(zoneIds)], { from: 0, to: Date.now() })).map(nameOf));
  const { rows } = await tx.execute<{ day: string; at: number }>(sql`
    select day::text, max(at) as at from (
      select (${c.startsAt} at time zone 'UTC')::date as day, ${epochMs(c.changedAt)} as at from ${hourChanges} ${c}
      union all select ${f.day}, ${epochMs(sql`greatest(${f.writtenAt}, ${f.retiredAt})`)} from ${archiveFiles} ${f}) changed
    group by day`);
  const changedAt = new Map(rows.map(({ day, at }) => [day, at]));
  for (const name of names) {
    const found = await stat(path.join(folder, name)).catch(() => null);
    const isOld = (found?.mtimeMs ?? 0) < (changedAt.get(name.slice(0, 10)) ?? 0) + CLOCKS_MS;
    if (name.includes(".z") ? isOld : !valid.has(runOf(name)))
      await rm(path.join(folder, name), { force: true });
  }
}
