import type { Queryable } from "../../../db/client.ts";
import { readActiveRules, readReplayCounts } from "../../../db/detection/replay-counts.ts";
import { readDaysBefore } from "../../../db/detection/rule-metrics.ts";
import { readAttacks, readSearchedThrough } from "../../../db/detection/spikes.ts";
import { toAttackHours } from "../../detection/backtest/attack-hours.ts";
import { type BacktestReport, createBacktest } from "../../detection/backtest/backtest.ts";
import type { SpikePolicy } from "../../detection/policy.ts";
import { toRulePrior } from "../../detection/thresholds/rule-prior.ts";
import { HISTORY_HOURS } from "../../detection/thresholds/thresholds.ts";
import { viewZone } from "../../detection/zone-view.ts";
import { HOUR_MS, MINUTE_MS } from "../../lib/units.ts";

export interface StoredReplay {
  readonly zoneId: number;
  readonly ruleId: string | undefined;
  readonly days: number;
  readonly z: number;
  readonly floor: number;
  readonly nowMs: number;
}

/**
 * Replays the stored minutes of a zone's rules with the rules of the service: hours that are not completely known and
 * hours of confirmed attacks leave the history. Where there is no history, the platform's daily counts are used.
 */
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
  const rules =
    ruleId === undefined
      ? await readActiveRules(db, zoneId, { fromMs: startMinute * MINUTE_MS, toMs })
      : [ruleId];
  const nameOf = (rule: string) => `${zoneId}/${rule}`;
  const policies = new Map<string, Pick<SpikePolicy, "isUnknownHour" | "prior">>();
  const attacks = Map.groupBy(await readAttacks(db, { afterMs: fromMs, zoneId }), (attack) => attack.ruleId);
  const before = await readDaysBefore(
    db,
    rules.map((rule) => ({ zoneId, ruleId: rule })),
  );
  const totals = new Map(before.map((days) => [days.ruleId, days.totals]));
  for (const rule of rules) {
    const left = toAttackHours(attacks.get(rule) ?? []);
    policies.set(nameOf(rule), {
      isUnknownHour: (hour) => left.has(hour) || isUnknownHour(hour),
      prior: toRulePrior(totals.get(rule) ?? []),
    });
  }
  const policyOf = (series: string) => policies.get(series) ?? {};
  const backtest = createBacktest({ z, floor, policyOf, startMinute, endMinute });
  for (const rule of rules) {
    const counts = await readReplayCounts(db, { zoneId, ruleId: rule }, { fromMs, toMs });
    for (const { minute, count } of counts) backtest.take(nameOf(rule), minute, count);
  }
  return backtest.report();
}
