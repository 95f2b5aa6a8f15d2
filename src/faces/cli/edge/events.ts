import type { Command } from "commander";
import type { EdgeSetup } from "./edge-action.ts";
import { addEventsExport } from "./events-export.ts";
import { addEventsList } from "./events-list.ts";
import { addEventsSearch } from "./events-search.ts";

/** `events list`, `events search` and `events export`. */
export function addEvents(edge: Command, setup: EdgeSetup): void {
  const group = edge.command("events").description("Event logs of a shield zone, the last 72 hours.");
  addEventsList(group, setup);
  addEventsSearch(group, setup);
  addEventsExport(group, setup);
}
