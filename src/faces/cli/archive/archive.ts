/** The commands of the archive: write, verify, rewrite and restore. */

import path from "node:path";
import type { Command } from "commander";
import { createFolderStorage } from "#adapters/storage/folder-storage.ts";
import type { Config } from "#config/config.ts";
import { archiveDays } from "#jobs/archive/archive-days.ts";
import { formatBytes } from "#lib/disk.ts";
import { formatWhole, many } from "#lib/format.ts";
import { escapeText } from "#lib/text.ts";
import { showArchiveStatus } from "#operations/archive/archive-status.ts";
import { restoreDay, rewriteArchive } from "#operations/archive/restore-day.ts";
import { type VerifiedArchive, verifyArchive, verifyFolder } from "#operations/archive/verify-archive.ts";
import { SUMMARIES } from "../commands.ts";
import { createProcessIo, writeJson, writeOut } from "../edge/edge-io.ts";
import { subjectCommand } from "../operations/operation-command.ts";
import { readZone } from "../options/read-options.ts";
import { readServiceClock } from "../store/open-store.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";
import { type ArchiveCommandParts, knownZones, withArchive, withStorage } from "./with-archive.ts";

/** `longwatch archive`: the days that are kept as Parquet files. */
export function archiveCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return subjectCommand("archive", SUMMARIES.archive, [showArchiveStatus], readConfig, io, [
    writeCommand(readConfig, io),
    verifyCommand(readConfig, io),
    restoreCommand(readConfig, io),
    rewriteCommand(readConfig, io),
  ]);
}

const WRITE_HELP = `
Writes every day that can no longer change and is not in the archive yet, oldest first. The service does the same every
hour. Exit code 0; 1 if a day failed or the service is writing now.

Examples:
  npm run -s longwatch -- archive write
  npm run -s longwatch -- archive write --zone 101 --json`;

interface WriteFlags {
  readonly zone?: string;
  readonly json?: true;
}

/** `longwatch archive write`. */
function writeCommand(readConfig: () => Config, io: StoreIo): Command {
  return storeCommand("write", "Write the days that can no longer change.", WRITE_HELP, io)
    .option("--zone <id>", "one shield zone (default: all)")
    .option("--json", "print JSON")
    .action(
      storeAction<WriteFlags>(io, async (flags, read) => {
        const zoneId = readZone(read, flags, false) ?? null;
        read.finish();
        const config = readConfig();
        const zoneIds = knownZones(config);
        const written = await withArchive(io, config, async ({ database, archive, onProgress, signal }) => {
          const clock = await readServiceClock(database, io.clock);
          const say = (facts: object, event: string) =>
            void io.stderr.write(`${event}: ${escapeText(JSON.stringify(facts, toText))}\n`);
          const log = { info: () => undefined, warn: say, error: say };
          const onDay = ({ zoneId, day }: { zoneId: number; day: string }, done: number, all: number) =>
            onProgress(done / all, `${day}, zone ${zoneId} (${done + 1} of ${all})`);
          return archiveDays({ database, archive, clock, zoneIds, log }, { zoneId, onDay }, signal);
        });
        if (written === null) throw new Error("another process is writing to the archive; try again later");
        if (flags.json === true) await writeJson(io.stdout, { written });
        else await writeOut(io.stdout, `${many(written, "day")} written\n`);
      }),
    );
}

function toText(_: string, value: unknown): unknown {
  return value instanceof Error ? value.message : value;
}

const MOST_SHOWN = 50;

const VERIFY_HELP = `
Reads every file of the archive and compares it with its hash, with its day's statement, with the roll-up and with the
sealed hours. With --offline the command needs no database and no platform: it checks a copy of the archive folder against
the statements in it. Exit code 0; 1 if something differs.

Examples:
  npm run -s longwatch -- archive verify
  npm run -s longwatch -- archive verify --offline /mnt/backup/archive --json`;

interface VerifyFlags {
  readonly offline?: string;
  readonly json?: true;
}

/** `longwatch archive verify`. */
function verifyCommand(readConfig: () => Config, io: StoreIo): Command {
  return storeCommand("verify", "Check the archive's files.", VERIFY_HELP, io)
    .option("--offline <folder>", "check this copy of the archive folder, without the database")
    .option("--json", "print JSON")
    .action(
      storeAction<VerifyFlags>(io, async (flags, read) => {
        read.finish();
        const parts = ({ archive, onProgress, signal }: ArchiveCommandParts) => ({
          ...archive,
          signal,
          onProgress,
        });
        const verified =
          flags.offline === undefined
            ? await withArchive(io, readConfig(), ({ database, ...rest }) =>
                verifyArchive(database.db, parts(rest)),
              )
            : await withStorage(io, createFolderStorage(path.resolve(flags.offline)), (rest) =>
                verifyFolder(parts(rest)),
              );
        if (flags.json === true) await writeJson(io.stdout, verified);
        else await writeOut(io.stdout, describe(verified));
        if (verified.problems.length > 0) io.setExitCode(1);
      }),
    );
}

