import { type Fire, overZ } from "#detection/rules/sources/judge-sources.ts";
import {
  type SourceEvent,
  sourceKeyOf,
  toSourceKey,
  toSourcePath,
} from "#detection/rules/sources/source-event.ts";
import type { MinuteEvent } from "#detection/rules/sources/usual-rules.ts";
import { attackerIdOf, isActive, QUIET_MINUTES } from "#model/fingerprint.ts";
import type { AttackerRole, SourceKind, SpikeSeverity } from "#model/kinds.ts";

/** A key of an incident, with the strongest of its minutes. Times are the ends of minutes since the epoch. */
export interface Attacker extends Fire {
  readonly role: AttackerRole;
  readonly since: number;
  readonly lastFiredAt: number;
}

/** An address is an attacker of its own. The other keys are shared: a fingerprint, user agent, network or path. */
export function isAddress({ kind }: { readonly kind: SourceKind }): boolean {
  return kind === "rules_per_ip";
}

/** Returns a function that tests whether an event is one of an attacker's. */
export function createAttackerTest(
  attackers: readonly { readonly kind: SourceKind; readonly key: string }[],
): (event: SourceEvent) => boolean {
  const keys = new Map<SourceKind, Set<string>>();
  for (const { kind, key } of attackers) keys.set(kind, (keys.get(kind) ?? new Set()).add(key));
  const byKind = [...keys];
  return (event) => byKind.some(([kind, known]) => known.has(sourceKeyOf(kind, event)));
}

/** An address that sends so much of its events to one path attacks that path. */
const TARGET_SHARE = 0.7;

/** Addresses that begin so soon after each other begin together, whatever tools they name. */
const TOGETHER_MINUTES = 2;

/** Tools of an address: the values that its events show most, and its rules. Hostile text. */
interface Tool {
  /** The minute of its first event. */
  readonly from: number;
  /** The path that it attacks; empty if there are several. */
  readonly target: string;
  readonly ja4: string;
  readonly ua: string;
  readonly rules: ReadonlySet<string>;
}

/** The events of an address are one list while an hour is judged, and are compared with each new address. */
const tools = new WeakMap<readonly MinuteEvent[], Tool>();

function toTool(events: readonly MinuteEvent[]): Tool {
  const known = tools.get(events) ?? describeTool(events);
  tools.set(events, known);
  return known;
}

/** Returns the first and the last minute of events; infinite for none. In a flood they are too many to be arguments of a call. */
export function spanOf(events: readonly MinuteEvent[]): { from: number; to: number } {
  let [from, to] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const { minute } of events) [from, to] = [Math.min(from, minute), Math.max(to, minute)];
  return { from, to };
}

function describeTool(events: readonly MinuteEvent[]): Tool {
  const paths = events.map(({ url }) => (url === null ? "" : toSourcePath(url)));
  const path = commonest(paths);
  return {
    from: spanOf(events).from,
    target: paths.filter((one) => one === path).length >= TARGET_SHARE * paths.length ? path : "",
    ja4: commonest(events.map(({ ja4 }) => toSourceKey(ja4))),
    ua: commonest(events.map(({ ua }) => toSourceKey(ua))),
    rules: new Set(events.map(({ ruleId }) => toSourceKey(ruleId)).filter((rule) => rule !== "")),
  };
}

function commonest(values: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].reduce((most, one) => (one[1] > most[1] ? one : most), ["", 0] as [string, number])[0];
}

/**
 * Returns a function that tests whether an address probably attacks together with another: it is of the same network of 256
 * addresses (of IPv6: /48), attacks the same path, or has half of the rules of the smaller one in common, and the same tool or the
 * same beginning. A tool is a fingerprint with a user agent. `eventsOf` returns the events of the hour from the minute `hourFrom`
 * on, because an attacker has tried few of its rules when it is found. Who sent before it has no beginning.
 */
export function createLinkTest(
  address: string,
  eventsOf: (address: string) => readonly MinuteEvent[],
  hourFrom: number,
): (other: Attacker) => boolean {
  const network = networkOf(address);
  const own = toTool(eventsOf(address));
  return (other) => {
    if (!isAddress(other)) return false;
    if (network !== null && network === networkOf(other.key)) return true;
    const { from, target, ja4, ua, rules } = toTool(eventsOf(other.key));
    if (target !== "" && target === own.target) return true;
    const isSameTool = ja4 === own.ja4 && ua === own.ua && (ja4 !== "" || ua !== "");
    const isTogether =
      Math.min(from, own.from) > hourFrom + TOGETHER_MINUTES && Math.abs(from - own.from) <= TOGETHER_MINUTES;
    if (!isSameTool && !isTogether) return false;
    const common = [...rules].filter((rule) => own.rules.has(rule)).length;
    return common > 0 && 2 * common >= Math.min(rules.size, own.rules.size);
  };
}

/** Null for a masked or unusual address. */
function networkOf(key: string): string | null {
  const ipv4 = /^(\d{1,3}\.\d{1,3}\.\d{1,3})\.\d{1,3}$/.exec(key);
  if (ipv4 !== null) return ipv4[1] ?? null;
  return /^([0-9a-f]*:[0-9a-f]*:[0-9a-f]*):[0-9a-f]*::\/64$/.exec(key)?.[1] ?? null;
}

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
