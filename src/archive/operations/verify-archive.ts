/** Verifies the files of the archive. */

import {
  addSums,
  compareSums,
  countHours,
  countRules,
  type DayStatement,
  describeProvisional,
  readStatement,
  STATEMENT_NAME,
  type StatedFile,
  statementPath,
  toStatedFile,
} from "#archive/rules/files/day-statement.ts";
import { listNamed, listValidFiles, type ManifestRow, markChecked } from "#db/archive/archive-files.ts";
import { locateFile, noteDamage } from "#db/archive/bring-file.ts";
import { type EventSum, measureEventsFile, sumEventsFile, sumRecordsFile } from "#db/archive/day-files.ts";
import { readDayEvidence, readHourCounts } from "#db/archive/days-to-archive.ts";
import type { Queryable } from "#db/client.ts";
import type { Duckdb } from "#db/duckdb/duckdb.ts";
import { DuckdbError } from "#db/duckdb/duckdb-messages.ts";
import type { ArchiveStore } from "#jobs/archive/archive-store.ts";
import { HOUR_MS } from "#lib/units.ts";
import { readArchivePath } from "#model/archive-layout.ts";
import type { ArchiveStorage, ListedFile } from "#model/archive-storage.ts";

/** Something that is wrong with an archive day. */
interface ArchiveProblem {
  readonly zoneId: number;
  readonly day: string;
  /** Relative to the archive folder. */
  readonly path: string;
  readonly problem: string;
}

export interface VerifiedArchive {
  readonly days: number;
  readonly files: number;
  readonly events: number;
  readonly bytes: number;
  readonly problems: readonly ArchiveProblem[];
  /** A sentence about each day that was copied before it was archived. */
  readonly provisional: readonly string[];
}

interface Verifying extends ArchiveStore {
  /** Called before each file with the share of bytes that is done, 0 to 1, and the day in words. */
  readonly onProgress: (share: number, label: string) => void;
  readonly signal: AbortSignal;
}

/** One archive day as it is claimed, by its statement or by the manifest. */
interface ClaimedDay {
  readonly zoneId: number;
  readonly day: string;
  readonly files: readonly StatedFile[];
  /** Version of the events file. */
  readonly format: number;
  readonly statement: DayStatement | null;
}

/**
 * Compares the files in a folder with the statements beside them: hashes, sums, and the events per hour and rule. Needs
 * no database, so it also checks a copy.
 */
export async function verifyFolder(verifying: Verifying): Promise<VerifiedArchive> {
  const { storage } = verifying;
  const names = (await storage.list()).flatMap(({ path }) =>
    path.endsWith(`/${STATEMENT_NAME}`) ? [path] : [],
  );
  const days: ClaimedDay[] = [];
  const problems: ArchiveProblem[] = [];
  for (const name of names.sort()) {
    const statement = readStatement(await storage.readText(name));
    if (statement === null) problems.push(toProblem(name, "is not a statement of this version"));
    else days.push({ ...pickClaim(statement), statement });
  }
  const named = new Set(days.flatMap((day) => day.files.map(({ path: name }) => name)));
  const strangers = await listStrangers(storage, async () => named);
  problems.push(...describeStrangers(strangers, "is named by no statement, so its day is not proven"));
  return verifyDays(verifying, days, problems);
}

function pickClaim({ zoneId, day, files, format }: DayStatement): Omit<ClaimedDay, "statement"> {
  return { zoneId, day, files, format };
}

function describeStrangers({ unnamed, foreign }: Strangers, problem: string): ArchiveProblem[] {
  return [
    ...unnamed.map(({ path }) => toProblem(path, problem)),
    ...foreign.map(({ path }) =>
      toProblem(path, "is no file of the archive, and engines may read it as data; move it elsewhere"),
    ),
  ];
}

function toProblem(name: string, problem: string): ArchiveProblem {
  const { zoneId, day } = readArchivePath(name) ?? { zoneId: 0, day: "" };
  return { zoneId, day, path: name, problem };
}

/** A file this old is not about to be entered into the manifest. */
const BEING_WRITTEN_MS = HOUR_MS;

