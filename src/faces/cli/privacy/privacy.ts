import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { createProcessIo } from "../edge/edge-io.ts";
import { commandGroup, type StoreIo } from "../store/store-command.ts";
import { pseudonymCommand } from "./pseudonym.ts";
import { rotateKeyCommand } from "./rotate-key.ts";
import { showCommand } from "./show.ts";

/** `longwatch privacy`: shows the retention of personal data and manages the key of the pseudonyms. */
export function privacyCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return commandGroup(
    "privacy",
    "Show the retention of personal data; make pseudonyms and rotate their key.",
    io,
    [showCommand(readConfig, io), pseudonymCommand(readConfig, io), rotateKeyCommand(readConfig, io)],
  );
}
