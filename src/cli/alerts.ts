import type { Command } from "commander";
import type { Config } from "../config.ts";
import { ackCommand, resolveCommand } from "./alerts/act.ts";
import { listCommand } from "./alerts/list.ts";
import { markCommand } from "./alerts/mark.ts";
import { showCommand } from "./alerts/show.ts";
import { createProcessIo } from "./edge/edge-io.ts";
import { commandGroup, type StoreIo } from "./store-command.ts";

/** `longwatch alerts`: what on-call reads and does. */
export function alertsCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return commandGroup("alerts", "List, show, acknowledge, resolve and mark alerts.", io, [
    listCommand(readConfig, io),
    showCommand(readConfig, io),
    ackCommand(readConfig, io),
    resolveCommand(readConfig, io),
    markCommand(readConfig, io),
  ]);
}
