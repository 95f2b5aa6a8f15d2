import type { Queryable } from "#db/client.ts";
import { readDaysBefore } from "#db/detection/rule-metrics.ts";
import { readAttacks, readSearchedThrough } from "#db/detection/spikes.ts";
import { readActiveRules, readMinutesFrom, readReplayCounts } from "#db/detection/trends.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { toDay } from "#model/horizon.ts";
import { toAttackHours } from "#stages/detection/backtest/attack-hours.ts";
import { type BacktestReport, createBacktest } from "#stages/detection/backtest/backtest.ts";
import { minutesFrom, REPLAYED_DAYS } from "#stages/detection/minutes-kept.ts";
import type { SpikePolicy } from "#stages/detection/policy.ts";
import { toRulePrior } from "#stages/detection/thresholds/rule-prior.ts";
import { HISTORY_HOURS } from "#stages/detection/thresholds/thresholds.ts";
import { viewZone } from "#stages/detection/zone-view.ts";

/** The counts that come before a span because its thresholds depend on them. */
export const HISTORY_MS = (HISTORY_HOURS + 2) * HOUR_MS;

export interface StoredReplay {
  readonly zoneId: number;
  readonly ruleId: string | undefined;
  readonly days: number;
  readonly nowMs: number;
}

type Sensitivity = Pick<SpikePolicy, "z" | "floor">;

/** The detector's knowledge of rules beside their counts. */
type SeriesPolicy = Pick<SpikePolicy, "isUnknownHour" | "prior">;

/**
 * Returns for each of the rules what the service judges it by: hours that are not completely known and hours of confirmed
 * attacks leave the history. Where there is no history, the platform's daily counts are used.
 */
export async function readSeriesPolicies(
  db: Queryable,
  {
    zoneId,
    rules,
    fromMs,
    nowMs,
  }: { zoneId: number; rules: readonly string[]; fromMs: number; nowMs: number },
): Promise<ReadonlyMap<string, SeriesPolicy>> {
  const covered = await readSearchedThrough(db, { afterMs: fromMs, untilMs: nowMs });
  const { isUnknownHour } = viewZone(
    covered.filter((hour) => hour.zoneId === zoneId),
    nowMs,
  );
  const attacks = Map.groupBy(await readAttacks(db, { afterMs: fromMs, zoneId }), (attack) => attack.ruleId);
  const before = await readDaysBefore(
    db,
    rules.map((rule) => ({ zoneId, ruleId: rule })),
  );
  const totals = new Map(before.map((days) => [days.ruleId, days.totals]));
  return new Map(
    rules.map((rule) => {
      const left = toAttackHours(attacks.get(rule) ?? []);
      const policy = {
        isUnknownHour: (hour: number) => left.has(hour) || isUnknownHour(hour),
        prior: toRulePrior(totals.get(rule) ?? []),
      };
      return [rule, policy];
    }),
  );
}

/**
 * Replays the stored minutes of a zone's rules with the rules of the service, read once for all settings. Returns a
 * report for each of the settings.
 */
export async function replayStore(
  db: Queryable,
  { zoneId, ruleId, days, nowMs }: StoredReplay,
  [first, ...others]: readonly [Sensitivity, ...Sensitivity[]],
): Promise<[BacktestReport, ...BacktestReport[]]> {
  const endMinute = Math.floor(nowMs / MINUTE_MS);
  const startMinute = endMinute - days * 1_440;
  const toMs = endMinute * MINUTE_MS;
  const fromMs = startMinute * MINUTE_MS - HISTORY_MS;
  const kept = await readMinutesFrom(db, zoneId, minutesFrom(nowMs));
  if (kept !== null && startMinute * MINUTE_MS < kept)
    throw new Error(
      `cannot replay ${days} days of zone ${zoneId}: the counts by the minute of archive days are kept since ${toDay(kept)}; use at most ${REPLAYED_DAYS} days`,
    );
  const rules =
    ruleId === undefined
      ? await readActiveRules(db, zoneId, { fromMs: startMinute * MINUTE_MS, toMs })
      : [ruleId];
  const policies = await readSeriesPolicies(db, { zoneId, rules, fromMs, nowMs });
  const nameOf = (rule: string) => `${zoneId}/${rule}`;
  const named = new Map([...policies].map(([rule, policy]) => [nameOf(rule), policy]));
  const policyOf = (series: string) => named.get(series) ?? {};
  const open = (settings: Sensitivity) => createBacktest({ ...settings, policyOf, startMinute, endMinute });
  const backtest = open(first);
  const compared = others.map(open);
  for (const rule of rules) {
    const counts = await readReplayCounts(db, { zoneId, ruleId: rule }, { fromMs, toMs });
    for (const one of [backtest, ...compared])
      for (const { minute, count } of counts) one.take(nameOf(rule), minute, count);
  }
  return [backtest.report(), ...compared.map((one) => one.report())];
}
