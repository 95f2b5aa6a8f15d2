import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { createProcessIo } from "../edge/edge-io.ts";
import { commandGroup, type StoreIo } from "../store/store-command.ts";
import { createCommand } from "./create.ts";
import { listCommand } from "./list.ts";
import { revokeCommand } from "./revoke.ts";

/** `longwatch keys`: creates, lists and revokes the keys of the service's API. */
export function keysCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return commandGroup("keys", "Create, list and revoke the keys of this service's own API.", io, [
    createCommand(readConfig, io),
    listCommand(readConfig, io),
    revokeCommand(readConfig, io),
  ]);
}
