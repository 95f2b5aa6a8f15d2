/** Replays incidents and changed actions. */

import { createActionWatch } from "#detection/rules/action-watch.ts";
import { LONGEST_WINDOW } from "#detection/rules/detection-settings.ts";
import {
  comparesEvents,
  endIncidents,
  followFired,
  groupByKey,
} from "#detection/rules/incidents/follow-incidents.ts";
import { activeAttackers, type Incident, type PastIncident } from "#detection/rules/incidents/incident.ts";
import { toIncidentRow } from "#detection/rules/incidents/stored-incident.ts";
import type { FiredMinute } from "#detection/rules/sources/judge-sources.ts";
import { toSourceAddress } from "#detection/rules/sources/source-event.ts";
import type { MinuteEvent } from "#detection/rules/sources/usual-rules.ts";
import { MINUTE_MS, MINUTES_PER_DAY } from "#lib/units.ts";
import type { NotifyReason, Severity, SourceKind } from "#model/kinds.ts";
import { isSumRule, OPEN_DAYS, type RuleChange } from "#model/rules.ts";
import type { StoredVerdict } from "#model/verdict.ts";
import type { ReplayedSpike } from "./replay-alerts.ts";
import type { RecordedEvent } from "./replay-verdicts.ts";

const NO_INCIDENT_EVIDENCE = { grown: [], rules: [], events: 0, isMasked: false, known: 0 };
/** A replay collects no evidence of spikes. */
export const NO_EVIDENCE: ReplayedSpike["evidence"] = {
  top: { ip: [], asn: [], country: [], path: [], ua: [], ja4: [], action: [] },
  sparkline: [],
};

/** An open incident with the id of its spike. */
type NumberedIncident = Incident & { readonly id: number };

/**
 * Follows the incidents of a zone over its events in the order of time. `isBenign` returns whether by the latest verdict on a spike it is
 * likelier that nobody attacks.
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

/** One message that would have been sent. */
export interface ReplayedMessage {
  /** The end of the minute with which it is sent, in minutes since the epoch. */
  readonly at: number;
  /** The number of the alert in its zone. */
  readonly incident: number;
  readonly reason: NotifyReason | "late";
  readonly severity: Severity;
  readonly subject: "incident" | "rule" | "flip";
  /** Active attackers, the newest first. */
  readonly attackers: readonly { readonly kind: SourceKind; readonly key: string }[];
  /** The rule and those that are part of its alert, or the members of the incident. */
  readonly rules: readonly string[];
  /** The latest one of the alert; left out if the alert is not judged. */
  readonly verdict?: StoredVerdict;
}
