import type { Command } from "commander";
import { DIMENSIONS, EventLogsSearchRequest } from "../../edge/contract/event-logs-search.ts";
import type { EdgeClient } from "../../edge/edge-client.ts";
import type { SearchEventLogsParams } from "../../edge/search-event-logs.ts";
import { searchPages } from "../../edge/search-pages.ts";
import { addSubcommand, type EdgeSetup, edgeAction } from "./edge-action.ts";
import { limitItems } from "./limit-items.ts";
import { addWindowOptions, readSearch, type WindowFlags } from "./read-search.ts";
import { untilStalled } from "./until-stalled.ts";
import { writeJoinedPages, writeJson } from "./write-json.ts";

interface Flags extends WindowFlags {
  readonly groupBy?: string;
  readonly buckets?: string;
  readonly page?: string;
  readonly pageSize?: string;
  readonly pageAll?: true;
  readonly limit?: string;
}

const LIMIT_RULE = "a whole number from 1";

async function* followPages(client: EdgeClient, params: SearchEventLogsParams) {
  for await (const { page } of searchPages(client.searchEventLogs, params)) yield page;
}

export function addEventsSearch(group: Command, setup: EdgeSetup): void {
  const command = addSubcommand(group, "search", "Search, filter and group events.", [
    "events search --zone 101 --from -2h --limit 10",
    "events search --zone 101 --from -24h --filter ip:cidr:203.0.113.0/24 --filter action:in:block,challenge",
    "events search --zone 101 --from -72h --group-by ruleId --buckets 72 --page-all",
  ]);
  addWindowOptions(command)
    .option("--group-by <dimensions>", `group by these, separated by commas: ${DIMENSIONS.join(", ")}`)
    .option("--buckets <number>", "time buckets of each group's sparkline; the platform clamps to 500")
    .option("--page <index>", "page, from 0")
    .option("--page-size <number>", "rows or groups per page; the platform clamps to 1..500 (50 when unset)")
    .option("--page-all", "follow all pages and join them")
    .option("--limit <number>", "at most this many rows or groups, from as many pages as they need")
    .action(
      edgeAction<Flags>(
        setup,
        async ({ groupBy, buckets, page, pageSize, pageAll, limit: most, ...flags }, run) => {
          const { read, io } = run;
          const shieldZoneId = read.id("zone", flags.zone, "a shield zone's number");
          const limit = read.integer("limit", most, LIMIT_RULE);
          if (limit !== undefined && limit < 1) read.wrong("limit", most, LIMIT_RULE);
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
            const pages = untilStalled(followPages(client, params), member);
            if (limit !== undefined)
              await writeJoinedPages(io.stdout, member, limitItems(pages, member, limit));
            else if (pageAll === true) await writeJoinedPages(io.stdout, member, pages);
            else await writeJson(io.stdout, (await client.searchEventLogs(params)).page);
          });
        },
      ),
    );
}
