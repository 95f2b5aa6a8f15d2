import { countHours } from "#db/coverage/hour-contents.ts";
import { many } from "#lib/format.ts";
import { DAY_MS } from "#lib/units.ts";
import { type Check, type Checked, type Difference, eachPart } from "./check.ts";

/** Compares the stored count of each hour with its events. */
export async function checkHours({ db, zoneId, onStep, ...span }: Checked): Promise<Check> {
  const differences: Difference[] = [];
  let hours = 0;
  for (const part of eachPart(span, DAY_MS)) {
    onStep("hour counts", (part.from - span.from) / (span.to - span.from));
    for (const { startsAt, events, counted } of await countHours(db, zoneId, part)) {
      hours++;
      if (events !== counted)
        differences.push({ at: startsAt, ruleId: null, expected: events, found: counted, detail: null });
    }
  }
  return {
    name: "hour counts",
    sides: ["events", "the hour's count"],
    compared: many(hours, "hour"),
    differences,
    notes: [],
    failure: null,
  };
}
