/**
 * How well changes of rules are found: rules that begin to block or to log, and rules that fall silent, over seeded zones:
 * `node test/bench/changes.ts [--zones 24] [--seed 1,2,3] [--exceptions 500] [--json]`.
 * Seeds 1 to 9 are for tuning. Seeds from 400 on were kept for the end.
 */
import { parseArgs } from "node:util";
import { createActionWatch } from "#detection/rules/action-watch.ts";
import { createSilenceWatch } from "#detection/rules/silence-watch.ts";
import { type ChangedZone, drawChanges, FLIPS_FROM_DAY, SILENCES_FROM_DAY } from "./changes/draw-changes.ts";
import { DAYS, START_MINUTE } from "./sources/zone.ts";

const { values } = parseArgs({
  options: {
    zones: { type: "string", default: "24" },
    seed: { type: "string", default: "1,2,3" },
    exceptions: { type: "string", default: "500" },
    json: { type: "boolean", default: false },
  },
});
const zones = Number(values.zones);
const seeds = values.seed.split(",").map(Number);
const MINUTES = DAYS * 1_440;
const found = {
  flips: { drawn: 0, by5: 0, by10: 0, ever: 0, false: 0, minutes: [] as number[] },
  silent: {
    busy: 0,
    busyFound: 0,
    middling: 0,
    middlingFound: 0,
    false: 0,
    inZoneSilence: 0,
    minutes: [] as number[],
  },
};

for (const seed of seeds)
  for (let index = 0; index < zones; index += 1) {
    const zone = drawChanges(seed, index, Number(values.exceptions));
    judgeFlips(zone);
    judgeSilences(zone);
  }

/** Events of a rule are numbered from its flip on. A flip without ten events cannot be judged. */
function judgeFlips({ events, flips }: ChangedZone): void {
  const watch = createActionWatch();
  const numbers = new Map(flips.map((flip) => [flip.ruleId, 0]));
  const reached = new Map<string, { number: number; minute: number }>();
  for (const { ruleId, action, address, minute } of events) {
    const drawn = flips.find((flip) => flip.ruleId === ruleId && minute >= flip.from);
    const number = drawn === undefined ? 0 : (numbers.get(ruleId) ?? 0) + 1;
    if (drawn !== undefined) numbers.set(ruleId, number);
    const flip = watch.take(ruleId, action, address, minute);
    if (flip === null) continue;
    if (drawn?.blocks === flip.blocks && !reached.has(ruleId)) reached.set(ruleId, { number, minute });
    else found.flips.false += 1;
  }
  for (const { ruleId, from } of flips) {
    if ((numbers.get(ruleId) ?? 0) < 10) continue;
    const at = reached.get(ruleId);
    found.flips.drawn += 1;
    if (at === undefined) continue;
    found.flips.ever += 1;
    if (at.number <= 5) found.flips.by5 += 1;
    if (at.number <= 10) found.flips.by10 += 1;
    found.flips.minutes.push(at.minute - from);
  }
}

function judgeSilences({ events, silences, zoneSilence }: ChangedZone): void {
  const watch = createSilenceWatch();
  const minutes = Map.groupBy(events, ({ minute }) => minute);
  const reached = new Map<string, number>();
  for (let minute = START_MINUTE; minute < START_MINUTE + MINUTES; minute += 1) {
    const counts = new Map<string, number>();
    for (const { ruleId } of minutes.get(minute) ?? []) counts.set(ruleId, (counts.get(ruleId) ?? 0) + 1);
    for (const { ruleId, expected } of watch.take(minute, counts)) {
      if (expected === null) continue;
      const drawn = silences.find((one) => one.ruleId === ruleId && minute >= one.from && minute <= one.to);
      if (drawn !== undefined) reached.set(ruleId, minute - drawn.from);
      else found.silent.false += 1;
      if (zoneSilence !== null && minute >= zoneSilence.from && minute <= zoneSilence.to)
        found.silent.inZoneSilence += 1;
    }
  }
  for (const { ruleId, perDay } of silences) {
    const at = reached.get(ruleId);
    if (at !== undefined) found.silent.minutes.push(at);
    if (perDay >= 200) {
      found.silent.busy += 1;
      if (at !== undefined) found.silent.busyFound += 1;
    } else if (perDay >= 50) {
      found.silent.middling += 1;
      if (at !== undefined) found.silent.middlingFound += 1;
    }
  }
}

const perZoneDay = (count: number, fromDay: number) => count / (zones * seeds.length * (DAYS - fromDay));
const median = (numbers: readonly number[]) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1] ?? null;
const { flips, silent } = found;
const read = {
  flips: {
    drawn: flips.drawn,
    by5: flips.by5 / flips.drawn,
    by10: flips.by10 / flips.drawn,
    ever: flips.ever / flips.drawn,
    falsePerZoneDay: perZoneDay(flips.false, FLIPS_FROM_DAY),
    medianMinutes: median(flips.minutes),
  },
  silent: {
    busy: silent.busy,
    busyFound: silent.busyFound / silent.busy,
    middling: silent.middling,
    middlingFound: silent.middlingFound / silent.middling,
    falsePerZoneDay: perZoneDay(silent.false, SILENCES_FROM_DAY),
    inZoneSilence: silent.inZoneSilence,
    medianMinutes: median(silent.minutes),
  },
};
const bars = [
  ["flips found by the tenth event", read.flips.by10, ">=", 0.65],
  ["false flips per zone-day", read.flips.falsePerZoneDay, "<=", 0.1],
  ["silent rules of 200 a day or more found", read.silent.busyFound, ">=", 0.8],
  ["false silent rules per zone-day", read.silent.falsePerZoneDay, "<=", 0.1],
] as const;
const isMet = ([, value, sign, bar]: (typeof bars)[number]) => (sign === ">=" ? value >= bar : value <= bar);
if (values.json) process.stdout.write(`${JSON.stringify(read)}\n`);
else
  process.stdout.write(
    `${zones} zones of ${DAYS} days, seeds ${seeds.join()}\n${JSON.stringify(read, null, 2)}\n${bars
      .map(
        (bar) => `${isMet(bar) ? "met   " : "missed"} ${bar[0]}: ${bar[1].toFixed(3)} (${bar[2]} ${bar[3]})`,
      )
      .join("\n")}\n`,
  );
if (!bars.every(isMet)) process.exitCode = 1;