function describe({ days, files, events, bytes, problems, provisional }: VerifiedArchive): string {
  const lines = problems
    .slice(0, MOST_SHOWN)
    .map(({ path, problem }) => `  ${escapeText(path)} ${escapeText(problem)}\n`);
  const more =
    problems.length > MOST_SHOWN ? `  and ${formatWhole(problems.length - MOST_SHOWN)} more\n` : "";
  const verdict = problems.length === 0 ? "nothing differs\n" : `${many(problems.length, "problem")}:\n`;
  return `${many(days, "day")}, ${many(files, "file")}, ${many(events, "event")}, ${formatBytes(bytes)}: ${verdict}${lines.join("")}${more}${provisional.map((one) => `${one}\n`).join("")}`;
}

const HELP = `
Writes the events files of earlier versions of Longwatch anew, oldest day first, one day after the other. The new files have
the facts of each request, from the day's records: method, request id, a hash of what matched, session, referer, idiom, tool
and body; and host and path beside the URL. Everything else is compared and stays. Searches go on meanwhile. A run that was
stopped goes on where it ended. With --day, a day is written anew also if its files are of this version. Exit code 0; 1 if a
day failed, and that day stays as it was.

Examples:
  npm run -s longwatch -- archive rewrite
  npm run -s longwatch -- archive rewrite --zone 101 --day 2026-08-14 --json`;

interface Flags {
  readonly zone?: string;
  readonly day?: string;
  readonly json?: true;
}

/** `longwatch archive rewrite`. */
function rewriteCommand(readConfig: () => Config, io: StoreIo): Command {
  return storeCommand("rewrite", "Add the facts of requests to days of earlier versions.", HELP, io)
    .option("--zone <id>", "one shield zone (default: all)")
    .option("--day <day>", "one UTC day, yyyy-mm-dd (default: all days of earlier versions)")
    .option("--json", "print JSON")
    .action(
      storeAction<Flags>(io, async (flags, read) => {
        const zoneId = readZone(read, flags, false) ?? null;
        const day = flags.day ?? null;
        if (day !== null && (!/^\d{4}-\d\d-\d\d$/.test(day) || Number.isNaN(Date.parse(day))))
          read.wrong("day", flags.day, "a UTC day: yyyy-mm-dd");
        read.finish();
        const rewritten = await withArchive(io, readConfig(), ({ onProgress, ...parts }) =>
          rewriteArchive(parts, {
            zoneId,
            day,
            onDay: (one, done, all) =>
              onProgress(done / all, `${one.day}, zone ${one.zoneId} (${done + 1} of ${all})`),
            onFailure: (one, { message }) =>
              void io.stderr.write(
                `${one.day}, zone ${one.zoneId}, stays as it was: ${escapeText(message)}\n`,
              ),
          }),
        );
        if (flags.json === true) await writeJson(io.stdout, rewritten);
        else {
          const { days, events, records, failed } = rewritten;
          const wrong = failed === 0 ? "" : `; ${many(failed, "day")} failed`;
          const what = `${many(days, "day")}, ${many(events, "event")}, ${many(records, "record")} read${wrong}`;
          await writeOut(io.stdout, `${what}\n`);
        }
        if (rewritten.failed > 0) io.setExitCode(1);
      }),
    );
}

const RESTORE_HELP = `
Checks the files of an archive day and copies its events and records back into Postgres. Searches then read Postgres. The
service archives the day again within the hour. Exit code 0; 1 if a file is missing or damaged, and nothing is changed then.

Examples:
  npm run -s longwatch -- archive restore --zone 101 --day 2026-08-14`;

/** `longwatch archive restore`. */
function restoreCommand(readConfig: () => Config, io: StoreIo): Command {
  return storeCommand("restore", "Bring an archive day back into Postgres.", RESTORE_HELP, io)
    .option("--zone <id>", "shield zone (required)")
    .option("--day <day>", "UTC day, yyyy-mm-dd (required)")
    .option("--json", "print JSON")
    .action(
      storeAction<Flags>(io, async (flags, read) => {
        const zoneId = readZone(read, flags, true) ?? 0;
        const day = flags.day ?? "";
        if (!/^\d{4}-\d\d-\d\d$/.test(day) || Number.isNaN(Date.parse(day)))
          read.wrong("day", flags.day, "a UTC day: yyyy-mm-dd");
        read.finish();
        const restored = await withArchive(io, readConfig(), (parts) =>
          restoreDay(parts, { zoneId, day }, (share) => parts.onProgress(share, day)),
        );
        if (flags.json === true) await writeJson(io.stdout, { zoneId, day, ...restored });
        else {
          const what = restored.wasStored
            ? "Postgres still had the day"
            : `${many(restored.records, "record")} copied`;
          await writeOut(io.stdout, `${day}, zone ${zoneId}: ${many(restored.events, "event")}; ${what}\n`);
        }
      }),
    );
}
