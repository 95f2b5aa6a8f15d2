/**
 * What a block list stops on the day after an attack: `npm run bench:block-list`. Each situation of `bench:message` is drawn on a zone with a
 * week of everyday traffic and whole addresses, and happens again a day later. The list is made a minute before that, with the
 * detectors, verdicts and classes of the service. `--seed` and `--repeats` are those of `bench:message`.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import type { ReplayedMessage } from "#alerts/rules/backtest/replay-incidents.ts";
import type { RecordedEvent } from "#alerts/rules/backtest/replay-verdicts.ts";
import { createZoneReplay } from "#alerts/rules/backtest/replay-zone.ts";
import { CLASSIFIED_COLUMNS, classifyRequests } from "#archive/rules/sql/classify-requests.ts";
import { countSenders, readSenders } from "#archive/rules/sql/count-requests.ts";
import { createDuckdb, type Duckdb } from "#db/duckdb/duckdb.ts";
import {
  type BlockIncident,
  listShared,
  makeBlockList,
} from "#detection/rules/block-list/make-block-list.ts";
import { DEFAULT_Z } from "#detection/rules/detection-settings.ts";
import { toSourceAddress } from "#detection/rules/sources/source-event.ts";
import { CRAWLERS } from "#detection/rules/verdict/crawlers.ts";
import { createUses } from "#detection/rules/verdict/evidence.ts";
import { judgeVerdict } from "#detection/rules/verdict/judge-verdict.ts";
import { readEntries } from "#faces/cli/backtest/replay-events.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { BUILT_IN_ACTIONS } from "#model/action-class.ts";
import { FEW_ADDRESSES } from "#model/ip-address.ts";
import { packFacts } from "#model/request-facts.ts";
import type { RequestFinding } from "#model/review.ts";
import { createDice } from "./message/dice.ts";
import { situationsOf } from "./message/draw-world.ts";
import { toLine } from "./message/entries.ts";
import { drawEveryday, PROBES } from "./message/everyday.ts";
import { HALVES, type Situation } from "./message/situations/situation.ts";
import { createStage, type Event } from "./message/stage.ts";
import { drawZone } from "./message/zones.ts";
import { alignColumns } from "./tables.ts";

const HISTORY_DAYS = 8;
/** How long a returning attack is watched. */
const RETURN_MS = 20 * HOUR_MS;
const LEAST_STOPPED = 0.5;
/** Of ten thousand requests of visitors. */
const MOST_HIT = 0;

interface Drawn {
  readonly event: Event;
  readonly line: string;
  readonly isHostile: boolean;
}

const isHostile = ({ truth }: { readonly truth: string }) => truth === "attack" || truth === "scanner";

/** Draws a zone whose situation happens on two days in a row, with the same attackers. */
function draw(situation: Situation, key: string) {
  const zone = drawZone(key, { addresses: "plain", ...situation.zone }, HISTORY_DAYS);
  const endMs = zone.situationMs + DAY_MS + RETURN_MS;
  const everyday = createStage(zone, createDice(`${key}/everyday`));
  drawEveryday(everyday, endMs);
  const events = everyday.events.map((event) => ({ event, isHostile: PROBES.includes(event.request.path) }));
  for (const start of [zone.situationMs, zone.situationMs + DAY_MS]) {
    const stage = createStage({ ...zone, situationMs: start }, createDice(key));
    const { dice, site, pace } = stage;
    situation.play({
      dice,
      site,
      start,
      pace,
      send: (at, request, of = "main") => void stage.send(at, request, of),
      visit: (at, request, of = "main") => stage.visit(at, request, of),
    });
    for (const event of stage.events)
      events.push({ event, isHostile: isHostile(situation.cases[event.of ?? "main"] ?? { truth: "" }) });
  }
  const ids = createDice(`${key}/ids`);
  const drawn = events
    .filter(({ event }) => event.at >= zone.startMs && event.at < endMs)
    .sort((one, other) => one.event.at - other.event.at)
    .map((one): Drawn => ({ ...one, line: toLine(zone, one.event, ids) }));
  return { from: zone.startMs, listAt: zone.situationMs + DAY_MS - MINUTE_MS, drawn };
}

async function readLines(drawn: readonly Drawn[]): Promise<RecordedEvent[]> {
  const read: RecordedEvent[] = [];
  async function* chunks() {
    for (const { line } of drawn) yield Buffer.from(line);
  }
  const mistakes = await readEntries(chunks(), BUILT_IN_ACTIONS, (_zone, _second, event) => {
    read.push(event);
    return undefined;
  });
  if (mistakes.length > 0) throw new Error(mistakes.join("\n"));
  return read;
}

