/**
 * What the messages of two drawn worlds are worth: `npm run bench:message`. Each world is drawn, the command `backtest --events`
 * replays it in a process of its own, and its messages are judged by the world's labels. `--help` has the options.
 */
import { spawn } from "node:child_process";
import { createWriteStream } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { parseArgs } from "node:util";
import {
  describeScores,
  type Figures,
  type ScoredWorld,
  toFigures,
  withFigures,
} from "./message/describe-scores.ts";
import { drawWorld, situationsOf } from "./message/draw-world.ts";
import { type CaseLabel, type Labels, readLabels, WORLDS, type ZoneLabel } from "./message/labels.ts";
import { readMessages } from "./message/read-messages.ts";
import { scoreMessages } from "./message/score-messages.ts";
import { HALVES, type Half } from "./message/situations/situation.ts";
import { createProgressBar } from "./progress-bar.ts";

const HELP = `Usage: npm run bench:message -- [options]

Draws worlds of requests with labels, replays them with "backtest --events" and judges the messages.

  --world <name>    requests: agents and a rule set that nobody fitted; streams: the same situations on the emulator's
                    everyday traffic (default: both, side by side)
  --seed <number>   1 to 9 are for development (default: 7)
  --repeats <count> how often each situation is drawn (default: 2)
  --half <name>     fitted or other: only this half of the situations (default: both, side by side)
  --keep <folder>   keep world.ndjson, labels.json and alerts.csv there, in a folder for each world
  --again <folder>  replay the worlds that --keep left there, instead of drawing them
  --score <folder>  judge the messages that --keep left there, instead of replaying
  --write           write the summary into docs/detection-measurements.md and test/bench/message/figures.golden.json; needs both worlds and halves
  --help

Examples:
  npm run -s bench:message
  npm run -s bench:message -- --seed 8 --repeats 1 --half fitted
  npm run -s bench:message -- --world streams --keep streams-7
  npm run -s bench:message -- --keep seed-7 --write
  npm run -s bench:message -- --again seed-7
`;

class Refusal extends Error {}

const bar = createProgressBar(process.stderr);
const WORLD_SHARE = 0.4;

try {
  await main();
} catch (error) {
  const isMistake = error instanceof Refusal || (error instanceof TypeError && "code" in error);
  process.stderr.write(isMistake ? `${error.message}. See --help.\n` : `\n${String(error)}\n`);
  process.exitCode = isMistake ? 2 : 1;
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      world: { type: "string" },
      seed: { type: "string", default: "7" },
      repeats: { type: "string", default: "2" },
      half: { type: "string" },
      keep: { type: "string" },
      again: { type: "string" },
      score: { type: "string" },
      write: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return;
  }
  const half = values.half === undefined ? undefined : oneOf("--half", values.half, HALVES);
  const worlds = values.world === undefined ? WORLDS : [oneOf("--world", values.world, WORLDS)];
  if (values.write && (half !== undefined || worlds !== WORLDS))
    throw new Refusal("--write needs both worlds and both halves");
  const seed = wholeOf("--seed", values.seed, 0);
  const repeats = wholeOf("--repeats", values.repeats, 1);
  const kept = values.score ?? values.again ?? values.keep;
  const folder = kept ?? (await mkdtemp(path.join(tmpdir(), "longwatch-world-")));
  const from = values.score !== undefined ? "score" : values.again !== undefined ? "again" : "draw";
  try {
    const scored: ScoredWorld[] = [];
    for (const world of worlds)
      scored.push(await scoreWorld(path.join(folder, world), from, { world, seed, repeats }, half));
    process.stdout.write(describeScores(scored, half));
    if (values.write) await writeFigures(toFigures(scored));
  } finally {
    if (kept === undefined) await rm(folder, { recursive: true, force: true });
  }
}

/** Judges the messages of a world in this folder, after it has drawn and replayed what is not there. */
async function scoreWorld(
  folder: string,
  from: "draw" | "again" | "score",
  options: Pick<Labels, "world" | "seed" | "repeats">,
  half: Half | undefined,
): Promise<ScoredWorld> {
  const [events, alerts, labelFile] = ["world.ndjson", "alerts.csv", "labels.json"].map((name) =>
    path.join(folder, name),
  ) as [string, string, string];
  if (from === "draw") {
    await mkdir(folder, { recursive: true });
    const drawn = await writeWorld(events, options, half);
    await writeFile(labelFile, `${JSON.stringify(drawn, null, 1)}\n`);
  }
  const labels = readLabels(await readKept(labelFile));
  if (from !== "score") {
    bar(WORLD_SHARE, `replaying ${labels.world}`);
    await runBacktest(events, alerts);
    bar(1, "done");
  }
  return { labels, scored: scoreMessages(labels, readMessages(await readKept(alerts))) };
}

async function writeFigures(figures: Figures): Promise<void> {
  const page = path.join(import.meta.dirname, "..", "..", "docs", "detection-measurements.md");
  const kept = path.join(import.meta.dirname, "message", "figures.golden.json");
  await writeFile(page, withFigures(await readFile(page, "utf8"), figures));
  await writeFile(kept, `${JSON.stringify(figures, null, 2)}\n`);
}

async function readKept(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw new Refusal(`cannot read ${file}, which --keep writes: ${String(error)}`);
  }
}

async function writeWorld(
  file: string,
  options: Pick<Labels, "world" | "seed" | "repeats">,
  half: Half | undefined,
): Promise<Labels> {
  const zones: ZoneLabel[] = [];
  const cases: CaseLabel[] = [];
  const all = situationsOf(half).length * options.repeats;
  function* draw(): Generator<string> {
    for (const zone of drawWorld({ ...options, half })) {
      zones.push(zone.label);
      cases.push(...zone.cases);
      bar((WORLD_SHARE * zones.length) / all, `drawing ${zone.label.situation}`);
      yield zone.lines().join("");
    }
  }
  await pipeline(Readable.from(draw()), createWriteStream(file));
  return { ...options, zones, cases };
}

/** Runs the command of the service. Its progress becomes the second part of the bar. */
async function runBacktest(events: string, alerts: string): Promise<void> {
  const main = path.join(import.meta.dirname, "..", "..", "src", "main.ts");
  const child = spawn(process.execPath, [main, "backtest", "--events", events, "--alerts", alerts], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said = `${said}${text}`.slice(-4_000);
    const percent = /(\d+) %(?!.*\d+ %)/s.exec(text)?.[1];
    if (percent !== undefined) bar(WORLD_SHARE + ((1 - WORLD_SHARE) * Number(percent)) / 101, "replaying");
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject).once("close", resolve);
  });
  if (code !== 0) throw new Error(`backtest ended with ${code}: ${said}`);
}

function oneOf<T extends string>(option: string, value: string, words: readonly T[]): T {
  const found = words.find((word) => word === value);
  if (found === undefined) throw new Refusal(`${option} "${value}" must be one of ${words.join(", ")}`);
  return found;
}

function wholeOf(option: string, value: string, least: number): number {
  const number = Number(value);
  if (!/^\d{1,9}$/.test(value) || number < least)
    throw new Refusal(`${option} "${value}" must be a whole number from ${least} on`);
  return number;
}
