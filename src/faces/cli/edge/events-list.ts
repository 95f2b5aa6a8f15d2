import type { Command } from "commander";
import type { EdgeClient } from "#adapters/edge/edge-client.ts";
import { eventLogPages, type ListEventLogsParams } from "#adapters/edge/list-event-logs.ts";
import { addSubcommand, type EdgeSetup, edgeAction } from "./edge-action.ts";
import type { EdgeIo } from "./edge-io.ts";
import { untilStalled } from "./until-stalled.ts";
import { writeJoinedPages, writeJson } from "./write-json.ts";

interface Flags {
  readonly zone?: string;
  readonly date?: string;
  readonly token?: string;
  readonly pageAll?: true;
}

async function* followTokens(client: EdgeClient, params: ListEventLogsParams, io: EdgeIo) {
  for await (const page of eventLogPages(client.listEventLogs, params)) {
    if (page.looped) {
      io.stderr.write(
        "longwatch edge: the platform repeated a continuation token; the list may be incomplete\n",
      );
      io.setExitCode(1);
    }
    yield page.page;
  }
}

export function addEventsList(group: Command, setup: EdgeSetup): void {
  addSubcommand(group, "list", "Show one UTC day of the log, page by page.", [
    "events list --zone 101 --date 11-20-2026",
    "events list --zone 101 --date yesterday --page-all",
    "events list --zone 101 --date today --token 'Zm9v/YmFy='",
  ])
    .option("--zone <id>", "shield zone (required)")
    .option("--date <day>", "UTC day: MM-dd-yyyy, yyyy-MM-dd, today or yesterday (required)")
    .option("--token <token>", "continuation token of the previous page")
    .option("--page-all", "follow the tokens to the end and join the pages")
    .action(
      edgeAction<Flags>(setup, async (flags, { read, io, call }) => {
        const shieldZoneId = read.id("zone", flags.zone, "a shield zone's number");
        const date = read.day("date", flags.date);
        if (flags.token === "") read.wrong("token", flags.token, "a continuation token");
        await call(async (client) => {
          if (shieldZoneId === undefined || date === undefined) return;
          const params = { shieldZoneId, date, continuationToken: flags.token ?? null };
          if (flags.pageAll === true)
            await writeJoinedPages(io.stdout, "logs", untilStalled(followTokens(client, params, io), "logs"));
          else await writeJson(io.stdout, (await client.listEventLogs(params)).page);
        });
      }),
    );
}
