/** The commands of the archive: write, verify, rewrite and restore. */

import path from "node:path";
import type { Command } from "commander";
import { showArchiveStatus } from "#archive/operations/archive-status.ts";
import { restoreDay, rewriteArchive } from "#archive/operations/restore-day.ts";
import { type VerifiedArchive, verifyArchive, verifyFolder } from "#archive/operations/verify-archive.ts";
import { type Config, zonesOf } from "#config/config.ts";
import type { ZoneDay } from "#db/archive/day-source.ts";
import { archiveDays } from "#jobs/archive/archive-days.ts";
import { formatBytes } from "#lib/disk.ts";
import { formatWhole, many } from "#lib/format.ts";
import { escapeText } from "#lib/text.ts";
import { createFolderStorage } from "#store/bucket/folder-storage.ts";
import { createProcessIo } from "../edge/edge-io.ts";
import type { FlagReader } from "../edge/flag-reader.ts";
import { subjectCommand } from "../operations/operation-command.ts";
import { readZone } from "../options/read-options.ts";
import { defineTask, onFiles, onStore } from "../store/define-task.ts";
import type { StoreIo } from "../store/store-command.ts";

const WRITE_HELP = `
Writes every day that can no longer change and is not in the archive yet, oldest first. The service does the same every
hour. Exit code 0; 1 if a day failed or the service is writing now.

Examples:
  npm run -s longwatch -- archive write
  npm run -s longwatch -- archive write --zone 101 --json`;

const writeCommand = defineTask({
  name: "write",
  summary: "Write the days that can no longer change.",
  help: WRITE_HELP,
  options: { "--zone <id>": "one shield zone (default: all)" },
  read: (flags, read) => readZone(read, flags, false) ?? null,
  async run(zoneId, io, readConfig) {
    const written = await onStore(io, readConfig(), ({ config, onProgress, signal, ...parts }) => {
      const say = (facts: object, event: string) =>
        void io.stderr.write(`${event}: ${escapeText(JSON.stringify(facts, toText))}\n`);
      const log = { info: () => undefined, warn: say, error: say };
      // The demo's zones are not in its configuration.
      const configured = zonesOf(config);
      const zoneIds = configured.length === 0 ? null : configured;
      return archiveDays({ ...parts, zoneIds, log }, { zoneId, onDay: toProgress(onProgress) }, signal);
    });
    if (written === null) throw new Error("another process is writing to the archive; try again later");
    return { facts: { written }, text: `${many(written, "day")} written\n` };
  },
});

