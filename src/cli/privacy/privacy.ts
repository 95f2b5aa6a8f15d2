import type { Command } from "commander";
import type { Config } from "../../config/config.ts";
import { createProcessIo } from "../edge/edge-io.ts";
import { commandGroup, type StoreIo } from "../store/store-command.ts";
import { pseudonymCommand } from "./pseudonym.ts";
import { rotateKeyCommand } from "./rotate-key.ts";
import { showCommand } from "./show.ts";

/** `longwatch privacy`: what personal data is kept for how long, and the key of its pseudonyms. */
export function privacyCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return commandGroup("privacy", "Show what is kept for how long; pseudonyms and their key.", io, [
    showCommand(readConfig, io),
    pseudonymCommand(readConfig, io),
    rotateKeyCommand(readConfig, io),
  ]);
}
