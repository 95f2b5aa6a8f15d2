/** Plans a search that was asked for, and reads its pages. */
import type { z } from "zod";
import { toJsonLine } from "#archive/rules/export-lines.ts";
import { planSearch, type SearchPlan } from "#archive/rules/query/plan-search.ts";
import {
  checkWindow,
  readSearch,
  toNativeFilter,
  type WrittenFilter,
} from "#archive/rules/query/read-search.ts";
import type { FoundEvent } from "#archive/search/read-records.ts";
import type { searchGroups } from "#archive/search/read-union.ts";
import { searchEvents } from "#archive/search/search-events.ts";
import type { Config } from "#config/config.ts";
import { UsageError } from "#lib/errors.ts";
import { FIELD_NAMES, FIELDS } from "#model/fields.ts";
import { DIMENSIONS, type Dimension, type EventFormat } from "#model/kinds.ts";
import type { AskOperation } from "#operations/operation.ts";
import type { FlagReader } from "../edge/flag-reader.ts";
import { listUnread, type WindowFlags } from "../edge/read-search.ts";

type Found = z.infer<typeof searchEvents.output>;
type NativeRow = Extract<Found["rows"][number], { readonly logId: string; readonly timestamp: number }>;
type FoundGroup = Awaited<ReturnType<typeof searchGroups>>["groups"][number];

/** A page as the operation gives it: its rows are those of the API, in the format that was asked for. */
export interface FoundPage {
  readonly rows: Found["rows"];
  readonly groups: readonly FoundGroup[];
  /** Number of rows or groups on all pages. */
  readonly total: number;
  readonly page: number;
}

/** Returns one page of a search; `page` counts from 0. */
type FindPage = (page: number) => Promise<Omit<FoundPage, "page">>;

/**
 * Finds the pages of a search by its operation. `request` is what the API takes.
 * @throws {Refusal} if the request is refused
 */
export function findPages(
  ask: AskOperation,
  zone: string,
  request: object,
  { pageSize, format }: Pick<SearchPlan, "pageSize"> & { readonly format: EventFormat },
): FindPage {
  return async (page) => {
    const input = { ...request, zone, page, pageSize, format };
    const { rows, groups, total } = (await ask(searchEvents, input)) as Found;
    const shown = groups.map((group) => ({ ...group, sparkline: group.sparkline ?? null }));
    return { rows, groups: shown as unknown as FoundPage["groups"], total };
  };
}

/** Yields the pages from the plan's page on, up to `limit` rows or groups; the last page is cut. */
export async function* readPages(
  find: FindPage,
  plan: Pick<SearchPlan, "page" | "pageSize">,
  limit: number,
): AsyncGenerator<FoundPage, void, undefined> {
  let left = limit;
  for (let page = plan.page; ; page += 1) {
    const found = await find(page);
    const [rows, groups] = [found.rows.slice(0, left), found.groups.slice(0, left)];
    yield { ...found, rows, groups, page };
    left -= rows.length + groups.length;
    const isEmpty = rows.length + groups.length === 0;
    if (isEmpty || left <= 0 || (page + 1) * plan.pageSize >= found.total) return;
  }
}

/** Returns the rows of a page as events, each with its zone. */
export function toEvents({ rows }: Pick<FoundPage, "rows">): (FoundEvent & { readonly zoneId: number })[] {
  return (rows as NativeRow[]).map(({ logId, timestamp, log, fields }) => ({
    zoneId: Number(fields.zone),
    logId,
    occurredAt: timestamp,
    route: "",
    fields: toDimensions(fields),
    message: typeof log?.["Message"] === "string" ? log["Message"] : "",
    method: "",
    requestId: "",
    archived: null,
  }));
}

/** Returns a page as the platform answers a search. */
export function toPlatformAnswer({ rows, groups, total, page }: FoundPage, pageSize: number) {
  return {
    rows: (rows as NativeRow[]).map((row) => ({ ...row, fields: toDimensions(row.fields) })),
    groups: groups.map(({ sparkline, ...group }) => (sparkline === null ? group : { ...group, sparkline })),
    total,
    totalPages: Math.ceil(total / pageSize),
    page,
    errorResponse: null,
  };
}

/** Returns the rows of a page in a format, each as a line. */
export function toLinesOf({ rows }: Pick<FoundPage, "rows">, format: EventFormat): string {
  const zoneOf = (row: Found["rows"][number]) => Number((row as NativeRow).fields.zone);
  const shown = rows.map((row) => (format === "event" ? { zoneId: zoneOf(row), ...row } : row));
  return shown.map(toJsonLine).join("");
}

function toDimensions(fields: NativeRow["fields"]): Record<Dimension, string> {
  const byKey = new Map<string, string>(FIELD_NAMES.map((name) => [FIELDS[name], fields[name] ?? ""]));
  return Object.fromEntries(DIMENSIONS.map((name) => [name, byKey.get(name) ?? ""])) as Record<
    Dimension,
    string
  >;
}

/**
 * Returns the plan of a request that `readRequest` read from these flags, or undefined after a mistake. In a flag, `not-`
 * before an operator excludes.
 */
export function planAsked(
  read: FlagReader,
  request: unknown,
  { kind, flags }: { readonly kind: "search" | "export"; readonly flags: WindowFlags },
): SearchPlan | undefined {
  if (request === undefined) return undefined;
  const isBody = flags.body !== undefined;
  const result = readSearch(toNativeRequest(request, flags), kind, "native");
  if ("search" in result) return planSearch(result.search);
  const unread = listUnread(flags, request);
  for (const [member, rules] of Object.entries(result.mistakes))
    if (!unread.includes(member))
      read.mistakes.push(
        ...rules.map((rule) => (isBody ? rule : rule.replace(`${member} `, `${toFlag(member)} `))),
      );
  return undefined;
}

/** Returns a request that `readRequest` read from these flags as the service's own API takes it. */
export function toNativeRequest(request: unknown, { body }: WindowFlags): unknown {
  if (body !== undefined) return request;
  const { filters = [], ...rest } = request as { readonly filters?: readonly WrittenFilter[] };
  return { ...rest, filters: filters.map(toNativeFilter) };
}

/** Returns the flag of a member such as `filters[0].value`. */
function toFlag(member: string): string {
  const name = /^\w+/.exec(member)?.[0] ?? member;
  return `--${name.replace(/s$/, "").replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** @throws {UsageError} for a window that ends in the future or before the retention. */
export function requireKept(plan: SearchPlan, { retention }: Pick<Config, "retention">, nowMs: number): void {
  const mistakes = checkWindow(plan, { nowMs, retentionDays: retention.eventDays });
  if (mistakes !== null) throw new UsageError(Object.values(mistakes).flat());
}
