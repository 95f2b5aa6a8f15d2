import type { z } from "zod";
import { FIELD_NAMES, FIELDS } from "#model/fields.ts";
import { DIMENSIONS, type Dimension, type EventFormat } from "#model/kinds.ts";
import type { AskOperation } from "#operations/operation.ts";
import { searchEvents } from "#operations/search/search-events.ts";
import { escapeControlsInJson } from "#stages/archive/csv/escape-controls.ts";
import type { SearchPlan } from "#stages/archive/query/plan-search.ts";
import { type FoundPage, toAnswer } from "./read-pages.ts";

type Found = z.infer<typeof searchEvents.output>;
type NativeRow = Extract<Found["rows"][number], { readonly logId: string; readonly timestamp: number }>;

type ElsewherePage = Pick<Found, "rows" | "total"> & { readonly groups: FoundPage["groups"] };

/**
 * Finds the pages of a search by asking the service, which may be elsewhere. The rows are those of its API.
 * @throws {Refusal} if the service refuses the request; an Error if the service cannot be asked
 */
export function findElsewhere(
  ask: AskOperation,
  zoneId: number,
  request: object,
  { pageSize, format }: Pick<SearchPlan, "pageSize"> & { readonly format: EventFormat },
): (page: number) => Promise<ElsewherePage> {
  return async (page) => {
    const input = { ...request, zone: zoneId, page, pageSize, format };
    const { rows, groups, total } = (await ask(searchEvents, input)) as Found;
    const shown = groups.map((group) => ({ ...group, sparkline: group.sparkline ?? null }));
    return { rows, groups: shown as unknown as FoundPage["groups"], total };
  };
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
export function toPlatformAnswer(found: ElsewherePage & { readonly page: number }, pageSize: number) {
  const rows = (found.rows as NativeRow[]).map((row) => ({ ...row, fields: toDimensions(row.fields) }));
  return toAnswer({ ...found, rows }, pageSize);
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
