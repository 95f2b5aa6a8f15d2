import type { Queryable } from "../../../db/client.ts";
import { readActiveRules, readReplayCounts } from "../../../db/queries/replay-counts.ts";
import { readSearchedThrough } from "../../../db/queries/spikes.ts";
import { type BacktestReport, createBacktest } from "../../spike/backtest.ts";
import { HISTORY_HOURS } from "../../spike/thresholds.ts";
import { viewZone } from "../../spike/zone-view.ts";
import { HOUR_MS, MINUTE_MS } from "../../trend/bucket.ts";

interface StoredReplay {
  readonly zoneId: number;
  readonly ruleId: string | undefined;
  readonly days: number;
  readonly z: number;
  readonly floor: number;
  readonly nowMs: number;
}

/** Replays the stored minutes of a zone's rules; hours that are not wholly known leave the history, as in the service. */
export async function replayStore(db: Queryable, asked: StoredReplay): Promise<BacktestReport> {
  const { zoneId, ruleId, days, z, floor, nowMs } = asked;
  const endMinute = Math.floor(nowMs / MINUTE_MS);
  const startMinute = endMinute - days * 1_440;
  const toMs = endMinute * MINUTE_MS;
  const fromMs = startMinute * MINUTE_MS - (HISTORY_HOURS + 2) * HOUR_MS;
  const covered = await readSearchedThrough(db, { afterMs: fromMs, untilMs: nowMs });
  const { isUnknownHour } = viewZone(
    covered.filter((hour) => hour.zoneId === zoneId),
    nowMs,
  );
  const backtest = createBacktest({ z, floor, isUnknownHour, startMinute, endMinute });
  const rules =
    ruleId === undefined
      ? await readActiveRules(db, zoneId, { fromMs: startMinute * MINUTE_MS, toMs })
      : [ruleId];
  for (const rule of rules) {
    const counts = await readReplayCounts(db, { zoneId, ruleId: rule }, { fromMs, toMs });
    for (const { minute, count } of counts) backtest.take(`${zoneId}/${rule}`, minute, count);
  }
  return backtest.report();
}
