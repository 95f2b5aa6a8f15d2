/** Follows plans for a week of drawn zones: what each plan said, what happened, and which alerts were raised. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import {
  CLASSIFIED_COLUMNS,
  type Classified,
  classifyRequests,
} from "#archive/rules/sql/classify-requests.ts";
import { countRequests, readCounts, watchRules } from "#archive/rules/sql/count-requests.ts";
import type { Piece } from "#archive/rules/sql/to-condition.ts";
import { createDuckdb, type Duckdb } from "#db/duckdb/duckdb.ts";
import { refuseRule } from "#detection/rules/exclusion/propose-exclusion.ts";
import { planReview } from "#detection/rules/review/plan-review.ts";
import {
  MOST_WATCHED_MS,
  type RuleSeen,
  watchedFrom,
  watchPlan,
} from "#detection/rules/review/watch-plan.ts";
import { CRAWLERS } from "#detection/rules/verdict/crawlers.ts";
import { createUses } from "#detection/rules/verdict/evidence.ts";
import { templatesOf } from "#detection/rules/verdict/path-template.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { BUILT_IN_ACTIONS } from "#model/action-class.ts";
import { countChoice, estimateVisitors, findDrift, type PlanWatch } from "#model/review.ts";
import { HALVES } from "../message/situations/situation.ts";
import { alignColumns } from "../tables.ts";
import { type DrawnEvent, drawZones, isBlocked } from "./draw-zone.ts";

const WEEK_MS = 7 * DAY_MS;
const LOOK_EVERY_MS = 3 * HOUR_MS;

interface Tools {
  readonly duckdb: Duckdb;
  readonly folder: string;
}

/** Returns the lines of a table: a zone each. The plan is saved a week before the zone's end, and followed from then on. */
export async function followPlans({
  seed,
  zones,
  onProgress,
}: {
  seed: number;
  zones: number;
  onProgress: (what: string) => void;
}): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), "longwatch-follow-"));
  const sizes = { memoryBytes: 256_000_000, residentBytes: 1_000_000_000 };
  const duckdb = createDuckdb({ folders: [folder], spillInto: folder, ...sizes });
  const rows: string[][] = [];
  try {
    for (const half of HALVES)
      for (const zone of drawZones(half, seed, zones)) {
        onProgress(zone.name);
        rows.push(await followZone(zone, { duckdb, folder }));
      }
  } finally {
    await duckdb.close();
    await rm(folder, { recursive: true, force: true });
  }
  const heads = [
    "zone",
    "block",
    "hostile: said",
    "was",
    "visitors: said",
    "was",
    "drift",
    "alerts: visits (requests of visitors by truth)",
  ];
  return `${alignColumns([heads, ...rows]).join("\n")}\n`;
}

