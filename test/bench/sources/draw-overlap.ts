import { DAY, DAYS, type DrawnKind, rise, type Sender, START_MINUTE, scan, tool, type Zone } from "./zone.ts";

/** The attacks begin after the second day, when a zone knows its busiest hours. */
const FIRST_DAY = 2;

/** Adds attacks that overlap to a zone: six scenes, each on a day of its own. */
export function drawOverlap(zone: Zone): void {
  const { draw } = zone;
  const days = Array.from({ length: DAYS - FIRST_DAY }, (_, i) => FIRST_DAY + i);
  for (const scene of [cluster, cluster, botnets, busyHour, rotate, roam]) {
    const [day = FIRST_DAY] = days.splice(draw.integer(0, days.length - 1), 1);
    scene(zone, START_MINUTE + day * DAY + draw.integer(0, DAY - 240));
  }
}

/** Two to six scanners within 40 minutes. Those of half of the clusters have one tool. */
function cluster(zone: Zone, from: number): void {
  const { draw } = zone;
  const shared = draw.chance(0.5) ? tool(zone, from) : null;
  for (let n = draw.integer(2, 6); n > 0; n -= 1) {
    const own = tool(zone, from);
    const sender = shared === null ? own : { ...own, ja4: shared.ja4, ua: shared.ua };
    scanner(zone, "x", from + draw.integer(0, 40), sender);
  }
}

/** A botnet, a scanner beside it, and a second botnet. */
function botnets(zone: Zone, from: number): void {
  const { draw } = zone;
  botnet(zone, "B", from, draw.between(30, 90));
  const beside = from + draw.integer(0, 25);
  scanner(zone, "y", beside, tool(zone, beside));
  botnet(zone, "D", from + draw.integer(10, 35), draw.between(15, 50));
}

/** Three times the zone's visitors, and a scanner that looks like the most common of them. */
function busyHour(zone: Zone, from: number): void {
  const { draw } = zone;
  const minutes = draw.between(60, 150);
  zone.attack("E", from, minutes, () => rise(zone, from, minutes, 2));
  const inside = from + draw.integer(10, 40);
  scanner(zone, "s", inside, { ...zone.visitor(inside), ja4: "t13d150h2_usual", ua: "Mozilla/5.0 (0)" });
}

function rotate(zone: Zone, from: number): void {
  const network = zone.newIp().split(".").slice(0, 3).join(".");
  const base = tool(zone, from);
  turns(zone, "r", from, (turn) => ({ ...base, ip: `${network}.${10 + 7 * turn}` }));
}

function roam(zone: Zone, from: number): void {
  const { ja4, ua } = tool(zone, from);
  turns(zone, "R", from, () => ({ ...tool(zone, from), ja4, ua }));
}

/** One scanner with another sender every ten minutes. */
function turns(zone: Zone, kind: DrawnKind, from: number, senderOf: (turn: number) => Sender): void {
  const { draw } = zone;
  const count = draw.integer(3, 7);
  const rules = draw.integer(35, 60);
  const tried = Array.from({ length: rules }, () => zone.anyRule());
  zone.attack(kind, from, count * 10, () => {
    for (let turn = 0; turn < count; turn += 1)
      scan(zone, from + turn * 10, {
        minutes: 10,
        count: draw.integer(80, 150),
        rules,
        tried,
        sender: senderOf(turn),
      });
  });
}

function scanner(zone: Zone, kind: DrawnKind, from: number, sender: Sender): void {
  const { draw } = zone;
  const [minutes, count] = [draw.between(8, 30), Math.round(draw.logBetween(80, 400))];
  zone.attack(kind, from, minutes, () =>
    scan(zone, from, { minutes, count, rules: draw.integer(22, 60), sender }),
  );
}

/** Many addresses that share a fingerprint and a user agent. */
function botnet(zone: Zone, kind: DrawnKind, from: number, minutes: number): void {
  const { draw } = zone;
  const [ja4, ua] = [
    `t13d${draw.integer(10, 99)}h2_bot${draw.integer(0, 999)}`,
    `bot/${draw.integer(1, 999)}`,
  ];
  const rules = Array.from({ length: draw.integer(10, 40) }, () => zone.anyRule());
  zone.attack(kind, from, minutes, () => {
    for (let a = Math.round(draw.logBetween(200, 600)); a > 0; a -= 1) {
      const sender = { ...zone.visitor(from), ja4, ua };
      for (let e = draw.integer(1, 3); e > 0; e -= 1)
        zone.add(from + draw.between(0, minutes), sender, draw.pick(rules), zone.url());
    }
  });
}
