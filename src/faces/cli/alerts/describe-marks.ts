import type { AlertMarks } from "#db/alerting/marks.ts";
import { showTime } from "#lib/show-time.ts";
import { suggestZ } from "#stages/detection/backtest/suggest-z.ts";
import type { Sensitivity } from "#stages/detection/detection-settings.ts";

/** Other rule ids are not suggested for a configuration file, because they could break its syntax. */
const PLAIN_RULE = /^[A-Za-z0-9_.:-]{1,64}$/;

export interface MarkedSeries {
  readonly zoneId: number;
  readonly ruleId: string;
  /** The threshold score that is configured for the rule now. */
  readonly z: Sensitivity["z"];
}

/** Returns the mark of the alert in words. If the rule is often noise, adds configuration lines that raise its threshold. */
export function describeMarks(
  { mark, markedAt, noiseScores }: AlertMarks,
  series: MarkedSeries | null,
): string[] {
  const said =
    mark === null
      ? "not marked"
      : `marked as ${mark}${markedAt === null ? "" : `, ${showTime(markedAt.getTime())} UTC`}`;
  if (series === null || !PLAIN_RULE.test(series.ruleId)) return [said];
  const suggested = suggestZ(noiseScores, series.z);
  if (suggested === null) return [said];
  return [
    said,
    `The rule was marked as noise ${noiseScores.length} times in the last 30 days. With z ${suggested.z} instead of ${series.z},` +
      ` ${suggested.silenced} of these spikes would not have opened. To set it, put these lines in front of the other overrides in the configuration file:`,
    "  detection:",
    "    overrides:",
    `      - zone: [${series.zoneId}]`,
    `        rule: ["${series.ruleId}"]`,
    `        z: ${suggested.z}`,
  ];
}
