import "uplot/dist/uPlot.min.css";
import { useComputedColorScheme } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import uPlot from "uplot";
import { formatDecimal, many } from "#lib/format.ts";
import { formatCount, formatMoment, formatOffset } from "../style/words.ts";
import { Swatch } from "./facts.tsx";
import { Payload } from "./payload.tsx";
import classes from "./time-series.module.css";

interface Series {
  readonly id: string;
  readonly label: string;
  /** A CSS colour or `var(--...)`. */
  readonly colour: string;
  readonly values: readonly number[];
}

interface Line extends Omit<Series, "values"> {
  readonly isDashed?: boolean;
  /** Null where there is no value. */
  readonly values: readonly (number | null)[];
}

interface Marker {
  readonly atMs: number;
  readonly kind: "opened" | "resolved";
}

/** Something that a person or a tool noted. */
export interface NoteMark {
  readonly id: number;
  readonly atMs: number;
  /** Hostile text. */
  readonly text: string;
}

export interface TimeSeriesProps {
  /** Starts of the buckets. */
  readonly timesMs: readonly number[];
  readonly widthMs: number;
  /** Stacked bars, the first at the bottom. */
  readonly series: readonly Series[];
  /** Lines over the bars. The area between two lines is shaded. */
  readonly lines?: readonly Line[] | undefined;
  readonly markers?: readonly Marker[];
  readonly notes: readonly NoteMark[];
  /** Buckets whose counts may be too low. */
  readonly incomplete?: readonly boolean[];
  readonly height?: number;
  readonly onBrush?: (fromMs: number, toMs: number) => void;
  readonly onWiden?: () => void;
  /** A click on a name of the legend includes it, with Alt it excludes it. */
  readonly onPick?: (id: string, kind: "is" | "not") => void;
  /** A description of the chart for people who do not see it. */
  readonly label: string;
}

/** Counts over time. Drag to narrow the span, double click to widen it. Loaded by the pages that need it. */
export default function TimeSeries(props: TimeSeriesProps) {
  const host = useRef<HTMLDivElement>(null);
  const latest = useRef(props);
  latest.current = props;
  const scheme = useComputedColorScheme("dark");
  const [pointed, setPointed] = useState<number | null>(null);
  const { timesMs, series, lines, markers, notes, incomplete, height = 180, label } = props;
  const chart = useRef<uPlot | null>(null);
  const shape = JSON.stringify([
    series.map(({ id, colour }) => [id, colour]),
    lines?.map(({ id }) => id),
    height,
    scheme,
  ]);

  useEffect(() => {
    const element = host.current;
    if (element === null) return undefined;
    const made = new uPlot(toOptions(element, latest, setPointed), toData(latest.current), element);
    chart.current = made;
    const observer = new ResizeObserver(() => {
      if (element.clientWidth > 0)
        made.setSize({ width: element.clientWidth, height: latest.current.height ?? 180 });
    });
    observer.observe(element);
    const widen = () => latest.current.onWiden?.();
    made.over.addEventListener("dblclick", widen);
    return () => {
      observer.disconnect();
      made.destroy();
      chart.current = null;
    };
  }, [shape]);

  useEffect(() => {
    chart.current?.setData(toData(latest.current));
  }, [timesMs, series, lines, markers, notes, incomplete]);

  const at = pointed === null ? undefined : timesMs[pointed];
  return (
    <figure className={classes["figure"]}>
      <div ref={host} className={classes["plot"]} style={{ height }} role="img" aria-label={label} />
      <figcaption className={classes["legend"]}>
        <span className={classes["when"]}>
          {at === undefined
            ? `total of the span, times in ${formatOffset(timesMs.at(-1) ?? 0)}`
            : `${formatMoment(at)} ${formatOffset(at)}`}
        </span>
        {series.map((one) => (
          <LegendName {...props} key={one.id} series={one} pointed={pointed} />
        ))}
        {lines?.map(({ id, label, colour, isDashed = false, values }) => (
          <span key={id}>
            <span
              className={classes["stroke"]}
              style={{ borderTop: `2px ${isDashed ? "dashed" : "solid"} ${colour}` }}
              aria-hidden="true"
            />{" "}
            {label} <b>{showAt(values, pointed)}</b>
          </span>
        ))}
        {incomplete?.some(Boolean) ? (
          <span>
            <span className={classes["hatch"]} aria-hidden="true" /> not sealed: counts may be low
          </span>
        ) : null}
        {(markers?.length ?? 0) > 0 ? (
          <span>
            <span className={classes["fired"]} aria-hidden="true">
              ▼
            </span>{" "}
            alert opened{markers?.some(({ kind }) => kind === "resolved") ? ", ▽ resolved" : ""}
          </span>
        ) : null}
        <NoteNames notes={notes} />
      </figcaption>
    </figure>
  );
}

