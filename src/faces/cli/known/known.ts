import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { createProcessIo } from "../edge/edge-io.ts";
import { commandGroup, type StoreIo } from "../store/store-command.ts";
import { addCommand } from "./add.ts";
import { listCommand } from "./list.ts";
import { removeCommand } from "./remove.ts";

/** `longwatch known`: lists, adds and removes sources that raise no source alert. */
export function knownCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return commandGroup("known", "List, add and remove known sources, which raise no source alert.", io, [
    listCommand(readConfig, io),
    addCommand(readConfig, io),
    removeCommand(readConfig, io),
  ]);
}
