/**
 * What verdicts say about drawn zones, replayed through detection: `npm run bench:verdict -- [--zones 24] [--seed 1,2]
 * [--levels 6] [--json]`. Seeds 1 to 9 are for development; seeds from 500 on were kept for the end. `--levels` is the number
 * of zones for each level of an attacker who knows the rules.
 */
import { readFileSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { VERDICT_CLASSES, VERDICTS } from "#model/kinds.ts";
import { Figures, tableOf } from "./message/describe-scores.ts";
import { drawWorld, type Level } from "./verdict/draw-world.ts";
import { type Judged, judgeWorld, LACKS, type Silenced } from "./verdict/judge-world.ts";
import {
  binsOf,
  countConfusion,
  persistingMisfires,
  scoreExclusions,
  scoreVerdicts,
  type VerdictScore,
} from "./verdict/score-verdicts.ts";

const { values } = parseArgs({
  options: {
    zones: { type: "string", default: "24" },
    seed: { type: "string", default: "1,2" },
    levels: { type: "string", default: "6" },
    json: { type: "boolean", default: false },
  },
});
const seeds = values.seed.split(",").map(Number);
const lacking = Object.keys(LACKS).filter((name) => name !== "nothing");
const LEVELS = [
  "naive",
  "browser headers",
  "+ home networks",
  "+ cookie, pace",
  "+ no idiom",
  "+ known addresses",
];

/** What the figures must reach: F1 and silenced misfires at least, the others at most. */
const BARS = {
  first: { f1: 0.85, attackAsMisfire: 0.04 },
  later: { f1: 0.88, attackAsMisfire: 0.02 },
  persists: 0.005,
  exclusions: { misfire: 0.98, attackAnyParameter: 0.005 },
} as const;

const HEAD = `${"".padEnd(22)}  alerts     F1  attack called misfire, other  unclear  misfire: recall, precision    ECE`;

const judged: Judged[] = [];
const silenced: Silenced[] = [];
let events = 0;
for (const seed of seeds)
  for (let index = 0; index < Number(values.zones); index += 1) {
    const world = drawWorld(seed, index);
    const found = judgeWorld(world, lacking);
    events += world.events.length;
    judged.push(...found.judged);
    silenced.push(...found.silenced);
  }
const byLevel = LEVELS.map((_, level) =>
  seeds.flatMap((seed) =>
    Array.from({ length: Number(values.levels) }, (_zone, index) => {
      const world = drawWorld(seed, 1_000 + index, level as Level);
      return judgeWorld(world, []).judged.filter(({ truth }) => truth === "attack");
    }).flat(),
  ),
);

const full = judged.filter(({ lacks }) => lacks === "nothing");
const at = (look: string, all: readonly Judged[] = full) => all.filter((one) => one.look === look);
const degraded = Object.fromEntries(
  lacking.map((name) => {
    const all = judged.filter(({ lacks }) => lacks === name);
    return [name, { first: scoreVerdicts(at("first", all)), later: scoreVerdicts(at("half-hour", all)) }];
  }),
);
const result = {
  zones: Number(values.zones) * seeds.length,
  events,
  bars: BARS,
  first: scoreVerdicts(at("first")),
  later: scoreVerdicts(at("half-hour")),
  persists: persistingMisfires(full),
  exclusions: scoreExclusions(silenced),
  degraded,
  levels: byLevel.map((all) => ({
    alerts: at("first", all).length,
    first: scoreVerdicts(at("first", all)).attackAsMisfire,
    later: scoreVerdicts(at("half-hour", all)).attackAsMisfire,
    persists: persistingMisfires(all),
  })),
};

if (values.json) process.stdout.write(`${JSON.stringify(result)}\n`);
else process.stdout.write(describe());

function describe(): string {
  const { first, later, exclusions } = result;
  return [
    `${result.zones} zones of three weeks, seeds ${seeds.join()}: ${events} events, ${first.alerts} alerts`,
    "",
    HEAD,
    rowOf("first message", first),
    barRow(BARS.first),
    rowOf("30 minutes", later),
    barRow(BARS.later),
    `attack called a misfire that lasts: ${show(result.persists)} (bar <=${show(BARS.persists)})`,
    "",
    "beside the worlds of bench:message, as --write left them; a scanner counts as an attack there",
    ...describeWorlds(),
    ...describeConfusion("first message", at("first")),
    ...describeConfusion("30 minutes", at("half-hour")),
    "",
    "kind                     alerts  right  unclear  misfire  attack   (30 minutes)",
    ...[...Map.groupBy(at("half-hour"), ({ kind }) => kind)]
      .sort(([a], [b]) => a.localeCompare(b))
      .map(([kind, all]) => kindRow(kind, all)),
    "",
    `said -> was, first: ${describeBins(at("first"))}`,
    `said -> was, later: ${describeBins(at("half-hour"))}`,
    "",
    `exclusions: ${exclusions.proposals} for misfires that last, ${exclusions.narrow} narrow, ${exclusions.forAttacks} of them for attacks`,
    `  the next week: misfire silenced ${show(exclusions.misfire)} (bar >=${show(BARS.exclusions.misfire)}), attack events ${show(exclusions.attack)}, without parameter ${show(exclusions.attackAnyParameter)} (bar <=${show(BARS.exclusions.attackAnyParameter)})`,
    "",
    `without ...\n${HEAD}`,
    ...Object.entries(result.degraded).flatMap(([name, one]) => [
      rowOf(name, one.first),
      rowOf("  30 minutes", one.later),
    ]),
    "",
    "attackers who know the rules: called misfire    alerts  first  30 min  lasts",
    ...result.levels.map(
      (one, level) =>
        `${`${level} ${LEVELS[level]}`.padEnd(48)}${String(one.alerts).padStart(6)}  ${[one.first, one.later, one.persists].map(show).join("   ")}`,
    ),
    "",
  ].join("\n");
}

/** The verdicts of the worlds of messages beside those of these zones. */
function describeWorlds(): string[] {
  const file = path.join(import.meta.dirname, "message", "figures.golden.json");
  const { columns, rows } = Figures.parse(JSON.parse(readFileSync(file, "utf8")));
  const { first, later } = result;
  const own = new Map<string, string>([
    ["macro-F1, first message", show(first.f1)],
    ["macro-F1, 30 minutes", show(later.f1)],
    ["misfires right, first message", show(first.misfireRecall)],
    ["misfires right, 30 minutes", show(later.misfireRecall)],
    ["hostile called misfire ever", `${show(first.attackAsMisfire)} / ${show(later.attackAsMisfire)}`],
  ]);
  return tableOf({
    columns: ["these zones", ...columns],
    rows: rows.flatMap(([name = "", ...cells]) =>
      own.has(name) ? [[name, own.get(name) ?? "", ...cells]] : [],
    ),
  });
}

function describeConfusion(name: string, all: readonly Judged[]): string[] {
  const table = countConfusion(all);
  return [
    "",
    `${name}: true \\ said  ${VERDICTS.map((said) => said.slice(0, 8).padStart(9)).join("")}`,
    ...VERDICT_CLASSES.map(
      (truth) =>
        `${truth.padEnd(30)}${VERDICTS.map((said) => String(table[truth][said]).padStart(9)).join("")}`,
    ),
  ];
}

function kindRow(kind: string, all: readonly Judged[]): string {
  const part = (test: (one: Judged) => boolean) => show(all.filter(test).length / all.length).padStart(7);
  const said = (word: string) => part(({ verdict }) => verdict.said === word);
  const right = part(({ truth, verdict }) => verdict.said === truth);
  return `${kind.padEnd(25)}${String(all.length).padStart(6)}${right}${said("unclear")}  ${said("misfire")} ${said("attack")}`;
}

function describeBins(all: readonly Judged[]): string {
  return binsOf(all)
    .map(({ said, was, alerts }) => `${said.toFixed(2)} -> ${was.toFixed(2)} (${alerts})`)
    .join(", ");
}

function rowOf(name: string, score: VerdictScore): string {
  const { f1, attackAsMisfire, attackAsOther, unclear, misfireRecall, misfirePrecision, ece } = score;
  const numbers = [f1, attackAsMisfire, attackAsOther, unclear, misfireRecall, misfirePrecision, ece].map(
    show,
  );
  return `${name.padEnd(22)}${String(score.alerts).padStart(8)}  ${numbers.join("    ")}`;
}

/** The bars under the columns of F1 and of attacks that are called a misfire. */
function barRow({ f1, attackAsMisfire }: { f1: number; attackAsMisfire: number }): string {
  return `${"  bar".padEnd(30)}>=${show(f1)}  <=${show(attackAsMisfire)}`;
}

function show(value: number | null): string {
  return value === null ? "    -" : value.toFixed(3);
}
