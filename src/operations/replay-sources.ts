import type { Queryable } from "#db/client.ts";
import { readSourceEvents } from "#db/detection/source-events.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { createKnownSources, type KnownSource } from "#model/known-source.ts";
import type { Span } from "#model/span.ts";
import { SOURCES_RULE } from "#model/stored-sources.ts";
import { createIncidentReplay } from "#stages/detection/backtest/replay-incidents.ts";
import type { ReplayedMessage } from "#stages/detection/backtest/replayed-message.ts";
import { createTeller } from "#stages/detection/backtest/tell-alerts.ts";
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
  const messages: ReplayedMessage[] = [];
  const incidents = createIncidentReplay(createTeller((message) => messages.push(message)));
  let closed = first;
  const close = (until: number) => {
    for (; closed < until; closed += 1) {
      for (const fired of watch.closeUntil(closed + 1, judged)) incidents.follow(fired);
      if (incidents.open().length > 0) incidents.tell(closed);
    }
  };
  let read = 0;
  for await (const events of readSourceEvents(db, { zoneId, from: first, to: end })) {
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
  return { messages, events: read };
}
