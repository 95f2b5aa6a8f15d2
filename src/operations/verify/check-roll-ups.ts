import { compareBuckets } from "#db/detection/compare-buckets.ts";
import { many } from "#lib/format.ts";
import { DAY_MS } from "#lib/units.ts";
import { type Check, type Checked, type Difference, eachPart } from "./check.ts";

const NAMES: Record<number, string> = { 60: "minute", 3600: "hour", 86400: "day" };

/** Compares the buckets of minutes, hours and days with their events. */
export async function checkRollUps({ db, zoneId, onStep, ...span }: Checked): Promise<Check> {
  const differences: Difference[] = [];
  let days = 0;
  let pending = 0;
  for (const part of eachPart(span, DAY_MS)) {
    days++;
    onStep("roll-ups", (part.from - span.from) / (span.to - span.from));
    const found = await compareBuckets(db, { zoneId, from: new Date(part.from), to: new Date(part.to) });
    for (const { ruleId, width, startsAt, stored, recounted, isPending } of found) {
      if (isPending) {
        pending++;
        continue;
      }
      const [expected, bucket] = [recounted?.total ?? 0, stored?.total ?? 0];
      const name = NAMES[width] ?? `${width} s`;
      const detail = expected === bucket ? `${name}; its counts per action differ` : name;
      differences.push({ at: startsAt.getTime(), ruleId, expected, found: bucket, detail });
    }
  }
  return {
    name: "roll-ups",
    sides: ["events", "the bucket"],
    compared: `the buckets of ${many(days, "day")}`,
    differences,
    notes:
      pending === 0 ? [] : [`${many(pending, "stale bucket")} not compared: the roll-up will update them`],
    failure: null,
  };
}
