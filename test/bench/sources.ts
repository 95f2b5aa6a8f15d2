/**
 * How well attacks are found that no single rule shows, over seeded zones with sources:
 * `node test/bench/sources.ts [--zones 24] [--seed 1,2,3] [--hard] [--csv FILE] [--json]`.
 * Seeds 1 to 3 are for tuning. Seeds from 100 on were kept for the end.
 */
import { createWriteStream } from "node:fs";
import { parseArgs } from "node:util";
import { createZoneReplay, type ReplayedAlert } from "#stages/detection/backtest/replay-zone.ts";
import { DEFAULT_Z, FLOOR } from "#stages/detection/policy.ts";
import { ATTACK_KINDS, type DrawnZone, drawZone } from "./sources/draw-zone.ts";
import { createSourceScore, type SourceScore } from "./sources/score.ts";

const { values } = parseArgs({
  options: {
    zones: { type: "string", default: "24" },
    seed: { type: "string", default: "1,2,3" },
    hard: { type: "boolean", default: false },
    csv: { type: "string" },
    json: { type: "boolean", default: false },
  },
});
const zones = Number(values.zones);
const seeds = values.seed.split(",").map(Number);

const SOURCE_KINDS = ATTACK_KINDS.filter((kind) => kind !== "g");
const isPaging = ({ severity }: ReplayedAlert) => severity === "error" || severity === "critical";
const isRule = ({ kind }: ReplayedAlert) => kind === "rule";
const scores = {
  sources: createSourceScore({ isCounted: (alert) => !isRule(alert), kinds: SOURCE_KINDS }),
  "rules that page": createSourceScore({
    isCounted: (alert) => isRule(alert) && isPaging(alert),
    kinds: ATTACK_KINDS,
  }),
  "everything that pages": createSourceScore({ isCounted: isPaging, kinds: ATTACK_KINDS }),
  "all rule alerts": createSourceScore({ isCounted: isRule, kinds: ATTACK_KINDS }),
};

let events = 0;
const startedMs = performance.now();
let judgingMs = 0;
for (const seed of seeds) {
  for (let index = 0; index < zones; index += 1) {
    const zone = drawZone(seed, index, values.hard);
    events += zone.events.length;
    const alerts = judge(zone);
    for (const score of Object.values(scores)) score.add(zone.attacks, zone.nuisances, alerts);
  }
}

function judge(zone: DrawnZone): ReplayedAlert[] {
  const from = performance.now();
  const replay = createZoneReplay({ z: DEFAULT_Z, floor: FLOOR });
  for (const event of zone.events) replay.take(event, event.minute);
  const alerts = replay.finish();
  judgingMs += performance.now() - from;
  return alerts;
}

const read = Object.fromEntries(Object.entries(scores).map(([name, score]) => [name, score.read()]));
if (values.csv !== undefined) await writeCsv(values.csv);
process.stdout.write(values.json ? `${JSON.stringify(read)}\n` : describe(read));

function describe(read: Record<string, SourceScore>): string {
  const share = (value: number | null) => (value === null ? "-" : value.toFixed(2)).padStart(5);
  const head = `${"alerts".padEnd(23)} recall ${ATTACK_KINDS.map((kind) => kind.padStart(5)).join("")}  false/zd precision      F1 minutes`;
  const rows = Object.entries(read).map(([name, score]) =>
    [
      name.padEnd(23),
      score.recall.toFixed(3).padStart(6),
      ATTACK_KINDS.map((kind) => share(score.byKind[kind])).join(""),
      ` ${score.falsePerZoneDay.toFixed(3).padStart(8)}`,
      score.precision.toFixed(3).padStart(9),
      score.f1.toFixed(3).padStart(7),
      String(score.medianMinutes ?? "-").padStart(7),
    ].join(" "),
  );
  const facts = `${zones} zones of ten days, seeds ${seeds.join()}${values.hard ? ", hard" : ""}: ${events} events, ${read["everything that pages"]?.attacks} attacks, judged in ${(judgingMs / 1_000).toFixed(1)} s of ${((performance.now() - startedMs) / 1_000).toFixed(1)} s`;
  const causes = Object.entries(read).map(
    ([name, { causes }]) =>
      `false ${name}: ${Object.entries(causes)
        .slice(0, 12)
        .map(([cause, n]) => `${n} ${cause}`)
        .join(", ")}`,
  );
  return `${[facts, "", head, ...rows, "", ...causes].join("\n")}\n`;
}

/** Writes the events of the first seed as the file that `longwatch backtest --events` reads. */
async function writeCsv(path: string): Promise<void> {
  const file = createWriteStream(path);
  file.write("zone,timestamp,rule_id,ip,asn,country,ja4,ua,url,action\n");
  for (let index = 0; index < zones; index += 1) {
    const lines = drawZone(seeds[0] ?? 1, index, values.hard).events.map(
      ({ minute, ruleId, ip, asn, ja4, ua, url }) =>
        `${index},${minute * 60},${ruleId},${ip},${asn},XX,${ja4},"${ua}",${url},log\n`,
    );
    file.write(lines.join(""));
  }
  await new Promise((resolve) => file.end(resolve));
}
