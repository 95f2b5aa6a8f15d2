import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { archiveDays } from "#jobs/archive/archive-days.ts";
import { many } from "#lib/format.ts";
import { escapeText } from "#lib/text.ts";
import { writeOut } from "../edge/edge-io.ts";
import { writeJson } from "../edge/write-json.ts";
import { readZone } from "../options/read-span.ts";
import { readServiceClock } from "../store/service-clock.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";
import { knownZones, withArchive } from "./with-archive.ts";

const HELP = `
Writes every day that can no longer change and is not in the archive yet, oldest first. The service does the same every
hour. Exit code 0; 1 if a day failed or the service is writing now.

Examples:
  npm run -s longwatch -- archive write
  npm run -s longwatch -- archive write --zone 101 --json`;

interface Flags {
  readonly zone?: string;
  readonly json?: true;
}

/** `longwatch archive write`. */
export function writeCommand(readConfig: () => Config, io: StoreIo): Command {
  return storeCommand("write", "Write the days that can no longer change.", HELP, io)
    .option("--zone <id>", "one shield zone (default: all)")
    .option("--json", "print JSON")
    .action(
      storeAction<Flags>(io, async (flags, read) => {
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