function toProgress(onProgress: (share: number, label: string) => void) {
  return ({ zoneId, day }: ZoneDay, done: number, all: number) =>
    onProgress(done / all, `${day}, zone ${zoneId} (${done + 1} of ${all})`);
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

const verifyCommand = defineTask({
  name: "verify",
  summary: "Check the archive's files.",
  help: VERIFY_HELP,
  options: { "--offline <folder>": "check this copy of the archive folder, without the database" },
  read: ({ offline }) => ({ offline }),
  async run({ offline }, io, readConfig) {
    const verified = await (offline === undefined
      ? onStore(io, readConfig(), ({ database, archive, ...parts }) =>
          verifyArchive(database.db, { ...archive, ...parts }),
        )
      : onFiles(io, createFolderStorage(path.resolve(offline)), ({ archive, ...parts }) =>
          verifyFolder({ ...archive, ...parts }),
        ));
    return { facts: verified, text: describe(verified), isFailed: verified.problems.length > 0 };
  },
});

function describe({ days, files, events, bytes, problems, provisional }: VerifiedArchive): string {
  const lines = problems
    .slice(0, MOST_SHOWN)
    .map(({ path, problem }) => `  ${escapeText(path)} ${escapeText(problem)}\n`);
  const more =
    problems.length > MOST_SHOWN ? `  and ${formatWhole(problems.length - MOST_SHOWN)} more\n` : "";
  const verdict = problems.length === 0 ? "nothing differs\n" : `${many(problems.length, "problem")}:\n`;
  return `${many(days, "day")}, ${many(files, "file")}, ${many(events, "event")}, ${formatBytes(bytes)}: ${verdict}${lines.join("")}${more}${provisional.map((one) => `${one}\n`).join("")}`;
}

const REWRITE_HELP = `
Writes the events files of earlier versions of Longwatch anew, oldest day first, one day after the other. The new files have
the facts of each request, from the day's records: method, request id, a hash of what matched, session, referer, idiom, tool
and body; and host and path beside the URL. Everything else is compared and stays. Searches go on meanwhile. A run that was
stopped goes on where it ended. With --day, a day is written anew also if its files are of this version. Exit code 0; 1 if a
day failed, and that day stays as it was.

Examples:
  npm run -s longwatch -- archive rewrite
  npm run -s longwatch -- archive rewrite --zone 101 --day 2026-08-14 --json`;

const rewriteCommand = defineTask({
  name: "rewrite",
  summary: "Add the facts of requests to days of earlier versions.",
  help: REWRITE_HELP,
  options: {
    "--zone <id>": "one shield zone (default: all)",
    "--day <day>": "one UTC day, yyyy-mm-dd (default: all days of earlier versions)",
  },
  read: (flags, read) => ({
    zoneId: readZone(read, flags, false) ?? null,
    day: flags.day === undefined ? null : readDay(read, flags.day),
  }),
  async run(scope, io, readConfig) {
    const rewritten = await onStore(io, readConfig(), ({ onProgress, ...parts }) =>
      rewriteArchive(parts, {
        ...scope,
        onDay: toProgress(onProgress),
        onFailure: ({ zoneId, day }, { message }) =>
          void io.stderr.write(`${day}, zone ${zoneId}, stays as it was: ${escapeText(message)}\n`),
      }),
    );
    const { days, events, records, failed } = rewritten;
    const wrong = failed === 0 ? "" : `; ${many(failed, "day")} failed`;
    const text = `${many(days, "day")}, ${many(events, "event")}, ${many(records, "record")} read${wrong}\n`;
    return { facts: rewritten, text, isFailed: failed > 0 };
  },
});

function readDay(read: FlagReader, day: string | undefined): string {
  if (!/^\d{4}-\d\d-\d\d$/.test(day ?? "") || Number.isNaN(Date.parse(day ?? "")))
    read.wrong("day", day, "a UTC day: yyyy-mm-dd");
  return day ?? "";
}

const RESTORE_HELP = `
Checks the files of an archive day and copies its events and records back into Postgres. Searches then read Postgres. The
service archives the day again within the hour. Exit code 0; 1 if a file is missing or damaged, and nothing is changed then.

Examples:
  npm run -s longwatch -- archive restore --zone 101 --day 2026-08-14`;

/** `longwatch archive restore`. */
const restoreCommand = defineTask({
  name: "restore",
  summary: "Bring an archive day back into Postgres.",
  help: RESTORE_HELP,
  options: { "--zone <id>": "shield zone (required)", "--day <day>": "UTC day, yyyy-mm-dd (required)" },
  read: (flags, read) => ({ zoneId: readZone(read, flags, true) ?? 0, day: readDay(read, flags.day) }),
  async run({ zoneId, day }, io, readConfig) {
    const restored = await onStore(io, readConfig(), ({ onProgress, ...parts }) =>
      restoreDay(parts, { zoneId, day }, (share) => onProgress(share, day)),
    );
    const { events, records, wasStored } = restored;
    const what = wasStored ? "Postgres still had the day" : `${many(records, "record")} copied`;
    return {
      facts: { zoneId, day, ...restored },
      text: `${day}, zone ${zoneId}: ${many(events, "event")}; ${what}\n`,
    };
  },
});

/** `longwatch archive`: the days that are kept as Parquet files. */
export function archiveCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return subjectCommand("archive", "", [showArchiveStatus], readConfig, io, [
    writeCommand(readConfig, io),
    verifyCommand(readConfig, io),
    restoreCommand(readConfig, io),
    rewriteCommand(readConfig, io),
  ]);
}
