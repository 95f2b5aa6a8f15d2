import type { SourceEvent } from "#detection/rules/sources/source-event.ts";
import type { SourceKind } from "#model/kinds.ts";
import type { Draw } from "./draw.ts";

/** The first day of a zone is history. */
export const DAYS = 10;
export const START_MINUTE = Math.floor(Date.UTC(2026, 9, 5) / 60_000);
export const DAY = 1_440;
const RULES = 60;
const URLS = 200;

export const ATTACK_KINDS = ["a", "b", "c", "d", "e", "f", "g"] as const;
export type AttackKind = (typeof ATTACK_KINDS)[number];

/**
 * Attacks that overlap: scanners of a cluster (x), a botnet (B) with a scanner beside it (y) and a second botnet (D), a
 * rise of the zone (E) with a scanner inside that looks like a common browser (s), a scanner that changes its address
 * in one network (r) and over networks (R). F is a flood of scanners.
 */
export const OVERLAP_KINDS = ["x", "y", "s", "B", "D", "E", "r", "R"] as const;
export type DrawnKind = AttackKind | (typeof OVERLAP_KINDS)[number] | "F";

/** One value that the events of an attacker share. */
export interface AttackerKey {
  readonly kind: SourceKind;
  readonly key: string;
}

export interface DrawnAttack {
  readonly kind: DrawnKind;
  /** Epoch minutes, the last one included. */
  readonly from: number;
  readonly to: number;
  /** The values that most of the attack's events have, and each address that has a twentieth of them. */
  readonly keys: readonly AttackerKey[];
}

export interface DrawnEvent extends SourceEvent {
  readonly minute: number;
  /** The place in the zone's attacks of the attack that made the event; null if none did. */
  readonly attack: number | null;
}

/** Something harmless that may look like an attack. Epoch minutes. */
export interface Nuisance {
  readonly name: string;
  readonly from: number;
  readonly to: number;
}

export interface DrawnZone {
  readonly events: readonly DrawnEvent[];
  readonly nuisances: readonly Nuisance[];
  readonly attacks: readonly DrawnAttack[];
}

/** A visitor: everything that an event takes from its sender. */
export interface Sender {
  readonly ip: string;
  readonly asn: string;
  readonly ja4: string;
  readonly ua: string;
}

export type Zone = ReturnType<typeof createZone>;

export function createZone(draw: Draw) {
  const perDay = draw.logBetween(835, 20_000);
  const peakAt = draw.between(0, DAY);
  const swing = draw.between(0.2, 0.85);
  const weekend = draw.between(0.5, 1.2);
  const switchDay = draw.chance(0.35) ? draw.integer(3, 8) : null;
  const [ruleOrder, ruleShape, ja4Shape, asnShape, urlShape] = [
    Array.from({ length: RULES }, (_, i) => i).sort(() => draw.unit() - 0.5),
    draw.between(0.9, 1.5),
    draw.between(0.9, 1.5),
    draw.between(0.9, 1.4),
    draw.between(0.8, 1.3),
  ];
  let nextIp = 0;
  const events: DrawnEvent[] = [];
  const attacks: Omit<DrawnAttack, "keys">[] = [];
  let attackNow: number | null = null;
  const nuisances: Nuisance[] = [];
  const known: Sender[] = [];
  const rate = (minute: number): number => {
    const day = Math.floor((minute - START_MINUTE) / DAY);
    const week = day % 7 >= 5 ? weekend : 1;
    return (perDay / DAY) * week * (1 + swing * Math.cos(((minute - peakAt) / DAY) * 2 * Math.PI));
  };
  const newIp = () => {
    nextIp += 1;
    return `${10 + (nextIp >> 16)}.${(nextIp >> 8) & 255}.${nextIp & 255}.${draw.integer(1, 254)}`;
  };
  const usualJa4 = (minute: number) => {
    const place = draw.zipf(40, ja4Shape);
    const isMoved =
      switchDay !== null && place === 0 && draw.unit() * DAY < minute - START_MINUTE - switchDay * DAY;
    return isMoved ? "t13d1516h2_new" : `t13d15${place}h2_usual`;
  };
  const visitor = (minute: number): Sender => ({
    ip: newIp(),
    asn: `AS${1_000 + draw.zipf(120, asnShape)}`,
    ja4: usualJa4(minute),
    ua: `Mozilla/5.0 (${draw.zipf(60, 1.1)})`,
  });
  const rule = () => `9${ruleOrder[draw.zipf(RULES, ruleShape)]}100`;
  const anyRule = () => `9${draw.integer(0, RULES + 30)}100`;
  const url = () => `/page/${draw.zipf(URLS, urlShape)}`;
  const add = (minute: number, sender: Sender, ruleId: string, path: string) =>
    void events.push({ minute: Math.floor(minute), ruleId, url: path, ...sender, attack: attackNow });
  /** Adds an attack, which makes every event that `run` adds. */
  const attack = (kind: DrawnKind, from: number, minutes: number, run: () => void) => {
    attackNow = attacks.push({ kind, from, to: from + Math.ceil(minutes) }) - 1;
    run();
    attackNow = null;
  };
  const time = () => START_MINUTE + Math.floor(draw.unit() * DAYS * DAY);
  return {
    draw,
    perDay,
    rate,
    newIp,
    visitor,
    rule,
    anyRule,
    url,
    add,
    attack,
    time,
    events,
    attacks,
    nuisances,
    known,
  };
}

/** Adds one visit: one to a few events of one address, mostly on one rule. */
export function visit(
  zone: Zone,
  minute: number,
  { rule = zone.rule(), path = "", sender }: Visit = {},
): number {
  const { draw } = zone;
  const returning = zone.known.length > 20 && draw.chance(0.3);
  const who = sender ?? (returning ? draw.pick(zone.known) : zone.visitor(minute));
  if (sender === undefined && !returning && zone.known.length < 600) zone.known.push(who);
  const count = 1 + draw.poisson(draw.chance(0.1) ? 4 : 0.6);
  for (let i = 0; i < count; i += 1) {
    const at = minute + (i === 0 ? 0 : draw.between(0, 6));
    zone.add(at, who, draw.chance(0.85) ? rule : zone.rule(), path === "" ? zone.url() : path);
  }
  return count;
}

interface Visit {
  readonly rule?: string;
  readonly path?: string;
  readonly sender?: Sender;
}

/** Spreads `count` events of one sender over its rules. */
export function scan(
  zone: Zone,
  from: number,
  {
    minutes,
    count,
    rules,
    sender = zone.visitor(from),
    tried,
  }: {
    minutes: number;
    count: number;
    rules: number;
    sender?: Sender;
    tried?: readonly string[];
  },
): void {
  const { draw } = zone;
  const chosen = tried ?? Array.from({ length: rules }, () => zone.anyRule());
  for (let i = 0; i < count; i += 1)
    zone.add(from + draw.between(0, minutes), sender, draw.pick(chosen), zone.url());
}

export function tool(zone: Zone, minute: number): Sender {
  const { draw } = zone;
  return {
    ...zone.visitor(minute),
    ja4: `t12d${draw.integer(10, 99)}h1_tool${draw.integer(0, 30)}`,
    ua: `tool/${draw.integer(1, 40)}`,
    asn: `AS${draw.integer(20_000, 20_080)}`,
  };
}

/** Adds `times` the zone's visits to the usual ones. */
export function rise(zone: Zone, from: number, minutes: number, times: number): void {
  for (let minute = from; minute < from + minutes; minute += 1)
    for (let v = zone.draw.poisson((zone.rate(minute) * times) / 1.9); v > 0; v -= 1) visit(zone, minute);
}