async function findStrangers(db: Queryable, storage: ArchiveStorage): Promise<ArchiveProblem[]> {
  const { unnamed, foreign } = await listStrangers(storage, (names) => listNamed(db, names));
  const old = unnamed.filter(({ modifiedAt }) => Date.now() - modifiedAt > BEING_WRITTEN_MS);
  return describeStrangers(
    { unnamed: old, foreign },
    "is not in the manifest; the service removes it if the events of its whole day are proven and stored, else restore a newer backup of the database",
  );
}

/** The archive days of one zone from `from` to before `to`, `yyyy-mm-dd`. */
interface VerifiedScope {
  readonly zoneId: number;
  readonly from: string;
  readonly to: string;
}

/**
 * Compares the files with the manifest, with their statements, with the roll-up and with coverage: those of a scope, or
 * all. Notes which files are damaged and which are not.
 */
export async function verifyArchive(
  db: Queryable,
  verifying: Verifying,
  scope?: VerifiedScope,
): Promise<VerifiedArchive> {
  const isAsked = ({ zoneId, day }: { readonly zoneId: number; readonly day: string }) =>
    scope === undefined || (zoneId === scope.zoneId && day >= scope.from && day < scope.to);
  const rows = (await listValidFiles(db, { zoneId: scope?.zoneId ?? null })).filter(isAsked);
  const days = [...Map.groupBy(rows, ({ zoneId, day }) => `${zoneId} ${day}`).values()].map(toClaimed);
  const problems = (await findStrangers(db, verifying.storage)).filter(isAsked);
  const claimed: ClaimedDay[] = [];
  for (const day of days) {
    const name = statementPath(day.zoneId, day.day);
    const statement = readStatement(await verifying.storage.readText(name));
    const isSame = statement !== null && namesFiles(statement, day.files);
    if (!isSame)
      problems.push({
        ...keyOf(day),
        path: name,
        problem: "is missing, unreadable, or names other files than the manifest",
      });
    claimed.push({ ...day, statement: isSame ? statement : null });
  }
  const found = await verifyDays(verifying, claimed, problems, (day, sums) =>
    compareWithDatabase(db, day, sums),
  );
  // The files of a day that was written anew meanwhile may be deleted already.
  const valid = new Set((await listValidFiles(db)).map(({ path }) => path));
  const rewritten = rows.filter(({ path }) => !valid.has(path));
  const isRewritten = (one: ArchiveProblem) =>
    rewritten.some(({ zoneId, day }) => zoneId === one.zoneId && day === one.day);
  const verified = { ...found, problems: found.problems.filter((one) => !isRewritten(one)) };
  const wrong = new Map(verified.problems.map(({ path, problem }) => [path, problem]));
  // The alert about damaged files follows from this.
  for (const file of rows) {
    const problem = wrong.get(file.path);
    if (problem !== undefined) await noteDamage(db, file, problem);
  }
  await markChecked(
    db,
    rows.flatMap(({ path }) => (wrong.has(path) ? [] : [path])),
  );
  return verified;
}

function toClaimed(files: readonly ManifestRow[]): ClaimedDay {
  const [first] = files;
  return {
    zoneId: first?.zoneId ?? 0,
    day: first?.day ?? "",
    files: files.map(toStatedFile),
    format: files.find(({ kind }) => kind === "events")?.format ?? 1,
    statement: null,
  };
}

/** Records past their retention leave the manifest an hour before the statement. */
function namesFiles({ files }: DayStatement, expected: readonly StatedFile[]): boolean {
  const unexpected = files.filter(({ sha256 }) => !expected.some((file) => file.sha256 === sha256));
  return (
    files.length - unexpected.length === expected.length && unexpected.every(({ kind }) => kind === "records")
  );
}

const keyOf = ({ zoneId, day }: { zoneId: number; day: string }) => ({ zoneId, day });

async function verifyDays(
  { storage, duckdb, onProgress, signal }: Verifying,
  days: readonly ClaimedDay[],
  problems: ArchiveProblem[],
  compare?: (day: ClaimedDay, sums: readonly EventSum[]) => Promise<string[]>,
): Promise<VerifiedArchive> {
  const files = days.flatMap((day) => day.files);
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  let done = 0;
  for (const [index, day] of days.entries()) {
    const release = storage.hold(day.files);
    try {
      for (const file of day.files) {
        signal.throwIfAborted();
        onProgress(done / Math.max(bytes, 1), `${day.day}, day ${index + 1} of ${days.length}`);
        done += file.bytes;
        const found =
          (await storage.check(file, signal)) ??
          (storage.isBucket ? await storage.bring(file, signal) : null) ??
          (await checkContent(duckdb, locateFile(storage, file), day, file, compare).catch(toProblemText));
        for (const problem of typeof found === "string" ? [found] : found)
          problems.push({ ...keyOf(day), path: file.path, problem });
      }
    } finally {
      release();
    }
  }
  return {
    days: days.length,
    files: files.length,
    events: files.reduce((sum, { kind, rows }) => sum + (kind === "events" ? rows : 0), 0),
    bytes,
    problems,
    provisional: days.flatMap(
      ({ statement }) => (statement === null ? null : describeProvisional(statement)) ?? [],
    ),
  };
}

