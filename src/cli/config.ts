import { readFileSync, writeFileSync } from "node:fs";
import { Command } from "commander";
import { configTable, withConfigTable } from "./config-table.ts";

/**
 * `longwatch config`: what can be set, and whether what is set is right.
 * `checkConfig` throws the UsageError that a start would end with.
 */
export function configCommand(checkConfig: () => unknown): Command {
  return new Command("config")
    .description("Check the environment's settings, or list what can be set.")
    .addCommand(
      new Command("check").description("List every mistake; exit code 2 when there is one.").action(() => {
        checkConfig();
        process.stdout.write("The configuration is right.\n");
      }),
    )
    .addCommand(
      new Command("table")
        .description("Print every variable as a Markdown table.")
        .option("--write <file>", "put the table between the markers of this file instead")
        .action(({ write }: { write?: string }) => {
          if (write === undefined) process.stdout.write(configTable());
          else writeFileSync(write, withConfigTable(readFileSync(write, "utf8")));
        }),
    );
}
