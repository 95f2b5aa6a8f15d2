import type { CoveredHour } from "#model/covered-hour.ts";
import type { HourState } from "#model/kinds.ts";

/**
 * State of an hour. open: not decided. reopened: not decided, after its seal was withdrawn. sealed: proven complete.
 * gap: the platform forgot the hour before it was proven.
 */
export type CoverageState = HourState | "reopened";

const DECIDED = {
  sealed: "everything that the routes show is stored, and looks agree on what they no longer show",
  gap: "the platform has forgotten the hour",
};

/** Every possible change of state, with its cause. docs/how-it-works.md shows the same table. */
export const TRANSITIONS: Readonly<Record<CoverageState, Partial<Record<CoverageState, string>>>> = {
  open: DECIDED,
  reopened: DECIDED,
  sealed: {
    reopened:
      "a count differs, an event came late, metrics are above the stored count, or a log id was stored twice",
  },
  gap: {},
};

export function coverageState({
  state,
  reopenedAt,
}: Pick<CoveredHour, "state" | "reopenedAt">): CoverageState {
  if (state !== "open") return state;
  return reopenedAt === null ? "open" : "reopened";
}
