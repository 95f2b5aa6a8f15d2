/** The days, lists of rules, reading of classified requests and choice that the operations of a plan share. */

import { z } from "zod";
import { planFilters, planSearch } from "#archive/rules/query/plan-search.ts";
import {
  CLASSIFIED_COLUMNS,
  type Classified,
  classifyRequests,
  type RequestText,
  type SenderKnowledge,
} from "#archive/rules/sql/classify-requests.ts";
import { countRequests, readCounts, type SeenRule } from "#archive/rules/sql/count-requests.ts";
import type { Piece } from "#archive/rules/sql/to-condition.ts";
import { readUnion } from "#archive/search/read-union.ts";
import { priceSearch, type SearchDeps } from "#archive/search/searching.ts";
import { inSearchView } from "#db/archive/search-condition.ts";
import type { Queryable } from "#db/client.ts";
import { listKnownSources, toKnownSource } from "#db/detection/exclusions.ts";
import { readRequestFindings, readUsualSenders } from "#db/detection/request-findings.ts";
import { refuseRule } from "#detection/rules/exclusion/propose-exclusion.ts";
import { type DaySpan, planReview } from "#detection/rules/review/plan-review.ts";
import { CRAWLERS } from "#detection/rules/verdict/crawlers.ts";
import { templateOf, templatesOf } from "#detection/rules/verdict/path-template.ts";
import { DAY_MS } from "#lib/units.ts";
import type { ActionStates } from "#model/action-class.ts";
import { ARCHIVE_FORMAT } from "#model/archive-layout.ts";
import { type Span, toDay } from "#model/horizon.ts";
import type { KnownSource } from "#model/known-source.ts";
import { countChoice, type ReviewChoice } from "#model/review.ts";
import type { QueryContext } from "#operations/operation.ts";
import { Refusal } from "#operations/refusal.ts";
import { nameKnown, requireZone } from "#operations/require-known.ts";

interface ReviewInput {
  readonly zoneId: number;
  readonly span: Span;
  /** The known sources of the configuration file. */
  readonly knownSources: readonly KnownSource[];
  readonly actions: ActionStates;
}

interface Wanted {
  /** Texts of requests that the statement reads. Each costs memory. Default: none. */
  readonly texts?: readonly RequestText[];
  readonly write: (classified: Classified) => Piece;
}

/** The rows of a statement over classified requests. */
interface ReadRequests extends Pick<SenderKnowledge, "usual"> {
  readonly rows: readonly string[];
  /** The days in the span whose files are of an older format and have no facts (`yyyy-mm-dd`): their requests are unknown. */
  readonly olderDays: readonly string[];
}

/** Runs a statement over the requests of a span and returns its first column. */
export async function readRequests(
  deps: SearchDeps,
  input: ReviewInput,
  { texts = [], write }: Wanted,
  signal: AbortSignal,
): Promise<ReadRequests> {
  const { zoneId, span } = input;
  const knowledge = await inSearchView(deps.queries, signal, (tx) => readKnowledge(tx, input));
  const options = { columns: CLASSIFIED_COLUMNS, signal };
  const { rows, days } = await readUnion(deps, [zoneId], { ...span, clauses: [] }, options, (source) => {
    const classified = classifyRequests(source, span, knowledge, texts);
    return [...classified.prepare, write(classified)];
  });
  const older = days.filter(({ events }) => events.format < ARCHIVE_FORMAT);
  return { rows, olderDays: older.map(({ events: { day } }) => day), usual: knowledge.usual };
}

/** The platform may write a network as 64500, AS64500 or AS64500 Example Hosting. */
function toClauses(known: readonly KnownSource[]): SenderKnowledge["known"] {
  return Array.from(
    Map.groupBy(known, ({ kind }) => kind),
    ([field, ofKind]) => {
      const patterns = ofKind.map(({ pattern }) => pattern);
      const numbers = patterns.map((pattern) => pattern.replace(/^AS/i, ""));
      if (field === "asn")
        return {
          field,
          op: "wildcard" as const,
          value: numbers.flatMap((one) => [one, `AS${one}`, `AS${one} *`]),
        };
      return {
        field,
        op: field === "ip" ? ("cidr" as const) : field === "ua" ? ("wildcard" as const) : ("in" as const),
        value: patterns,
      };
    },
  ).flatMap((filter) => planFilters([filter]));
}

async function readKnowledge(
  tx: Queryable,
  { zoneId, span, knownSources, actions }: ReviewInput,
): Promise<SenderKnowledge> {
  const stored = (await listKnownSources(tx)).map(toKnownSource);
  const known = [...knownSources, ...stored].filter(
    ({ zoneIds, untilMs }) => (zoneIds?.includes(zoneId) ?? true) && (untilMs === null || untilMs > span.to),
  );
  return {
    findings: await readRequestFindings(tx, zoneId, span),
    usual: await readUsualSenders(tx, zoneId, span.to),
    known: toClauses(known),
    crawlers: CRAWLERS.filter(({ networks }) => networks.length > 0).map(({ agent, networks }) => ({
      agent: agent.source,
      networks,
    })),
    toActionSql: actions.toSql,
  };
}

/** A plan is made from the days 30 to 8, and its figures are of the last seven. */
const PLANNED_DAYS = 30;
const JUDGED_DAYS = 7;

export const RuleList = z
  .string()
  .max(4_000)
  .transform((text) =>
    text
      .split(",")
      .map((one) => one.trim())
      .filter((one) => one !== ""),
  )
  .meta({ wire: { type: "string" } });