/** Returns the incidents that a replay has sent messages about. */
function toIncidents(messages: readonly ReplayedMessage[]): BlockIncident[] {
  const ofIncident = Map.groupBy(
    messages.filter(({ subject }) => subject !== "flip"),
    ({ incident }) => incident,
  );
  return [...ofIncident].map(([alertId, own]) => {
    const times = own.map(({ at }) => at * MINUTE_MS);
    const attackers = own.flatMap(({ at, attackers: named }) => named.map((one) => ({ ...one, since: at })));
    return {
      alertId,
      ruleId: own[0]?.rules[0] ?? "",
      openedAt: Math.min(...times),
      lastActiveAt: Math.max(...times),
      mark: null,
      attackers: attackers.filter(
        ({ kind, key }, index) =>
          attackers.findIndex((one) => one.kind === kind && one.key === key) === index,
      ),
      verdicts: own.flatMap(({ at, verdict }) =>
        verdict === undefined ? [] : [{ ...verdict, judgedAt: at * MINUTE_MS }],
      ),
    };
  });
}

/** Every event passes. */
const ALL = { columns: ["ip" as const], tests: [{ kind: "anything" as const }] };

const KINDS = {
  rules_per_ip: "ip",
  ips_per_ja4: "ja4",
  ips_per_url: "path",
  ips_per_ua: "ua",
  ips_per_asn: "asn",
} as const;

const SAYS: Partial<Record<string, RequestFinding["says"]>> = {
  attack: "hostile",
  scanner: "hostile",
  misfire: "visitor",
  crawler: "machine",
  "broken-client": "machine",
};

/** Returns what the incidents say, as `readRequestFindings` reads it of the database. */
function toFindings(incidents: readonly BlockIncident[]): RequestFinding[] {
  return incidents.flatMap(({ attackers, ruleId, openedAt, lastActiveAt: to, verdicts }) => {
    const says = SAYS[verdicts.at(-1)?.said ?? ""];
    if (says === undefined) return [];
    const find = (kind: RequestFinding["kind"], key: string, at: number): RequestFinding => ({
      kind,
      key,
      says,
      to,
      from: at - HOUR_MS / 4,
    });
    return [
      ...attackers.map(({ kind, key, since }) => find(KINDS[kind], key, since * MINUTE_MS)),
      ...(attackers.length === 0 ? [find("rule", ruleId, openedAt)] : []),
    ];
  });
}

