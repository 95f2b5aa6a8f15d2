/** Replays what is stored through the detectors. */

import { createAlertReplay } from "#alerts/rules/backtest/replay-alerts.ts";
import { createIncidentReplay, type ReplayedMessage } from "#alerts/rules/backtest/replay-incidents.ts";
import type { Queryable } from "#db/client.ts";
import { readDaysBefore } from "#db/detection/rule-metrics.ts";
import { readSourceEvents } from "#db/detection/source-events.ts";
import { readAttacks, readSearchedThrough } from "#db/detection/spikes.ts";
import { readActiveRules, readMinutesFrom, readReplayCounts } from "#db/detection/trends.ts";
import { type BacktestReport, createBacktest, toAttackHours } from "#detection/rules/backtest/backtest.ts";
import { minutesFrom, REPLAYED_DAYS, type SpikePolicy } from "#detection/rules/detection-settings.ts";
import { createSourceWatch } from "#detection/rules/sources/source-watch.ts";
import { toRulePrior } from "#detection/rules/thresholds/hour-history.ts";
import { HISTORY_HOURS } from "#detection/rules/thresholds/thresholds.ts";
import { viewZone } from "#detection/rules/zone-view.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { type Span, toDay } from "#model/horizon.ts";
import { FEW_ADDRESSES } from "#model/ip-address.ts";
import { createKnownSources, type KnownSource } from "#model/known-source.ts";
import { SOURCES_RULE } from "#model/stored-sources.ts";

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

/**
 * Replays the stored events of a zone through the source series, minute by minute, as the service runs them. Events of
 * the week before the span are its history. Reads events of Postgres only.
 */
export async function replaySources(
  db: Queryable,
  zoneId: number,
  { from, to }: Span,
  known: readonly KnownSource[],
): Promise<{ messages: ReplayedMessage[]; events: number }> {
  const fromMs = from - HISTORY_HOURS * HOUR_MS;
  const policies = await readSeriesPolicies(db, { zoneId, rules: [SOURCES_RULE], fromMs, nowMs: to });
  const { isUnknownHour = () => false } = policies.get(SOURCES_RULE) ?? {};
  const { isKnown } = createKnownSources(known, to)(zoneId);
  const watch = createSourceWatch({ isUnknownHour });
  const [first, judged, end] = [fromMs, from, to].map((ms) => Math.floor(ms / MINUTE_MS)) as [
    number,
    number,
    number,
  ];
  const alerts = createAlertReplay({ judge: undefined, fewAddresses: FEW_ADDRESSES });
  let ids = 0;
  const incidents = createIncidentReplay(() => {
    ids += 1;
    return ids;
  });
  let closed = first;
  const close = (until: number) => {
    for (; closed < until; closed += 1) {
      incidents.follow(watch.closeUntil(closed + 1, judged));
      const spikes = incidents.close(closed);
      if (spikes.length > 0 || alerts.isOpen()) alerts.decide(closed + 1, spikes);
    }
  };
  let read = 0;
  for await (const { events } of readSourceEvents(db, { zoneId, from: first, to: end })) {
    for (const event of events) {
      close(event.minute);
      if (!isKnown(event)) {
        watch.take(event, event.minute);
        incidents.take(event);
      }
      if (event.minute >= judged) read += 1;
    }
  }
  close(end);
  return { messages: [...alerts.finish()], events: read };
}
