/** What a plan is worth on drawn months that it was not made from. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { CLASSIFIED_COLUMNS, classifyRequests, REQUEST_KEY } from "#archive/rules/sql/classify-requests.ts";
import { countRequests, readCounts } from "#archive/rules/sql/count-requests.ts";
import { createDuckdb, type Duckdb } from "#db/duckdb/duckdb.ts";
import { refuseRule } from "#detection/rules/exclusion/propose-exclusion.ts";
import { planReview, type RulePlan } from "#detection/rules/review/plan-review.ts";
import { CRAWLERS } from "#detection/rules/verdict/crawlers.ts";
import { createUses } from "#detection/rules/verdict/evidence.ts";
import { templatesOf } from "#detection/rules/verdict/path-template.ts";
import { DAY_MS } from "#lib/units.ts";
import { BUILT_IN_ACTIONS } from "#model/action-class.ts";
import type { ReviewChoice } from "#model/review.ts";
import { judge, type Verdict } from "./measure.ts";
import { HALVES, type Half } from "./message/situations/situation.ts";
import { type DrawnEvent, drawZones, isBlocked, type Truth } from "./review/draw-zone.ts";
import { type TimedPlan, timePlan } from "./review/time-plan.ts";
import { alignColumns } from "./tables.ts";

const JUDGED_DAYS = 7;
/** A misfire that would be seen: visitors of one situation in the judged week. */
const BIG_MISFIRE = 20;

/** Requests of the judged week of all zones of a half. */
export interface ReviewScore {
  readonly half: Half;
  readonly zones: number;
  /** Of each truth: what blocking every rule stops, and what the plan stops. */
  readonly all: Readonly<Record<Truth, number>>;
  readonly plan: Readonly<Record<Truth, number>>;
  readonly zonesWithVisitors: number;
  /** The same without the situations that began in the judged week, which no day before could show. */
  readonly known: { readonly visitors: number; readonly zonesWithVisitors: number };
  /** Hostile requests that the plan lets through by why, and visitors' requests that it stops by what of. */
  readonly causes: Readonly<Record<string, number>>;
  readonly blockedRules: number;
  /** Rules that were planned to block and hit a big misfire. */
  readonly misfiring: number;
  readonly plans: Readonly<Record<string, number>>;
  /** Requests of each truth by the class that they got. */
  readonly classes: Readonly<Record<string, number>>;
}

export interface ReviewBench {
  readonly scores: readonly ReviewScore[];
  readonly timed: TimedPlan;
}

export async function benchReview(options: {
  seed: number;
  zones: number;
  events: number;
  half?: Half;
  isVerbose?: boolean;
  onProgress: (what: string) => void;
}): Promise<ReviewBench> {
  const folder = await mkdtemp(path.join(tmpdir(), "longwatch-review-"));
  const open = () =>
    createDuckdb({
      folders: [folder],
      spillInto: folder,
      memoryBytes: 256_000_000,
      residentBytes: 1_000_000_000,
    });
  const duckdb = open();
  try {
    const scores: ReviewScore[] = [];
    for (const half of options.half === undefined ? HALVES : [options.half])
      scores.push(await scoreHalf(half, { ...options, duckdb, folder }));
    options.onProgress(`${options.events} events in files`);
    return { scores, timed: await timePlan(options.events, folder, duckdb, open) };
  } finally {
    await duckdb.close();
    await rm(folder, { recursive: true, force: true });
  }
}

