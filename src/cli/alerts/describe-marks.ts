import type { AlertMarks } from "../../../db/alerting/marks.ts";
import { suggestZ } from "../../detection/backtest/suggest-z.ts";
import type { Sensitivity } from "../../detection/detection-settings.ts";
import { many } from "../../lib/progress-bar.ts";
import { showTime } from "../../lib/show-time.ts";

/** A longer one, or one with other characters, is not written into a configuration unseen. */
const PLAIN_RULE = /^[A-Za-z0-9_.:-]{1,64}$/;

export interface MarkedSeries {
  readonly zoneId: number;
  readonly ruleId: string;
  /** As the rule is judged now. */
  readonly z: Sensitivity["z"];
}

/** What a person said of the alert; where the rule is noise time and again, the lines that would keep it quiet. */
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
      ` ${many(suggested.silenced, "spike")} of these would not have opened. In the configuration file, in front of other overrides:`,
    "  detection:",
    "    overrides:",
    `      - zone: [${series.zoneId}]`,
    `        rule: ["${series.ruleId}"]`,
    `        z: ${suggested.z}`,
  ];
}
