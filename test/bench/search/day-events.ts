import { createUrlBook, PATHS, PAYLOADS } from "#emulator/traffic/payloads.ts";
import { createRandom, hashText, type Random } from "#emulator/traffic/random.ts";
import { DAY_MS, MINUTE_MS } from "#lib/units.ts";
import { type Actor, drawRule, skewed, type World } from "./world.ts";

/** Zones with their shares of the traffic. The questions ask about the first. */
const ZONES: readonly (readonly [zoneId: number, share: number])[] = [
  [101, 0.6],
  [102, 0.25],
  [103, 0.1],
  [104, 0.05],
];
export const ASKED_ZONE = 101;
export const ALL_ZONES = ZONES.map(([zoneId]) => zoneId);
/** In the URL of about one event in 50,000. */
export const RARE_TEXT = "xk9q7zr";
const RARE_SHARE = 1 / 50_000;

const MINUTES = 1_440;
const VARIANTS = 96;
/** How much of a client's everyday traffic is what it always does. */
const KIT_SHARE = 0.85;
const CREW = 20;

/** A stretch of one UTC day: [from, to), with this many events. */
export interface DayPlan {
  /** `yyyy-mm-dd`. */
  readonly day: string;
  readonly from: number;
  readonly to: number;
  readonly events: number;
}

/** The days of [from, to), sharing `events` by length, with quieter weekends. */
export function planDays(from: number, to: number, events: number): DayPlan[] {
  const days: Omit<DayPlan, "events">[] = [];
  for (let start = from; start < to; start = start - (start % DAY_MS) + DAY_MS) {
    const end = Math.min(to, start - (start % DAY_MS) + DAY_MS);
    days.push({ day: new Date(start).toISOString().slice(0, 10), from: start, to: end });
  }
  const weights = days.map(
    (day) => (day.to - day.from) * ([0, 6].includes(new Date(day.from).getUTCDay()) ? 0.8 : 1),
  );
  const sum = weights.reduce((all, weight) => all + weight, 0);
  let weighed = 0;
  let given = 0;
  return days.map((day, index) => {
    weighed += weights[index] ?? 0;
    const upTo = Math.round((weighed / sum) * events);
    const share = upTo - given;
    given = upTo;
    return { ...day, events: share };
  });
}

interface Burst {
  readonly firstMinute: number;
  readonly minutes: number;
  readonly weight: number;
  readonly zoneId: number;
  readonly rule: number;
  readonly crew: readonly Actor[];
  readonly path: number;
}

/**
 * Renders the events of a day as CSV in the order of the table's columns, oldest first, a string per minute. A day is
 * a function of the seed and of its plan. Every text is quoted; nothing is null.
 */
export function createDayRenderer(seed: string, world: World): (plan: DayPlan) => Generator<string> {
  const urlOf = createUrlBook();
  const random = createRandom();

  function line(at: number, burst: Burst | undefined): string {
    const zoneId = burst?.zoneId ?? drawZone(random);
    const actor =
      burst === undefined ? world.actors[skewed(random, world.actors.length, 3)] : random.pick(burst.crew);
    const usual =
      random.fraction() < KIT_SHARE ? random.pick(actor?.kit ?? [0]) : drawRule(random, world.ruleShares);
    const rule = world.rules[burst?.rule ?? usual];
    if (rule === undefined || actor === undefined) throw new RangeError("drawn outside the world");
    const agent = world.agents[random.fraction() < 0.9 ? actor.agent : random.below(world.agents.length)];
    const { url } = urlOf({
      zoneId,
      host: random.below(3),
      family: rule.family,
      path: (burst?.path ?? random.below(64)) % PATHS[rule.family].length,
      payload: random.below(PAYLOADS[rule.family].length),
      variant: skewed(random, VARIANTS, 2),
      hostile: -1,
    });
    const rare = random.fraction() < RARE_SHARE ? `#${RARE_TEXT}` : "";
    const share = random.fraction();
    const action =
      share < rule.blockShare ? "block" : share < rule.blockShare + rule.logShare ? "log" : "challenge";
    const when = new Date(at).toISOString();
    return `${when.slice(0, 10)} ${when.slice(11, 23)},${zoneId},${uuid(random)},search,${rule.feature},${rule.ruleId},${actor.ip},${agent?.ja4},"${agent?.ua}","${url}${rare}",${actor.asn},${actor.country},${action},"${rule.message}"\n`;
  }

  return function* renderDay(plan) {
    const midnight = plan.from - (plan.from % DAY_MS);
    random.reseed(hashText(seed), Math.floor(midnight / DAY_MS), 0x64, 0x61);
    const bursts = drawBursts(random, world);
    const minutes = weighMinutes(plan, midnight, bursts);
    let weighed = 0;
    let given = 0;
    for (const { from, to, steady, extra, burst } of minutes.list) {
      weighed += steady + extra;
      const upTo = Math.round((weighed / minutes.sum) * plan.events);
      const times = new Float64Array(upTo - given).map(() => from + random.below(to - from)).sort();
      given = upTo;
      let text = "";
      for (const at of times)
        text += line(at, random.fraction() * (steady + extra) < extra ? burst : undefined);
      yield text;
    }
  };
}

/** One attack at most in a minute; a day's rhythm besides. */
function weighMinutes(plan: DayPlan, midnight: number, bursts: readonly Burst[]) {
  const list = Array.from({ length: MINUTES }, (_, minute) => {
    const start = midnight + minute * MINUTE_MS;
    const [from, to] = [Math.max(start, plan.from), Math.min(start + MINUTE_MS, plan.to)];
    const part = Math.max(0, to - from) / MINUTE_MS;
    const burst = bursts.find((one) => minute >= one.firstMinute && minute < one.firstMinute + one.minutes);
    const steady = part * (1 + 0.5 * Math.sin((2 * Math.PI * (minute - 540)) / MINUTES));
    return { from, to, steady, extra: part * (burst?.weight ?? 0), burst };
  }).filter(({ steady }) => steady > 0);
  return { list, sum: list.reduce((all, { steady, extra }) => all + steady + extra, 0) };
}

function drawBursts(random: Random, world: World): Burst[] {
  return Array.from({ length: random.below(4) }, () => {
    const first = random.below(world.actors.length - CREW);
    return {
      firstMinute: random.below(MINUTES - 30),
      minutes: 5 + random.below(20),
      weight: 2 + random.fraction() * 6,
      zoneId: drawZone(random),
      rule: random.below(world.rules.length),
      crew: world.actors.slice(first, first + CREW),
      path: random.below(64),
    };
  });
}

function drawZone(random: Random): number {
  let share = random.fraction();
  for (const [zoneId, part] of ZONES) {
    share -= part;
    if (share < 0) return zoneId;
  }
  return ASKED_ZONE;
}

function uuid(random: Random): string {
  const hex = () => random.next().toString(16).padStart(8, "0");
  const [a, b, c, d] = [hex(), hex(), hex(), hex()];
  return `${a}-${b.slice(0, 4)}-4${b.slice(5)}-a${c.slice(1, 4)}-${c.slice(4)}${d}`;
}
