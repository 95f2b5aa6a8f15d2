import { readFile, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import {
  describeProvisional,
  readStatement,
  statementPath,
  writeStatement,
} from "#archive/rules/files/day-statement.ts";
import { findReplacement, listValidFiles } from "#db/archive/archive-files.ts";
import { ArchiveDamagedError } from "#db/archive/bring-file.ts";
import type { Queryable } from "#db/client.ts";
import { UsageError } from "#lib/errors.ts";
import { many } from "#lib/format.ts";
import { DAY_MS } from "#lib/units.ts";
import type { ArchiveStorage } from "#model/archive-storage.ts";
import { type Span, toDay } from "#model/horizon.ts";

interface CopiedDays {
  readonly days: number;
  readonly files: number;
  readonly events: number;
  readonly bytes: number;
}

/** Copied days, with a sentence about each that was not in the archive yet: what is proven of it and what is not. */
export interface WholeCopy extends CopiedDays {
  readonly provisional: readonly string[];
}

export interface CopyDaysOptions {
  /** Absolute; must not exist. */
  readonly target: string;
  /** Called before each file, and after the last one, with what was copied so far and with the whole. */
  readonly onFile: (done: Omit<CopiedDays, "days">, all: CopiedDays) => void;
  /** Writes a day that is not in the archive into a folder. Returns the files; null if Postgres does not have the day. */
  readonly writeOpen: (
    day: string,
    folder: string,
  ) => Promise<readonly { kind: string; rows: number; bytes: number }[] | null>;
  readonly signal: AbortSignal;
}

/**
 * Copies the files of whole archive days into a new folder of the archive's layout, each compared with its hash on the
 * way, and their statements. Days that are not in the archive yet are written from Postgres. The folder gets its name when
 * it is complete.
 * @throws {UsageError} if a day of the span is neither in the archive nor in Postgres.
 * @throws {ArchiveDamagedError} if a file is missing or damaged.
 */
export async function copyDays(
  { db, storage }: { readonly db: Queryable; readonly storage: ArchiveStorage },
  zoneId: number,
  span: Span,
  { target, onFile, writeOpen, signal }: CopyDaysOptions,
): Promise<WholeCopy> {
  const wanted = listDaysOf(span);
  const days = Map.groupBy(
    (await listValidFiles(db, { zoneId })).filter(({ day }) => wanted.includes(day)),
    ({ day }) => day,
  );
  const files = [...days.values()].flat();
  const all = {
    days: wanted.length,
    files: files.length,
    events: files.reduce((sum, file) => sum + eventsOf(file), 0),
    bytes: files.reduce((sum, { bytes }) => sum + bytes, 0),
  };
  const temporary = `${target}.${process.pid}.tmp`;
  const done = { files: 0, events: 0, bytes: 0 };
  try {
    const missing: string[] = [];
    const provisional: string[] = [];
    for (const day of wanted.filter((one) => !days.has(one))) {
      const written = await writeOpen(day, temporary);
      if (written === null) missing.push(day);
      else {
        const text = await readFile(path.join(temporary, ...statementPath(zoneId, day).split("/")), "utf8");
        const statement = readStatement(text);
        provisional.push((statement === null ? null : describeProvisional(statement)) ?? "");
        for (const counts of [all, done]) {
          counts.files += written.length;
          counts.events += written.reduce((sum, file) => sum + eventsOf(file), 0);
          counts.bytes += written.reduce((sum, { bytes }) => sum + bytes, 0);
        }
      }
    }
    if (missing.length > 0) throw new UsageError([explainMissing(wanted, missing)]);
    for (const [day, ofDay] of days) {
      for (const file of ofDay) {
        onFile(done, all);
        const wrong = await storage.copy(file, path.join(temporary, ...file.path.split("/")), signal);
        if (wrong !== null && (await findReplacement(db, file)) !== null)
          throw new Error(`${day} was written anew meanwhile; run the command again`);
        if (wrong !== null) throw new ArchiveDamagedError(file, wrong);
        done.files += 1;
        done.events += eventsOf(file);
        done.bytes += file.bytes;
      }
      const name = statementPath(zoneId, day);
      const statement = readStatement(await storage.readText(name));
      const copied = statement?.files.filter(({ sha256 }) => ofDay.some((file) => file.sha256 === sha256));
      if (statement === null || copied?.length !== ofDay.length)
        throw new Error(
          `${name} does not name the files of ${day}: the day was changed meanwhile, or archive verify reports it; run the command again`,
        );
      await writeFile(
        path.join(temporary, ...name.split("/")),
        writeStatement({ ...statement, files: copied }),
        { mode: 0o600 },
      );
    }
    onFile(done, all);
    await rename(temporary, target);
    return { ...all, provisional };
  } catch (thrown) {
    await rm(temporary, { recursive: true, force: true });
    throw thrown;
  }
}

/** A day's other file has a row for each of the same events. */
function eventsOf({ kind, rows }: { readonly kind: string; readonly rows: number }): number {
  return kind === "events" ? rows : 0;
}

function listDaysOf({ from, to }: Span): string[] {
  return Array.from({ length: Math.ceil((to - from) / DAY_MS) }, (_, index) => toDay(from + index * DAY_MS));
}

function explainMissing(wanted: readonly string[], missing: readonly string[]): string {
  const [first = "", last = ""] = [missing[0], missing.at(-1)];
  const which =
    missing.length === 1 ? `${first} is` : `${many(missing.length, "day")} of ${first} to ${last} are`;
  const kept = wanted.filter((day) => !missing.includes(day));
  const [from, until] = [kept[0], kept.at(-1)];
  const isOneRun =
    from !== undefined && until !== undefined && listDaysOf(spanOf(from, until)).length === kept.length;
  const other = isOneRun ? `choose --from ${from} --to ${toDay(Date.parse(until) + DAY_MS)}, or ` : "";
  return `${which} neither in the archive nor in Postgres: ${other}choose days that are kept. longwatch archive status lists those of the archive`;
}

function spanOf(first: string, last: string): Span {
  return { from: Date.parse(first), to: Date.parse(last) + DAY_MS };
}
