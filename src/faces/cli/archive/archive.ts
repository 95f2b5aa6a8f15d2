import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { showArchiveStatus } from "#operations/archive/archive-status.ts";
import { createProcessIo } from "../edge/edge-io.ts";
import { subjectCommand } from "../operations/operation-command.ts";
import type { StoreIo } from "../store/store-command.ts";
import { SUMMARIES } from "../summaries.ts";
import { restoreCommand } from "./restore.ts";
import { rewriteCommand } from "./rewrite.ts";
import { verifyCommand } from "./verify.ts";
import { writeCommand } from "./write.ts";

/** `longwatch archive`: the days that are kept as Parquet files. */
export function archiveCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return subjectCommand("archive", SUMMARIES.archive, [showArchiveStatus], readConfig, io, [
    writeCommand(readConfig, io),
    verifyCommand(readConfig, io),
    restoreCommand(readConfig, io),
    rewriteCommand(readConfig, io),
  ]);
}