async function scoreHalf(
  half: Half,
  {
    seed,
    zones,
    duckdb,
    folder,
    isVerbose = false,
    onProgress,
  }: {
    seed: number;
    zones: number;
    duckdb: Duckdb;
    folder: string;
    isVerbose?: boolean;
    onProgress: (what: string) => void;
  },
): Promise<ReviewScore> {
  const none = () => ({ hostile: 0, machine: 0, visitor: 0 });
  const score = {
    half,
    zones,
    all: none(),
    plan: none(),
    zonesWithVisitors: 0,
    known: { visitors: 0, zonesWithVisitors: 0 },
    causes: {} as Record<string, number>,
    blockedRules: 0,
    misfiring: 0,
    plans: {} as Record<string, number>,
    classes: {} as Record<string, number>,
  };
  for (const zone of drawZones(half, seed, zones)) {
    onProgress(`${zone.name}: ${zone.events.length} events`);
    const { choice, rules, classes, toTemplate } = await planZone(zone, { duckdb, folder });
    for (const { plan } of rules) score.plans[plan] = (score.plans[plan] ?? 0) + 1;
    for (const [name, count] of Object.entries(classes))
      score.classes[name] = (score.classes[name] ?? 0) + count;
    const count = (cause: string) => {
      score.causes[cause] = (score.causes[cause] ?? 0) + 1;
    };
    const from = zone.to - JUDGED_DAYS * DAY_MS;
    const earlier = new Set(zone.events.flatMap(({ at, situation }) => (at < from ? [situation] : [])));
    const requests = [
      ...Map.groupBy(
        zone.events.filter(({ at }) => at >= from),
        ({ requestId, logId }) => requestId ?? logId,
      ).values(),
    ];
    const hitBy = new Map<string, Map<string, number>>();
    const visitors = { all: 0, known: 0 };
    for (const events of requests) {
      const [first] = events;
      // What no rule of the WAF matches, no plan can stop.
      const counted = events.filter(({ ruleId, feature }) => refuseRule(ruleId, feature) === null);
      if (first === undefined || counted.length === 0) continue;
      score.all[first.truth] += 1;
      const blocking = counted.filter((event) => isBlocked(event, choice, toTemplate));
      if (blocking.length === 0) {
        if (first.truth === "hostile") count(`let through: ${findCause(counted, rules)}`);
        continue;
      }
      score.plan[first.truth] += 1;
      if (first.truth !== "visitor") continue;
      const isKnown = first.situation === "" || earlier.has(first.situation);
      visitors.all += 1;
      visitors.known += isKnown ? 1 : 0;
      count(`visitors stopped: ${isKnown ? first.situation || "everyday" : "began in the judged week"}`);
      for (const { ruleId } of blocking) {
        const own = hitBy.get(ruleId) ?? new Map<string, number>();
        hitBy.set(ruleId, own.set(first.situation, (own.get(first.situation) ?? 0) + 1));
      }
    }
    if (isVerbose) report({ ...zone, classes, toTemplate }, rules, requests, choice, hitBy);
    if (visitors.all > 0) score.zonesWithVisitors += 1;
    if (visitors.known > 0) score.known.zonesWithVisitors += 1;
    score.known.visitors += visitors.known;
    score.blockedRules += choice.block.length;
    score.misfiring += [...hitBy.values()].filter((own) => Math.max(...own.values()) >= BIG_MISFIRE).length;
  }
  return score;
}

/** Returns why no rule of a request blocks: that of the rule which is the nearest to blocking. */
function findCause(events: readonly DrawnEvent[], rules: readonly RulePlan[]): string {
  const own = rules.filter(({ rule }) => events.some(({ ruleId }) => ruleId === rule));
  const causes = own.map(({ plan, exclusions, learned: { visitor, hostile, unknown, machine } }) => {
    if (exclusions.length > 0) return "1 on an excluded path";
    if (plan === "undecided") return "2 a rule that is undecided";
    if (plan === "unplanned") return "7 no rule that can be planned";
    if (visitor === 0) return unknown >= machine ? "3 unknown senders match it" : "4 machines match it";
    return visitor <= hostile / 10 ? "5 few visitors match it" : "6 visitors match it";
  });
  return causes.sort()[0] ?? "7 no rule that can be planned";
}

function report(
  zone: { name: string; classes: unknown; toTemplate: (path: string) => string },
  rules: readonly RulePlan[],
  requests: readonly (readonly DrawnEvent[])[],
  choice: ReviewChoice,
  hitBy: ReadonlyMap<string, ReadonlyMap<string, number>>,
): void {
  process.stdout.write(`\n${zone.name} ${JSON.stringify(zone.classes)}\n`);
  for (const { rule, plan, learned, exclusions, why } of rules) {
    const judged = { hostile: 0, machine: 0, visitor: 0 };
    for (const events of requests)
      if (events.some(({ ruleId }) => ruleId === rule)) judged[events[0]?.truth ?? "visitor"] += 1;
    process.stdout.write(
      `  ${rule.padEnd(8)} ${plan.padEnd(22)} learned h ${learned.hostile} m ${learned.machine} v ${learned.visitor} u ${learned.unknown}  truth h ${judged.hostile} m ${judged.machine} v ${judged.visitor} ${exclusions.map(({ path }) => path).join(" ")} ${why} ${JSON.stringify([...(hitBy.get(rule) ?? [])])}\n`,
    );
  }
  const passing = requests.filter(
    (events) =>
      events[0]?.truth === "hostile" && !events.some((event) => isBlocked(event, choice, zone.toTemplate)),
  );
  const by = Map.groupBy(
    passing,
    (events) =>
      `${events[0]?.situation} ${[...new Set(events.map(({ ruleId }) => ruleId))].sort().join("+")}`,
  );
  for (const [name, of] of [...by].sort((a, b) => b[1].length - a[1].length).slice(0, 6))
    process.stdout.write(`    passes ${of.length} ${name}\n`);
}

