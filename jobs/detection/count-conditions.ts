/** Counts the events of a zone that custom conditions match, minute by minute. */
import { hash } from "node:crypto";
import {
  clausesOf,
  createMatcher,
  type EventTexts,
  textsOf,
} from "#archive/rules/query/custom-conditions.ts";
import type { Queryable } from "#db/client.ts";
import { type CountedMinute, readMinutes, replaceMinutes } from "#db/detection/custom-conditions.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { inTurns } from "#lib/waiting.ts";
import { type CustomCondition, distinctColumn, MOST_DISTINCT } from "#model/custom-condition.ts";
import type { SearchColumn } from "#model/fields.ts";
import { digest } from "#model/fingerprint.ts";
import type { SearchClause } from "#model/search-condition.ts";

/** Returns the name of what is counted for a condition: conditions that differ in the limit only share their counts, but an absence has its own. */
export function countsOf({ filters, query, distinct, moreThan }: CustomCondition): string {
  return digest([query, distinct, ...filters, ...(moreThan === null ? [null] : [])]);
}

/** Minutes that are read at once. */
const MINUTES_PER_RUN = 10;

/** Counts of one search, which conditions with other limits share. */
export interface Counter {
  readonly counts: string;
  readonly clauses: readonly SearchClause[];
  readonly distinct: SearchColumn | null;
  /** True: what came before the first window is counted, too, because the absence may have begun there. */
  readonly isAbsence: boolean;
  /** The longest window of its conditions. */
  readonly withinMinutes: number;
}

export interface ZonePlan {
  readonly conditions: readonly CustomCondition[];
  readonly counters: readonly Counter[];
  readonly match: (event: EventTexts) => Counter[];
}

/** Returns the conditions of the file, and those that people added under other names. */
export function mergeConditions(
  fromFile: readonly CustomCondition[],
  added: readonly { readonly condition: CustomCondition }[],
): CustomCondition[] {
  const names = new Set(fromFile.map(({ name }) => name));
  return [...fromFile, ...added.flatMap(({ condition }) => (names.has(condition.name) ? [] : [condition]))];
}

/** Returns what has to be counted for the conditions of a zone. */
export function toPlan(conditions: readonly CustomCondition[]): ZonePlan {
  const byCounts = Map.groupBy(conditions, countsOf);
  const counters = Array.from(byCounts, ([counts, [first, ...others]]): Counter[] => {
    if (first === undefined) return [];
    const distinct = first.distinct === null ? null : distinctColumn(first.distinct);
    const withinMinutes = Math.max(...[first, ...others].map((one) => one.withinMinutes));
    return [
      { counts, clauses: clausesOf(first), distinct, isAbsence: first.moreThan === null, withinMinutes },
    ];
  }).flat();
  const match = createMatcher(counters.map((key) => ({ key, clauses: key.clauses })));
  return { conditions, counters, match };
}

export interface ZoneTurn {
  readonly zoneId: number;
  readonly plan: ZonePlan;
  readonly clock: () => number;
}

export function startOfMinute(atMs: number): number {
  return atMs - (atMs % MINUTE_MS);
}

/** Returns the starts of minutes, epoch ms, in runs without a gap that are read at once. */
export function toRuns(minutes: readonly number[]): number[][] {
  const runs: number[][] = [];
  for (const minute of minutes.toSorted((a, b) => a - b)) {
    const last = runs.at(-1);
    const isNext = last?.at(-1) === minute - MINUTE_MS && last.length < MINUTES_PER_RUN;
    if (isNext) last.push(minute);
    else runs.push([minute]);
  }
  return runs;
}

/** Counts the minutes of a run anew. */
export async function countRun(
  tx: Queryable,
  { zoneId, plan }: ZoneTurn,
  run: readonly number[],
): Promise<void> {
  const found = new Map(run.map((minute) => [minute, new Map() as Found]));
  const [fromMs = 0] = run;
  for await (const part of readMinutes(tx, zoneId, { fromMs, toMs: fromMs + run.length * MINUTE_MS }))
    for await (const some of inTurns(part))
      for (const { logId, at, ...event } of some) {
        const texts = textsOf({ ...event, zone: String(zoneId), log_id: logId, request_id: "" });
        countEvent(plan, texts, found.get(startOfMinute(at)) ?? new Map());
      }
  const counted = Array.from(found, ([minuteMs, counters]) =>
    Array.from(counters, ([{ counts, distinct }, { count, values }]): CountedMinute => {
      return { counts, minuteMs, count, values: distinct === null ? null : [...values] };
    }),
  );
  await replaceMinutes(tx, zoneId, run, counted.flat());
}

/** The count of each counter in one minute. */
type Found = Map<Counter, { count: number; readonly values: Set<number> }>;

function countEvent({ match }: Pick<ZonePlan, "match">, event: EventTexts, found: Found): void {
  for (const counter of match(event)) {
    const one = found.get(counter) ?? { count: 0, values: new Set<number>() };
    found.set(counter, one);
    one.count += 1;
    const value = counter.distinct === null ? "" : event.of(counter.distinct);
    if (value !== "" && one.values.size <= MOST_DISTINCT) one.values.add(hashValue(value));
  }
}

/** A short name, and no secret: `countBySearch` computes the same in SQL. */
function hashValue(text: string): number {
  return hash("md5", text, "buffer").readUIntBE(0, 6);
}
