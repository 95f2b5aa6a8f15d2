import type { Command } from "commander";
import type { Config } from "../config.ts";
import { createProcessIo } from "./edge/edge-io.ts";
import { createCommand } from "./keys/create.ts";
import { listCommand } from "./keys/list.ts";
import { revokeCommand } from "./keys/revoke.ts";
import { commandGroup, type StoreIo } from "./store-command.ts";

/** `longwatch keys`: who may ask this service, and for what. */
export function keysCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return commandGroup("keys", "Make, list and revoke the keys of this service's own API.", io, [
    createCommand(readConfig, io),
    listCommand(readConfig, io),
    revokeCommand(readConfig, io),
  ]);
}