/** Plans a zone as the service does, from its events alone: no incident was judged, and nobody has marked anything. */
async function planZone(
  zone: { from: number; to: number; events: readonly DrawnEvent[] },
  { duckdb, folder }: { duckdb: Duckdb; folder: string },
) {
  const file = path.join(folder, "events.csv");
  const lines = zone.events.map((event) => {
    const cells = {
      ...event,
      occurred_at: event.at,
      log_id: event.logId,
      rule_id: event.ruleId,
      request_id: event.requestId ?? "",
    } as unknown as Record<string, unknown>;
    return CLASSIFIED_COLUMNS.map((column) =>
      column === "facts"
        ? (event.facts ?? "")
        : column === "occurred_at"
          ? event.at
          : `"${toText(cells[column]).replaceAll('"', '""')}"`,
    ).join(",");
  });
  await writeFile(file, `${lines.join("\n")}\n`);
  const uses = createUses();
  const days = new Set<string>();
  for (const { at, asn, ja4, ip } of zone.events) {
    const day = new Date(at).toISOString().slice(0, 10);
    days.add(day);
    uses.note({ dimension: "asn", value: asn, user: day, at });
    uses.note({ dimension: "ja4", value: ja4, user: ip, at });
  }
  const source = { files: [], openRows: { path: file, columns: CLASSIFIED_COLUMNS } };
  const classified = classifyRequests(source, zone, {
    findings: [],
    usual: uses.find(),
    known: [],
    crawlers: CRAWLERS.filter(({ networks }) => networks.length > 0).map(({ agent, networks }) => ({
      agent: agent.source,
      networks,
    })),
    toActionSql: BUILT_IN_ACTIONS.toSql,
  });
  const split = zone.to - JUDGED_DAYS * DAY_MS;
  const results = await duckdb.run([...classified.prepare, countRequests(classified, split)], {
    maxRows: 100_000,
  });
  const counts = readCounts(
    (results.at(-1) ?? []).map(([text]) => toText(text)),
    templatesOf,
  );
  const [first, end] = [Math.floor(zone.from / DAY_MS), Math.floor(split / DAY_MS)];
  const planned = planReview(counts, { from: first, to: end });
  return {
    ...planned,
    toTemplate: counts.toTemplate,
    classes: await compareClasses(zone, classified, duckdb),
  };
}

/** Counts requests by truth and class. */
async function compareClasses(
  zone: { events: readonly DrawnEvent[] },
  classified: ReturnType<typeof classifyRequests>,
  duckdb: Duckdb,
) {
  const truths = new Map(zone.events.map(({ logId, truth }) => [logId, truth]));
  const results = await duckdb.run(
    [
      ...classified.prepare,
      {
        sql: `select any_value(log_id), any_value(class) from (${classified.requests.sql}) join (${classified.events.sql}) on ${REQUEST_KEY} = request group by request`,
        values: [...classified.requests.values, ...classified.events.values],
      },
    ],
    { maxRows: 2_000_000 },
  );
  const counts: Record<string, number> = {};
  for (const [id, name] of results.at(-1) ?? []) {
    const key = `${truths.get(toText(id))} ${toText(name)}`;
    counts[key] = (counts[key] ?? 0) + 1;
  }
  return counts;
}

/** The bars. A misfire that begins in the judged week cannot be known: the bars count it, and the report shows the figures without it. */
export function judgeReview({ scores, timed }: ReviewBench): Verdict[] {
  const ofHalves = scores.flatMap(
    ({ half, all, plan, zones, zonesWithVisitors, blockedRules, misfiring }) => [
      judge(`${half}: hostile requests stopped, of all`, { kind: "at-least", value: 0.9, unit: "x" }, [
        plan.hostile / all.hostile,
      ]),
      judge(`${half}: visitors' requests stopped, of all`, { kind: "at-most", value: 0.005, unit: "x" }, [
        plan.visitor / all.visitor,
      ]),
      judge(`${half}: zones without such a visitor`, { kind: "at-least", value: 0.9, unit: "x" }, [
        1 - zonesWithVisitors / zones,
      ]),
      judge(`${half}: rules to block with a large misfire`, { kind: "at-most", value: 0.01, unit: "x" }, [
        misfiring / blockedRules,
      ]),
    ],
  );
  return [
    ...ofHalves,
    judge(`plan of ${timed.events} events, cold`, { kind: "at-most", value: 3_000, unit: "ms" }, [
      timed.planMs,
    ]),
    judge("what-if", { kind: "at-most", value: 100, unit: "ms" }, [timed.whatIfMs]),
  ];
}

export function reportReview({ scores, timed }: ReviewBench, verdicts: readonly Verdict[]): string {
  const lines = verdicts.map(({ name, limit, spread, isMet }) => [
    name,
    String(Math.round((spread?.median ?? 0) * 10_000) / 10_000),
    `${limit.kind === "at-least" ? "at least" : "at most"} ${limit.value}`,
    isMet === true ? "met" : "MISSED",
  ]);
  const details = scores.flatMap(({ half, zones, all, known, classes, causes }) => [
    `${half}, without misfires that began in the judged week: ${known.visitors} of ${all.visitor} visitors' requests, ${zones - known.zonesWithVisitors} of ${zones} zones without one`,
    ...Object.entries(causes)
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([cause, count]) => `${half}, ${cause}: ${count}`),
    `${half}, truth and class: ${JSON.stringify(classes)}`,
  ]);
  const cost = `CPU of the plan ${Math.round(timed.planCpuMs)} ms; ${timed.rows} counts, ${timed.bytes} bytes`;
  return `${[...alignColumns(lines), ...details, cost].join("\n")}\n`;
}

const toText = (value: unknown) => (typeof value === "string" ? value : "");
