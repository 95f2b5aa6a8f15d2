/**
 * How well and how fast spikes are found, beside two rules in common use, over seeded synthetic series:
 * `node test/bench/detector.ts [--series 600] [--seed 1] [--z 3.5] [--json]`.
 */
import { parseArgs } from "node:util";
import { createGuard } from "./detector/guard.ts";
import { createAdjacentWindows, createZScore, type Detector } from "./detector/peers.ts";
import { createScore, type Score } from "./detector/score.ts";
import { drawSeries } from "./detector/synthetic-series.ts";
import { measureTicks, type TickSpeed } from "./detector/tick-speed.ts";

const { values } = parseArgs({
  options: {
    series: { type: "string", default: "600" },
    seed: { type: "string", default: "1" },
    z: { type: "string", default: "3.5" },
    ticks: { type: "string", default: "50000" },
    json: { type: "boolean", default: false },
  },
});
const [seriesCount, seed, z, ticks] = [values.series, values.seed, values.z, values.ticks].map(Number) as [
  number,
  number,
  number,
  number,
];
if (![seriesCount, seed, z, ticks].every((value) => Number.isFinite(value) && value >= 0)) {
  console.error("--series, --seed, --z and --ticks must be numbers from 0");
  process.exit(2);
}

const detectors: Record<string, Detector> = {
  [`longwatch, z ${z}`]: createGuard(z),
  "ElastAlert2 spike, 60 min, x3, from 10": createAdjacentWindows(60, 3, 10),
  "ElastAlert2 spike, 120 min, x5, from 20": createAdjacentWindows(120, 5, 20),
  "z-score, 5 min, z 3.5, over 200": createZScore(3.5, 200),
  "z-score, 5 min, z 7, over 20": createZScore(7, 20),
};

function scoreAll(): Record<string, Score> {
  const scores = Object.keys(detectors).map((name) => [name, createScore()] as const);
  for (let index = 0; index < seriesCount; index += 1) {
    const series = drawSeries(seed, index);
    for (const [name, score] of scores) score.add(series, detectors[name]?.(series.counts) ?? []);
  }
  return Object.fromEntries(scores.map(([name, score]) => [name, score.read()]));
}

function describe(scores: Record<string, Score>, speed: TickSpeed | null): string {
  const [first] = Object.values(scores);
  const rows = Object.entries(scores).map(([name, score]) =>
    [
      name.padEnd(40),
      score.recall.toFixed(2).padStart(6),
      String(score.medianMinutes ?? "-").padStart(8),
      score.falsePerSeriesDay.toFixed(4).padStart(9),
      score.precision.toFixed(2).padStart(9),
      score.f1.toFixed(3).padStart(7),
    ].join(" "),
  );
  const head = `${"rule".padEnd(40)} recall  minutes  false/sd precision      F1`;
  const facts = `${seriesCount} series of three weeks, the last two scored, ${first?.attacks ?? 0} attacks, seed ${seed}`;
  const tick =
    speed === null
      ? []
      : [
          `${speed.series} busy series in one process: ${speed.tickMs?.median.toFixed(0)} ms per minute, ` +
            `${speed.hourTickMs?.median.toFixed(0)} ms in the minute that opens an hour, ${speed.rssMegabytes.toFixed(0)} MB`,
        ];
  return `${[facts, "", head, ...rows, "", ...tick].join("\n")}\n`;
}

const speed = ticks > 0 ? measureTicks(ticks) : null;
const scores = scoreAll();
process.stdout.write(
  values.json ? `${JSON.stringify({ seriesCount, seed, z, scores, speed })}\n` : describe(scores, speed),
);
