import { expect } from "vitest";
import type { Database } from "../../db/client.ts";
import { searchGroups } from "../../db/queries/search-groups.ts";
import { searchRows } from "../../db/queries/search-rows.ts";
import { streamEvents } from "../../db/queries/search-stream.ts";
import { readSearch as readNaively } from "../../src/emulator/query/request.ts";
import { planSearch } from "../../src/search/plan-search.ts";
import { readSearch } from "../../src/search/read-search.ts";
import type { createNaiveSearch } from "./naive-search.ts";

export const ZONE = 101;

export function mustRead(body: unknown) {
  const read = readSearch(body, "search");
  if ("mistakes" in read) throw new Error(JSON.stringify(read.mistakes));
  return read.search;
}

/** Asks both, and expects the same answer field by field; tells what the groups were made of. */
export async function expectSame(
  database: Database,
  naive: ReturnType<typeof createNaiveSearch>,
  body: unknown,
): Promise<"roll-up" | "events"> {
  const read = readNaively(body, "search");
  if ("mistakes" in read) throw new Error(JSON.stringify(read.mistakes));
  const wanted = naive(read.search);
  const plan = planSearch(mustRead(body));
  const asked = JSON.stringify(body);
  if (wanted.kind === "rows") {
    const { rows, total } = await searchRows(database, ZONE, plan);
    expect({ total, rows }, asked).toEqual({ total: wanted.total, rows: wanted.page });
    const streamed: string[] = [];
    for await (const batch of streamEvents(database, ZONE, plan)) streamed.push(...batch.map(({ logId }) => logId));
    expect(streamed, asked).toEqual(wanted.all);
    return "events";
  }
  const { groups, total, source } = await searchGroups(database, ZONE, plan);
  const page = wanted.page.map(({ sparkline, ...group }) => ({ ...group, sparkline: sparkline ?? null }));
  expect({ total, groups }, asked).toEqual({ total: wanted.total, groups: page });
  return source;
}
