import type { z } from "zod";
import type { RemoteService } from "#config/config.ts";
import { UsageError } from "#lib/errors.ts";
import { FIELD_NAMES, FIELDS } from "#model/fields.ts";
import { DIMENSIONS, type Dimension, type EventFormat } from "#model/kinds.ts";
import { Refusal } from "#operations/refusal.ts";
import { searchEvents } from "#operations/search/search-events.ts";
import { escapeControlsInJson } from "#stages/archive/csv/escape-controls.ts";
import type { SearchPlan } from "#stages/archive/query/plan-search.ts";
import { askRemotely } from "../operations/ask-remotely.ts";
import type { FoundPage } from "./read-pages.ts";

type Found = z.infer<typeof searchEvents.output>;
type NativeRow = Extract<Found["rows"][number], { readonly logId: string; readonly timestamp: number }>;

type ElsewherePage = Pick<Found, "rows" | "total"> & { readonly groups: FoundPage["groups"] };

/**
 * Finds the pages of a search on a service elsewhere, with the rights of a key. The rows are those of its API.
 * @throws {UsageError} if the service refuses the request; Error if it cannot be asked
 */
export function findElsewhere(
  remote: RemoteService,
  zoneId: number,
  request: object,
  { pageSize, format }: Pick<SearchPlan, "pageSize"> & { readonly format: EventFormat },
): (page: number) => Promise<ElsewherePage> {
  const ask = askRemotely(remote);
  return async (page) => {
    const input = { ...request, zone: zoneId, page, pageSize, format };
    const { rows, groups, total } = (await ask(searchEvents, input).catch(refuse)) as Found;
    const shown = groups.map((group) => ({ ...group, sparkline: group.sparkline ?? null }));
    return { rows, groups: shown as unknown as FoundPage["groups"], total };
  };
}

function refuse(thrown: unknown): never {
  if (!(thrown instanceof Refusal) || ![400, 422].includes(thrown.statusCode)) throw thrown;
  const said = thrown.mistakes.map(({ field, value, rule }) =>
    [field, value, rule].filter(Boolean).join(" "),
  );
  throw new UsageError(said.length === 0 ? [thrown.message] : said);
}

/** Returns the page with its rows as events. */
export function toFoundPage(found: ElsewherePage & { readonly page: number }): FoundPage {
  const rows = (found.rows as NativeRow[]).map(({ logId, timestamp, log, fields }) => ({
    logId,
    occurredAt: timestamp,
    route: "",
    fields: toDimensions(fields),
    message: typeof log?.["Message"] === "string" ? log["Message"] : "",
    archived: null,
  }));
  return { ...found, rows };
}

/** Returns a page as the platform answers a search. */
export function toAnswer(
  found: ElsewherePage & { readonly page: number },
  pageSize: number,
): Record<string, unknown> {
  const { groups, total, page } = found;
  return {
    rows: (found.rows as NativeRow[]).map((row) => ({ ...row, fields: toDimensions(row.fields) })),
    groups: groups.map(({ sparkline, ...group }) => (sparkline === null ? group : { ...group, sparkline })),
    total,
    totalPages: Math.ceil(total / pageSize),
    page,
    errorResponse: null,
  };
}

/** Returns the rows of a page in a format, each as a line. A row of the API does not name its zone. */
export function toLinesOf(
  { rows }: Pick<ElsewherePage, "rows">,
  zoneId: number,
  format: EventFormat,
): string {
  const shown = rows.map((row) => (format === "event" ? { zoneId, ...row } : row));
  return shown.map((row) => `${escapeControlsInJson(JSON.stringify(row))}\n`).join("");
}

function toDimensions(fields: NativeRow["fields"]): Record<Dimension, string> {
  const byKey = new Map<string, string>(FIELD_NAMES.map((name) => [FIELDS[name], fields[name] ?? ""]));
  return Object.fromEntries(DIMENSIONS.map((name) => [name, byKey.get(name) ?? ""])) as Record<
    Dimension,
    string
  >;
}
