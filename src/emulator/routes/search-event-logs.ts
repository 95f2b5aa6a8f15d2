import type { Call, EmulatorContext } from "../emulator-context.ts";
import { groupRows } from "../query/groups.ts";
import { readSearch } from "../query/request.ts";
import { findRows, pageOfRows } from "../query/rows.ts";
import { checkWindow } from "../query/window.ts";
import { json, type Reply, validationProblem } from "../reply.ts";
import { shareOf, toSearchRow, withOddity } from "../traffic/render-event.ts";
import { findZone, readJsonBody, successBlock, unknownZoneBlock } from "./shield-zone.ts";

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
