import type { Queryable } from "#db/client.ts";
import { readSourceEvents } from "#db/detection/source-events.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import type { Span } from "#model/horizon.ts";
import { FEW_ADDRESSES } from "#model/ip-address.ts";
import { createKnownSources, type KnownSource } from "#model/known-source.ts";
import { SOURCES_RULE } from "#model/stored-sources.ts";
import { createAlertReplay } from "#stages/alerting/backtest/replay-alerts.ts";
import { createIncidentReplay } from "#stages/alerting/backtest/replay-incidents.ts";
import type { ReplayedMessage } from "#stages/alerting/backtest/replayed-message.ts";
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