/** The newest notes are named, because each takes a line on a phone. */
const MOST_NAMED = 3;

function NoteNames({ notes }: Pick<TimeSeriesProps, "notes">) {
  const more = notes.length - MOST_NAMED;
  return (
    <>
      {notes.slice(0, MOST_NAMED).map(({ id, atMs, text }) => (
        <span key={id}>
          <span className={classes["note"]} aria-hidden="true">
            ◆
          </span>{" "}
          {formatMoment(atMs)} <Payload prose text={text} />
        </span>
      ))}
      {more > 0 ? <span>and {many(more, "further note")}</span> : null}
    </>
  );
}

function showAt(values: readonly (number | null)[], index: number | null): string {
  const value = index === null ? null : values[index];
  return value === null || value === undefined ? "" : formatDecimal(value);
}

interface NameProps extends Pick<TimeSeriesProps, "onPick"> {
  readonly series: Series;
  readonly pointed: number | null;
}

function LegendName({ series: { id, label, colour, values }, pointed, onPick }: NameProps) {
  const value = pointed === null ? values.reduce((sum, one) => sum + one, 0) : (values[pointed] ?? 0);
  const content = (
    <>
      <Swatch colour={colour} /> {label} <b>{formatCount(value)}</b>
    </>
  );
  if (onPick === undefined) return <span>{content}</span>;
  return (
    <button
      type="button"
      className="lw-plain"
      title={`Filter for ${label} (Alt: filter out)`}
      onClick={(event) => onPick(id, event.altKey ? "not" : "is")}
    >
      {content}
    </button>
  );
}

/** Every series holds the sum of itself and all below it; the highest is drawn first. */
function toData({ timesMs, series, lines = [] }: TimeSeriesProps): uPlot.AlignedData {
  const sums: number[][] = [];
  for (const { values } of series) {
    const below = sums.at(-1);
    sums.push(timesMs.map((_, index) => (below?.[index] ?? 0) + (values[index] ?? 0)));
  }
  const drawn = lines.map(({ values }) => [...values]);
  return [timesMs.map((at) => at / 1_000), ...sums.reverse(), ...drawn] as uPlot.AlignedData;
}

function toOptions(
  element: HTMLElement,
  latest: { readonly current: TimeSeriesProps },
  setPointed: (index: number | null) => void,
): uPlot.Options {
  const { series, lines = [], height = 180 } = latest.current;
  // A canvas knows neither variables nor the theme, so an element says what a colour is.
  const resolve = (colour: string) => {
    element.style.color = colour;
    return getComputedStyle(element).color;
  };
  const bars = uPlot.paths.bars?.({ size: [0.86, 60], align: 1 });
  const dim = resolve("var(--lw-dim)");
  const font = "11px system-ui, sans-serif";
  const axis = { stroke: dim, font, ticks: { show: false } };
  const drawn = [...series].reverse().map(({ label, colour }) => ({
    label,
    fill: resolve(colour),
    width: 0,
    points: { show: false },
    ...(bars === undefined ? {} : { paths: bars }),
  }));
  const drawnLines = lines.map(({ label, colour, isDashed = false }) => ({
    label,
    stroke: resolve(colour),
    width: 1.5,
    dash: isDashed ? [4, 3] : [],
    points: { show: false },
  }));
  const first = drawn.length + 1;
  const shade = resolve("color-mix(in srgb, var(--lw-dim) 13%, transparent)");
  return {
    width: Math.max(element.clientWidth, 100),
    height,
    padding: [12, 20, 0, 0],
    legend: { show: false },
    cursor: {
      points: { show: false },
      y: false,
      drag: { x: true, y: false, setScale: false },
    },
    scales: {
      x: { time: true, range: () => toRange(latest.current) },
      y: { range: (_, __, most) => [0, Math.max(most * 1.08, 4)] },
    },
    axes: [
      { ...axis, grid: { show: false }, space: 72, size: 24, values: (_, splits) => nameTimes(splits) },
      {
        ...axis,
        size: 46,
        space: 34,
        grid: { stroke: resolve("var(--lw-line)"), width: 1 },
        values: (_, splits) => splits.map((value) => (value % 1 === 0 ? formatCount(value) : "")),
      },
    ],
    series: [{}, ...drawn, ...drawnLines],
    ...(lines.length === 2 ? { bands: [{ series: [first, first + 1], fill: shade }] } : {}),
    hooks: {
      drawClear: [(plot) => shadeIncomplete(plot, latest.current, resolve("var(--lw-line-strong)"))],
      draw: [(plot) => drawMarks(plot, latest.current, resolve)],
      setCursor: [(plot) => setPointed(plot.cursor.idx ?? null)],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select;
          if (width < 6) return;
          const toTime = (x: number) => plot.posToVal(x, "x") * 1_000;
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          latest.current.onBrush?.(toTime(left), toTime(left + width));
        },
      ],
    },
  };
}

