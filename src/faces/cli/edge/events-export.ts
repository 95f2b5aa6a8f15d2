import type { Command } from "commander";
import { EventLogsExportRequest } from "#adapters/edge/contract/event-logs.ts";
import type { StreamLimits } from "#adapters/edge/transport/transport.ts";
import { readCsv } from "#operations/backfill/read-csv.ts";
import { addSubcommand, type EdgeSetup, edgeAction } from "./edge-action.ts";
import { addWindowOptions, readSearch, type WindowFlags } from "./read-search.ts";
import { writeJoinedPages } from "./write-json.ts";
import { writeText } from "./write-text.ts";

/** The longest time that the platform may send nothing. */
const IDLE_MS = 30_000;

/** Returns the time limits of an export. Without --timeout, an export has no total limit. */
function toLimits(timeoutMs: number | null): { limits?: StreamLimits } {
  return timeoutMs === null ? {} : { limits: { idleTimeoutMs: Math.min(timeoutMs, IDLE_MS), timeoutMs } };
}

export function addEventsExport(group: Command, setup: EdgeSetup): void {
  const command = addSubcommand(
    group,
    "export",
    "Export events as CSV. Visitors control many of the values: a spreadsheet may run cells that begin with =, +, - or @.",
    [
      "events export --zone 101 --from -72h > events.csv",
      "events export --zone 101 --from 2026-11-20T00:00Z --to 2026-11-20T06:00Z --filter country:eq:NL",
      "events export --zone 101 --from -1h --json",
    ],
    "print JSON: one item per row, with the column names of the header",
  );
  addWindowOptions(command).action(
    edgeAction<WindowFlags>(setup, async (flags, run) => {
      const shieldZoneId = run.read.id("zone", flags.zone, "a shield zone's number");
      const request = await readSearch(EventLogsExportRequest, flags, {}, run);
      await run.call(async (client) => {
        if (shieldZoneId === undefined || request === undefined) return;
        const limits = toLimits(run.typedTimeoutMs);
        const { csv } = await client.exportEventLogs({ shieldZoneId, request, ...limits });
        if (run.isJson) await writeJoinedPages(run.io.stdout, "items", toPages(csv));
        else await writeText(run.io.stdout, csv);
      });
    }),
  );
}

const ROWS_PER_PAGE = 500;

/** Yields the rows as objects. Every cell stays text, as in the file. */
async function* toPages(csv: AsyncIterable<Buffer>) {
  let header: readonly string[] | undefined;
  let items: Record<string, string>[] = [];
  for await (const { cells } of readCsv(csv)) {
    if (header === undefined) header = cells;
    else items.push(Object.fromEntries(header.map((name, column) => [name, cells[column] ?? ""])));
    if (items.length < ROWS_PER_PAGE) continue;
    yield { items, next: null };
    items = [];
  }
  yield { items, next: null };
}
