import type { EventFormat } from "#model/kinds.ts";
import type { FoundEvent } from "#operations/search/find-rows.ts";
import { readRecords } from "#operations/search/read-records.ts";
import type { SearchDeps } from "#operations/search/search-deps.ts";
import { searchGroups } from "#operations/search/search-groups.ts";
import { searchRows } from "#operations/search/search-rows.ts";
import { escapeControlsInJson } from "#stages/archive/csv/escape-controls.ts";
import type { SearchPlan } from "#stages/archive/query/plan-search.ts";
import { formatEvent } from "#stages/archive/records/format-event.ts";
import { createOpenedBlocks } from "#stages/archive/records/opened-blocks.ts";
import { toSearchRow } from "#stages/archive/records/to-search-row.ts";

type FoundGroup = Awaited<ReturnType<typeof searchGroups>>["groups"][number];

/** A page as a search finds it. */
export interface FoundPage<Row = FoundEvent> {
  readonly rows: readonly Row[];
  readonly groups: readonly FoundGroup[];
  /** Number of rows or groups on all pages. */
  readonly total: number;
  readonly page: number;
}

/** Returns one page of a search; `page` counts from 0. */
export type FindPage = (page: number) => Promise<Omit<FoundPage, "page">>;

/** Finds the pages of a search in this process. */
export function findHere(deps: SearchDeps, zoneId: number, plan: SearchPlan, signal: AbortSignal): FindPage {
  return async (page) =>
    plan.groupBy.length === 0
      ? { groups: [], ...(await searchRows(deps, zoneId, { ...plan, page }, signal)) }
      : { rows: [], ...(await searchGroups(deps, zoneId, { ...plan, page }, signal)) };
}

/** Yields the pages from the plan's page on, up to `limit` rows or groups; the last page is cut. */
export async function* readPages<Page extends Omit<FoundPage<unknown>, "page">>(
  find: (page: number) => Promise<Page>,
  plan: Pick<SearchPlan, "page" | "pageSize">,
  limit: number,
): AsyncGenerator<Page & { readonly page: number }, void, undefined> {
  let left = limit;
  for (let page = plan.page; ; page += 1) {
    const found = await find(page);
    const [rows, groups] = [found.rows.slice(0, left), found.groups.slice(0, left)];
    yield { ...found, rows, groups, page };
    left -= rows.length + groups.length;
    if (left <= 0 || (page + 1) * plan.pageSize >= found.total) return;
  }
}

interface Answered {
  readonly pages: AsyncIterable<FoundPage>;
  readonly signal: AbortSignal;
}

/** Yields the rows of each page in a format, each with its record. */
export async function* toLines(
  deps: SearchDeps,
  asked: { readonly zoneId: number; readonly format: EventFormat; readonly vendor: string | null },
  { pages, signal }: Answered,
): AsyncGenerator<string, void, undefined> {
  const openedBlocks = createOpenedBlocks();
  const { zoneId, format } = asked;
  for await (const { rows } of pages) {
    const records = await readRecords({ ...deps, openedBlocks }, zoneId, rows, signal);
    const lines = rows.map((event, index) =>
      formatEvent(format, { zoneId, ...event }, records[index], asked),
    );
    yield lines.map((line) => `${escapeControlsInJson(line)}\n`).join("");
  }
}

/** Yields the pages as the platform answers a search, each row with its record. */
export async function* toAnswers(
  deps: SearchDeps,
  zoneId: number,
  { pageSize }: Pick<SearchPlan, "pageSize">,
  { pages, signal }: Answered,
) {
  const openedBlocks = createOpenedBlocks();
  for await (const found of pages) {
    const records = await readRecords({ ...deps, openedBlocks }, zoneId, found.rows, signal);
    const rows = found.rows.map(
      (event, index) => JSON.parse(toSearchRow(event, records[index], false)) as unknown,
    );
    yield toAnswer({ ...found, rows }, pageSize);
  }
}

/** Returns a page as the platform answers a search. Its rows are the platform's already. */
export function toAnswer({ rows, groups, total, page }: FoundPage<unknown>, pageSize: number) {
  return {
    rows,
    groups: groups.map(({ sparkline, ...group }) => (sparkline === null ? group : { ...group, sparkline })),
    total,
    totalPages: Math.ceil(total / pageSize),
    page,
    errorResponse: null,
  };
}
