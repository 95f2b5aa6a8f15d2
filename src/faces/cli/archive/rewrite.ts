import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { many } from "#lib/format.ts";
import { escapeText } from "#lib/text.ts";
import { rewriteArchive } from "#operations/archive/rewrite-archive.ts";
import { writeOut } from "../edge/edge-io.ts";
import { writeJson } from "../edge/write-json.ts";
import { readZone } from "../options/read-span.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";
import { withArchive } from "./with-archive.ts";

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
export function rewriteCommand(readConfig: () => Config, io: StoreIo): Command {
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
