import path from "node:path";
import type { Command } from "commander";
import { createFolderStorage } from "#adapters/storage/folder-storage.ts";
import type { Config } from "#config/config.ts";
import { formatBytes } from "#lib/disk.ts";
import { formatWhole, many } from "#lib/format.ts";
import { escapeText } from "#lib/text.ts";
import { type VerifiedArchive, verifyArchive, verifyFolder } from "#operations/archive/verify-archive.ts";
import { writeOut } from "../edge/edge-io.ts";
import { writeJson } from "../edge/write-json.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";
import { type ArchiveCommandParts, withArchive, withStorage } from "./with-archive.ts";

const MOST_SHOWN = 50;

const HELP = `
Reads every file of the archive and compares it with its hash, with its day's statement, with the roll-up and with the
sealed hours. With --offline the command needs no database and no platform: it checks a copy of the archive folder against
the statements in it. Exit code 0; 1 if something differs.

Examples:
  npm run -s longwatch -- archive verify
  npm run -s longwatch -- archive verify --offline /mnt/backup/archive --json`;

interface Flags {
  readonly offline?: string;
  readonly json?: true;
}

/** `longwatch archive verify`. */
export function verifyCommand(readConfig: () => Config, io: StoreIo): Command {
  return storeCommand("verify", "Check the archive's files.", HELP, io)
    .option("--offline <folder>", "check this copy of the archive folder, without the database")
    .option("--json", "print JSON")
    .action(
      storeAction<Flags>(io, async (flags, read) => {
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
