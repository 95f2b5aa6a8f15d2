/** Questions that are asked of one zone at a time, and how complete their answer is. */
import { keepPreviousData, type UseQueryResult, useQuery } from "@tanstack/react-query";
import { useCallback } from "react";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import type { HourStatus } from "#model/kinds.ts";
import type { Span } from "../state/span.ts";
import type { Zone } from "../state/zones.ts";
import { ask, type Input, type OperationName, type Output } from "./ask.ts";
import { type ApiProblem, toProblem } from "./client.ts";

/** The answers of several zones, and the zones that did not answer. */
export interface OfZones<Answer> {
  readonly answers: readonly { readonly zone: Zone; readonly answer: Answer }[];
  readonly failed: readonly { readonly zone: Zone; readonly problem: ApiProblem }[];
}

/** The answers of an operation about each of these zones, asked again every minute. */
export function useOfZones<Name extends OperationName, Shown = OfZones<Output<Name>>>(
  name: Name,
  zones: readonly Zone[],
  input: Omit<Input<Name>, "zone">,
  select?: (found: OfZones<Output<Name>>) => Shown,
) {
  return useQuery({
    queryKey: [name, zones.map(({ id }) => id), input],
    queryFn: ({ signal }) =>
      askZones(zones, ({ id }) => ask(name, { ...input, zone: id } as Input<Name>, { signal }), signal),
    enabled: zones.length > 0,
    placeholderData: keepPreviousData,
    refetchInterval: 60_000,
    ...({ select } as object),
  }) as UseQueryResult<Shown>;
}

/**
 * Asks for each zone. Zones that fail do not hide the others.
 * @throws {ApiProblem} if every zone failed.
 */
export async function askZones<Answer>(
  zones: readonly Zone[],
  ask: (zone: Zone) => Promise<Answer>,
  signal: AbortSignal,
): Promise<OfZones<Answer>> {
  const settled = await Promise.allSettled(zones.map(ask));
  signal.throwIfAborted();
  const answers: { zone: Zone; answer: Answer }[] = [];
  const failed: { zone: Zone; problem: ApiProblem }[] = [];
  for (const [index, zone] of zones.entries()) {
    const one = settled[index];
    if (one?.status === "fulfilled") answers.push({ zone, answer: one.value });
    else failed.push({ zone, problem: toProblem(one?.reason) });
  }
  const [first] = failed;
  if (answers.length === 0 && first !== undefined) throw first.problem;
  return { answers, failed };
}

/** How many hours of the span are in which state, over all zones. */
export type Completeness = Readonly<Record<HourStatus, number>>;

/** Hours up to 40 days, days beyond: no more than the service gives. */
const LONGEST_BY_HOUR = 40 * DAY_MS;

/** Returns the hours of the span that are proven. In these hours the numbers of a chart are complete. */
export function useCompleteness(zones: readonly Zone[], { fromMs, toMs }: Pick<Span, "fromMs" | "toMs">) {
  const width = toMs - fromMs <= LONGEST_BY_HOUR ? "hour" : "day";
  const widthMs = width === "hour" ? HOUR_MS : DAY_MS;
  const query = {
    width,
    from: Math.floor(fromMs / widthMs) * widthMs,
    to: Math.ceil(toMs / widthMs) * widthMs,
  } as const;
  const count = useCallback(
    ({ answers, failed }: OfZones<Output<"trends.show">>) => {
      const completeness = {
        sealed: 0,
        searched: 0,
        open: 0,
        gap: 0,
        imported: 0,
        unwatched: 0,
        "not yet": 0,
      };
      const incomplete = new Set<number>();
      for (const { startsAtMs, coverage } of answers.flatMap(({ answer }) => answer.points)) {
        completeness[coverage] += 1;
        if (coverage === "gap" || coverage === "open" || coverage === "imported") incomplete.add(startsAtMs);
      }
      return { completeness, incomplete, widthMs, failed };
    },
    [widthMs],
  );
  return useOfZones("trends.show", zones, query, count);
}

export type Known = ReturnType<typeof useCompleteness>["data"];

/** Returns for each bucket whether a part of it lies in an hour that is open or lost. */
export function markIncomplete(timesMs: readonly number[], bucketMs: number, known: Known): boolean[] {
  if (known === undefined) return [];
  const { incomplete, widthMs } = known;
  return timesMs.map((at) => {
    for (let start = Math.floor(at / widthMs) * widthMs; start < at + bucketMs; start += widthMs)
      if (incomplete.has(start)) return true;
    return false;
  });
}
