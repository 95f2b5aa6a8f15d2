import type { Queryable } from "#db/client.ts";
import { readSourceEvents } from "#db/detection/source-events.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { createKnownSources, type KnownSource } from "#model/known-source.ts";
import type { Span } from "#model/span.ts";
import { SOURCES_RULE } from "#model/stored-sources.ts";
import { type ReplayedAlert, toSourceAlert } from "#stages/detection/backtest/replay-zone.ts";
import { createSourceWatch } from "#stages/detection/sources/source-watch.ts";
import { HISTORY_HOURS } from "#stages/detection/thresholds/thresholds.ts";
import { readSeriesPolicies } from "./replay-store.ts";

/**
 * Replays the stored events of a zone through the source series, minute by minute, as the service runs them. Events of
 * the week before the span are its history. Reads events of Postgres only.
 */
export async function replaySources(
  db: Queryable,
  zoneId: number,
  { from, to }: Span,
  known: readonly KnownSource[],
): Promise<{ alerts: ReplayedAlert[]; events: number }> {
  const fromMs = from - HISTORY_HOURS * HOUR_MS;
  const policies = await readSeriesPolicies(db, { zoneId, rules: [SOURCES_RULE], fromMs, nowMs: to });
  const { isUnknownHour = () => false } = policies.get(SOURCES_RULE) ?? {};
  const { isKnown } = createKnownSources(known, { zoneId, nowMs: to });
  const watch = createSourceWatch({ isUnknownHour });
  const [first, judged, end] = [fromMs, from, to].map((ms) => Math.floor(ms / MINUTE_MS)) as [
    number,
    number,
    number,
  ];
  const alerts: ReplayedAlert[] = [];
  const close = (minute: number) => alerts.push(...watch.closeUntil(minute, judged).map(toSourceAlert));
  let read = 0;
  for await (const events of readSourceEvents(db, { zoneId, from: first, to: end })) {
    for (const event of events) {
      close(event.minute);
      if (!isKnown(event)) watch.take(event, event.minute);
      if (event.minute >= judged) read += 1;
    }
  }
  close(end);
  const open = watch.episode();
  return { alerts: open === null ? alerts : [...alerts, toSourceAlert(open)], events: read };
}
