import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { createProcessIo } from "../edge/edge-io.ts";
import { commandGroup, type StoreIo } from "../store/store-command.ts";
import { listCommand } from "./list.ts";

/** `longwatch audit`: shows the audit trail. */
export function auditCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return commandGroup("audit", "Show the audit trail.", io, [listCommand(readConfig, io)]);
}
