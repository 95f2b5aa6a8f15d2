import { compareDays } from "#db/detection/rule-metrics.ts";
import { formatWhole, many } from "#lib/format.ts";
import { shortenText } from "#lib/text.ts";
import type { Check, Checked } from "./check.ts";

const SHOWN = 40;

/**
 * Compares the platform's last daily counts with the stored events of sealed days. The platform's counts may be late and
 * may be counted in another way, so a higher count is a note and no difference.
 */
export async function checkDays({ db, zoneId, from, to }: Checked): Promise<Check> {
  const { compared, beyond } = await compareDays(db, zoneId, { fromMs: from, toMs: to });
  const notes = beyond
    .slice(0, SHOWN)
    .map(
      ({ day, ruleId, upstream, stored }) =>
        `${day}  rule ${shortenText(ruleId, 60)}: the platform ${formatWhole(upstream)}, stored ${formatWhole(stored)} (the platform's daily counts may be inexact)`,
    );
  const more = beyond.length - SHOWN;
  return {
    name: "daily counts",
    sides: ["the platform", "stored"],
    compared: `${many(compared, "count")} of a rule on a sealed day`,
    verdict:
      beyond.length === 0
        ? "none higher on the platform"
        : `${formatWhole(beyond.length)} higher on the platform`,
    differences: [],
    notes: more > 0 ? [...notes, `and ${formatWhole(more)} more`] : notes,
    failure: null,
  };
}
