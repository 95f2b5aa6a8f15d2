import { Fragment, type ReactNode } from "react";
import { HOUR_STATUSES, type HourStatus } from "#model/kinds.ts";
import { formatMoment } from "../style/words.ts";
import { axisTicks, periodOf, type StripUnit } from "./axis-ticks.ts";
import classes from "./coverage-strip.module.css";

/** The meaning of each state, in words. */
export const STATE_WORDS: Readonly<Record<HourStatus, string>> = {
  sealed: "sealed: proven complete",
  searched: "searched: read once, not proven yet",
  open: "open: still being read",
  gap: "gap: events are lost",
  imported: "imported: not proven",
  unwatched: "before Longwatch watched",
  "not yet": "not yet",
};

export interface StripCell {
  readonly startsAtMs: number;
  readonly state: HourStatus;
  /** Added to the cell's title: counts, for example. */
  readonly note?: string;
}

interface Props<Cell extends StripCell> {
  readonly cells: readonly Cell[];
  readonly label: string;
  readonly height?: number;
  readonly onPick?: (cell: Cell) => void;
  /** The length of a cell. On a phone, cells that can be picked are in rows, below the name of their day, month or year. */
  readonly unit?: StripUnit;
  /** Start of the chosen cell. */
  readonly picked?: number | null;
  /** The meaning of the states, if it is not that of coverage: the short word, a colon, and the rest. */
  readonly words?: Readonly<Record<HourStatus, string>>;
}

/** One cell per hour or day; its form differs with its state, not only its colour. */
export function CoverageStrip<Cell extends StripCell>({ cells, label, height = 20, ...props }: Props<Cell>) {
  const { onPick, unit = "hour", picked = null, words } = props;
  const text = ({ startsAtMs, state, note = "" }: StripCell) =>
    `${formatMoment(startsAtMs)}  ${(words ?? STATE_WORDS)[state]}\n${note}`.trimEnd();
  const strip = { className: classes["strip"], style: { height } };
  if (onPick === undefined)
    return (
      <div {...strip} role="img" aria-label={`${label}: ${countStates(cells, words)}`}>
        {cells.map((cell) => (
          <span
            key={cell.startsAtMs}
            className={classes["cell"]}
            data-state={cell.state}
            title={text(cell)}
          />
        ))}
      </div>
    );
  const stop = cells.find((cell) => cell.startsAtMs === picked) ?? cells.at(-1);
  const periods = cells.map(({ startsAtMs }) => periodOf(startsAtMs, unit));
  return (
    <div {...strip} role="group" aria-label={label} onKeyDown={moveFocus}>
      {cells.map((cell, index) => (
        <Fragment key={cell.startsAtMs}>
          {periods[index] === periods[index - 1] ? null : (
            <span className={classes["period"]} aria-hidden="true">
              {periods[index]}
            </span>
          )}
          <button
            type="button"
            className={classes["cell"]}
            data-state={cell.state}
            data-pickable
            data-picked={picked === cell.startsAtMs || undefined}
            // One stop for the tabulator; the arrows go on.
            tabIndex={cell === stop ? 0 : -1}
            title={text(cell)}
            aria-label={text(cell)}
            onClick={() => onPick(cell)}
          />
        </Fragment>
      ))}
    </div>
  );
}

function moveFocus(event: React.KeyboardEvent): void {
  if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
  const cells = [...event.currentTarget.querySelectorAll("button")];
  const at = cells.indexOf(event.target as HTMLButtonElement);
  const next = cells[at + (event.key === "ArrowLeft" ? -1 : 1)];
  if (next === undefined) return;
  event.preventDefault();
  next.focus();
}

/** `69 sealed, 2 open, 1 gap`. */
export function countStates(
  cells: readonly Pick<StripCell, "state">[],
  words?: Readonly<Record<HourStatus, string>>,
): string {
  return HOUR_STATUSES.flatMap((state) => {
    const count = cells.filter((cell) => cell.state === state).length;
    const word = words?.[state].replace(/:.*/, "") ?? state;
    return count === 0 || state === "not yet" ? [] : [`${count} ${word}`];
  }).join(", ");
}

interface AxisProps {
  readonly starts: readonly number[];
  readonly unit: StripUnit;
  /** Whether there is room for few labels only. */
  readonly isShort?: boolean;
}

/** The time axis of a strip whose cells begin at these times. Screen readers find the times in the cells. */
export function StripAxis({ starts, unit, isShort = false }: AxisProps) {
  return (
    <div className={classes["axis"]} aria-hidden="true">
      {axisTicks(starts, unit)
        .filter(({ isMinor }) => !(isShort && isMinor))
        .map(({ index, label, isMinor }) => (
          <span
            key={index}
            data-minor={isMinor || undefined}
            style={{ left: `${(index / starts.length) * 100}%` }}
          >
            {label}
          </span>
        ))}
    </div>
  );
}

interface ZoneProps {
  readonly name: ReactNode;
  readonly children: ReactNode;
}

/** The strips of one zone, beside its name. */
export function ZoneStrips({ name, children }: ZoneProps) {
  return (
    <div className={classes["zone"]}>
      {name}
      <div>{children}</div>
    </div>
  );
}
