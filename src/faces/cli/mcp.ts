import { PassThrough } from "node:stream";
import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { createProcessIo } from "./edge/edge-io.ts";
import { allowRemote, pickAsk } from "./operations/remote-commands.ts";
import { type StoreIo, storeAction, storeCommand } from "./store/store-command.ts";

const HELP = `
An assistant starts this command and asks over its standard input and output. The tools only read: status, zones, alerts
with their evidence, events, rules and coverage. With --url and --key-file the key decides which zones are shown and
whether addresses are masked; a key of the role reader that sees masked addresses is enough. Without them, the command
reads the database of the service on this machine, and everything is shown.

Examples:
  npm run -s longwatch -- mcp
  npm run -s longwatch -- --url https://waf.example --key-file reader.key mcp`;

/** `longwatch mcp`: serves the reading operations to an assistant, as tools of the Model Context Protocol. */
export function mcpCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return allowRemote(storeCommand("mcp", HELP, io))
    .option("--json", "has no effect: the protocol is JSON")
    .action(
      storeAction(io, async (_flags, read) => {
        read.finish();
        const config = readConfig();
        const { serveMcp } = await import("#faces/mcp/mcp.ts");
        const { StdioServerTransport } = await import("@modelcontextprotocol/sdk/server/stdio.js");
        const ask = pickAsk(config, io, null);
        // The transport ends when the assistant closes its end, which closes the stream.
        const stdin = io.stdin.pipe(new PassThrough());
        const transport = new StdioServerTransport(stdin, io.stdout);
        io.stdin.once("end", () => void transport.close());
        await serveMcp(ask, transport);
      }),
    );
}
