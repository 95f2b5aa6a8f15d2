import {
  comparesEvents,
  endIncidents,
  followFired,
  groupByKey,
} from "#stages/detection/incidents/follow-incidents.ts";
import { activeAttackers, type Incident, type PastIncident } from "#stages/detection/incidents/incident.ts";
import { toIncidentRow } from "#stages/detection/incidents/stored-incident.ts";
import type { MinuteEvent } from "#stages/detection/sources/count-hour.ts";
import type { FiredMinute } from "#stages/detection/sources/judge-sources.ts";
import { LONGEST_WINDOW } from "#stages/detection/thresholds/windows.ts";
import type { ReplayedSpike } from "./replay-alerts.ts";

const NO_INCIDENT_EVIDENCE = { grown: [], rules: [], events: 0, isMasked: false, known: 0 };
/** A replay collects no evidence of spikes. */
export const NO_EVIDENCE: ReplayedSpike["evidence"] = {
  top: { ip: [], asn: [], country: [], path: [], ua: [], ja4: [], action: [] },
  sparkline: [],
};

/** An open incident with the id of its spike. */
export type NumberedIncident = Incident & { readonly id: number };

/**
 * Follows the incidents of a zone over its events in the order of time. `isBenign` returns whether the latest verdict on a spike says
 * that nobody attacks.
 */
export function createIncidentReplay(nextId: () => number, isBenign: (id: number) => boolean = () => false) {
  let open: readonly Incident[] = [];
  let former: PastIncident[] = [];
  let events: MinuteEvent[] = [];
  let ended: PastIncident[] = [];
  const ids = new Map<string, number>();

  /** The events of the hour that ends with a minute. */
  function hour(minute: number): readonly MinuteEvent[] {
    events = events.filter((event) => event.minute > minute - LONGEST_WINDOW);
    return events.filter((event) => event.minute <= minute);
  }

  function endBefore(minute: number): void {
    const found = endIncidents(open, minute);
    open = found.open;
    ended = [...ended, ...found.ended];
    former = [...former, ...found.ended].filter(({ closedAt }) => closedAt > minute - LONGEST_WINDOW);
  }

  function idOf({ name }: Incident): number {
    const known = ids.get(name) ?? nextId();
    ids.set(name, known);
    return known;
  }

  function toSpike(incident: Incident, end: number, closedAt: number | null): ReplayedSpike {
    const times = {
      judgedThrough: closedAt ?? end,
      countedTo: end,
      closedAt,
      nowMs: Number.MAX_SAFE_INTEGER,
    };
    const active = closedAt === null ? activeAttackers(incident, end - 1) : incident.attackers;
    const [first] = incident.attackers;
    return {
      ...toIncidentRow(incident, NO_INCIDENT_EVIDENCE, times),
      id: idOf(incident),
      zoneId: 0,
      evidence: NO_EVIDENCE,
      attackers: active.toReversed().map(({ kind, key }) => ({ kind, key })),
      since: incident.openedAt - (first?.windowMinutes ?? LONGEST_WINDOW),
    };
  }

  return {
    hour,
    open: (): readonly NumberedIncident[] => open.map((incident) => ({ ...incident, id: idOf(incident) })),
    take(event: MinuteEvent): void {
      events.push(event);
      // Without an incident nobody asks for the hour, so it is cut from time to time.
      if (events.length % 50_000 === 0) hour(event.minute);
    },
    /** Takes minutes in which keys fired. */
    follow(fired: readonly FiredMinute[]): void {
      for (const one of fired) {
        endBefore(one.minute);
        const isCompared = comparesEvents(open, one);
        const benign = isCompared ? open.filter((incident) => isBenign(idOf(incident))) : [];
        open = followFired(open, one, {
          eventsOf: groupByKey(isCompared ? hour(one.minute) : []),
          former,
          benign: new Set(benign.map(({ name }) => name)),
        });
      }
    },
    /** Returns the spikes at the end of a minute: those of open incidents, and of those that have ended since the last call. */
    close(minute: number): ReplayedSpike[] {
      endBefore(minute + 1);
      const over = ended.map((incident) => toSpike(incident, minute + 1, incident.closedAt));
      for (const { name } of ended) ids.delete(name);
      ended = [];
      return [...open.map((incident) => toSpike(incident, minute + 1, null)), ...over];
    },
  };
}
