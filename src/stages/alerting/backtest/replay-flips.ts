import { MINUTE_MS, MINUTES_PER_DAY } from "#lib/units.ts";
import { isSumRule, OPEN_DAYS, type RuleChange } from "#model/rules.ts";
import { createActionWatch } from "#stages/detection/flips/action-watch.ts";
import { toSourceAddress } from "#stages/detection/sources/source-event.ts";
import type { ReplayedSpike } from "./replay-alerts.ts";
import { NO_EVIDENCE } from "./replay-incidents.ts";
import type { RecordedEvent } from "./replay-verdicts.ts";

const OPEN_MINUTES = OPEN_DAYS["action-change"] * MINUTES_PER_DAY;

/**
 * Replays which rules of a zone change their action. Only requests in which a rule is alone are looked at: a rule that logs alone is
 * blocked where others match, too.
 */
export function createFlipReplay(nextId: () => number) {
  const actions = createActionWatch();
  let requests = new Map<string, Map<string, RecordedEvent>>();
  let changes: RuleChange[] = [];
  let [id, openedAt] = [0, 0];

  /** Returns the spike of the zone's changes at the end of a minute; none if no rule has changed within a day. */
  function close(minute: number): ReplayedSpike[] {
    const end = minute + 1;
    for (const matched of requests.values()) {
      const [event, ...others] = matched.values();
      if (event?.action === undefined || others.length > 0) continue;
      const rule = event.ruleId ?? "";
      const flip = actions.take(rule, event.action, toSourceAddress(event.ip ?? ""), minute);
      if (flip === null) continue;
      if (changes.length === 0) [id, openedAt] = [nextId(), end];
      const change = { ruleId: rule, since: flip.since, foundAt: end * MINUTE_MS, endedAt: null, flip };
      changes = [...changes.filter(({ ruleId }) => ruleId !== rule), change];
    }
    requests = new Map();
    if (changes.length === 0) return [];
    const isOver = end - openedAt >= OPEN_MINUTES;
    const spike: ReplayedSpike = {
      id,
      zoneId: 0,
      ruleId: changes[0]?.ruleId ?? "",
      kind: "action-change",
      severity: "warning",
      openedAt: new Date(openedAt * MINUTE_MS),
      closedAt: isOver ? new Date(end * MINUTE_MS) : null,
      windowMinutes: 1,
      windowCount: 1,
      baseline: 0,
      threshold: 1,
      score: 0,
      peak: 1,
      changes,
      evidence: NO_EVIDENCE,
      attackers: [],
      since: openedAt,
    };
    if (isOver) changes = [];
    return [spike];
  }

  return {
    take(event: RecordedEvent, minute: number): void {
      if (event.action === undefined) return;
      const rule = event.ruleId ?? "";
      if (isSumRule(rule)) return;
      const key = event.request?.requestId || `${event.ip ?? ""} ${event.url ?? ""} ${event.at ?? minute}`;
      const matched = requests.get(key) ?? new Map<string, RecordedEvent>();
      requests.set(key, matched.set(rule, event));
    },
    close,
    isOpen: () => changes.length > 0,
  };
}
