import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import type { HourStatus } from "#model/kinds.ts";
import type { Span } from "../state/span.ts";
import { ask } from "./ask.ts";
import { askZones } from "./of-zones.ts";
import type { Zone } from "./status.ts";

/** How many hours of the span are in which state, over all zones. */
export type Completeness = Readonly<Record<HourStatus, number>>;

/** Hours up to 40 days, days beyond: no more than the service gives. */
const LONGEST_BY_HOUR = 40 * DAY_MS;

/** Which hours of the span are proven. The numbers of a chart are complete where they are. */
export function useCompleteness(zones: readonly Zone[], span: Pick<Span, "fromMs" | "toMs">) {
  const { fromMs, toMs } = span;
  const isByHour = toMs - fromMs <= LONGEST_BY_HOUR;
  const widthMs = isByHour ? HOUR_MS : DAY_MS;
  const query = {
    width: isByHour ? ("hour" as const) : ("day" as const),
    from: Math.floor(fromMs / widthMs) * widthMs,
    to: Math.ceil(toMs / widthMs) * widthMs,
  };
  return useQuery({
    queryKey: ["completeness", zones.map(({ id }) => id), query],
    queryFn: async ({ signal }) => {
      const askOne = ({ id }: Zone) => ask("trends.show", { zone: id, ...query }, { signal });
      const { answers, failed } = await askZones(zones, askOne, signal);
      const completeness = { sealed: 0, searched: 0, open: 0, gap: 0, unwatched: 0, "not yet": 0 };
      const incomplete = new Set<number>();
      for (const { answer } of answers)
        for (const { startsAtMs, coverage } of answer.points) {
          completeness[coverage] += 1;
          if (coverage === "gap" || coverage === "open") incomplete.add(startsAtMs);
        }
      return { completeness, incomplete, widthMs, failed };
    },
    enabled: zones.length > 0,
    placeholderData: keepPreviousData,
    refetchInterval: 60_000,
  });
}

/** Returns for each bucket whether a part of it lies in an hour that is open or lost. */
export function markIncomplete(
  timesMs: readonly number[],
  bucketMs: number,
  known: { readonly incomplete: ReadonlySet<number>; readonly widthMs: number } | undefined,
): boolean[] {
  if (known === undefined) return [];
  const { incomplete, widthMs } = known;
  return timesMs.map((at) => {
    for (let start = Math.floor(at / widthMs) * widthMs; start < at + bucketMs; start += widthMs)
      if (incomplete.has(start)) return true;
    return false;
  });
}
