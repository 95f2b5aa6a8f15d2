import { DAY, START_MINUTE, type Zone } from "./zone.ts";

/** So many scanners begin within so many minutes. */
export interface Flood {
  readonly addresses: number;
  readonly minutes: number;
}

const DAY_OF_FLOOD = 6;
const RULES_EACH = 30;
const RULES = 90;
/** How long one address scans at most. */
const LONGEST_MINUTES = 10;

/**
 * Adds a flood: every address is over the line by itself and has its own tool, and every seventh has a user agent that
 * is hostile to files and lists.
 */
export function drawFlood(zone: Zone, { addresses, minutes }: Flood): void {
  const { draw } = zone;
  const from = START_MINUTE + DAY_OF_FLOOD * DAY + draw.integer(0, DAY - 240);
  const each = Math.min(LONGEST_MINUTES, minutes);
  zone.attack("F", from, minutes, () => {
    for (let a = 0; a < addresses; a += 1) {
      const ua = a % 7 === 0 ? `=flood ${a}, "%2C\n${"x".repeat(400)}` : `flood/${a}`;
      const sender = { ...zone.visitor(from), ja4: `t12d${a}h1_flood`, ua };
      const at = from + draw.between(0, minutes - each);
      const first = draw.integer(0, RULES);
      for (let rule = 0; rule < RULES_EACH; rule += 1)
        zone.add(at + draw.between(0, each), sender, `9${(first + rule) % RULES}100`, zone.url());
    }
  });
}
