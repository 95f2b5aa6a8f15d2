import type { Command } from "commander";
import type { Config } from "../config.ts";
import { createProcessIo } from "./edge/edge-io.ts";
import { addCommand } from "./silences/add.ts";
import { expireCommand } from "./silences/expire.ts";
import { listCommand } from "./silences/list.ts";
import { commandGroup, type StoreIo } from "./store-command.ts";

/** `longwatch silences`: which alerts are kept from the channels, until when and why. */
export function silencesCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return commandGroup("silences", "Add, list and end silences.", io, [
    addCommand(readConfig, io),
    listCommand(readConfig, io),
    expireCommand(readConfig, io),
  ]);
}
