import { countStoredCells } from "../../../db/queries/verify.ts";
import { DAY_MS, HOUR_MS } from "../../coverage/horizon.ts";
import type { EdgeClient } from "../../edge/edge-client.ts";
import { many } from "../progress-bar.ts";
import { findAskable } from "./askable-hours.ts";
import { type Check, type Checked, type Difference, eachPart } from "./check.ts";
import { addTo, type Cells, countUpstream } from "./count-upstream.ts";

/** Whether the platform counts as many events of each rule in each hour as are stored. */
export async function checkCounts(
  { db, zoneId, now, onStep, ...span }: Checked,
  edge: Pick<EdgeClient, "searchEventLogs">,
): Promise<Check> {
  const { askable, notes } = findAskable(now, span);
  const differences: Difference[] = [];
  let compared = 0;
  for (const part of askable === null ? [] : eachPart(askable, DAY_MS)) {
    onStep("platform counts", (part.from - span.from) / (span.to - span.from));
    const upstream = await countUpstream(edge, zoneId, part);
    const stored: Cells = new Map();
    for (const { startsAt, ruleId, events } of await countStoredCells(db, zoneId, part))
      addTo(stored, startsAt, ruleId, events);
    for (let hour = part.from; hour < part.to; hour += HOUR_MS) {
      const [there, here] = [upstream.get(hour), stored.get(hour)];
      const rules = new Set([...(there?.keys() ?? []), ...(here?.keys() ?? [])]);
      compared += rules.size;
      for (const ruleId of [...rules].sort()) {
        const [expected, found] = [there?.get(ruleId) ?? 0, here?.get(ruleId) ?? 0];
        if (expected !== found) differences.push({ at: hour, ruleId, expected, found, detail: null });
      }
    }
  }
  const hours = askable === null ? 0 : (askable.to - askable.from) / HOUR_MS;
  return {
    name: "platform counts",
    sides: ["the platform", "stored"],
    compared: `${many(hours, "hour")}, ${many(compared, "count")} of a rule in an hour`,
    differences,
    notes,
    failure: null,
  };
}