async function followZone(
  zone: { name: string; from: number; to: number; events: readonly DrawnEvent[] },
  tools: Tools,
): Promise<string[]> {
  const savedAt = zone.to - WEEK_MS;
  const usual = findUsual(zone.events.filter(({ at }) => at < savedAt));
  const ask = (
    events: readonly DrawnEvent[],
    span: { from: number; to: number },
    write: (of: Classified) => Piece,
  ) => askZone(events, { span, usual, write }, tools);
  const judge = { from: (savedAt - WEEK_MS) / DAY_MS, to: savedAt / DAY_MS };
  const lines = await ask(zone.events, { from: zone.from, to: savedAt }, (of) =>
    countRequests(of, savedAt - WEEK_MS),
  );
  const counts = readCounts(lines, templatesOf);
  const { table, toTemplate } = counts;
  const planned = planReview(counts, { from: zone.from / DAY_MS, to: judge.from });
  const { choice } = planned;
  const isStopped = (event: DrawnEvent) => isBlocked(event, choice, toTemplate);
  const log = planned.rules.flatMap(({ rule, plan }) =>
    plan === "unplanned" || choice.block.includes(rule) ? [] : [rule],
  );
  const days = { from: "", to: "", days: 7 };
  const promised = estimateVisitors(table, choice, judge);
  const plan = { ...choice, log, learned: days, judged: days, promised };
  const week = zone.events
    .filter(({ at }) => at >= savedAt - WEEK_MS)
    // Where a rule is excluded, it makes no event.
    .filter((event) => event.at < savedAt || !choice.block.includes(event.ruleId) || isStopped(event))
    .map((event) =>
      event.at < savedAt ? event : { ...event, action: isStopped(event) ? "Blocked" : "Logged" },
    );
  let before: PlanWatch | null = null;
  const alerts = new Map<string, string>();
  for (let now = savedAt + LOOK_EVERY_MS; now <= zone.to; now += LOOK_EVERY_MS) {
    const from = watchedFrom(before, now);
    const look = async (spanFrom: number) =>
      (
        await ask(week, { from: spanFrom, to: now }, (of) =>
          watchRules(of, { rules: [...choice.block, ...log], from }),
        )
      ).map((row) => JSON.parse(row) as RuleSeen);
    const watched = { plan, savedAt, before };
    let next = watchPlan(watched, await look(from), { now, isNewest: true });
    if (next.hits.some(({ endedAt }) => endedAt === null))
      next = watchPlan(watched, await look(now - MOST_WATCHED_MS), { now, isNewest: true });
    before = next;
    for (const { rule, since, visits } of next.hits) alerts.set(`${rule} ${since}`, `${rule}: ${visits}`);
  }
  const stopped = week.filter((event) => event.at >= savedAt && isStopped(event));
  const requests = (events: readonly DrawnEvent[], truth: DrawnEvent["truth"]) =>
    new Set(events.filter((one) => one.truth === truth).map(({ requestId, logId }) => requestId ?? logId))
      .size;
  const plannable = zone.events.filter(
    ({ at, ruleId, feature }) => at >= savedAt && refuseRule(ruleId, feature) === null,
  );
  const share = (part: number, all: number) => (all === 0 ? "-" : `${((100 * part) / all).toFixed(1)} %`);
  const { classes } = countChoice(table, choice, judge);
  const sayAlert = ([key, text]: [string, string]) => {
    const own = stopped.filter(({ ruleId }) => ruleId === key.split(" ")[0]);
    const visitors = own.filter(({ truth }) => truth === "visitor");
    const names = new Set(visitors.map(({ situation }) => situation || "everyday"));
    return `${text} (${requests(own, "visitor")} ${[...names].join(" ")})`;
  };
  return [
    zone.name,
    String(choice.block.length),
    share(classes.hostile.stops, classes.hostile.all),
    share(requests(stopped, "hostile"), requests(plannable, "hostile")),
    String(promised.reduce((sum, { visitors }) => sum + visitors, 0)),
    String(requests(stopped, "visitor")),
    before?.followedSince === null ? "not followed" : String(findDrift(choice, before).length),
    [...alerts].map(sayAlert).join("; ") || "none",
  ];
}

function findUsual(events: readonly DrawnEvent[]) {
  const uses = createUses();
  for (const { at, asn, ja4, ip } of events) {
    uses.note({ dimension: "asn", value: asn, user: new Date(at).toISOString().slice(0, 10), at });
    uses.note({ dimension: "ja4", value: ja4, user: ip, at });
  }
  return uses.find();
}

/** Classifies the requests of a span as the service does, and returns the rows of a statement over them. */
async function askZone(
  events: readonly DrawnEvent[],
  {
    span,
    usual,
    write,
  }: {
    span: { from: number; to: number };
    usual: ReturnType<typeof findUsual>;
    write: (of: Classified) => Piece;
  },
  { duckdb, folder }: Tools,
): Promise<string[]> {
  const file = path.join(folder, "followed.csv");
  const lines = events
    .filter(({ at }) => at >= span.from && at < span.to)
    .map((event) => {
      const { at, logId: log_id, ruleId: rule_id, requestId, facts, ...texts } = event;
      const cells: Record<string, unknown> = { ...texts, log_id, rule_id, request_id: requestId ?? "" };
      return CLASSIFIED_COLUMNS.map((column) => {
        if (column === "facts") return String(facts ?? "");
        if (column === "occurred_at") return String(at);
        const text = cells[column];
        return `"${(typeof text === "string" ? text : "").replaceAll('"', '""')}"`;
      }).join(",");
    });
  if (lines.length === 0) return [];
  await writeFile(file, `${lines.join("\n")}\n`);
  const source = { files: [], openRows: { path: file, columns: CLASSIFIED_COLUMNS } };
  const crawlers = CRAWLERS.filter(({ networks }) => networks.length > 0).map(({ agent, networks }) => ({
    agent: agent.source,
    networks,
  }));
  const knowledge = { findings: [], usual, known: [], crawlers, toActionSql: BUILT_IN_ACTIONS.toSql };
  const classified = classifyRequests(source, span, knowledge);
  const results = await duckdb.run([...classified.prepare, write(classified)], { maxRows: 100_000 });
  return (results.at(-1) ?? []).map(([text]) => (typeof text === "string" ? text : ""));
}
