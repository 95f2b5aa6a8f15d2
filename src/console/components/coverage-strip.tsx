import { formatMoment } from "../look/words.ts";
import classes from "./coverage-strip.module.css";

const HOUR_STATES = ["sealed", "searched", "open", "gap", "unwatched", "not yet"] as const;
export type HourState = (typeof HOUR_STATES)[number];

/** The meaning of each state, in words. */
const STATE_WORDS: Readonly<Record<HourState, string>> = {
  sealed: "sealed: proven complete",
  searched: "searched: read once, not proven yet",
  open: "open: still being read",
  gap: "gap: events are lost",
  unwatched: "before Longwatch watched",
  "not yet": "not yet",
};

export interface StripCell {
  readonly startsAtMs: number;
  readonly state: HourState;
  /** Added to the cell's title: counts, for example. */
  readonly note?: string;
}

interface Props {
  readonly cells: readonly StripCell[];
  readonly label: string;
  readonly height?: number;
  readonly onPick?: (cell: StripCell) => void;
  /** Start of the chosen cell. */
  readonly picked?: number | null;
}

/** One cell per hour or day; its form differs with its state, not only its colour. */
export function CoverageStrip({ cells, label, height = 20, onPick, picked = null }: Props) {
  return (
    <div
      className={classes["strip"]}
      style={{ height }}
      role="img"
      aria-label={`${label}: ${countStates(cells)}`}
    >
      {cells.map((cell) => {
        const { startsAtMs, state, note } = cell;
        const title = `${formatMoment(startsAtMs)}  ${STATE_WORDS[state]}${note === undefined ? "" : `\n${note}`}`;
        return (
          <span
            key={startsAtMs}
            className={classes["cell"]}
            data-state={state}
            data-picked={picked === startsAtMs || undefined}
            data-pickable={onPick === undefined ? undefined : true}
            title={title}
            onClick={onPick === undefined ? undefined : () => onPick(cell)}
          />
        );
      })}
    </div>
  );
}

/** `69 sealed, 2 open, 1 gap`. */
export function countStates(cells: readonly Pick<StripCell, "state">[]): string {
  return HOUR_STATES.flatMap((state) => {
    const count = cells.filter((cell) => cell.state === state).length;
    return count === 0 || state === "not yet" ? [] : [`${count} ${state}`];
  }).join(", ");
}
