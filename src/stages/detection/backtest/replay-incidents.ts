import { isActive } from "#model/attacker.ts";
import { comparesEvents, endIncidents, followFired } from "../incidents/follow-incidents.ts";
import { type Incident, newestNews, type PastIncident } from "../incidents/incident.ts";
import type { MinuteEvent } from "../sources/count-hour.ts";
import type { FiredMinute } from "../sources/judge-sources.ts";
import { LONGEST_WINDOW } from "../thresholds/windows.ts";
import type { createTeller, Tellable } from "./tell-alerts.ts";

/**
 * Follows the incidents of a zone over its events in the order of time, and tells their messages. `membersOf` returns the rules
 * whose spikes are members of an incident.
 */
export function createIncidentReplay(
  teller: ReturnType<typeof createTeller>,
  membersOf: (incident: string) => readonly string[] = () => [],
) {
  let open: readonly Incident[] = [];
  let former: PastIncident[] = [];
  let events: MinuteEvent[] = [];

  /** The events of the hour that ends with a minute. */
  function hour(minute: number): readonly MinuteEvent[] {
    events = events.filter((event) => event.minute > minute - LONGEST_WINDOW);
    return events.filter((event) => event.minute <= minute);
  }

  function endBefore(minute: number): void {
    const { open: left, ended } = endIncidents(open, minute);
    open = left;
    former = [...former, ...ended].filter(({ closedAt }) => closedAt > minute - LONGEST_WINDOW);
    for (const incident of ended) teller.end(incident.closedAt, toTellable(incident, null));
  }

  function toTellable(incident: Incident, minute: number | null): Tellable {
    const { name, severity, attackers } = incident;
    const shown = attackers.filter((attacker) => minute === null || isActive(attacker, minute));
    return {
      name,
      severity,
      subject: "incident",
      attackers: shown.toReversed().map(({ kind, key }) => ({ kind, key })),
      rules: membersOf(name),
      newest: newestNews(incident),
    };
  }

  return {
    hour,
    open: () => open,
    take(event: MinuteEvent): void {
      events.push(event);
      // Without an incident nobody asks for the hour, so it is cut from time to time.
      if (events.length % 50_000 === 0) hour(event.minute);
    },
    /** Takes a minute in which keys fired. Returns whether an attacker is new. */
    follow(fired: FiredMinute): boolean {
      endBefore(fired.minute);
      const hasNew = comparesEvents(open, fired);
      open = followFired(open, fired, { hour: hasNew ? hour(fired.minute) : [], former });
      return hasNew;
    },
    /** Tells what is due at the end of a minute. */
    tell(minute: number): void {
      endBefore(minute + 1);
      for (const incident of open) teller.update(minute + 1, toTellable(incident, minute));
    },
  };
}
