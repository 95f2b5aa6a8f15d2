import type { MinuteEvent } from "../sources/count-hour.ts";
import { createAttackerTest } from "./attacker.ts";
import type { Incident } from "./incident.ts";

/** A rule's spike is a member if the attackers of the zone's incidents hold so much of its events. */
const MEMBER_SHARE = 0.7;

/**
 * Returns the incident that a rule's spike is a member of; null if its events are mostly of others. `events` are those of
 * the rule in the spike's window. The attackers of all incidents count together, those that are quiet too, because several
 * scanners, or one that changes its address, may lift one rule; the incident with most of the events has the member.
 */
export function findMembership<One extends Incident>(
  events: readonly MinuteEvent[],
  incidents: readonly One[],
): One | null {
  if (events.length === 0 || incidents.length === 0) return null;
  const tests = incidents.map((incident) => ({
    incident,
    isOf: createAttackerTest(incident.attackers),
    held: 0,
  }));
  let held = 0;
  for (const event of events) {
    const holders = tests.filter(({ isOf }) => isOf(event));
    for (const holder of holders) holder.held += 1;
    if (holders.length > 0) held += 1;
  }
  if (held < MEMBER_SHARE * events.length) return null;
  return tests.reduce((most, one) => (one.held > most.held ? one : most)).incident;
}
