import { useCallback } from "react";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import type { HourStatus } from "#model/kinds.ts";
import type { Span } from "../state/span.ts";
import type { Output } from "./ask.ts";
import { type OfZones, useOfZones } from "./of-zones.ts";
import type { Zone } from "./status.ts";

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
      const completeness = { sealed: 0, searched: 0, open: 0, gap: 0, unwatched: 0, "not yet": 0 };
      const incomplete = new Set<number>();
      for (const { startsAtMs, coverage } of answers.flatMap(({ answer }) => answer.points)) {
        completeness[coverage] += 1;
        if (coverage === "gap" || coverage === "open") incomplete.add(startsAtMs);
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
