import { Command } from "commander";
import { edgeCommand } from "#faces/cli/edge/edge.ts";
import { createSecret } from "#lib/secret.ts";

// The edge command as a process of its own: base address and key are the first two arguments.
const [baseUrl = "", accessKey = "", ...rest] = process.argv.slice(2);
const program = new Command("longwatch").addCommand(
  edgeCommand(() => ({ baseUrl, accessKey: createSecret(accessKey) })),
);
await program.parseAsync(["edge", ...rest], { from: "user" });
