import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { removeKnownSource } from "#operations/act-on-known-source.ts";
import { writeOut } from "../edge/edge-io.ts";
import { writeJson } from "../edge/write-json.ts";
import { NotFoundError } from "../options/not-found-error.ts";
import { readActor } from "../options/read-actor.ts";
import { readRowId } from "../options/read-row-id.ts";
import { withStore } from "../store/open-store.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";
import { rowToItem } from "./known-item.ts";

const HELP = `
The source counts again from the next tick on. Sources of the configuration file have no number: change the file.

Examples:
  npm run -s longwatch -- known remove 3
  npm run -s longwatch -- known remove 3 --by alice`;

interface Flags {
  readonly by?: string;
  readonly json?: true;
}

export function removeCommand(readConfig: () => Config, io: StoreIo): Command {
  return storeCommand("remove", "Remove a known source.", HELP, io)
    .usage("[options] <id>")
    .argument("[id]", "the known source's number")
    .option("--by <name>", "name of the person who does it (default: the user who runs the command)")
    .option("--json", "print JSON")
    .action(
      storeAction<Flags>(io, async (flags, read, [typed]) => {
        const id = readRowId(read, typed, "known source");
        const actor = readActor(read, flags.by);
        read.finish();
        const removed = await withStore(readConfig(), (database) => removeKnownSource(database, id, actor));
        if (removed === null) throw new NotFoundError(`there is no known source ${id}`);
        if (flags.json === true) await writeJson(io.stdout, rowToItem(removed));
        else await writeOut(io.stdout, `known source #${id} is removed.\n`);
      }),
    );
}
