import type { Command } from "commander";
import { addSubcommand, type EdgeSetup, edgeAction } from "./edge-action.ts";
import { writeJson } from "./write-json.ts";

/** `dns-zone check`. */
export function addDnsZone(edge: Command, setup: EdgeSetup): void {
  const group = edge.command("dns-zone").description("DNS zones.");
  addSubcommand(group, "check", "Show whether a DNS zone name is available.", [
    "dns-zone check --name example.test",
  ])
    .option("--name <name>", "zone name (required)")
    .action(
      edgeAction<{ name?: string }>(setup, async (flags, { read, io, call }) => {
        const name = read.required("name", flags.name, "a zone name");
        await call(async (client) => {
          if (name !== undefined) await writeJson(io.stdout, await client.checkDnsZone({ Name: name }));
        });
      }),
    );
}
