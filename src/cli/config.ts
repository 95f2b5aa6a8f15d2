import { readFileSync, writeFileSync } from "node:fs";
import { Command } from "commander";
import { toJsonSchema } from "../config-file/config-file-schema.ts";
import { configTable, withConfigTable } from "./config-table.ts";

/**
 * `longwatch config`: what can be set, and whether what is set is right.
 * `checkConfig` throws the UsageError that a start would end with.
 */
export function configCommand(checkConfig: () => unknown): Command {
  return new Command("config")
    .description(
      "Check the settings of the environment and of the configuration file, or list what can be set.",
    )
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
    )
    .addCommand(
      new Command("schema").description("Print the configuration file's JSON Schema.").action(() => {
        process.stdout.write(`${JSON.stringify(toJsonSchema(), null, 2)}\n`);
      }),
    );
}
