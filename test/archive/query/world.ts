import { expect } from "vitest";
import { readCsvExport } from "../../../db/archive/archive-csv.ts";
import { readExport } from "../../../db/archive/archive-export.ts";
import type { Database } from "../../../db/client.ts";
import { searchGroups } from "../../../db/search/search-groups.ts";
import { MOST_ONE_BY_ONE } from "../../../db/search/search-one-by-one.ts";
import { searchRows } from "../../../db/search/search-rows.ts";
import { toCsvLine } from "../../../src/archive/csv/csv-line.ts";
import { planSearch } from "../../../src/archive/query/plan-search.ts";
import { readSearch } from "../../../src/archive/query/read-search.ts";
import { DIMENSIONS } from "../../../src/archive/query/search.ts";
import { readSearch as readNaively } from "../../../src/emulator/query/request.ts";
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
  options: Parameters<typeof searchGroups>[3] = MOST_ONE_BY_ONE,
): Promise<"roll-up" | "events"> {
  const read = readNaively(body, "search");
  if ("mistakes" in read) throw new Error(JSON.stringify(read.mistakes));
  const wanted = naive(read.search);
  const plan = planSearch(mustRead(body));
  const asked = JSON.stringify(body);
  if (wanted.kind === "rows") {
    const { rows, total } = await searchRows(database, ZONE, plan);
    expect({ asked, total, rows }).toEqual({ asked, total: wanted.total, rows: wanted.page });
    const { signal } = new AbortController();
    const exported: string[] = [];
    for await (const part of readExport(database, ZONE, plan, signal)) exported.push(...part.map(toCsvLine));
    const lines = wanted.all.map(({ occurredAt, logId, fields }) =>
      toCsvLine([String(occurredAt), logId, ...DIMENSIONS.map((name) => fields[name] ?? "")]),
    );
    expect({ asked, exported }).toEqual({ asked, exported: lines });
    const csv: Buffer[] = [];
    for await (const part of readCsvExport(database, ZONE, plan, signal)) csv.push(part);
    expect({ asked, csv: Buffer.concat(csv).toString() }).toEqual({ asked, csv: lines.join("") });
    return "events";
  }
  const { groups, total, source } = await searchGroups(database, ZONE, plan, options);
  const page = wanted.page.map(({ sparkline, ...group }) => ({ ...group, sparkline: sparkline ?? null }));
  expect({ asked, total, groups }).toEqual({ asked, total: wanted.total, groups: page });
  return source;
}
