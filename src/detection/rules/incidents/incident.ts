import { attackerIdOf, isActive, QUIET_MINUTES } from "#model/fingerprint.ts";
import type { SpikeSeverity } from "#model/kinds.ts";
import { overZ } from "../sources/judge-sources.ts";
import type { Attacker } from "./attacker.ts";

/** More incidents of a zone are not open at once. Further attackers join the oldest. */
export const MAX_INCIDENTS = 5;
/** A key overlaps an incident if it shares so much of its own events, or of the incident's. */
export const OVERLAP = 0.3;
/** More attackers of an incident are only counted. */
const MAX_ATTACKERS = 60;
/** The distance above its line from which one attacker alone is critical. */
const CRITICAL_ABOVE_Z = 3;
/** An incident in which this many different series fire is critical. */
const CRITICAL_SERIES = 3;

/** Attackers of a zone that belong together. Times are the ends of minutes since the epoch. */
export interface Incident {
  /**
   * Distinguishes it from the other incidents of its zone: the minute in which it opened and its place among those that
   * opened then. If its attackers had an incident half an hour before, it has that one's name.
   */
  readonly name: string;
  readonly openedAt: number;
  readonly lastFiredAt: number;
  readonly severity: SpikeSeverity;
  /** Attackers in the order in which they fired first. */
  readonly attackers: readonly Attacker[];
  /** How many keys reached their lines and are not among the attackers, because they were too many. */
  readonly unnamed: number;
}

/** An incident that has ended. */
export interface PastIncident extends Incident {
  /** The end of the last quiet minute. */
  readonly closedAt: number;
}

export function openIncident(attacker: Attacker, name: string): Incident {
  const { since, lastFiredAt } = attacker;
  const attackers = [attacker];
  const severity = gradeIncident(attackers);
  return { name, openedAt: since, lastFiredAt, severity, attackers, unnamed: 0 };
}

/** Returns whether further attackers of the incident are only counted. */
export function isFull({ attackers }: Incident): boolean {
  return attackers.length >= MAX_ATTACKERS;
}

/** Adds an attacker, or replaces the one with its key. A full incident gets none. */
export function withAttacker(incident: Incident, attacker: Attacker): Incident {
  const id = attackerIdOf(attacker);
  const isKnown = incident.attackers.some((one) => attackerIdOf(one) === id);
  const lastFiredAt = Math.max(incident.lastFiredAt, attacker.lastFiredAt);
  if (!isKnown && isFull(incident)) return { ...incident, lastFiredAt };
  const attackers = isKnown
    ? incident.attackers.map((one) => (attackerIdOf(one) === id ? attacker : one))
    : [...incident.attackers, attacker];
  return { ...incident, lastFiredAt, attackers, severity: gradeIncident(attackers, incident.severity) };
}

/** Returns the end of the minute in which an incident ends if nothing more fires. */
export function endOfIncident({ lastFiredAt }: Incident): number {
  return lastFiredAt + QUIET_MINUTES;
}

/** Returns the newest beginning of an attacker with a name of its own, which a message has to name. */
export function newestNews({ attackers }: Pick<Incident, "attackers">): number {
  return attackers.reduce(
    (newest, { role, since }) => (role === "facet" ? newest : Math.max(newest, since)),
    0,
  );
}

/** Returns the attackers that attack now. */
export function activeAttackers({ attackers }: Pick<Incident, "attackers">, minute: number): Attacker[] {
  return attackers.filter((attacker) => isActive(attacker, minute));
}

function gradeIncident(attackers: readonly Attacker[], before: SpikeSeverity = "error"): SpikeSeverity {
  const isCritical =
    before === "critical" ||
    new Set(attackers.map(({ kind }) => kind)).size >= CRITICAL_SERIES ||
    attackers.some((attacker) => overZ(attacker) >= CRITICAL_ABOVE_Z);
  return isCritical ? "critical" : "error";
}
