import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { many } from "#lib/format.ts";
import { restoreDay } from "#operations/archive/restore-day.ts";
import { writeOut } from "../edge/edge-io.ts";
import { writeJson } from "../edge/write-json.ts";
import { readZone } from "../options/read-span.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";
import { withArchive } from "./with-archive.ts";

const HELP = `
Checks the files of an archive day and copies its events and records back into Postgres. Searches then read Postgres. The
service archives the day again within the hour. Exit code 0; 1 if a file is missing or damaged, and nothing is changed then.

Examples:
  npm run -s longwatch -- archive restore --zone 101 --day 2026-08-14`;

interface Flags {
  readonly zone?: string;
  readonly day?: string;
  readonly json?: true;
}

/** `longwatch archive restore`. */
export function restoreCommand(readConfig: () => Config, io: StoreIo): Command {
  return storeCommand("restore", "Bring an archive day back into Postgres.", HELP, io)
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