/** A file that DuckDB cannot read is one problem, and the other files are still checked. */
function toProblemText(thrown: unknown): string {
  if (thrown instanceof DuckdbError && thrown.code !== "DUCKDB_DIED")
    return `cannot be read: ${thrown.message}`;
  throw thrown;
}

async function checkContent(
  duckdb: Duckdb,
  name: string,
  day: ClaimedDay,
  file: StatedFile,
  compare?: (day: ClaimedDay, sums: readonly EventSum[]) => Promise<string[]>,
): Promise<string[]> {
  if (file.kind === "records") {
    const { rows, sum, records } = await sumRecordsFile(duckdb, name);
    const isSame =
      rows === file.rows && String(sum) === file.sum && records === (day.statement?.records ?? records);
    return isSame ? [] : ["holds other records than claimed"];
  }
  const sums = await sumEventsFile(duckdb, name, day.format);
  const { rows, isOrdered } = await measureEventsFile(duckdb, name);
  const found: string[] = [];
  if (rows !== file.rows || String(addSums(sums)) !== file.sum || !isOrdered)
    found.push("holds other events than claimed");
  const { statement } = day;
  if (statement !== null && JSON.stringify(statement.eventsPerHour) !== JSON.stringify(countHours(sums)))
    found.push("holds other events per hour than its statement");
  if (statement !== null && JSON.stringify(statement.eventsPerRule) !== JSON.stringify(countRules(sums)))
    found.push("holds other events per rule than its statement");
  return [...found, ...((await compare?.(day, sums)) ?? [])];
}

/** The roll-up and the hours outlive the events, so they tell whether an archive day is still complete. */
async function compareWithDatabase(
  db: Queryable,
  day: ClaimedDay,
  sums: readonly EventSum[],
): Promise<string[]> {
  const counted = await readHourCounts(db, day);
  const [different] = counted.length === 0 ? [] : compareSums(counted, sums);
  const found =
    different === undefined
      ? []
      : [
          `has ${different.other} events of rule ${JSON.stringify(different.ruleId)} in hour ${different.hour}, the roll-up ${different.one}`,
        ];
  const hours = countHours(sums);
  for (const { startsAt, events, state } of await readDayEvidence(db, day)) {
    const hour = Number(startsAt.slice(11, 13));
    if (state === "sealed" && events > 0 && events !== hours[hour])
      found.push(`has ${hours[hour]} events in hour ${hour}, the sealed hour ${events}`);
  }
  return found;
}

interface Strangers {
  /** Archive files that nothing names. */
  readonly unnamed: readonly ListedFile[];
  /** All other files. Engines may read them as data. */
  readonly foreign: readonly ListedFile[];
}

const FILE = /^(?:events|records)\/zone=\d+\/day=\d{4}-\d\d-\d\d\/[0-9a-f]{16}\.parquet$/;
const STATEMENT = new RegExp(
  String.raw`^events/zone=\d+/day=\d{4}-\d\d-\d\d/${STATEMENT_NAME}(?:\.\d+\.tmp)?$`,
);

/** Returns the files that are not part of the archive, sorted by path. */
async function listStrangers(
  storage: ArchiveStorage,
  isNamed: (names: readonly string[]) => Promise<ReadonlySet<string>>,
): Promise<Strangers> {
  const present = (await storage.list()).sort((one, other) => (one.path < other.path ? -1 : 1));
  const files = present.filter(({ path }) => FILE.test(path));
  const named = await isNamed(files.map(({ path }) => path));
  return {
    unnamed: files.filter(({ path }) => !named.has(path)),
    foreign: present.filter(({ path }) => !FILE.test(path) && !STATEMENT.test(path)),
  };
}
