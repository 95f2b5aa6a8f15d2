import type { Command } from "commander";
import type { Config } from "../../config/config.ts";
import { createProcessIo } from "../edge/edge-io.ts";
import { commandGroup, type StoreIo } from "../store/store-command.ts";
import { createCommand } from "./create.ts";
import { listCommand } from "./list.ts";
import { revokeCommand } from "./revoke.ts";

/** `longwatch keys`: who may ask this service, and for what. */
export function keysCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return commandGroup("keys", "Make, list and revoke the keys of this service's own API.", io, [
    createCommand(readConfig, io),
    listCommand(readConfig, io),
    revokeCommand(readConfig, io),
  ]);
}