/** Counts the senders of a zone as the service does. */
async function countZone(
  events: readonly { readonly of: RecordedEvent; readonly at: number }[],
  { from, listAt, incidents }: { from: number; listAt: number; incidents: readonly BlockIncident[] },
  { duckdb, folder }: { duckdb: Duckdb; folder: string },
) {
  const uses = createUses();
  const text = (value: string | number | null | undefined) =>
    `"${String(value ?? "").replaceAll('"', '""')}"`;
  const lines = events.map(({ of, at }, index) => {
    const { ruleId, ip, ja4, ua, url, asn, action, request } = of;
    uses.note({ dimension: "asn", value: asn ?? "", user: new Date(at).toISOString().slice(0, 10), at });
    uses.note({ dimension: "ja4", value: ja4 ?? "", user: ip ?? "", at });
    const facts = request === undefined ? "" : packFacts(request);
    const urlPath = (url ?? "").replace(/^https?:\/\/[^/]*/, "").replace(/[?#].*/s, "");
    return [
      at,
      ...[index, "waf", ruleId, ip, ja4, ua, url, asn, action].map(text),
      text(request?.requestId),
      text(urlPath),
      facts,
    ].join(",");
  });
  const file = path.join(folder, "events.csv");
  await writeFile(file, `${lines.join("\n")}\n`);
  const usual = uses.find().filter(({ dimension }) => dimension !== "path");
  const source = { files: [], openRows: { path: file, columns: CLASSIFIED_COLUMNS } };
  const crawlers = CRAWLERS.filter(({ networks }) => networks.length > 0).map(({ agent, networks }) => ({
    agent: agent.source,
    networks,
  }));
  const knowledge = { findings: toFindings(incidents), usual, known: [], crawlers };
  const classified = classifyRequests(
    source,
    { from, to: listAt },
    { ...knowledge, toActionSql: BUILT_IN_ACTIONS.toSql },
    ["ip", "asn", "ja4"],
  );
  const counted = countSenders(classified, {
    end: listAt,
    since: listAt,
    clauses: [ALL],
    shared: listShared(incidents),
  });
  const results = await duckdb.run([...classified.prepare, counted], { maxRows: 300_000 });
  const { counts } = readSenders((results.at(-1) ?? []).map(([row]) => (typeof row === "string" ? row : "")));
  return { counts, countedTo: listAt, usual };
}

/** Requests of the day after the list was made. */
interface Score {
  situations: number;
  hostile: number;
  stopped: number;
  /** What a list of all hostile senders of the day before would have stopped. */
  oracle: number;
  visitors: number;
  hit: number;
  entries: number;
}

async function scoreZone(
  situation: Situation,
  key: string,
  score: Score,
  place: { duckdb: Duckdb; folder: string },
): Promise<string> {
  const { from, listAt, drawn } = draw(situation, key);
  const events = await readLines(drawn);
  const replay = createZoneReplay({ z: DEFAULT_Z, fewAddresses: FEW_ADDRESSES, judge: judgeVerdict });
  const known = drawn.flatMap(({ event: { at } }, index) => {
    const of = events[index];
    return at < listAt && of !== undefined ? [{ of, at }] : [];
  });
  for (const { of, at } of known) replay.take(of, Math.floor(at / MINUTE_MS));
  const incidents = toIncidents(replay.finish());
  const senders = await countZone(known, { from, listAt, incidents }, place);
  const { entries, leftOut } = makeBlockList(incidents, senders, listAt);
  const until = new Map(entries.map((entry) => [`${entry.kind} ${entry.value}`, entry.until]));
  const keysOf = ({ ip, asn, ja4 }: RecordedEvent) => {
    const address = toSourceAddress(ip ?? "");
    return [`${address.includes("/") ? "network" : "address"} ${address}`, `asn ${asn}`, `ja4 ${ja4}`];
  };
  const attacked = new Set<string>();
  const own = { hostile: 0, stopped: 0, oracle: 0, visitors: 0, hit: 0 };
  const seen = new Set<string>();
  for (const [index, { event, isHostile: isAttack }] of drawn.entries()) {
    const of = events[index];
    if (of === undefined) continue;
    if (event.at < listAt) {
      if (isAttack) for (const name of keysOf(of).slice(0, 1)) attacked.add(name);
      continue;
    }
    if (seen.has(event.requestId)) continue;
    seen.add(event.requestId);
    const isStopped = keysOf(of).some((name) => (until.get(name) ?? 0) > event.at);
    if (isAttack && event.of !== null) {
      own.hostile += 1;
      own.stopped += Number(isStopped);
      own.oracle += Number(keysOf(of).some((name) => attacked.has(name)));
    } else if (!isAttack && event.request.client.isBrowser) {
      own.visitors += 1;
      own.hit += Number(isStopped);
    }
  }
  score.situations += 1;
  score.entries += entries.length;
  for (const name of Object.keys(own) as (keyof typeof own)[]) score[name] += own[name];
  return `${situation.name.padEnd(28)} ${own.stopped} of ${own.hostile} (oracle ${own.oracle}), visitors ${own.hit} of ${own.visitors}, ${entries.length} entries ${JSON.stringify(leftOut)}`;
}

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: "7" },
    repeats: { type: "string", default: "1" },
    verbose: { type: "boolean", default: false },
  },
});
const folder = await mkdtemp(path.join(tmpdir(), "longwatch-block-list-"));
const duckdb = createDuckdb({
  folders: [folder],
  spillInto: folder,
  memoryBytes: 256_000_000,
  residentBytes: 1_000_000_000,
});
const rows = [
  ["half", "situations", "entries", "hostile stopped", "of the oracle's", "visitors hit", "bars"],
];
try {
  for (const half of HALVES) {
    const score = { situations: 0, entries: 0, hostile: 0, stopped: 0, oracle: 0, visitors: 0, hit: 0 };
    for (let repeat = 0; repeat < Number(values.repeats); repeat += 1)
      for (const situation of situationsOf(half)) {
        const said = await scoreZone(situation, `block/${values.seed}/${repeat}/${situation.name}`, score, {
          duckdb,
          folder,
        });
        if (values.verbose) process.stderr.write(`${said}\n`);
      }
    const share = score.stopped / score.hostile;
    const hitOfMany = Math.round((score.hit * 10_000) / score.visitors);
    rows.push([
      half,
      String(score.situations),
      String(score.entries),
      `${score.stopped} of ${score.hostile} (${share.toFixed(2)})`,
      (score.stopped / score.oracle).toFixed(2),
      `${score.hit} of ${score.visitors}`,
      share >= LEAST_STOPPED && hitOfMany <= MOST_HIT ? "met" : "MISSED",
    ]);
  }
  process.stdout.write(`${alignColumns(rows).join("\n")}\n`);
} finally {
  await duckdb.close();
  await rm(folder, { recursive: true, force: true });
}
