import { rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { ArchiveDamagedError } from "#db/archive/archive-damaged-error.ts";
import { findReplacement, listValidFiles } from "#db/archive/archive-files.ts";
import type { Queryable } from "#db/client.ts";
import { UsageError } from "#lib/errors.ts";
import { many } from "#lib/format.ts";
import { DAY_MS } from "#lib/units.ts";
import type { ArchiveStorage } from "#model/archive-storage.ts";
import { toDay } from "#model/horizon.ts";
import type { Span } from "#model/span.ts";
import { readStatement, statementPath, writeStatement } from "#stages/archive/files/day-statement.ts";

export interface CopiedDays {
  readonly days: number;
  readonly files: number;
  readonly events: number;
  readonly bytes: number;
}

export interface CopyDaysOptions {
  /** Absolute; must not exist. */
  readonly target: string;
  /** Called before each file, and after the last one, with what was copied so far and with the whole. */
  readonly onFile: (done: Omit<CopiedDays, "days">, all: CopiedDays) => void;
  readonly signal: AbortSignal;
}

/**
 * Copies the files of whole archive days into a new folder of the archive's layout, each compared with its hash on the
 * way, and their statements. The folder gets its name when it is complete.
 * @throws {UsageError} if a day of the span is not in the archive.
 * @throws {ArchiveDamagedError} if a file is missing or damaged.
 */
export async function copyDays(
  { db, storage }: { readonly db: Queryable; readonly storage: ArchiveStorage },
  zoneId: number,
  span: Span,
  { target, onFile, signal }: CopyDaysOptions,
): Promise<CopiedDays> {
  const wanted = listDaysOf(span);
  const days = Map.groupBy(
    (await listValidFiles(db, { zoneId })).filter(({ day }) => wanted.includes(day)),
    ({ day }) => day,
  );
  const missing = wanted.filter((day) => !days.has(day));
  if (missing.length > 0) throw new UsageError([explainMissing(wanted, missing)]);
  const files = [...days.values()].flat();
  const all = {
    days: days.size,
    files: files.length,
    events: files.reduce((sum, file) => sum + eventsOf(file), 0),
    bytes: files.reduce((sum, { bytes }) => sum + bytes, 0),
  };
  const temporary = `${target}.${process.pid}.tmp`;
  const done = { files: 0, events: 0, bytes: 0 };
  try {
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
    return all;
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
  return `${which} not in the archive, and --format parquet copies files of the archive: ${other}leave out --format and write --out events.csv or --out events.ndjson, which also read Postgres. longwatch archive status says when a day is archived`;
}

function spanOf(first: string, last: string): Span {
  return { from: Date.parse(first), to: Date.parse(last) + DAY_MS };
}
