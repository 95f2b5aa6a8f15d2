import type { Command } from "commander";
import { DIMENSIONS, EventLogsSearchRequest } from "../../edge/contract/event-logs-search.ts";
import type { EdgeClient } from "../../edge/edge-client.ts";
import type { SearchEventLogsParams } from "../../edge/search-event-logs.ts";
import { searchPages } from "../../edge/search-pages.ts";
import { addSubcommand, type EdgeSetup, edgeAction } from "./edge-action.ts";
import { addWindowOptions, readSearch, type WindowFlags } from "./read-search.ts";
import { untilStalled } from "./until-stalled.ts";
import { writeJoinedPages, writeJson } from "./write-json.ts";

interface Flags extends WindowFlags {
  readonly groupBy?: string;
  readonly buckets?: string;
  readonly page?: string;
  readonly pageSize?: string;
  readonly pageAll?: true;
}

async function* followPages(client: EdgeClient, params: SearchEventLogsParams) {
  for await (const { page } of searchPages(client.searchEventLogs, params)) yield page;
}

export function addEventsSearch(group: Command, setup: EdgeSetup): void {
  const command = addSubcommand(group, "search", "Search, filter and group events.", [
    "events search --zone 101 --from -2h",
    "events search --zone 101 --from -24h --filter ip:cidr:203.0.113.0/24 --filter action:in:block,challenge",
    "events search --zone 101 --from -72h --group-by ruleId --buckets 72 --page-all",
  ]);
  addWindowOptions(command)
    .option("--group-by <dimensions>", `group by these, separated by commas: ${DIMENSIONS.join(", ")}`)
    .option("--buckets <number>", "time buckets of each group's sparkline; the platform clamps to 500")
    .option("--page <index>", "page, from 0")
    .option("--page-size <number>", "rows or groups per page; the platform clamps to 1..500 (50 when unset)")
    .option("--page-all", "follow all pages and join them")
    .action(
      edgeAction<Flags>(setup, async ({ groupBy, buckets, page, pageSize, pageAll, ...flags }, run) => {
        const { read, io } = run;
        const shieldZoneId = read.id("zone", flags.zone, "a shield zone's number");
        const more = {
          groupBy: groupBy?.split(","),
          buckets: read.integer("buckets", buckets, "a whole number"),
          page: read.integer("page", page, "a whole number from 0"),
          pageSize: read.integer("page-size", pageSize, "a whole number"),
        };
        const given = Object.fromEntries(Object.entries(more).filter(([, value]) => value !== undefined));
        const request = await readSearch(EventLogsSearchRequest, flags, given, run);
        await run.call(async (client) => {
          if (shieldZoneId === undefined || request === undefined) return;
          const params = { shieldZoneId, request };
          const member = (request.groupBy ?? []).length > 0 ? "groups" : "rows";
          if (pageAll === true)
            await writeJoinedPages(io.stdout, member, untilStalled(followPages(client, params), member));
          else await writeJson(io.stdout, (await client.searchEventLogs(params)).page);
        });
      }),
    );
}
