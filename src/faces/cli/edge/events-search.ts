import type { Command } from "commander";
import { EventLogsSearchRequest } from "#adapters/edge/contract/event-logs.ts";
import type { EdgeClient } from "#adapters/edge/edge-client.ts";
import { type SearchEventLogsParams, searchPages } from "#adapters/edge/search-event-logs.ts";
import { addSubcommand, type EdgeSetup, edgeAction } from "./edge-action.ts";
import { addSearchOptions, readSearch, readSearchFlags, type SearchFlags } from "./read-search.ts";
import { untilStalled } from "./until-stalled.ts";
import { writeJoinedPages, writeJson } from "./write-json.ts";

async function* followPages(client: EdgeClient, params: SearchEventLogsParams) {
  for await (const { page } of searchPages(client.searchEventLogs, params)) yield page;
}

export function addEventsSearch(group: Command, setup: EdgeSetup): void {
  const command = addSubcommand(group, "search", "Search, filter and group events.", [
    "events search --zone 101 --from -2h --limit 10",
    "events search --zone 101 --from -24h --filter ip:cidr:203.0.113.0/24 --filter action:in:block,challenge",
    "events search --zone 101 --from -72h --group-by ruleId --buckets 72 --page-all",
  ]);
  addSearchOptions(command).action(
    edgeAction<SearchFlags>(setup, async (flags, run) => {
      const { io } = run;
      const shieldZoneId = run.read.id("zone", flags.zone, "a shield zone's number");
      const { window, more, limit, pageAll } = readSearchFlags(flags, run.read);
      const request = await readSearch(EventLogsSearchRequest, window, more, run);
      await run.call(async (client) => {
        if (shieldZoneId === undefined || request === undefined) return;
        const params = { shieldZoneId, request };
        const member = (request.groupBy ?? []).length > 0 ? "groups" : "rows";
        const pages = untilStalled(followPages(client, params), member);
        if (limit !== undefined) await writeJoinedPages(io.stdout, member, limitItems(pages, member, limit));
        else if (pageAll) await writeJoinedPages(io.stdout, member, pages);
        else await writeJson(io.stdout, (await client.searchEventLogs(params)).page);
      });
    }),
  );
}

/** Yields the pages until the list called `member` has had `limit` items. Cuts the last page and reads no page after it. */
async function* limitItems<Page extends Record<string, unknown>>(
  pages: AsyncIterable<Page>,
  member: string,
  limit: number,
): AsyncGenerator<Page, void, undefined> {
  let left = limit;
  for await (const page of pages) {
    const list = page[member];
    const items: readonly unknown[] = Array.isArray(list) ? list : [];
    yield { ...page, [member]: items.slice(0, left) };
    left -= items.length;
    if (left <= 0) return;
  }
}
