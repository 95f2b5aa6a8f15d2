import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { createProcessIo } from "../edge/edge-io.ts";
import { commandGroup, type StoreIo } from "../store/store-command.ts";
import { addCommand } from "./add.ts";
import { expireCommand } from "./expire.ts";
import { extendCommand } from "./extend.ts";
import { listCommand } from "./list.ts";

/** `longwatch silences`: adds, lists, extends and ends silences. */
export function silencesCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return commandGroup("silences", "Add, list, extend and end silences.", io, [
    addCommand(readConfig, io),
    listCommand(readConfig, io),
    extendCommand(readConfig, io),
    expireCommand(readConfig, io),
  ]);
}
