import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { createProcessIo } from "../edge/edge-io.ts";
import { commandGroup, type StoreIo } from "../store/store-command.ts";
import { ackCommand, resolveCommand } from "./act.ts";
import { listCommand } from "./list.ts";
import { markCommand } from "./mark.ts";
import { showCommand } from "./show.ts";

/** `longwatch alerts`: the commands with which people on call read and change alerts. */
export function alertsCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return commandGroup("alerts", "List, show, acknowledge, resolve and mark alerts.", io, [
    listCommand(readConfig, io),
    showCommand(readConfig, io),
    ackCommand(readConfig, io),
    resolveCommand(readConfig, io),
    markCommand(readConfig, io),
  ]);
}
