/** The routes of the search and of the export. */

import { setImmediate as yieldToOthers } from "node:timers/promises";
import { DIMENSIONS } from "#platform/contract/event-logs.ts";
import type { Call, EmulatorContext } from "../emulator-context.ts";
import { groupRows } from "../query/groups.ts";
import { readSearch } from "../query/request.ts";
import { checkWindow, findRows, pageOfRows } from "../query/rows.ts";
import { json, type Reply, validationProblem } from "../reply.ts";
import { type Draft, logIdOf } from "../traffic/draft.ts";
import { fieldsOf, shareOf, toSearchRow, withOddity } from "../traffic/render-event.ts";
import type { ZoneStore } from "../zone-store.ts";
import { findZone, readJsonBody, successBlock, unknownZoneBlock } from "./bodies.ts";

const FAILED = { rows: null, groups: null, total: 0, totalPages: 0, page: 0 };

/** Returns flat rows or groups of the last 72 hours (platform API spec 4.7). */
export function searchEventLogs(context: EmulatorContext, call: Call): Reply {
  const body = readJsonBody(call);
  if ("refusal" in body) return body.refusal;
  const zone = findZone(context, call);
  if ("refusal" in zone) return zone.refusal;
  const read = readSearch(body.value, "search");
  if ("mistakes" in read) return validationProblem(read.mistakes);
  const nowMs = context.now();
  const outside = checkWindow(read.search, nowMs);
  if (outside !== undefined) return validationProblem(outside);
  if (zone.store === undefined) return json(202, { ...FAILED, errorResponse: unknownZoneBlock() });

  const { search } = read;
  const { store } = zone;
  const rows = findRows(store, search, nowMs);
  const emptySide = context.switches.emptySide === "null" ? null : [];
  const grouped = search.groupBy.length > 0 ? groupRows(store.columns(), rows, search) : undefined;
  const total = grouped?.total ?? rows.length;
  const hidden = call.faults.find((fault) => fault.kind === "hidden-rows")?.share ?? 0;
  const flat = () =>
    pageOfRows(rows, search)
      .map((row) => store.draft(row))
      .filter((draft) => hidden === 0 || shareOf(draft) >= hidden);
  return json(200, {
    rows:
      grouped === undefined
        ? flat().map((draft) => withOddity(draft, toSearchRow(draft), call.faults))
        : emptySide,
    groups: grouped?.page ?? emptySide,
    total,
    totalPages: Math.ceil(total / search.pageSize),
    page: search.page,
    ...successBlock(context, "errorResponse"),
  });
}

const ROWS_PER_CHUNK = 500;
const HEADER = `timestamp,logId,${DIMENSIONS.join(",")}\r\n`;

/** Quotes a cell by RFC 4180. Formulas stay unchanged, because the platform does not protect spreadsheets. */
function cell(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function toCsvLine(draft: Draft): string {
  const fields = fieldsOf(draft);
  const cells = DIMENSIONS.map((name) => cell(fields[name]));
  return `${[String(draft.at), logIdOf(draft.id), ...cells].join(",")}\r\n`;
}

async function* csvOf(store: ZoneStore, rows: readonly number[]): AsyncGenerator<string> {
  yield HEADER;
  // The events are drawn from keys taken now, so a store that is extended or redrawn meanwhile changes nothing.
  const keys = rows.map((row) => ({ at: store.columns().at(row), key: store.columns().key(row) }));
  for (let end = keys.length; end > 0; end -= ROWS_PER_CHUNK) {
    const chunk = keys.slice(Math.max(0, end - ROWS_PER_CHUNK), end).reverse();
    yield chunk.map(({ at, key }) => toCsvLine(store.redraw(at, key))).join("");
    await yieldToOthers();
  }
}

/** Returns all matching events as CSV, newest first (platform API spec 4.8). */
export function exportEventLogs(context: EmulatorContext, call: Call): Reply {
  const body = readJsonBody(call);
  if ("refusal" in body) return body.refusal;
  const zone = findZone(context, call);
  if ("refusal" in zone) return zone.refusal;
  const read = readSearch(body.value, "export");
  if ("mistakes" in read) return validationProblem(read.mistakes);
  const nowMs = context.now();
  const outside = checkWindow(read.search, nowMs);
  if (outside !== undefined) return validationProblem(outside);
  if (zone.store === undefined) return json(202, unknownZoneBlock());
  const rows = findRows(zone.store, read.search, nowMs);
  const name = `event-logs-${zone.id}.csv`;
  const headers = {
    "content-type": "text/csv; charset=utf-8",
    "content-disposition": `attachment; filename="${name}"`,
  };
  return { status: 200, headers, body: csvOf(zone.store, rows) };
}
