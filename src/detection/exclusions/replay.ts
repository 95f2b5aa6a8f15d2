import { z } from "zod";
import {
  type Counted,
  REPLAYED_COLUMNS,
  type ReplayedSample,
  readReplayed,
  replayExclusion,
} from "#archive/rules/sql/replay-exclusion.ts";
import { type RecordDeps, readRecords } from "#archive/search/read-records.ts";
import { readUnion } from "#archive/search/read-union.ts";
import {
  ORIGIN_PATTERN,
  toUrlPattern,
  toWrittenPath,
  toWrittenPattern,
} from "#detection/rules/exclusion/write-forms.ts";
import { cutSample } from "#detection/rules/verdict/word-verdict.ts";
import type { ExclusionClause } from "#model/advice.ts";
import { type Span, toDay } from "#model/horizon.ts";
import { holdsIdiom, type RequestDetails, readRequest } from "#model/request-facts.ts";

const MOST_SAMPLES = 5;

/** Events that one form of an exclusion would have silenced. */
export const Silenced = z.object({
  events: z.number().int(),
  addresses: z.number().int(),
  days: z.number().int().describe("UTC days with such events."),
  suspicious: z
    .number()
    .int()
    .describe("Events that look like attacks. They rank samples; they prove nothing."),
});
type Silenced = z.output<typeof Silenced>;

type Read = ReplayedSample &
  Pick<RequestDetails, "method" | "parameter" | "matched"> & {
    readonly isSuspicious: boolean;
    /** Null if the record was not read. */
    readonly isMatching: boolean | null;
  };

const NOTHING: Silenced = { events: 0, addresses: 0, days: 0, suspicious: 0 };
const UNREAD = { method: "", parameter: null, matched: null };

/**
 * Replays an exclusion over the events that are kept, in Postgres and in files. Method and parameter are in records only, so
 * they are read of a sample. An event looks suspicious if it holds an idiom of attacks or if its address triggered three or
 * more other rules on the same day. Events whose record is not kept are taken to be like the others.
 */
export async function replayClause(
  deps: RecordDeps,
  zoneId: number,
  { clause, ...span }: Span & { readonly clause: ExclusionClause },
  signal: AbortSignal,
) {
  const pattern = toUrlPattern(clause.template ?? "");
  const path = toWrittenPath(clause.template);
  const written = path === null ? null : { pattern: toWrittenPattern(path), origin: ORIGIN_PATTERN };
  const addressesOf = {
    ruleIds: clause.ruleIds,
    pattern: clause.template === null ? null : [pattern, written?.pattern ?? pattern].join("|"),
  };
  const { rows, days } = await readUnion(
    deps,
    [zoneId],
    { ...span, clauses: [] },
    { columns: REPLAYED_COLUMNS, addressesOf, signal },
    (source) => replayExclusion(source, span, { ...clause, pattern, written }),
  );
  const { forms, samples, together, origins, feature } = readReplayed(rows);
  const own = samples.filter((sample) => sample.of === "clause");
  const placed = own.map(({ file, row, logId, at }) => {
    const archived = file === null ? null : { records: days[file]?.records ?? null, row };
    return { occurredAt: at, logId, archived };
  });
  const records = await readRecords(deps, zoneId, placed, signal);
  const read = samples.map((sample): Read => {
    const record = records[own.indexOf(sample)];
    const facts = record === undefined ? UNREAD : readRequest(record, { ...sample, ua: "", ruleId: "" }, "");
    const isSuspicious = sample.isDirty || holdsIdiom({ url: sample.url, matched: facts.matched });
    return {
      ...sample,
      ...facts,
      isSuspicious,
      isMatching: record === undefined ? null : matches(clause, facts),
    };
  });
  const silencedBy = (form: Read["of"]): Silenced => {
    const counted = forms.find((one) => one.form === form);
    const sampled = read.filter(({ of }) => of === form);
    return counted === undefined ? NOTHING : estimate(counted, sampled);
  };
  const [silenced, rule, onPath] = [silencedBy("clause"), silencedBy("rule"), silencedBy("path")];
  const least = silenced.suspicious;
  return {
    silenced,
    ruleInZone: { ...rule, suspicious: Math.max(rule.suspicious, least) },
    everythingOnPath:
      written === null || origins.length === 0
        ? null
        : { ...onPath, suspicious: Math.max(onPath.suspicious, least) },
    // A method and a parameter are known of events with a record only.
    isExact:
      samples.length === forms.reduce((sum, { events }) => sum + events, 0) &&
      ((clause.method === null && clause.parameter === null) || !records.includes(undefined)),
    records: records.filter((record) => record !== undefined).length,
    together: together.map(({ other, share }) => ({ ruleId: other, share })),
    samples: read
      .filter((one) => one.of === "clause" && one.isMatching !== false)
      .sort((one, other) => Number(other.isSuspicious) - Number(one.isSuspicious))
      .slice(0, MOST_SAMPLES)
      .map(({ isSuspicious, ...one }) => ({ ...cutSample(one), isSuspicious })),
    origins,
    feature,
  };
}

/** A row of a search names no method: such a record counts as one with the clause's method. */
function matches(
  { method, parameter }: ExclusionClause,
  facts: Pick<RequestDetails, "method" | "parameter">,
): boolean {
  const isMethod = method === null || facts.method === "" || facts.method === method;
  return isMethod && (parameter === null || facts.parameter === parameter);
}

/** Scales what was sampled: of addresses that look like attackers, and of others. */
function estimate({ events, dirty, addresses, days }: Counted, sampled: readonly Read[]): Silenced {
  const known = sampled.filter(({ isMatching }) => isMatching !== null);
  const judged = known.length === 0 ? sampled : known;
  const scale = (total: number, isDirty: boolean, is: (one: Read) => boolean) => {
    const part = judged.filter((one) => one.isDirty === isDirty);
    return part.length === 0 ? total : Math.round((total * part.filter(is).length) / part.length);
  };
  const isSilenced = ({ isMatching }: Read) => isMatching !== false;
  const bad = scale(dirty, true, isSilenced);
  const isWhole = judged.length === events;
  const silenced = judged.filter(isSilenced);
  return {
    events: bad + scale(events - dirty, false, isSilenced),
    addresses: isWhole ? new Set(silenced.map(({ ip }) => ip)).size : addresses,
    days: isWhole ? new Set(silenced.map(({ at }) => toDay(at))).size : days,
    suspicious: bad + scale(events - dirty, false, (one) => isSilenced(one) && one.isSuspicious),
  };
}