/** The time of day; where a new day begins, the day instead. */
function nameTimes(splits: readonly number[]): string[] {
  const days = splits.map((seconds) => formatMoment(seconds * 1_000).slice(5, 10));
  const isWide = (splits.at(-1) ?? 0) - (splits[0] ?? 0) > 5 * 86_400;
  return splits.map((seconds, index) =>
    isWide || (index > 0 && days[index] !== days[index - 1])
      ? (days[index] ?? "")
      : formatMoment(seconds * 1_000).slice(11),
  );
}

function toRange({ timesMs, widthMs }: TimeSeriesProps): [number, number] {
  const first = timesMs[0] ?? 0;
  const last = timesMs.at(-1) ?? first;
  return [first / 1_000, (last + widthMs) / 1_000];
}

function shadeIncomplete(
  plot: uPlot,
  { timesMs, widthMs, incomplete = [] }: TimeSeriesProps,
  colour: string,
) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.beginPath();
  for (const [index, isIncomplete] of incomplete.entries()) {
    const at = timesMs[index];
    if (!isIncomplete || at === undefined) continue;
    const left = plot.valToPos(at / 1_000, "x", true);
    const right = plot.valToPos((at + widthMs) / 1_000, "x", true);
    ctx.rect(left, bbox.top, right - left, bbox.height);
  }
  ctx.clip();
  ctx.strokeStyle = colour;
  ctx.globalAlpha = 0.5;
  ctx.lineWidth = 1;
  ctx.beginPath();
  for (let x = bbox.left - bbox.height; x < bbox.left + bbox.width; x += 9) {
    ctx.moveTo(x, bbox.top + bbox.height);
    ctx.lineTo(x + bbox.height, bbox.top);
  }
  ctx.stroke();
  ctx.restore();
}

/** How the line of a mark is drawn, and the shape on it. */
const LOOKS = {
  opened: { colour: "var(--lw-fire)", dash: [], isFilled: true },
  resolved: { colour: "var(--lw-dim)", dash: [3, 3], isFilled: false },
  note: { colour: "var(--lw-accent)", dash: [2, 4], isFilled: true },
} as const;

/** A triangle on top for an alert, a diamond on the axis of time for a note, and a line over the whole height. */
function drawMarks(
  plot: uPlot,
  { markers = [], notes }: Pick<TimeSeriesProps, "markers" | "notes">,
  resolve: (colour: string) => string,
): void {
  const { ctx, bbox } = plot;
  const { top } = bbox;
  const bottom = top + bbox.height;
  const [large, small] = [5 * devicePixelRatio, 4 * devicePixelRatio];
  ctx.save();
  ctx.lineWidth = devicePixelRatio;
  for (const { atMs, kind } of [...markers, ...notes.map(({ atMs }) => ({ atMs, kind: "note" as const }))]) {
    const x = plot.valToPos(atMs / 1_000, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    const { colour, dash, isFilled } = LOOKS[kind];
    ctx.strokeStyle = resolve(colour);
    ctx.fillStyle = ctx.strokeStyle;
    ctx.setLineDash([...dash]);
    ctx.beginPath();
    ctx.moveTo(x, top);
    ctx.lineTo(x, bottom);
    ctx.stroke();
    ctx.setLineDash([]);
    const triangle = [
      [x - large, top - large],
      [x + large, top - large],
      [x, top + large * 0.6],
    ] as const;
    const diamond = [
      [x, bottom - 2 * small],
      [x + small, bottom - small],
      [x, bottom],
      [x - small, bottom - small],
    ] as const;
    ctx.beginPath();
    for (const [left, down] of kind === "note" ? diamond : triangle) ctx.lineTo(left, down);
    ctx.closePath();
    if (isFilled) ctx.fill();
    else ctx.stroke();
  }
  ctx.restore();
}
