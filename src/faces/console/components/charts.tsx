/** Charts. The library that draws them is loaded when the first one is shown. */
import { Skeleton } from "@mantine/core";
import { lazy, Suspense, useMemo } from "react";
import { DAY_MS } from "#lib/units.ts";
import { ACTION_CLASSES, type ActionClass } from "#model/kinds.ts";
import { type Known, markIncomplete } from "../api/of-zones.ts";
import { useNotes } from "../api/queries.ts";
import type { EventScope } from "../api/search.ts";
import { filterAction } from "../state/filters.ts";
import { useSpan } from "../state/span.ts";
import { useUrlState } from "../state/url-state.ts";
import { useZones, zoneTitle } from "../state/zones.ts";
import { ACTION_COLOURS, formatCount } from "../style/words.ts";
import { ChoiceMenu } from "./buttons.tsx";
import type { NoteMark, TimeSeriesProps } from "./time-series.tsx";

// Loaded while the page asks for the numbers of its first chart, not after them.
const loading = import("./time-series.tsx");
const Chart = lazy(() => loading);

/** The height of a legend of one line. */
const LEGEND_PX = 24;

/** Returns the height of a chart whose plot has this height. */
export function chartHeight(plotPx: number): number {
  return plotPx + LEGEND_PX;
}

const NO_NOTES: readonly NoteMark[] = [];

/** The chart, with the notes of its time on it. Its library is a script of its own. */
export function TimeSeries({ zone, ...props }: Omit<TimeSeriesProps, "notes"> & { readonly zone?: number }) {
  const { only } = useZones();
  const { timesMs, widthMs } = props;
  const [first = 0, last = 0] = [timesMs[0], timesMs.at(-1)];
  const { data } = useNotes(first, last + widthMs, zone ?? only?.id ?? null);
  const notes = useMemo(
    () => data?.items.map(({ id, at, text }) => ({ id, atMs: Date.parse(at), text })) ?? NO_NOTES,
    [data],
  );
  return (
    <Suspense fallback={<Skeleton height={chartHeight(props.height ?? 180)} animate={false} />}>
      <Chart {...props} notes={notes} />
    </Suspense>
  );
}

type Counts = Readonly<Record<ActionClass, readonly number[]>>;

/** The events of another time or zone, as a dashed line over the bars. */
interface Against {
  /** `a week earlier`. */
  readonly words: string;
  readonly total: number;
  readonly counts: Counts;
}

/** The most zones that the menu names. */
const MOST_ZONES = 20;

/**
 * Returns the second line of a page's plot: of the period before, a week earlier, or another zone. The page's address has the choice.
 * `words` are null if there is none.
 */
export function useAgainst({ zones, fromMs, toMs }: Pick<EventScope, "zones" | "fromMs" | "toMs">) {
  const { params, change } = useUrlState();
  const { all } = useZones();
  const chosen = params.get("against");
  const others = all.filter(({ id }) => !zones.some((zone) => zone.id === id));
  const zone = others.find(({ id }) => String(id) === chosen);
  const words = zone !== undefined ? `in ${zoneTitle(zone)}` : (WORDS[chosen ?? ""] ?? null);
  const word = words === null ? "Compare" : `Against ${words.replace(/^in /, "")}`;
  const shiftMs = zone !== undefined ? 0 : chosen === "week" ? 7 * DAY_MS : toMs - fromMs;
  const to = (against: string | null) => () => change({ against });
  const items = {
    "The period before": to("before"),
    "A week earlier": to("week"),
    ...Object.fromEntries(
      others.slice(0, MOST_ZONES).map((one) => [`In ${zoneTitle(one)}`, to(String(one.id))]),
    ),
    ...(words === null ? {} : { Nothing: to(null) }),
  };
  return {
    words,
    zones: words === null ? [] : zone === undefined ? zones : [zone],
    fromMs: fromMs - shiftMs,
    toMs: toMs - shiftMs,
    menu: (
      <ChoiceMenu
        size="xs"
        // The name of a control begins with the words that it shows.
        label={words === null ? "Compare the plot" : `${word}: compare the plot`}
        word={word}
        items={items}
      />
    ),
  };
}

const WORDS: Readonly<Record<string, string>> = { before: "the period before", week: "a week earlier" };

interface Props extends Pick<TimeSeriesProps, "timesMs" | "widthMs" | "height" | "label" | "markers"> {
  /** Null: nothing is compared, or it is not known yet. */
  readonly against: Against | null;
  readonly counts: Counts;
  /** Actions that are shown even without events. */
  readonly always: readonly ActionClass[];
  readonly known: Known;
}

/** Events over time by action. What is dragged is the new span of the page, a name of the legend is a filter. */
export function ActionChart({ counts, always, known, against, label, ...chart }: Props) {
  const { timesMs, widthMs } = chart;
  const span = useSpan();
  const series = useMemo(() => {
    const shown = ACTION_CLASSES.filter(
      (name) => always.includes(name) || counts[name].some((one) => one > 0),
    );
    return shown.map((id) => ({ id, label: id, colour: ACTION_COLOURS[id], values: counts[id] }));
  }, [counts, always]);
  const lines = useMemo(() => {
    if (against === null) return [];
    const values = timesMs.map((_, step) =>
      ACTION_CLASSES.reduce((sum, name) => sum + (against.counts[name][step] ?? 0), 0),
    );
    const name = `${against.words}: ${formatCount(against.total)}`;
    return [{ id: "against", label: name, colour: "var(--lw-dim)", isDashed: true, values }];
  }, [against, timesMs]);
  const incomplete = useMemo(() => markIncomplete(timesMs, widthMs, known), [timesMs, widthMs, known]);
  return (
    <TimeSeries
      {...chart}
      label={
        against === null ? label : `${label}; a dashed line: ${formatCount(against.total)} ${against.words}`
      }
      series={series}
      lines={lines}
      incomplete={incomplete}
      onBrush={span.narrow}
      onWiden={span.widen}
      onPick={filterAction}
    />
  );
}

interface SparklineProps {
  readonly values: readonly number[];
  readonly width?: number;
  readonly height?: number;
  /** A description of the line for people who do not see it. */
  readonly label: string;
  readonly colour?: string;
}

/** A small bar per value. The highest bar is full; a bar of a value above 0 is never invisible. */
export function Sparkline({
  values,
  width = 96,
  height = 18,
  label,
  colour = "var(--lw-accent)",
}: SparklineProps) {
  const most = Math.max(...values, 1);
  const step = width / Math.max(values.length, 1);
  return (
    <svg width={width} height={height} role="img" aria-label={label} style={{ display: "block" }}>
      <line x1={0} x2={width} y1={height - 0.5} y2={height - 0.5} stroke="var(--lw-line)" />
      {values.map((value, index) => {
        const tall = value <= 0 ? 0 : Math.max(1.5, (value / most) * (height - 1));
        const key = index;
        return (
          <rect
            key={key}
            x={index * step}
            y={height - tall}
            width={Math.max(step - 0.6, 0.8)}
            height={tall}
            fill={colour}
          />
        );
      })}
    </svg>
  );
}
