import type { SourceEvent } from "#stages/detection/sources/source-event.ts";
import { createDraw, type Draw } from "./draw.ts";

/** The first day of a zone is history. */
export const DAYS = 10;
export const START_MINUTE = Math.floor(Date.UTC(2026, 9, 5) / 60_000);
const DAY = 1_440;
const RULES = 60;
const URLS = 200;

export const ATTACK_KINDS = ["a", "b", "c", "d", "e", "f", "g"] as const;
export type AttackKind = (typeof ATTACK_KINDS)[number];

export interface DrawnAttack {
  readonly kind: AttackKind;
  /** Epoch minutes, the last one included. */
  readonly from: number;
  readonly to: number;
}

type DrawnEvent = SourceEvent & { readonly minute: number };

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
interface Sender {
  readonly ip: string;
  readonly asn: string;
  readonly ja4: string;
  readonly ua: string;
}

/**
 * Draws ten days of one zone: visitors with sessions, nuisances and attacks. With `isHard`, bigger scanners are daily
 * life and count as harmless.
 */
export function drawZone(seed: number, index: number, isHard = false): DrawnZone {
  const draw = createDraw(seed * 7_919 + index * 104_729 + 17);
  const zone = createZone(draw);
  drawVisitors(zone);
  drawNuisances(zone, isHard);
  drawAttacks(zone);
  const events = zone.events.filter(
    ({ minute }) => minute >= START_MINUTE && minute < START_MINUTE + DAYS * DAY,
  );
  return {
    events: events.toSorted((a, b) => a.minute - b.minute),
    attacks: zone.attacks,
    nuisances: zone.nuisances,
  };
}

type Zone = ReturnType<typeof createZone>;

function createZone(draw: Draw) {
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
  const attacks: DrawnAttack[] = [];
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
    void events.push({ minute: Math.floor(minute), ruleId, url: path, ...sender });
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
    time,
    events,
    attacks,
    nuisances,
    known,
  };
}

