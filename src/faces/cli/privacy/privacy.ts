import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { showPrivacy } from "#operations/service/settings.ts";
import { SUMMARIES } from "../commands.ts";
import { createProcessIo } from "../edge/edge-io.ts";
import { subjectCommand } from "../operations/operation-command.ts";
import type { StoreIo } from "../store/store-command.ts";
import { pseudonymCommand } from "./pseudonym.ts";
import { rotateKeyCommand } from "./rotate-key.ts";

/** `longwatch privacy`: shows the retention of personal data and manages the key of the pseudonyms. */
export function privacyCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  const description = SUMMARIES.privacy;
  const others = [pseudonymCommand(readConfig, io), rotateKeyCommand(readConfig, io)];
  return subjectCommand("privacy", description, [showPrivacy], readConfig, io, others);
}
