import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { endSilence } from "#operations/act-on-silence.ts";
import { writeOut } from "../edge/edge-io.ts";
import { writeJson } from "../edge/write-json.ts";
import { NotFoundError } from "../options/not-found-error.ts";
import { readActor } from "../options/read-actor.ts";
import { readRowId } from "../options/read-row-id.ts";
import { withStore } from "../store/open-store.ts";
import { readServiceClock } from "../store/service-clock.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";

const HELP = `
Longwatch then notifies the channels of alerts that still fire and were muted.

Examples:
  npm run -s longwatch -- silences expire 3
  npm run -s longwatch -- silences expire 3 --by alice`;

interface Flags {
  readonly by?: string;
  readonly json?: true;
}

export function expireCommand(readConfig: () => Config, io: StoreIo): Command {
  return storeCommand("expire", "End a silence now.", HELP, io)
    .usage("[options] <id>")
    .argument("[id]", "the silence's number")
    .option("--by <name>", "name of the person who does it (default: the user who runs the command)")
    .option("--json", "print JSON")
    .action(
      storeAction<Flags>(io, async (flags, read, [typed]) => {
        const id = readRowId(read, typed, "silence");
        const actor = readActor(read, flags.by);
        read.finish();
        const result = await withStore(readConfig(), async (database) => {
          const nowMs = (await readServiceClock(database, io.clock))();
          return endSilence(database, { id, by: actor, nowMs });
        });
        if (result === "unknown") throw new NotFoundError(`there is no silence ${id}`);
        const said = result === "expired" ? "is expired" : "was already expired; nothing was changed";
        if (flags.json === true) await writeJson(io.stdout, { id, result });
        else await writeOut(io.stdout, `silence #${id} ${said}.\n`);
      }),
    );
}
