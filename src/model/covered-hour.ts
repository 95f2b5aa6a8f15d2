import type { HourState } from "./kinds.ts";
import type { HourLooks } from "./look.ts";

/** One hour of a zone and its completeness; times in epoch ms, null if the event has not happened. */
export interface CoveredHour {
  readonly startsAt: number;
  readonly state: HourState;
  /** End of the part that the search route has covered. */
  readonly searchedThrough: number | null;
  /** Time at which the hour last gained an event. */
  readonly lastNewAt: number | null;
  /** Start of the latest complete search over the whole hour that began after it had settled. */
  readonly closingSearchAt: number | null;
  /** Time at which the platform's counts were last read and compared. */
  readonly reconciledAt: number | null;
  readonly upstreamCount: number | null;
  readonly storedCount: number;
  /** Number of rules of which that comparison found fewer events stored than the platform counts. */
  readonly missingCells: number;
  /** Number of rules of which it found more events stored. */
  readonly surplusCells: number;
  /** Time at which a seal was last withdrawn. */
  readonly reopenedAt: number | null;
  readonly reopenReason: string | null;
  /** Looks that began before this time prove nothing. */
  readonly proofFrom: number | null;
  /** Time at which the list last stored an event that the search had not shown; null if every event is resolved. */
  readonly unresolvedSince: number | null;
  readonly looks: HourLooks;
}

/** The full row of one hour of a zone; times in epoch ms. */
export interface CoverageHour extends CoveredHour {
  readonly sealedAt: number | null;
  readonly gapReason: string | null;
  /** When the hour was judged with all events that are stored of it, and with which settings; null if it was not. */
  readonly judgedAt: number | null;
  readonly judgedWith: string | null;
  /** The evidence for the seal. */
  readonly evidence: unknown;
}

/** The stored events of an hour. */
export interface HourContents {
  /** Distinct log ids. */
  readonly count: number;
  /** Exclusive or of the first eight bytes of the SHA-256 of each log id, as hex. */
  readonly ids: string;
  /** Events whose dimensions the search has not given. */
  readonly unresolved: number;
  /** Rows beyond the first of a log id. */
  readonly doubled: number;
  /** When a look first showed another value that no later look has confirmed or dismissed, epoch ms; null if none did. */
  readonly contestedAt: number | null;
  /** Values that later looks changed. */
  readonly revised: number;
}
