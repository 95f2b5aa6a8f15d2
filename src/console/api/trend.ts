import { keepPreviousData, useQuery } from "@tanstack/react-query";
import type { TrendAnswer } from "../../http/routes/v1/trends.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../lib/units.ts";
import type { HourState } from "../components/coverage-strip.tsx";
import type { ActionName } from "../look/words.ts";
import { bucketWidth, type Span } from "../state/span.ts";
import { call } from "./client.ts";
import { askZones, type OfZones } from "./of-zones.ts";
import type { Zone } from "./status.ts";

export interface Trend {
  readonly widthMs: number;
  readonly timesMs: readonly number[];
  readonly counts: Readonly<Record<ActionName | "total", readonly number[]>>;
  readonly incomplete: readonly boolean[];
  readonly completeness: Completeness;
  readonly failed: OfZones<unknown>["failed"];
}

/** How many hours of the span are in which state, over all zones. */
export type Completeness = Readonly<Record<HourState, number>>;

const WIDTHS = { minute: MINUTE_MS, hour: HOUR_MS, day: DAY_MS } as const;
const COUNTED = ["total", "blocked", "challenged", "logged", "other"] as const;

/** Minutes up to a day and a half, hours up to 40 days: enough buckets for a chart, and no more than the API gives. */
function pickSource(spanMs: number): keyof typeof WIDTHS {
  if (spanMs <= 1.5 * DAY_MS) return "minute";
  return spanMs <= 40 * DAY_MS ? "hour" : "day";
}

/** The events of these zones over time, all rules or one. */
export function useTrend(zones: readonly Zone[], span: Pick<Span, "fromMs" | "toMs">, rule?: string) {
  const { fromMs, toMs } = span;
  const ids = zones.map(({ id }) => id);
  return useQuery({
    queryKey: ["trend", ids, rule ?? null, fromMs, toMs],
    queryFn: async ({ signal }) => {
      const width = pickSource(toMs - fromMs);
      const widthMs = Math.max(bucketWidth(toMs - fromMs), WIDTHS[width]);
      const query = {
        width,
        from: startOf(fromMs, widthMs),
        to: Math.ceil(toMs),
        ...(rule === undefined ? {} : { rule }),
      };
      const ask = ({ id }: Zone) =>
        call<TrendAnswer>("/api/v1/trends", { query: { zone: id, ...query }, signal });
      return sumUp(await askZones(zones, ask, signal), widthMs);
    },
    enabled: zones.length > 0,
    placeholderData: keepPreviousData,
  });
}

/** Weeks would begin on a Thursday; days and less begin with the UTC day. */
function startOf(atMs: number, widthMs: number): number {
  return Math.floor(atMs / widthMs) * widthMs;
}

function sumUp({ answers, failed }: OfZones<TrendAnswer>, widthMs: number): Trend {
  const buckets = new Map<
    number,
    { counts: Record<(typeof COUNTED)[number], number>; isIncomplete: boolean }
  >();
  const hours = new Map<string, HourState>();
  for (const { zone, answer } of answers)
    for (const point of answer.points) {
      const at = startOf(point.startsAtMs, widthMs);
      const bucket = buckets.get(at) ?? {
        counts: { total: 0, blocked: 0, challenged: 0, logged: 0, other: 0 },
        isIncomplete: false,
      };
      for (const name of COUNTED) bucket.counts[name] += point[name];
      bucket.isIncomplete ||= point.coverage === "gap" || point.coverage === "open";
      buckets.set(at, bucket);
      hours.set(`${zone.id} ${startOf(point.startsAtMs, HOUR_MS)}`, point.coverage);
    }
  const sorted = [...buckets].sort(([one], [other]) => one - other);
  const column = (name: (typeof COUNTED)[number]) => sorted.map(([, { counts }]) => counts[name]);
  const completeness = { sealed: 0, searched: 0, open: 0, gap: 0, unwatched: 0, "not yet": 0 };
  for (const state of hours.values()) completeness[state] += 1;
  return {
    widthMs,
    timesMs: sorted.map(([at]) => at),
    counts: {
      total: column("total"),
      blocked: column("blocked"),
      challenged: column("challenged"),
      logged: column("logged"),
      other: column("other"),
    },
    incomplete: sorted.map(([, { isIncomplete }]) => isIncomplete),
    completeness,
    failed,
  };
}
