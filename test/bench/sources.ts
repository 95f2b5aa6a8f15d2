/**
 * How well attacks are found that no single rule shows, over seeded zones with sources:
 * `node test/bench/sources.ts [--zones 24] [--seed 1,2,3] [--hard] [--overlap] [--flood 60:60] [--csv FILE] [--json]`.
 * `--overlap` adds attacks that overlap and scores messages. `--flood` adds to each zone so many scanners in so many
 * minutes. `--alerts FILE` scores what `longwatch backtest --events CSV --alerts FILE` wrote about one seed.
 * Seeds 1 to 3 are for tuning. Seeds from 100 on were kept for the end.
 */
import { createWriteStream } from "node:fs";
import { parseArgs } from "node:util";
import { describeMessages, rowsOf } from "./sources/describe-messages.ts";
import { drawZone } from "./sources/draw-zone.ts";
import { readAlerts } from "./sources/read-alerts.ts";
import { type ReplayedAlert, replayMessages, toAlerts } from "./sources/replay-messages.ts";
import { createSourceScore, type SourceScore } from "./sources/score.ts";
import { createMessageScore } from "./sources/score-messages.ts";
import { ATTACK_KINDS } from "./sources/zone.ts";

const { values } = parseArgs({
  options: {
    zones: { type: "string", default: "24" },
    seed: { type: "string", default: "1,2,3" },
    hard: { type: "boolean", default: false },
    overlap: { type: "boolean", default: false },
    flood: { type: "string" },
    alerts: { type: "string" },
    csv: { type: "string" },
    json: { type: "boolean", default: false },
  },
});
const zones = Number(values.zones);
const seeds = values.seed.split(",").map(Number);
const [addresses = 0, minutes = 10] = (values.flood ?? "").split(":").map(Number);
const options = {
  isHard: values.hard,
  isOverlap: values.overlap,
  flood: addresses > 0 ? { addresses, minutes } : null,
};
const alertsOf = values.alerts === undefined ? null : readAlerts(values.alerts);

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

const messages = createMessageScore();
const isOfMessages = values.overlap || options.flood !== null || alertsOf !== null;

let events = 0;
const startedMs = performance.now();
let judgingMs = 0;
for (const seed of seeds) {
  for (let index = 0; index < zones; index += 1) {
    const zone = drawZone(seed, index, options);
    events += zone.events.length;
    if (alertsOf !== null) messages.add(zone, alertsOf.get(String(index)) ?? []);
    else {
      const sent = timed(() => replayMessages(zone.events));
      if (isOfMessages) messages.add(zone, sent);
      else for (const score of Object.values(scores)) score.add(zone.attacks, zone.nuisances, toAlerts(sent));
    }
  }
}

function timed<T>(work: () => T): T {
  const from = performance.now();
  const made = work();
  judgingMs += performance.now() - from;
  return made;
}

const read = Object.fromEntries(Object.entries(scores).map(([name, score]) => [name, score.read()]));
if (values.csv !== undefined) await writeCsv(values.csv);
if (isOfMessages) {
  const score = messages.read();
  process.stdout.write(
    values.json
      ? `${JSON.stringify(rowsOf(score))}\n`
      : `${facts(score.attacks)}\n\n${describeMessages(score)}`,
  );
} else process.stdout.write(values.json ? `${JSON.stringify(read)}\n` : describe(read));

function facts(attacks: number | undefined): string {
  const hard = values.hard ? ", hard" : "";
  const [judged, all] = [judgingMs, performance.now() - startedMs].map((ms) => (ms / 1_000).toFixed(1));
  return `${zones} zones of ten days, seeds ${seeds.join()}${hard}: ${events} events, ${attacks} attacks, judged in ${judged} s of ${all} s`;
}

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
  const causes = Object.entries(read).map(
    ([name, { causes }]) =>
      `false ${name}: ${Object.entries(causes)
        .slice(0, 12)
        .map(([cause, n]) => `${n} ${cause}`)
        .join(", ")}`,
  );
  return `${[facts(read["everything that pages"]?.attacks), "", head, ...rows, "", ...causes].join("\n")}\n`;
}

/** Writes the events of the first seed as the file that `longwatch backtest --events` reads. */
async function writeCsv(path: string): Promise<void> {
  const file = createWriteStream(path);
  file.write("zone,timestamp,rule_id,ip,asn,country,ja4,ua,url,action\n");
  for (let index = 0; index < zones; index += 1) {
    const lines = drawZone(seeds[0] ?? 1, index, options).events.map(
      ({ minute, ruleId, ip, asn, ja4, ua, url }) =>
        `${index},${minute * 60},${ruleId},${ip},${asn},XX,${ja4},"${ua?.replaceAll('"', '""')}",${url},log\n`,
    );
    file.write(lines.join(""));
  }
  await new Promise((resolve) => file.end(resolve));
}
