import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { readSilence } from "#db/alerting/silences.ts";
import { UsageError } from "#lib/errors.ts";
import { showTime } from "#lib/show-time.ts";
import { extendSilenceByHand } from "#operations/act-on-silence.ts";
import { writeOut } from "../edge/edge-io.ts";
import { writeJson } from "../edge/write-json.ts";
import { NotFoundError } from "../options/not-found-error.ts";
import { readActor } from "../options/read-actor.ts";
import { readRowId } from "../options/read-row-id.ts";
import { withStore } from "../store/open-store.ts";
import { readServiceClock } from "../store/service-clock.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";
import { MAX_MS, readDuration } from "./read-silence.ts";

const HELP = `
The silence ends that much later than before, at most 90 days from now.

Examples:
  npm run -s longwatch -- silences extend 3 --for 2h
  npm run -s longwatch -- silences extend 3 --for 1d --by alice`;

interface Flags {
  readonly for?: string;
  readonly by?: string;
  readonly json?: true;
}

export function extendCommand(readConfig: () => Config, io: StoreIo): Command {
  return storeCommand("extend", "Let a silence end later.", HELP, io)
    .usage("[options] <id>")
    .argument("[id]", "the silence's number")
    .option("--for <duration>", "how much longer, such as 30m, 2h or 7d (required)")
    .option("--by <name>", "name of the person who does it (default: the user who runs the command)")
    .option("--json", "print JSON")
    .action(
      storeAction<Flags>(io, async (flags, read, [typed]) => {
        const id = readRowId(read, typed, "silence");
        const byMs = readDuration(read, flags.for);
        const by = readActor(read, flags.by);
        read.finish();
        const extended = await withStore(readConfig(), async (database) => {
          const nowMs = (await readServiceClock(database, io.clock))();
          const row = await readSilence(database.db, id);
          if (row === null) return "unknown";
          const expiresAtMs = row.expiresAt.getTime() + byMs;
          if (expiresAtMs > nowMs + MAX_MS)
            throw new UsageError([
              `--for ${flags.for ?? ""} would let silence ${id} end ${showTime(expiresAtMs)} UTC; it must end within 90 days from now`,
            ]);
          return extendSilenceByHand(database, { id, expiresAtMs, by, nowMs });
        });
        if (extended === "unknown") throw new NotFoundError(`there is no silence ${id}`);
        // Another command may have moved the end beyond this one.
        if (typeof extended === "string")
          throw new UsageError([`silence ${id} has ended; "silences add" makes a new one`]);
        const { expiresAt } = extended;
        if (flags.json === true) await writeJson(io.stdout, { id, expiresAt: expiresAt.toISOString() });
        else await writeOut(io.stdout, `silence #${id} ends ${showTime(expiresAt.getTime())} UTC.\n`);
      }),
    );
}
