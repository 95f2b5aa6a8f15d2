import type { HourLooks } from "./look.ts";

/** One hour of a zone and what is known of its completeness; times in epoch ms, null where it has not happened. */
export interface CoveredHour {
  readonly startsAt: number;
  readonly state: "open" | "sealed" | "gap";
  /** How far the search route has covered it. */
  readonly searchedThrough: number | null;
  /** When it last gained an event. */
  readonly lastNewAt: number | null;
  /** Start of the latest complete search over the whole hour that began after it had settled. */
  readonly closingSearchAt: number | null;
  /** When the platform's counts were last read and compared. */
  readonly reconciledAt: number | null;
  readonly upstreamCount: number | null;
  readonly storedCount: number;
  /** Of that comparison: rules with fewer events here than there. */
  readonly missingCells: number;
  /** The same with more. */
  readonly surplusCells: number;
  /** When a seal was last withdrawn. */
  readonly reopenedAt: number | null;
  readonly reopenReason: string | null;
  /** Looks that began before it prove nothing. */
  readonly proofFrom: number | null;
  /** When the list last stored an event that the search had not shown; null when every event is resolved. */
  readonly unresolvedSince: number | null;
  readonly looks: HourLooks;
}

/** All that is known of one hour of a zone; times in epoch ms. */
export interface CoverageHour extends CoveredHour {
  readonly sealedAt: number | null;
  readonly gapReason: string | null;
  /** What a sealed hour was sealed by. */
  readonly evidence: unknown;
}