export const ExclusionList = z
  .string()
  .max(8_000)
  .transform((text, context) =>
    text.split(",").flatMap((one) => {
      const [, rule = "", path = ""] = /^\s*([^@]+)@(\/.*)$/s.exec(one) ?? [];
      if (rule === "")
        context.addIssue({ code: "custom", message: "must be rules with paths, such as 942100@/checkout" });
      return rule === "" ? [] : [{ rule, path: templateOf(path) }];
    }),
  )
  .meta({ wire: { type: "string" } });

/** The fields with which a person changes the plan. */
export const OWN_CHOICE = {
  block: RuleList.optional().describe("Rules that block whatever the plan says, separated by commas."),
  log: RuleList.optional().describe("Rules that log whatever the plan says."),
  exclude: ExclusionList.optional().describe("More exclusions: rules with paths, such as 942100@/checkout."),
};

interface OwnChoice {
  readonly block: readonly string[];
  readonly log: readonly string[];
  readonly exclude: ReviewChoice["exclusions"];
}

type ReadRows = (write: (classified: Classified) => Piece) => ReturnType<typeof readRequests>;

/** Returns the days of a plan (numbers since the epoch, `to` exclusive), and a function that reads once it is the caller's turn. */
export async function openReview(asked: QueryContext, zone: number) {
  const { db, caller, now, searching, signal, service } = asked;
  await requireZone(asked, zone);
  const today = Math.floor(now / DAY_MS);
  const [first, split] = [today - PLANNED_DAYS + 1, today - JUDGED_DAYS + 1];
  const days = { learn: { from: first, to: split }, judge: { from: split, to: today + 1 } };
  const span = { from: first * DAY_MS, to: now };
  const { knownSources } = service.alerting().detection;
  const of = { zoneId: zone, span, knownSources, actions: searching.ocsf.actions };
  const plan = planSearch({
    ...span,
    query: "",
    filters: [],
    groupBy: ["ip"],
    buckets: 0,
    page: 0,
    pageSize: 1,
  });
  const price = await priceSearch(db, searching, { zoneIds: [zone], plan });
  const read = <Found>(
    work: (deps: SearchDeps, readRows: ReadRows, stopped: AbortSignal) => Promise<Found>,
  ) =>
    searching.runInPlace({ caller }, { ...price, signal }, (deps, stopped) =>
      work(deps, (write) => readRequests(deps, of, { write }, stopped), stopped),
    );
  return { days, read };
}

/**
 * Returns the plan of a zone with what a person changes of it, and its totals on the days that it is judged by.
 * @throws {Refusal} 422 for a rule that was not seen, or that cannot block by itself
 */
export async function readPlan(asked: QueryContext, zone: number, own: OwnChoice) {
  const { days, read } = await openReview(asked, zone);
  const { rows, olderDays } = await read((_deps, readRows) =>
    readRows((classified) => countRequests(classified, days.judge.from * DAY_MS)),
  );
  const counts = readCounts(rows, templatesOf);
  const { table, seen, toTemplate } = counts;
  const planned = planReview(counts, days.learn);
  const refused = seen.filter(
    ({ rule, feature, isCounted }) => refuseRule(rule, feature) !== null || !isCounted,
  );
  const excluded = own.exclude.map(({ rule }) => rule);
  checkRules("block", own.block, seen, refused);
  checkRules("log", own.log, seen, []);
  checkRules("exclude", excluded, seen, refused);
  const exclude = own.exclude.map(({ rule, path }) => ({ rule, path: toTemplate(path) }));
  const choice = mergeChoice(planned.choice, { ...own, exclude });
  const totals = countChoice(table, choice, days.judge);
  const spanOf = ({ from, to }: DaySpan) => ({ from: toDay(from * DAY_MS), to: toDay((to - 1) * DAY_MS) });
  const learned = { ...spanOf(days.learn), days: planned.learnedDays };
  const judged = { ...spanOf(days.judge), days: totals.days };
  return { days, table, seen, planned, olderDays, choice, totals, learned, judged };
}

/** @throws {Refusal} 422 for a rule that was not seen, or that cannot block by itself */
function checkRules(
  field: string,
  rules: readonly string[],
  seen: readonly SeenRule[],
  refused: readonly SeenRule[],
): void {
  const mistakes = rules.flatMap((rule) => {
    const value = JSON.stringify(rule);
    if (!seen.some((one) => one.rule === rule))
      return [
        {
          field,
          value,
          rule: `must be a rule with events in the last ${PLANNED_DAYS} days (${nameKnown(seen.map((one) => one.rule))})`,
        },
      ];
    const known = refused.find((one) => one.rule === rule);
    return known === undefined
      ? []
      : [
          {
            field,
            value,
            rule: `cannot be planned: ${refuseRule(rule, known.feature) ?? "it is too rare to be counted beside the others"}`,
          },
        ];
  });
  if (mistakes.length > 0) throw new Refusal(422, { slug: "invalid-review", mistakes });
}

function mergeChoice(
  { block: planned, exclusions }: ReviewChoice,
  { block, log, exclude }: OwnChoice,
): ReviewChoice {
  const blocking = [...new Set([...planned, ...block])].filter((rule) => !log.includes(rule));
  // A rule that is named to block has the exclusions of the request only.
  const kept = exclusions.filter(({ rule }) => blocking.includes(rule) && !block.includes(rule));
  return { block: blocking, exclusions: [...kept, ...exclude] };
}
