import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { createDice, type Dice } from "./dice.ts";
import { type Site, type SiteKind, siteOf } from "./sites.ts";

/** How a zone shows addresses: `list`: records only, masked; `masked`: also in the row; `anonymous`: `0.0.0.0`. */
type Addresses = "plain" | "masked" | "list" | "anonymous";
type Mode = "block" | "challenge" | "log";

/** What a situation needs of its zone. The rest is drawn. */
export interface ZoneWish {
  readonly kinds?: readonly SiteKind[];
  readonly paranoia?: 1 | 2;
  readonly mode?: Mode;
  readonly addresses?: Addresses;
  readonly isFirstDay?: boolean;
  /** When the situation begins, as hours of the day in UTC. */
  readonly hours?: readonly [from: number, to: number];
  /** Everyday requests with texts a day. */
  readonly visitsPerDay?: number;
  /** The rule set's second level comes into force with the situation. */
  readonly isLevelRaised?: boolean;
  /** The platform's own limits and its detection of automated clients are on. */
  readonly hasLimits?: boolean;
}

export interface Zone {
  readonly id: number;
  readonly kind: SiteKind;
  readonly site: Site;
  readonly paranoia: 1 | 2;
  readonly mode: Mode;
  readonly addresses: Addresses;
  /** The sum of points from which a request is stopped. */
  readonly limit: 5 | 10;
  readonly sums: "none" | "inbound" | "both";
  /** Whether the single matches of a stopped request say `block`, or only the sum does. */
  readonly isSingleStopped: boolean;
  /** Whether records hold cookies, the referer and other headers. */
  readonly hasHeaders: boolean;
  readonly hasBodies: boolean;
  /** Whether TriggerMatch names the variable; otherwise the operator. */
  readonly namesVariable: boolean;
  readonly isFirstDay: boolean;
  readonly startMs: number;
  /** When the situation begins. */
  readonly situationMs: number;
  readonly visitsPerDay: number;
  readonly hasMonitor: boolean;
  readonly hasNightJob: boolean;
  readonly isLevelRaised: boolean;
  readonly hasLimits: boolean;
}

const EPOCH_MS = Date.UTC(2026, 8, 7);
const KINDS: readonly SiteKind[] = ["shop", "news", "forum", "api", "portal"];

/** Draws a zone. `historyDays` replaces the 8 to 11 days of its history. */
export function drawZone(name: string, wish: ZoneWish, historyDays?: number): Zone {
  const dice = createDice(`${name}/zone`);
  const kind = dice.pick(wish.kinds ?? KINDS);
  const id = dice.whole(100_000, 999_999);
  const paranoia = wish.paranoia ?? (dice.chance(0.6) ? 2 : 1);
  const sums = dice.weighted([
    ["none", 5],
    ["inbound", 4],
    ["both", 1],
  ] as const);
  const days = wish.isFirstDay === true ? dice.between(4, 20) / 24 : dice.between(8, 11);
  const situationMs = hourOf(dice, wish, EPOCH_MS + 12 * DAY_MS + dice.below(21) * DAY_MS);
  const isLogging = wish.mode === "log";
  return {
    id,
    kind,
    site: siteOf(kind, `www.${kind}-${dice.hex(6)}.example`),
    paranoia,
    mode:
      wish.mode ??
      dice.weighted([
        ["block", 6],
        ["challenge", 1],
        ["log", 3],
      ] as const),
    addresses:
      wish.addresses ??
      dice.weighted([
        ["plain", 7],
        ["list", 2],
        ["masked", 1],
      ] as const),
    limit: dice.chance(0.8) ? 5 : 10,
    sums,
    isSingleStopped: sums === "none" || isLogging || dice.chance(0.6),
    hasHeaders: dice.chance(0.75),
    hasBodies: dice.chance(0.8),
    namesVariable: dice.chance(0.7),
    isFirstDay: wish.isFirstDay === true,
    startMs: situationMs - (historyDays ?? days) * DAY_MS,
    situationMs,
    visitsPerDay: wish.visitsPerDay ?? Math.round(10 * 2 ** dice.between(0, 3.6)),
    hasMonitor: dice.chance(0.3),
    hasNightJob: dice.chance(0.3),
    isLevelRaised: wish.isLevelRaised === true,
    hasLimits: wish.hasLimits ?? dice.chance(0.4),
  };
}

function hourOf(dice: Dice, { hours = [7, 21] }: ZoneWish, dayMs: number): number {
  return Math.floor(dayMs + dice.between(hours[0], hours[1]) * HOUR_MS);
}

/** Returns the share of a site's visitors at a time, with mean near 1: by hour and weekday. */
export function shareAt(atMs: number, isOffice: boolean): number {
  const hour = (atMs % DAY_MS) / HOUR_MS;
  const isWeekend = [0, 6].includes(new Date(atMs).getUTCDay());
  const peak = isOffice ? 12 : 18;
  const wave = 1 + Math.cos(((hour - peak) / 24) * 2 * Math.PI);
  if (isOffice) return (isWeekend ? 0.15 : 1.3) * wave ** 2 * 0.67;
  return (isWeekend ? 1.2 : 0.95) * (0.12 + 0.88 * wave);
}
