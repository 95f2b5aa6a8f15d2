import { expect } from "vitest";
import { toCsvLine } from "#archive/rules/export-lines.ts";
import { planSearch } from "#archive/rules/query/plan-search.ts";
import { readSearch } from "#archive/rules/query/read-search.ts";
import { type ExportForm } from "#archive/rules/sql/export-events.ts";
import { exportEvents } from "#archive/search/export-events.ts";
import { searchRows } from "#archive/search/find-rows.ts";
import { searchGroups } from "#archive/search/read-union.ts";
import type { SearchDeps } from "#archive/search/searching.ts";
import { readSearch as readNaively } from "#emulator/query/request.ts";
import { DIMENSIONS } from "#model/kinds.ts";
import type { createNaiveSearch } from "./naive-search.ts";

export const ZONE = 101;

export function mustRead(body: unknown) {
  const read = readSearch(body, "search");
  if ("mistakes" in read) throw new Error(JSON.stringify(read.mistakes));
  return read.search;
}

/** Asks both, and expects the same answer field by field; returns whether the archive had a part in it. */
export async function expectSame(
  deps: SearchDeps,
  naive: ReturnType<typeof createNaiveSearch>,
  body: unknown,
  { hasExports = true } = {},
): Promise<"archive" | "events"> {
  const read = readNaively(body, "search");
  if ("mistakes" in read) throw new Error(JSON.stringify(read.mistakes));
  const wanted = naive(read.search);
  const plan = planSearch(mustRead(body));
  const asked = JSON.stringify(body);
  const { signal } = new AbortController();
  if (wanted.kind === "rows") {
    const { rows, total, source } = await searchRows(deps, ZONE, plan, signal);
    const events = rows.map(({ logId, occurredAt, fields, message }) => ({
      logId,
      occurredAt,
      fields,
      message,
    }));
    expect({ asked, total, rows: events }).toEqual({ asked, total: wanted.total, rows: wanted.page });
    if (!hasExports) return source;
    const lines = wanted.all.map(({ occurredAt, logId, fields }) => [
      String(occurredAt),
      logId,
      ...DIMENSIONS.map((name) => fields[name] ?? ""),
    ]);
    const read = async (form: ExportForm) => {
      const chunks: Buffer[] = [];
      for await (const chunk of exportEvents((_, work) => work(deps), ZONE, plan, { form, signal }))
        chunks.push(chunk);
      return Buffer.concat(chunks).toString();
    };
    const csv = await read({ csv: { zone: null } });
    expect({ asked, csv }).toEqual({ asked, csv: lines.map(toCsvLine).join("") });
    const json = (await read("json")).split("\n").slice(0, -1);
    expect({ asked, json: json.map((line) => JSON.parse(line) as unknown) }).toEqual({ asked, json: lines });
    return source;
  }
  const { groups, total, source } = await searchGroups(deps, [ZONE], plan, signal);
  const page = wanted.page.map(({ sparkline, ...group }) => ({ ...group, sparkline: sparkline ?? null }));
  expect({ asked, total, groups }).toEqual({ asked, total: wanted.total, groups: page });
  return source;
}