/** Adds one visit: one to a few events of one address, mostly on one rule. */
function visit(zone: Zone, minute: number, { rule = zone.rule(), path = "", sender }: Visit = {}): number {
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

function drawVisitors(zone: Zone): void {
  const { draw } = zone;
  let wave = 0;
  for (let minute = START_MINUTE; minute < START_MINUTE + DAYS * DAY; minute += 1) {
    if (minute % 20 === 0) wave = 0.7 * wave + 0.2 * (draw.unit() + draw.unit() + draw.unit() - 1.5);
    const visits = draw.poisson((zone.rate(minute) * 0.8 * Math.exp(wave)) / 1.9);
    for (let i = 0; i < visits; i += 1) visit(zone, minute);
  }
}

/** Spreads `count` events of one sender over its rules. */
function scan(
  zone: Zone,
  from: number,
  {
    minutes,
    count,
    rules,
    sender = zone.visitor(from),
  }: {
    minutes: number;
    count: number;
    rules: number;
    sender?: Sender;
  },
): void {
  const { draw } = zone;
  const tried = Array.from({ length: rules }, () => zone.anyRule());
  for (let i = 0; i < count; i += 1)
    zone.add(from + draw.between(0, minutes), sender, draw.pick(tried), zone.url());
}

function tool(zone: Zone, minute: number): Sender {
  const { draw } = zone;
  return {
    ...zone.visitor(minute),
    ja4: `t12d${draw.integer(10, 99)}h1_tool${draw.integer(0, 30)}`,
    ua: `tool/${draw.integer(1, 40)}`,
    asn: `AS${draw.integer(20_000, 20_080)}`,
  };
}

function drawNuisances(zone: Zone, isHard: boolean): void {
  const { draw } = zone;
  const end = START_MINUTE + DAYS * DAY;
  // One-off background scanners, dozens a day.
  const background = draw.integer(10, 50) * DAYS;
  for (let i = 0; i < background; i += 1) {
    const from = zone.time();
    scan(zone, from, {
      minutes: draw.logBetween(1, 40),
      count: Math.round(draw.logBetween(3, 30)),
      rules: draw.integer(1, 6),
      sender: tool(zone, from),
    });
  }
  if (isHard) {
    const bigger = draw.poisson(draw.between(0.5, 3) * DAYS);
    for (let i = 0; i < bigger; i += 1) {
      const from = zone.time();
      zone.nuisances.push({ name: "bigger scanner", from, to: from + 60 });
      scan(zone, from, {
        minutes: draw.logBetween(3, 60),
        count: draw.integer(30, 120),
        rules: draw.integer(8, 20),
        sender: tool(zone, from),
      });
    }
  }
  // Crawlers with a daily rhythm, and perhaps a new one.
  const crawlers = draw.integer(1, 3);
  for (let c = 0; c <= crawlers; c += 1) {
    if (c === crawlers && !draw.chance(0.4)) continue;
    const since = c === crawlers ? START_MINUTE + draw.integer(2, 8) * DAY : START_MINUTE;
    const [base, size] = [tool(zone, since), draw.integer(4, 40)];
    const fleet = Array.from({ length: size }, () => ({ ...base, ip: zone.newIp() }));
    if (c === crawlers) zone.nuisances.push({ name: "new crawler", from: since, to: since + DAY });
    const [phase, perHour, rules] = [
      draw.between(0, DAY),
      draw.logBetween(2, 40),
      Array.from({ length: draw.integer(1, 5) }, () => zone.rule()),
    ];
    for (let minute = since; minute < end; minute += 1) {
      const now = perHour * (1 + 0.8 * Math.cos(((minute - phase) / DAY) * 2 * Math.PI));
      for (let n = draw.poisson(now / 60); n > 0; n -= 1)
        zone.add(minute, draw.pick(fleet), draw.pick(rules), zone.url());
    }
  }
  // Uptime monitors.
  for (let m = draw.integer(0, 2); m > 0; m -= 1) {
    const [base, every, rule] = [tool(zone, START_MINUTE), draw.pick([1, 2, 5]), zone.rule()];
    const places = Array.from({ length: draw.integer(1, 6) }, () => ({ ...base, ip: zone.newIp() }));
    for (let minute = START_MINUTE; minute < end; minute += every)
      zone.add(minute, draw.pick(places), rule, "/health");
  }
  // Addresses with many people behind them, with busy days.
  for (let g = draw.integer(1, 4); g > 0; g -= 1) {
    const [ip, asn, daily] = [zone.newIp(), `AS${draw.integer(3_000, 3_020)}`, draw.logBetween(30, 300)];
    for (let day = 0; day < DAYS; day += 1) {
      const busy = draw.chance(0.12) ? draw.between(1.5, 3) : 1;
      const from = START_MINUTE + day * DAY;
      if (busy > 1) zone.nuisances.push({ name: "busy shared address", from, to: from + DAY });
      for (let n = draw.poisson(daily * busy); n > 0; n -= 1) {
        const minute = START_MINUTE + day * DAY + DAY / 3 + draw.between(0, DAY / 2.5);
        zone.add(minute, { ...zone.visitor(minute), ip, asn }, zone.rule(), zone.url());
      }
    }
  }
  // The owner's own daily scan, always from one address.
  if (draw.chance(0.35)) {
    const [sender, at] = [tool(zone, START_MINUTE), draw.between(0, DAY - 60)];
    const [rules, count] = [draw.integer(10, 35), draw.integer(60, 250)];
    for (let day = 0; day < DAYS; day += 1) {
      const from = Math.floor(START_MINUTE + day * DAY + at + draw.between(0, 10));
      zone.nuisances.push({ name: "the owner's scan", from, to: from + 60 });
      scan(zone, from, { minutes: 20, count, rules, sender });
    }
  }
  // Small campaigns.
  for (let n = draw.poisson(0.5 * DAYS); n > 0; n -= 1) {
    const from = zone.time();
    const base = tool(zone, from);
    const rules = Array.from({ length: draw.integer(1, 4) }, () => zone.anyRule());
    const minutes = draw.between(20, 120);
    zone.nuisances.push({ name: "small campaign", from, to: from + minutes });
    for (let a = draw.integer(5, 30); a > 0; a -= 1) {
      const sender = { ...base, ip: zone.newIp() };
      for (let e = draw.integer(1, 3); e > 0; e -= 1)
        zone.add(from + draw.between(0, minutes), sender, draw.pick(rules), zone.url());
    }
  }
  // Broken clients.
  for (let n = draw.poisson(0.8 * DAYS); n > 0; n -= 1) {
    const from = zone.time();
    zone.nuisances.push({ name: "broken client", from, to: from + 90 });
    scan(zone, from, { minutes: draw.logBetween(5, 90), count: draw.integer(80, 300), rules: 2 });
  }
  // Marketing pushes: many people, mostly on one page.
  for (let n = draw.poisson(0.07 * DAYS); n > 0; n -= 1) {
    const [from, minutes, times, path] = [zone.time(), draw.between(60, 360), draw.between(1, 3), zone.url()];
    zone.nuisances.push({ name: "marketing push", from, to: from + minutes });
    for (let minute = from; minute < from + minutes; minute += 1) {
      const ramp = Math.min(1, (minute - from) / 30);
      for (let v = draw.poisson((zone.rate(minute) * times * ramp) / 1.9); v > 0; v -= 1)
        visit(zone, minute, { path: draw.chance(0.6) ? path : zone.url() });
    }
  }
  // A deployment makes one rule noisy for ordinary visitors.
  for (let n = draw.poisson(0.08 * DAYS); n > 0; n -= 1) {
    const [from, minutes, times, rule] = [
      zone.time(),
      draw.between(60, 600),
      draw.between(0.2, 1.2),
      zone.anyRule(),
    ];
    zone.nuisances.push({ name: "noisy deployment", from, to: from + minutes });
    for (let minute = from; minute < from + minutes; minute += 1)
      for (let v = draw.poisson((zone.rate(minute) * times) / 1.9); v > 0; v -= 1)
        visit(zone, minute, { rule });
  }
}

function drawAttacks(zone: Zone): void {
  const { draw } = zone;
  for (let day = 1; day < DAYS; day += 1) {
    if (!draw.chance(0.5)) continue;
    const kind = draw.pick(ATTACK_KINDS);
    const from = START_MINUTE + day * DAY + draw.integer(0, DAY - 360);
    const to = from + Math.ceil(attack(zone, kind, from));
    zone.attacks.push({ kind, from, to });
  }
}

/** Adds an attack and returns how many minutes it lasts. */
function attack(zone: Zone, kind: AttackKind, from: number): number {
  const { draw } = zone;
  const [minutes, run] = ATTACKS[kind](draw);
  run(zone, from, minutes);
  return minutes;
}

type Run = (zone: Zone, from: number, minutes: number) => void;

const ATTACKS: Record<AttackKind, (draw: Draw) => [minutes: number, run: Run]> = {
  a: (draw) => [
    draw.between(3, 30),
    (zone, from, minutes) => {
      const count = Math.round(draw.logBetween(25, 400));
      const rules = draw.integer(Math.min(10, count), Math.min(45, count));
      scan(zone, from, { minutes, count, rules, sender: tool(zone, from) });
    },
  ],
  b: (draw) => [
    draw.between(10, 90),
    (zone, from, minutes) => {
      const base = draw.chance(0.5) ? tool(zone, from) : null;
      const ja4 = `t13d${draw.integer(10, 99)}h2_net${draw.integer(0, 999)}`;
      const rules = Array.from({ length: draw.integer(10, 40) }, () => zone.anyRule());
      for (let a = Math.round(draw.logBetween(100, 600)); a > 0; a -= 1) {
        const person = zone.visitor(from);
        const sender = base === null ? { ...person, ja4 } : { ...person, ja4: base.ja4, ua: base.ua };
        for (let e = draw.integer(1, 3); e > 0; e -= 1)
          zone.add(from + draw.between(0, minutes), sender, draw.pick(rules), zone.url());
      }
    },
  ],
  c: (draw) => [
    draw.between(10, 90),
    (zone, from, minutes) => {
      const asn = `AS${draw.integer(50_000, 50_100)}`;
      const rules = Array.from({ length: draw.integer(3, 20) }, () => zone.anyRule());
      const ja4s = Array.from({ length: draw.integer(1, 4) }, () => tool(zone, from).ja4);
      for (let a = Math.round(draw.logBetween(30, 200)); a > 0; a -= 1) {
        const sender = { ...zone.visitor(from), asn, ja4: draw.pick(ja4s) };
        for (let e = draw.integer(1, 5); e > 0; e -= 1)
          zone.add(from + draw.between(0, minutes), sender, draw.pick(rules), zone.url());
      }
    },
  ],
  d: (draw) => [
    draw.between(15, 120),
    (zone, from, minutes) => {
      const path = draw.chance(0.5) ? "/login" : zone.url();
      for (let a = Math.round(draw.logBetween(50, 400)); a > 0; a -= 1) {
        const at = from + draw.between(0, minutes);
        const sender = zone.visitor(at);
        for (let e = draw.integer(1, 3); e > 0; e -= 1)
          zone.add(Math.min(at + draw.between(0, 3), from + minutes), sender, zone.rule(), path);
      }
    },
  ],
  e: (draw) => [
    draw.between(20, 180),
    (zone, from, minutes) => {
      const times = draw.between(0.5, 3);
      for (let minute = from; minute < from + minutes; minute += 1)
        for (let v = draw.poisson((zone.rate(minute) * times) / 1.9); v > 0; v -= 1) visit(zone, minute);
    },
  ],
  f: (draw) => [
    draw.between(120, 360),
    (zone, from, minutes) => {
      const count = Math.round(minutes * draw.between(0.5, 2));
      scan(zone, from, { minutes, count, rules: draw.integer(10, 40), sender: tool(zone, from) });
    },
  ],
  g: (draw) => [
    draw.between(5, 120),
    (zone, from, minutes) => {
      const rule = zone.anyRule();
      const addresses = Math.round(draw.logBetween(1, 60));
      const senders = Array.from({ length: addresses }, () => zone.visitor(from));
      for (let e = Math.round(draw.logBetween(60, 800)); e > 0; e -= 1)
        zone.add(from + draw.between(0, minutes), draw.pick(senders), rule, zone.url());
    },
  ],
};
