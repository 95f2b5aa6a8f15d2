import { createZoneReplay } from "#stages/detection/backtest/replay-zone.ts";
import { DEFAULT_Z, FLOOR } from "#stages/detection/policy.ts";
import type { SourceEpisode } from "#stages/detection/sources/source-episode.ts";
import { createSourceWatch } from "#stages/detection/sources/source-watch.ts";
import type { ReplayedMessage } from "./replayed-message.ts";
import type { DrawnEvent } from "./zone.ts";

/**
 * Returns the messages that the detector sends about the events of one zone. The sources of a zone are one alert, with
 * a message when it opens and when it becomes critical. A rule's alert is one message, which has its last severity.
 */
export function replayMessages(events: readonly DrawnEvent[]): ReplayedMessage[] {
  const replay = createZoneReplay({ z: DEFAULT_Z, floor: FLOOR });
  for (const event of events) replay.take(event, event.minute);
  const rules = replay.finish().filter(({ kind }) => kind === "rule");
  return [
    ...rules.map(
      ({ key, severity, openedAt }, incident): ReplayedMessage => ({
        at: openedAt,
        incident,
        reason: "first",
        severity,
        subject: "rule",
        attackers: [],
        rules: [key],
      }),
    ),
    ...replaySources(events, rules.length),
  ];
}

function replaySources(events: readonly DrawnEvent[], firstIncident: number): ReplayedMessage[] {
  const watch = createSourceWatch();
  const messages: ReplayedMessage[] = [];
  let incident = firstIncident - 1;
  let before: SourceEpisode | null = null;
  let next = events[0]?.minute ?? 0;
  function close(): void {
    watch.closeUntil(next);
    const episode = watch.episode();
    const isNew = episode?.openedAt !== before?.openedAt;
    if (episode !== null && (isNew || episode.severity !== before?.severity)) {
      incident += isNew ? 1 : 0;
      messages.push({
        at: next,
        incident,
        reason: isNew ? "first" : "worse",
        severity: episode.severity,
        subject: "incident",
        attackers: episode.findings.map(({ kind, key }) => ({ kind, key })),
        rules: [],
      });
    }
    before = episode;
  }
  for (const event of events) {
    for (; next < event.minute; close()) next += 1;
    watch.take(event, event.minute);
  }
  next += 1;
  close();
  return messages;
}
