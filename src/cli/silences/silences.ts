import type { Command } from "commander";
import type { Config } from "../../config/config.ts";
import { createProcessIo } from "../edge/edge-io.ts";
import { commandGroup, type StoreIo } from "../store/store-command.ts";
import { addCommand } from "./add.ts";
import { expireCommand } from "./expire.ts";
import { listCommand } from "./list.ts";

/** `longwatch silences`: adds, lists and ends silences. */
export function silencesCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return commandGroup("silences", "Add, list and end silences.", io, [
    addCommand(readConfig, io),
    listCommand(readConfig, io),
    expireCommand(readConfig, io),
  ]);
}
