/**
 * Keeps what searches copy out of Postgres: files of sealed hours, which are read instead of their events until one of these events
 * changes. Postgres stays the truth. Without the files, searches take longer and find the same.
 */
import { createHash } from "node:crypto";
import { readdir, rm, stat } from "node:fs/promises";
import path from "node:path";
import { sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type pg from "pg";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { ARCHIVE_FORMAT } from "#model/archive-layout.ts";
import { type Span, toDay } from "#model/horizon.ts";
import type { Database, Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { archiveFiles } from "../schema/archive.ts";
import { coverageWindows } from "../schema/coverage.ts";
import { hourChanges } from "../schema/events.ts";
import type { ArchiveReader } from "./archive-reader.ts";
import {
  type ArchivedDay,
  isDayOf,
  isSmall,
  JOINED_EVENTS,
  openDays,
  readArchivedDays,
} from "./archived-days.ts";
import { eventFormat, quote, writeEventsFile } from "./day-files.ts";
import { copyEvents } from "./day-source.ts";
import { keptFolder, type NewFile, nameOf, type Run, runOf } from "./kept-files.ts";
import { inSearchView } from "./search-condition.ts";

/** A larger file takes too long to write within a search. */
const MOST_EVENTS = 100_000;
/** To open a smaller file takes longer than to copy its events. */
const FEWEST_EVENTS = 500;
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
      if (kept === null) return { value: await run(tx, client, await readArchivedDays(tx, zoneIds, window)) };
      const stored = joinRuns(await listRuns(tx, zoneIds, window));
      const runs = [...stored, ...(await listSmallDays(tx, zoneIds, window))].filter(
        ({ from, to }) => from < window.to && to > window.from,
      );
      const found = await kept.find(runs);
      const copied = [...found.keys()].flatMap(({ isCopy, from }) => (isCopy ? toDay(from) : []));
      // To read a row for each day of each zone takes longer than the search of many zones.
      const archived = await readArchivedDays(tx, zoneIds, window, copied);
      const missing = mayCopy
        ? pickMissing(
            runs.filter((one) => !found.has(one)),
            window,
          )
        : [];
      if (missing.length > 0) {
        const sourcesOf = ({ isCopy, from }: Run) =>
          archived.filter((day) => isCopy && day.from === from && day.isSmall);
        copying = copyRuns(
          client,
          files,
          missing.map((one) => ({ ...one, sources: sourcesOf(one) })),
        );
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

/** Returns the archive days of which so many zones have so few events that one file of them is worthwhile. */
async function listSmallDays(tx: Queryable, zoneIds: readonly number[], window: Span): Promise<Run[]> {
  if (zoneIds.length < FEWEST_JOINED) return [];
  const { rows } = await tx.execute<{ day: string; zoneIds: number[]; rows: number; version: string }>(sql`
    select ${f.day}::text, array_agg(${f.zoneId} order by ${f.zoneId}) as "zoneIds", sum(${f.rows})::float8 as rows,
      md5(string_agg(${f.path}, ',' order by ${f.zoneId})) as version
    from ${archiveFiles} ${f}
    where ${f.zoneId} = any(${sql.param([...zoneIds])}::integer[]) and ${f.kind} = 'events' and ${f.retiredAt} is null
      and ${isDayOf(f.day, window)} and ${isSmall(f)}
    group by ${f.day} having count(*) >= ${FEWEST_JOINED}`);
  return rows.map(({ day, version, ...run }) => {
    const startsAt = Date.parse(day);
    return {
      ...run,
      ...toJoined(startsAt, run.zoneIds, [version]),
      isCopy: true,
      sources: [],
      from: startsAt,
      to: startsAt + DAY_MS,
    };
  });
}

/** Puts small runs of the same hours together. */
function joinRuns(runs: readonly Run[]): Run[] {
  const groups = Map.groupBy(runs, ({ from, to, rows, place }) =>
    rows < JOINED_EVENTS ? `${from} ${to}` : place,
  );
  return Array.from(groups.values(), ([first, ...others]): Run[] => {
    if (first === undefined || others.length === 0) return first === undefined ? [] : [first];
    const all = [first, ...others];
    const zoneIds = all.flatMap((run) => run.zoneIds);
    const versions = all.map(({ version }) => version);
    const rows = all.reduce((sum, { rows }) => sum + rows, 0);
    return [{ ...first, zoneIds, rows, ...toJoined(first.from, zoneIds, versions) }];
  }).flat();
}

function toJoined(from: number, zoneIds: readonly number[], versions: readonly string[]) {
  return { place: toPlace(from, `z${toVersion(zoneIds.map(String))}`), version: toVersion(versions) };
}

/** Copies runs out of Postgres, and returns what writes their files. */
async function copyRuns(client: pg.PoolClient, files: ArchiveReader, runs: readonly Run[]) {
  const copies = runs.map((run) => ({ run, csv: files.scratchFile() }));
  const removeAll = () => Promise.all(copies.map(({ csv }) => csv.remove()));
  try {
    for (const { run, csv } of copies) {
      if (run.isCopy) continue;
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
  const isRead = (run: Run) => run.isCopy || (run.from >= from && run.to <= to);
  let events = 0;
  return runs
    .filter((run) => isRead(run) && run.rows >= FEWEST_EVENTS)
    .sort((one, other) => one.from - other.from)
    .filter(({ rows }) => (events += rows) - rows < MOST_EVENTS);
}

function toKeptDay({ zoneIds, from, to, rows, isCopy = false }: Run, file: string): ArchivedDay {
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
  const { rows } = await tx.execute<{
    zoneId: number;
    from: number;
    hours: number;
    rows: number;
    version: string;
  }>(sql`
    with ${openDays(zoneIds, window)},
    changes as materialized (
      select ${c.zoneId}, ${c.startsAt}, count(*) as changes, max(${c.changedAt}) as changed_at from ${hourChanges} ${c}
      where ${c.zoneId} = ${zones} and ${c.startsAt} >= (select min(from_at) from days) group by 1, 2),
    sealed as materialized (
      select zone, day, at, events, hash_record_extended(row(oid, at, sealed_at, events, changes, changed_at), 0) as version
      from days cross join lateral (
        select ${w.startsAt} as at, ${w.storedCount} as events, ${w.sealedAt} from ${coverageWindows} ${w}
        where ${w.zoneId} = zone and ${w.startsAt} >= from_at and ${w.startsAt} < from_at + interval '1 day'
          and ${w.state} = 'sealed' offset 0) w
      left join changes c on c.zone_id = zone and c.starts_at = at),
    whole as materialized (
      select zone, day, min(at) as at, count(*) as hours, sum(events) as events, bit_xor(version) as version,
        count(*) = extract(epoch from max(at) - min(at)) / 3600 + 1 and sum(events) <= ${MOST_EVENTS}::integer as is_run
      from sealed group by zone, day),
    parts as (
      select *, at - row_number() over by_day * interval '1 hour' as run,
        (sum(events) over by_day - 1) / ${MOST_EVENTS}::integer as part
      from sealed where (zone, day) in (select zone, day from whole where not is_run)
      window by_day as (partition by zone, day order by at)),
    runs as (
      select zone, at, hours, events, version from whole where is_run
      union all
      select zone, min(at), count(*), sum(events), bit_xor(version) from parts group by zone, day, run, part)
    select zone as "zoneId", ${epochMs(sql`at`)} as from, hours::integer, events::float8 as rows, version::text
    from runs order by at, zone`);
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
