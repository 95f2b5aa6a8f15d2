import { expect } from "vitest";
import type { Database } from "../../db/client.ts";
import { streamCsv } from "../../db/queries/search-csv.ts";
import { searchGroups } from "../../db/queries/search-groups.ts";
import { searchRows } from "../../db/queries/search-rows.ts";
import { streamEvents } from "../../db/queries/search-stream.ts";
import { readSearch as readNaively } from "../../src/emulator/query/request.ts";
import { planSearch } from "../../src/search/plan-search.ts";
import { readSearch } from "../../src/search/read-search.ts";
import { DIMENSIONS } from "../../src/search/search.ts";
import type { createNaiveSearch, NaiveRow } from "./naive-search.ts";

export const ZONE = 101;
const CSV_HEADER = "timestamp,logId,feature,ruleId,ip,ja4,ua,url,asn,country,action\r\n";

export function mustRead(body: unknown) {
  const read = readSearch(body, "search");
  if ("mistakes" in read) throw new Error(JSON.stringify(read.mistakes));
  return read.search;
}

function toCsvLine({ occurredAt, logId, fields }: NaiveRow): string {
  const cells = [String(occurredAt), logId, ...DIMENSIONS.map((name) => fields[name] ?? "")];
  return `${cells.map((text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)).join(",")}\r\n`;
}

/** Asks both, and expects the same answer field by field; tells what the groups were made of. */
export async function expectSame(
  database: Database,
  naive: ReturnType<typeof createNaiveSearch>,
  body: unknown,
  options: Parameters<typeof searchGroups>[3] = {},
): Promise<"roll-up" | "events"> {
  const read = readNaively(body, "search");
  if ("mistakes" in read) throw new Error(JSON.stringify(read.mistakes));
  const wanted = naive(read.search);
  const plan = planSearch(mustRead(body));
  const asked = JSON.stringify(body);
  if (wanted.kind === "rows") {
    const { rows, total } = await searchRows(database, ZONE, plan);
    expect({ asked, total, rows }).toEqual({ asked, total: wanted.total, rows: wanted.page });
    const streamed: string[] = [];
    for await (const batch of streamEvents(database, ZONE, plan))
      streamed.push(...batch.map(({ logId }) => logId));
    expect({ asked, streamed }).toEqual({ asked, streamed: wanted.all.map((event) => event.logId) });
    const csv: Buffer[] = [];
    const options = { guardFormulas: false, timeoutMs: 30_000 };
    for await (const chunk of streamCsv(database, ZONE, plan, options)) csv.push(chunk);
    expect({ asked, csv: Buffer.concat(csv).toString() }).toEqual({
      asked,
      csv: `${CSV_HEADER}${wanted.all.map(toCsvLine).join("")}`,
    });
    return "events";
  }
  const { groups, total, source } = await searchGroups(database, ZONE, plan, options);
  const page = wanted.page.map(({ sparkline, ...group }) => ({ ...group, sparkline: sparkline ?? null }));
  expect({ asked, total, groups }).toEqual({ asked, total: wanted.total, groups: page });
  return source;
}
