import { readCoverageHours } from "#db/coverage/coverage-report.ts";
import { readDoubledIds, readHourContents } from "#db/coverage/hour-contents.ts";
import { many } from "#lib/format.ts";
import { HOUR_MS } from "#lib/units.ts";
import { findSealFaults } from "#stages/coverage/find-seal-faults.ts";
import type { Check, Checked, Difference } from "./check.ts";
import { showIds } from "./show-ids.ts";

/**
 * Checks that each sealed hour still matches its seal: the same events, each once and with every dimension. The
 * platform's count at the seal must not be lower.
 */
export async function checkSeals({ db, zoneId, onStep, ...span }: Checked): Promise<Check> {
  const differences: Difference[] = [];
  const hours = await readCoverageHours(db, zoneId, span);
  const sealed = hours.filter(({ state }) => state === "sealed");
  for (const [index, hour] of sealed.entries()) {
    const { startsAt: at } = hour;
    onStep("seals", index / sealed.length);
    const faults = findSealFaults(hour, await readHourContents(db, zoneId, at));
    const doubled = await readDoubledIds(db, zoneId, { fromMs: at, toMs: at + HOUR_MS });
    differences.push(
      ...faults.map(({ text, ...numbers }) => ({ at, ruleId: null, ...numbers, detail: text })),
    );
    if (doubled.length > 0) {
      const detail = showIds("stored with two different times:", doubled);
      differences.push({ at, ruleId: null, expected: 0, found: doubled.length, detail });
    }
  }
  return {
    name: "seals",
    sides: ["its seal", "stored"],
    compared: many(sealed.length, "sealed hour"),
    differences,
    notes: [],
    failure: null,
  };
}
