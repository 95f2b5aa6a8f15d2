import type { CoveredHour } from "../model/covered-hour.ts";

/**
 * State of an hour. open: not decided. suspect: not decided, and a route of its zone shows less than before.
 * reopened: its seal was withdrawn. sealed: proven complete. gap: the platform forgot the hour before it was proven.
 */
export type CoverageState = "open" | "suspect" | "reopened" | "sealed" | "gap";

/** Every possible change of state, with its cause. docs/how-it-works.md shows the same table. */
export const TRANSITIONS: Readonly<Record<CoverageState, Partial<Record<CoverageState, string>>>> = {
  open: {
    suspect: "a route of the zone shows less than before",
    sealed: "every look agrees with what is stored",
    gap: "the platform begins to forget the hour",
  },
  suspect: {
    open: "looks of the route agree again for ten minutes",
    reopened: "the same, for an hour whose seal was withdrawn",
    sealed: "the same, and every look agrees with what is stored",
    gap: "the platform begins to forget the hour",
  },
  reopened: {
    suspect: "a route of the zone shows less than before",
    sealed: "every look agrees with what is stored",
    gap: "the platform begins to forget the hour",
  },
  sealed: {
    reopened:
      "a count differs, an event came late, metrics are above the stored count, or a log id was stored twice",
    suspect: "the same, while a route of the zone is suspect",
  },
  gap: {},
};

export function coverageState(
  { state, reopenedAt }: Pick<CoveredHour, "state" | "reopenedAt">,
  isZoneSuspect: boolean,
): CoverageState {
  if (state !== "open") return state;
  if (isZoneSuspect) return "suspect";
  return reopenedAt === null ? "open" : "reopened";
}
