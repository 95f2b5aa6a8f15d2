import { compareDays } from "../../../db/detection/rule-metrics.ts";
import { shortenText } from "../../lib/escape-text.ts";
import { count, many } from "../../lib/progress-bar.ts";
import type { Check, Checked } from "./check.ts";

const SHOWN = 40;

/**
 * Whether the platform's daily counts, as it told them last, exceed what is stored of days that are sealed. What it counts
 * may lag and may be counted otherwise: a day is named, and is no difference.
 */
export async function checkDays({ db, zoneId, from, to }: Checked): Promise<Check> {
  const { compared, beyond } = await compareDays(db, zoneId, { fromMs: from, toMs: to });
  const notes = beyond
    .slice(0, SHOWN)
    .map(
      ({ day, ruleId, upstream, stored }) =>
        `${day}  rule ${shortenText(ruleId, 60)}: the platform counts ${count(upstream)}, stored ${count(stored)} (evidence, no proof)`,
    );
  const more = beyond.length - SHOWN;
  return {
    name: "daily counts",
    sides: ["the platform", "stored"],
    compared: `${many(compared, "count")} of a rule on a sealed day`,
    verdict: beyond.length === 0 ? "none higher there" : `${count(beyond.length)} higher there`,
    differences: [],
    notes: more > 0 ? [...notes, `and ${count(more)} more`] : notes,
    failure: null,
  };
}
