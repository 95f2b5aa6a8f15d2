import { addKeys } from "./add-keys.ts";
import { createDraw, type Draw } from "./draw.ts";
import { drawFlood, type Flood } from "./draw-flood.ts";
import { drawOverlap } from "./draw-overlap.ts";
import {
  ATTACK_KINDS,
  type AttackKind,
  createZone,
  DAY,
  DAYS,
  type DrawnZone,
  rise,
  START_MINUTE,
  scan,
  tool,
  visit,
  type Zone,
} from "./zone.ts";

export interface ZoneOptions {
  /** Bigger scanners are daily life and count as harmless. */
  readonly isHard?: boolean;
  /** Adds attacks that overlap. They change nothing else of the zone. */
  readonly isOverlap?: boolean;
  /** Adds a flood of so many scanners. */
  readonly flood?: Flood | null;
}

/** Draws ten days of one zone: visitors with sessions, nuisances and attacks. */
export function drawZone(
  seed: number,
  index: number,
  { isHard = false, isOverlap = false, flood = null }: ZoneOptions = {},
): DrawnZone {
  const draw = createDraw(seed * 7_919 + index * 104_729 + 17);
  const zone = createZone(draw);
  drawVisitors(zone);
  drawNuisances(zone, isHard);
  drawAttacks(zone);
  if (isOverlap) drawOverlap(zone);
  if (flood !== null) drawFlood(zone, flood);
  const events = zone.events.filter(
    ({ minute }) => minute >= START_MINUTE && minute < START_MINUTE + DAYS * DAY,
  );
  return {
    events: events.toSorted((a, b) => a.minute - b.minute),
    attacks: addKeys(zone.attacks, events),
    nuisances: zone.nuisances,
  };
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
    const [minutes, run] = ATTACKS[kind](draw);
    zone.attack(kind, from, minutes, () => run(zone, from, minutes));
  }
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
      rise(zone, from, minutes, draw.between(0.5, 3));
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
